//! `ullage completions`: the script by which a shell completes the words of `ullage`.

use crate::arguments::CompletionsArguments;
use crate::{complete, printer};

/// Prints it.
pub fn run(arguments: &CompletionsArguments) -> anyhow::Result<u8> {
    let script = complete::script(arguments.shell.name());
    printer::out(&script.unwrap_or_default())?;
    Ok(0)
}
