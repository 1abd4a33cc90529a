//! How does a job stand that somebody looks on at? One line every few seconds of its own time, so that a replayed run gets
//! the same lines as a live one.

use ullage_diagnosis::{limits, Timeline};
use ullage_model::{At, ProcessState, RunFacts, Sample};
use ullage_report::format;
use ullage_report::text::nearest;

/// Says how a job stands, now and then.
pub struct Narrator {
    run: RunFacts,
    every_s: f64,
    next_s: f64,
    before: Option<(At, u64)>,
}

impl Narrator {
    /// A line every so many seconds.
    pub fn new(run: RunFacts, every_s: f64) -> Narrator {
        Narrator { run, every_s, next_s: 0.0, before: None }
    }

    /// The line for this sample, which is not yet in the timeline, where it is time for one.
    pub fn line(&mut self, sample: &Sample, timeline: &Timeline) -> Option<String> {
        let at = sample.at;
        if at.seconds() < self.next_s || sample.processes.is_empty() {
            return None;
        }
        self.next_s = at.seconds() + self.every_s;
        let bytes = timeline.tree_bytes(sample);
        let running = sample.processes.iter().filter(|process| process.state != ProcessState::Zombie).count();
        let mut line = format!(
            "{:>8}  {running} process{}, {}",
            format::duration(at.seconds()),
            if running == 1 { "" } else { "es" },
            format::bytes(bytes)
        );
        if let Some((then, before)) = self.before.replace((at, bytes)) {
            let slope = (bytes as f64 - before as f64) / at.since(then).max(f64::MIN_POSITIVE);
            line += &format!(" ({})", format::rate(slope, "bytes"));
        }
        if let Some(limit) = limits(&self.run, timeline).first().and_then(nearest) {
            line += &format!("; {limit}");
        }
        Some(line)
    }
}
