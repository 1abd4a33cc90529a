//! Where the recordings are, as the environment says.

use anyhow::Context;
use std::path::{Path, PathBuf};
use ullage_model::RunId;

/// `$ULLAGE_HOME`, else `$XDG_STATE_HOME/ullage`, else `~/.local/state/ullage`.
pub fn home() -> anyhow::Result<PathBuf> {
    ullage_recording::home(|name| std::env::var_os(name)).context(
        "no place for recordings: set ULLAGE_HOME to a directory (neither XDG_STATE_HOME nor HOME is set)",
    )
}

/// The recording that is meant by a name, the beginning of one, the time in it, or a path; the newest for none.
pub fn find(wanted: Option<&str>) -> anyhow::Result<PathBuf> {
    Ok(ullage_recording::find(&home()?, wanted)?)
}

/// By what `ullage report` finds a recording: the directory that was asked for, else the time in its name, `194058`, or
/// the whole name where another recording is of that time too.
pub fn name_of(run: &RunId, record: Option<&Path>) -> String {
    if let Some(directory) = record {
        return directory.display().to_string();
    }
    let names = || home().ok().and_then(|home| std::fs::read_dir(home).ok()).into_iter().flatten().flatten();
    let alone = |time: &&str| {
        let of_it = |name: &str| {
            name != run.0 && (ullage_recording::time_of(name) == Some(*time) || name.starts_with(*time))
        };
        !names().any(|entry| entry.file_name().to_str().is_some_and(of_it))
    };
    ullage_recording::time_of(&run.0).filter(alone).unwrap_or(&run.0).to_owned()
}

/// The same of a recording that was found in this directory.
pub fn name_in(run: &RunId, directory: &Path) -> String {
    match home() {
        Ok(home) if directory == home.join(&run.0) => name_of(run, None),
        _ => directory.display().to_string(),
    }
}

/// What all recordings together may take where `ULLAGE_RECORDINGS_MAX` says nothing: 2,500 hours of 64 busy
/// processes, of 3.4 MB each (docs/recording-format.md).
const RECORDINGS_MAX: u64 = 8 << 30;

/// Removes the oldest recordings that have ended, until all together take no more than `ULLAGE_RECORDINGS_MAX`; what there is
/// to say of it.
///
/// One without an end is left: in a home that several machines share, it may be another machine's that goes on.
pub fn bound(keep: &RunId) -> Option<String> {
    let name = ullage_model::names::ENV_RECORDINGS_MAX;
    let most = match std::env::var(name).map(|text| crate::size::parse_size(&text)) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Some(format!("{name}: {error}; no recording was removed")),
        Err(_) => RECORDINGS_MAX,
    };
    let alive = |id: &ullage_model::ProcessId| crate::machine::is_alive(*id);
    let runs = ullage_recording::list_runs(&home().ok()?, alive).ok()?;
    let (mut removed, mut bytes) = (0u64, 0);
    for run in ullage_recording::beyond(&runs, most).into_iter().filter(|run| run.name != keep.0) {
        if ullage_recording::remove(&run.path, alive).is_ok() {
            (removed, bytes) = (removed + 1, bytes + run.bytes);
        }
    }
    let words = |bytes| ullage_report::format::bytes(bytes);
    (removed > 0).then(|| {
        format!(
            "removed {} ({}), the oldest: together they may take {} ({name})",
            ullage_report::format::plural(removed, "recording", "recordings"),
            words(bytes),
            words(most),
        )
    })
}
