//! `ullage report`: the verdict of a recorded run, derived anew from its facts.
//!
//! The surprise: a recording that ends without its end (ullage was killed, perhaps together with the job) gets
//! a post-mortem look at what the kernel still remembers: counters of the job's cgroups and the kernel log.

use crate::arguments::ReportArguments;
use crate::{machine, printer};
use std::path::Path;
use ullage_diagnosis::Timeline;
use ullage_model::{Outcome, OutcomeKind, RunFacts, Verdict};
use ullage_recording::Recording;

/// Prints the verdict.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let home = ullage_recording::home()?;
    let directory = match &arguments.run {
        Some(name) => ullage_recording::find(&home, name)?,
        None => ullage_recording::newest(&home)?,
    };
    let verdict = verdict_of(&directory)?;
    if arguments.json {
        printer::out(&ullage_report::json::verdict_text(&verdict))?;
    } else {
        printer::out(&ullage_report::text::verdict(&verdict, &printer::stdout_style()))?;
    }
    Ok(0)
}

/// Reads a recording, mends a torn one, and judges it.
pub fn verdict_of(directory: &Path) -> anyhow::Result<Verdict> {
    let mut recording = Recording::open(directory)?;
    let running = recording.run.recorder.is_some_and(machine::is_alive);
    let torn = recording.run.outcome.is_none() && !running;
    let mut timeline = Timeline::read(&mut recording.replay()?)
        .map_err(|error| anyhow::anyhow!("{}: {error}", directory.display()))?;
    let mut not_seen: Vec<String> = recording.damage.iter().map(ToString::to_string).collect();
    if torn {
        machine::post_mortem(&recording.run, &mut timeline);
        if recording.run.outcome.is_none() {
            recording.run.outcome = Some(Outcome::of(OutcomeKind::Unknown));
        }
        not_seen.push("The recording ends without the job's end: ullage itself was killed or the machine went down.".into());
        if let Err(error) = ullage_recording::repair(directory) {
            not_seen.push(format!("The recording could not be mended: {error}."));
        }
    }
    let mut verdict = judge(&recording.run, &timeline);
    verdict.not_seen.extend(not_seen);
    Ok(verdict)
}

/// The verdict of a run; a fault in a rule is reported, never passed on.
pub fn judge(run: &RunFacts, timeline: &Timeline) -> Verdict {
    ullage_diagnosis::diagnose(run, timeline)
}
