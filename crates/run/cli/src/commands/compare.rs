//! `ullage compare`: the differences between a good machine or run and others, first what explains most.

use super::report::judged;
use crate::arguments::CompareArguments;
use crate::{home, printer, snapshot_file};
use std::path::Path;
use ullage_comparison::{compare, Seen, Side};
use ullage_report::{comparison, format, json, text};

/// Prints them.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let good = side(&arguments.good)?;
    let others = arguments.others.iter().map(|name| side(name)).collect::<anyhow::Result<Vec<Side>>>()?;
    let compared = compare(&good, &others);
    if arguments.json {
        printer::out(&json::text(&comparison::json(&compared)))?;
    } else {
        printer::out(&text::comparison(&compared, &printer::stdout_style()))?;
    }
    Ok(0)
}

/// A file is a snapshot; anything else names a run.
fn side(name: &str) -> anyhow::Result<Side> {
    let path = Path::new(name);
    if path.is_file() {
        let snapshot = snapshot_file::read(path)?;
        return Ok(Side { name: name.into(), facts: snapshot.facts, command: None, seen: None });
    }
    let directory = home::find(Some(name))?;
    let (run, timeline, verdict) = judged(&directory)?;
    let met = ullage_diagnosis::observed_peaks(&run, &timeline);
    let name = if run.run.0.is_empty() { name.to_owned() } else { run.run.0.clone() };
    Ok(Side {
        name,
        facts: met.facts,
        command: Some(format::command(&run.command)),
        seen: Some(Seen { verdict, peaks: met.peaks }),
    })
}
