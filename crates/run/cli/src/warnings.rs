//! What is said while the job runs of a limit that it is about to meet: one line, once for each limit.

use std::collections::HashSet;
use ullage_diagnosis::{limits, Timeline};
use ullage_model::{At, LimitKind, LimitState, RunFacts, Scope};
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

    /// The limits at `now`, nearest first, where it is time to judge them.
    pub fn judge(&mut self, now: At, timeline: &Timeline) -> Option<Vec<LimitState>> {
        if now.since(self.read_at) < EVERY_S {
            return None;
        }
        self.read_at = now;
        Some(limits(&self.run, timeline))
    }

    /// Those of them that are about to be met, where nobody was warned of them yet.
    pub fn new_ones(&mut self, states: &[LimitState]) -> Vec<String> {
        let is_new =
            |state: &&LimitState| state.warning && self.said.insert((state.kind, state.scope.clone()));
        states.iter().filter(is_new).map(growth).collect()
    }
}
