//! What torch keeps in one Python, as the agent reported: counts that became more, batches behind a late one, objects that
//! went through collectives.

use std::collections::BTreeMap;
use ullage_model::{At, Collective, TorchCount, Waiting};

/// Messages of one kind that are kept of a process; beyond it, every second one is forgotten.
const MOST_MESSAGES: usize = 64;

/// All of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct TorchCounters {
    pub(crate) counts: BTreeMap<String, Vec<(At, TorchCount)>>,
    /// Batches behind a late one.
    pub(crate) waiting: Vec<(At, Waiting)>,
    /// Objects that went through collectives.
    pub(crate) sent: Vec<(At, Collective)>,
    /// When its program was through: the process may take seconds more to go.
    pub(crate) done: Option<At>,
}

impl TorchCounters {
    pub(crate) fn add_count(&mut self, at: At, count: &TorchCount) {
        add(self.counts.entry(count.what.clone()).or_default(), at, count);
    }

    /// What was told last of them.
    pub(crate) fn latest(&self, what: &str) -> Option<(At, &TorchCount)> {
        self.counts.get(what)?.last().map(|(at, count)| (*at, count))
    }

    /// The most of them that was told.
    pub(crate) fn count(&self, what: &str) -> Option<u64> {
        self.counts.get(what)?.iter().map(|(_, count)| count.count).max()
    }

    pub(crate) fn end(&mut self, at: At) {
        self.done = Some(at);
    }

    pub(crate) fn add_waiting(&mut self, at: At, waiting: &Waiting) {
        add(&mut self.waiting, at, waiting);
    }

    pub(crate) fn add_collective(&mut self, at: At, collective: &Collective) {
        add(&mut self.sent, at, collective);
    }
}

fn add<T: Clone>(all: &mut Vec<(At, T)>, at: At, one: &T) {
    if all.len() >= MOST_MESSAGES {
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            number % 2 == 1
        });
    }
    all.push((at, one.clone()));
}
