//! `ullage runs`: which runs are recorded; `ullage runs rm`: remove some.

use crate::arguments::{RunsAction, RunsArguments};
use crate::{machine, printer};
use anyhow::Context;
use ullage_report::text::{self, RunRow};

/// Lists or removes.
pub fn run(arguments: &RunsArguments) -> anyhow::Result<u8> {
    let home = ullage_recording::home()?;
    match &arguments.action {
        None => {
            let rows: Vec<RunRow> = ullage_recording::list_runs(&home, machine::is_alive)?
                .into_iter()
                .map(|run| RunRow {
                    run: run.run.0,
                    started_unix: run.started_unix,
                    duration_s: run.duration_s,
                    command: run.command,
                    outcome: run.outcome,
                    running: run.running,
                    bytes: run.bytes,
                })
                .collect();
            if rows.is_empty() {
                printer::note(&format!("no runs recorded in {}", home.display()));
            } else {
                printer::out(&text::runs(&rows, &printer::stdout_style()))?;
            }
        }
        Some(RunsAction::Rm { runs }) => {
            for name in runs {
                let path = ullage_recording::find(&home, name)?;
                ullage_recording::remove(&path, machine::is_alive)
                    .with_context(|| format!("{name} was not removed"))?;
                printer::note(&format!("removed {}", path.display()));
            }
        }
    }
    Ok(0)
}
