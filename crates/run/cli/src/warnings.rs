//! What is said while the job runs of a limit that it is about to meet: one line, once for each limit.

use std::collections::HashSet;
use ullage_diagnosis::{limits, Timeline};
use ullage_model::{At, LimitKind, RunFacts, Scope};
use ullage_report::text::growth;

/// Seconds between two looks: a warning is a minute's growth old at least.
const EVERY_S: f64 = 10.0;

/// Limits that were warned of.
pub struct Warnings {
    run: RunFacts,
    read_at: At,
    said: HashSet<(LimitKind, Scope)>,
}

impl Warnings {
    /// None were.
    pub fn new(run: RunFacts) -> Warnings {
        Warnings { run, read_at: At(0), said: HashSet::new() }
    }

    /// The warnings that are new at `now`, where it is time to look.
    pub fn new_ones(&mut self, now: At, timeline: &Timeline) -> Vec<String> {
        if now.since(self.read_at) < EVERY_S {
            return Vec::new();
        }
        self.read_at = now;
        let mut states = limits(&self.run, timeline);
        states.retain(|state| state.warning && self.said.insert((state.kind, state.scope.clone())));
        states.iter().map(growth).collect()
    }
}
