//! `ullage report`: the verdict of a recorded run, derived anew from its facts.
//!
//! The surprise: a recording without an end (ullage was killed, perhaps together with the job) gets a
//! post-mortem look at what the kernel still remembers: counters of the job's cgroups, and its log.

use crate::arguments::ReportArguments;
use crate::{home, machine, printer};
use anyhow::Context;
use std::path::Path;
use ullage_diagnosis::Timeline;
use ullage_model::{Item, Outcome, OutcomeKind, Role, RunFacts, Source, SourceError, Verdict};
use ullage_page::Curves;
use ullage_recording::Recording;

/// Prints the verdict.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let directory = home::find(arguments.run.as_deref())?;
    if let Some(file) = &arguments.html {
        write_page(&directory, file)?;
        return Ok(0);
    }
    let verdict = verdict_of(&directory)?;
    if arguments.json {
        printer::out(&ullage_report::json::verdict_text(&verdict))?;
    } else {
        let style = printer::stdout_style();
        let summary =
            ullage_report::text::summary(&verdict, Some(&home::name_in(&verdict.run, &directory)), &style);
        printer::out(&format!("{}\n{summary}", ullage_report::text::verdict(&verdict, &style)))?;
    }
    Ok(0)
}

/// Reads a recording, mends a torn one, and judges it.
pub fn verdict_of(directory: &Path) -> anyhow::Result<Verdict> {
    judged(directory).map(|(_, _, verdict)| verdict)
}

/// The same, with what it was judged by.
pub fn judged(directory: &Path) -> anyhow::Result<(RunFacts, Timeline, Verdict)> {
    judged_by(directory, |replay| Timeline::read(replay))
}

/// Writes the page of a recording.
pub fn write_page(directory: &Path, file: &Path) -> anyhow::Result<()> {
    let mut curves = Curves::default();
    let (_, _, verdict) = judged_by(directory, |replay| with_curves(replay, &mut curves))?;
    let page = ullage_page::render(&verdict, &curves, env!("CARGO_PKG_VERSION"));
    if file.as_os_str() == "-" {
        return printer::out(&page);
    }
    std::fs::write(file, page).with_context(|| format!("the page could not be written to {}", file.display()))
}

fn with_curves(replay: &mut dyn Source, curves: &mut Curves) -> Result<Timeline, SourceError> {
    let mut timeline = Timeline::default();
    while let Some(item) = replay.next_item()? {
        match item {
            Item::Sample(sample) => {
                timeline.push_sample(&sample);
                let role =
                    |id| timeline.process(id).map_or(Role::Other, |process| process.role.clone()).kind();
                curves.sample(&sample, timeline.memory_now(), role);
            }
            Item::Event(event) => {
                curves.event(&event);
                timeline.push_event(event);
            }
        }
    }
    Ok(timeline)
}

fn judged_by(
    directory: &Path,
    read: impl FnOnce(&mut dyn Source) -> Result<Timeline, SourceError>,
) -> anyhow::Result<(RunFacts, Timeline, Verdict)> {
    let mut recording = Recording::open(directory)?;
    let mut replay = recording.replay();
    let mut timeline =
        read(&mut replay).map_err(|error| anyhow::anyhow!("{}: {error}", directory.display()))?;
    let mut not_seen: Vec<String> = recording.damage.iter().map(ToString::to_string).collect();
    not_seen.extend(replay.damage().iter().map(ToString::to_string));
    if recording.run.outcome.is_none() {
        if recording.run.recorder.is_some_and(machine::is_alive) {
            recording.run.outcome = Some(Outcome::of(OutcomeKind::StillRunning));
        } else {
            machine::post_mortem(&recording.run, &mut timeline);
            recording.run.outcome = Some(machine::outcome_without_end(&recording.run));
            not_seen.push(
                "The recording stops before the end of the job: ullage was killed, or the machine went down."
                    .into(),
            );
        }
    }
    // Ullage was killed, or there was no room for it to be closed.
    if recording.run.outcome.as_ref().is_none_or(|outcome| outcome.kind != OutcomeKind::StillRunning) {
        if let Err(error) = ullage_recording::repair(directory, |id| machine::is_alive(*id)) {
            not_seen.push(format!("The recording could not be repaired: {error}."));
        }
    }
    let mut verdict = ullage_diagnosis::diagnose(&recording.run, &timeline);
    verdict.not_seen.extend(not_seen);
    Ok((recording.run, timeline, verdict))
}
