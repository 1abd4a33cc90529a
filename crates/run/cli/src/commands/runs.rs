//! `ullage runs`: which runs are recorded; `ullage runs rm`: remove some.

use crate::arguments::{RunsAction, RunsArguments};
use crate::{home, machine, printer};
use anyhow::Context;
use std::time::{SystemTime, UNIX_EPOCH};
use ullage_recording::{Run, RunState};
use ullage_report::text::{self, RunRow};

/// Lists or removes.
pub fn run(arguments: &RunsArguments) -> anyhow::Result<u8> {
    match &arguments.action {
        None => list(),
        Some(RunsAction::Rm { runs }) => {
            for name in runs {
                let path = home::find(Some(name))?;
                ullage_recording::remove(&path, |id| machine::is_alive(*id))
                    .with_context(|| format!("{name} was not removed"))?;
                printer::note(&format!("removed {}", path.display()));
            }
            Ok(0)
        }
    }
}

fn list() -> anyhow::Result<u8> {
    let home = home::home()?;
    let runs = ullage_recording::list_runs(&home, |id| machine::is_alive(*id))?;
    if runs.is_empty() {
        printer::note(&format!("no runs recorded in {}", home.display()));
        return Ok(0);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let rows: Vec<RunRow> = runs.into_iter().map(|run| row(run, now)).collect();
    printer::out(&text::runs(&rows, &printer::stdout_style()))?;
    Ok(0)
}

fn row(run: Run, now: f64) -> RunRow {
    let outcome = match (run.state, run.facts.as_ref().ok().and_then(|facts| facts.outcome.as_ref())) {
        (RunState::Running, _) => "running".to_string(),
        (RunState::Ended, Some(outcome)) => match (outcome.code, outcome.signal) {
            (Some(code), _) => format!("exit {code}"),
            (_, Some(signal)) => ullage_report::format::signal(signal),
            _ => "ended".to_string(),
        },
        _ => "interrupted".to_string(),
    };
    let (facts, damage) = match run.facts {
        Ok(facts) => (Some(facts), None),
        Err(error) => (None, Some(error.to_string())),
    };
    RunRow {
        run: run.name,
        age_s: facts.as_ref().map(|facts| (now - facts.started_unix).max(0.0)),
        duration_s: facts.as_ref().and_then(|facts| facts.duration_s),
        outcome,
        cause: None,
        bytes: Some(run.bytes),
        command: facts.map(|facts| facts.command).unwrap_or_default(),
        damage,
    }
}
