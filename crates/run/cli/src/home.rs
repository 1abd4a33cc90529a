//! Where the recordings are, as the environment says.

use anyhow::Context;
use std::path::PathBuf;

/// `$ULLAGE_HOME`, else `$XDG_STATE_HOME/ullage`, else `~/.local/state/ullage`.
pub fn home() -> anyhow::Result<PathBuf> {
    ullage_recording::home(|name| std::env::var_os(name)).context(
        "no place for recordings: set ULLAGE_HOME to a directory (neither XDG_STATE_HOME nor HOME is set)",
    )
}

/// The recording that is meant by a name, the beginning of one, or a path; the newest for none.
pub fn find(wanted: Option<&str>) -> anyhow::Result<PathBuf> {
    Ok(ullage_recording::find(&home()?, wanted)?)
}
