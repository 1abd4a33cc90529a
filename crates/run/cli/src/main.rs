//! The `ullage` command: parses what was typed, runs one command, ends with its exit status.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ullage_cli::main()
}
