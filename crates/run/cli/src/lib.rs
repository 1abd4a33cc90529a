//! The front door: wires the rooms together, one file per command.
//!
//! What was typed is in [`arguments`]; every command returns an exit status or an [`anyhow::Error`], which is
//! printed here as one line with its hints, and ends in 125 (ullage itself failed).
#![forbid(unsafe_code)]

pub mod agent_code;
pub mod agent_files;
pub mod arguments;
pub mod commands;
pub mod complete;
pub mod environment;
pub mod exit;
pub mod fleet_copy;
pub mod fleet_rows;
pub mod home;
pub mod http_server;
pub mod imitated;
pub mod launcher;
pub mod live;
pub mod live_runs;
pub mod machine;
pub mod mailboxes;
pub mod metrics_file;
pub mod narrator;
pub mod now_file;
pub mod otlp_push;
pub mod paced;
pub mod printer;
pub mod python_facts;
pub mod remedies;
pub mod size;
pub mod snapshot_file;
pub mod terminal;
pub mod terminal_cells;
#[cfg(test)]
pub mod test_programs;
pub mod verdict_file;
pub mod viewer;
pub mod warnings;

use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use ullage_report::format;

/// Runs the command that was typed.
pub fn main() -> ExitCode {
    if complete::answered(Arguments::command) {
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output and end with 0; everything else is usage, 2.
            // clap repeats what was typed, as it was typed.
            let plain = error.render().to_string();
            match format::clean_lines(&plain) {
                clean if clean == plain => drop(error.print()),
                clean => printer::say(&clean),
            }
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    // What panics is told where it is caught, in ullage's own words; damaged recordings make parsers panic.
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(move || dispatch(arguments.command)).unwrap_or_else(|panic| {
        Err(anyhow::anyhow!("a fault in ullage: {}", live::panic_text(panic.as_ref())))
    });
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if printer::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            printer::error(&error);
            ExitCode::from(exit::FAILED)
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Run(run) => commands::run::run(&run),
        Command::Watch(watch) => commands::watch::run(&watch),
        Command::Report(report) => commands::report::run(&report),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::Check(check) => commands::check::run(&check),
        Command::Snapshot(snapshot) => commands::snapshot::run(&snapshot),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Fleet(fleet) => commands::fleet::run(&fleet),
        Command::Runs(runs) => commands::runs::run(&runs),
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Mark(mark) => commands::mark::run(&mark),
        Command::Export(export) => commands::export::run(&export),
        Command::Completions(completions) => commands::completions::run(&completions),
        Command::FleetCopier(copier) => fleet_copy::copier::run(&copier),
    }
}
