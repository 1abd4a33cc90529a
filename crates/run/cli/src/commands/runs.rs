//! `ullage runs`: which runs are recorded; `ullage runs rm` removes some, `ullage runs push` copies some.

use crate::arguments::{RunsAction, RunsArguments};
use crate::{fleet_copy, home, machine, printer};
use anyhow::Context;
use std::time::{SystemTime, UNIX_EPOCH};
use ullage_recording::{Run, RunState};
use ullage_report::format;
use ullage_report::text::{self, RunRow};

/// Lists, removes or copies.
pub fn run(arguments: &RunsArguments) -> anyhow::Result<u8> {
    match &arguments.action {
        None => list(arguments.json),
        Some(RunsAction::Push { run, dir }) => fleet_copy::push::run(run.as_deref(), dir),
        Some(RunsAction::Rm { runs, older_than }) => {
            let mut paths = Vec::new();
            for name in runs {
                paths.push((name.clone(), home::find(Some(name))?));
            }
            if let Some(age_s) = older_than {
                let older =
                    all()?.into_iter().filter(|run| run.state != RunState::Running && run.idle_s() > *age_s);
                paths.extend(older.map(|run| (run.name, run.path)));
                if paths.is_empty() {
                    printer::note(&format!("no recording is older than {}", format::duration(*age_s)));
                }
            }
            for (name, path) in paths {
                ullage_recording::remove(&path, |id| machine::is_alive(*id))
                    .with_context(|| format!("{name} was not removed"))?;
                printer::note(&format!("removed {}", path.display()));
            }
            Ok(0)
        }
    }
}

fn all() -> anyhow::Result<Vec<Run>> {
    Ok(ullage_recording::list_runs(&home::home()?, |id| machine::is_alive(*id))?)
}

fn list(json: bool) -> anyhow::Result<u8> {
    let home = home::home()?;
    let runs = all()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    if json {
        let runs: Vec<_> = runs.iter().map(as_json).collect();
        let list = serde_json::json!({"schema": 1, "home": home, "runs": runs});
        printer::out(&ullage_report::json::text(&list))?;
        return Ok(0);
    }
    if runs.is_empty() {
        printer::note(&format!("no runs recorded in {}", home.display()));
        return Ok(0);
    }
    let rows: Vec<RunRow> = runs.into_iter().map(|run| row(run, now)).collect();
    printer::out(&text::runs(&rows, &printer::stdout_style()))?;
    Ok(0)
}

fn as_json(run: &Run) -> serde_json::Value {
    let facts = run.facts.as_ref().ok();
    let outcome = facts.and_then(|facts| facts.outcome.as_ref());
    serde_json::json!({
        "run": run.name,
        "path": run.path,
        "state": match run.state {
            RunState::Running => "running",
            RunState::Ended => "ended",
            RunState::Interrupted => "interrupted",
        },
        "started_unix": facts.map(|facts| facts.started_unix),
        "duration_s": facts.and_then(|facts| facts.duration_s),
        "exit_code": outcome.and_then(|outcome| outcome.code),
        "signal": outcome.and_then(|outcome| outcome.signal),
        "bytes": run.bytes,
        "command": facts.map(|facts| &facts.command),
        "error": run.facts.as_ref().err().map(ToString::to_string),
    })
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
