//! What is remembered of each process: whom it was forked from, what it began with, and where its cgroups are.

use std::collections::{BTreeMap, HashSet};
use ullage_model::{ProcessFacts, ProcessId, ProcessMemory, ProcessReading, Sample};

/// Lives kept; beyond it, those that are over are forgotten.
const MOST: usize = 4096;

/// Sizes and faults at one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) anonymous: u64,
    pub(crate) faults: u64,
}

impl Reading {
    pub(crate) fn of(reading: &ProcessReading) -> Option<Reading> {
        let memory: &ProcessMemory = reading.memory.as_known()?;
        Some(Reading { anonymous: memory.anonymous.0, faults: reading.minor_faults })
    }
}

/// The parent around the fork: the last reading before the child was seen, and the one at which it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fork {
    /// Private memory that the child began with.
    pub(crate) inherited: u64,
    pub(crate) parent_before: Reading,
    pub(crate) parent_then: Reading,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) forked_from: Option<ProcessId>,
    cgroups: Vec<String>,
    /// None until it was read with memory, or where its parent was not.
    pub(crate) fork: Option<Fork>,
    last: Option<Reading>,
    /// Its faults when the youngest child that was forked from it was first seen.
    pub(crate) faults_at_last_fork: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    by_id: BTreeMap<ProcessId, Life>,
}

impl Lives {
    pub(crate) fn get(&self, id: ProcessId) -> Option<&Life> {
        self.by_id.get(&id)
    }

    pub(crate) fn seen(&mut self, facts: &ProcessFacts) {
        let life = self.by_id.entry(facts.id).or_default();
        // Another program than before: nothing is left of what it began with.
        if life.forked_from.is_some() && facts.forked_from.is_none() {
            life.fork = None;
        }
        life.forked_from = facts.forked_from;
        life.cgroups.clone_from(&facts.cgroups);
    }

    pub(crate) fn read(&mut self, sample: &Sample) {
        let now: BTreeMap<ProcessId, Reading> =
            sample.processes.iter().filter_map(|reading| Some((reading.id, Reading::of(reading)?))).collect();
        for (id, reading) in &now {
            let parent =
                self.by_id.get(id).filter(|life| life.last.is_none()).and_then(|life| life.forked_from);
            let fork = parent.and_then(|parent| {
                let then = now.get(&parent).copied();
                let before = self.by_id.get(&parent).and_then(|life| life.last).or(then)?;
                let then = then.unwrap_or(before);
                let inherited = then.anonymous.min(reading.anonymous);
                Some(Fork { inherited, parent_before: before, parent_then: then })
            });
            if let (Some(parent), Some(fork)) = (parent, fork) {
                self.by_id.entry(parent).or_default().faults_at_last_fork = fork.parent_then.faults;
            }
            let life = self.by_id.entry(*id).or_default();
            if life.last.is_none() {
                life.fork = fork;
            }
        }
        for (id, reading) in now {
            self.by_id.entry(id).or_default().last = Some(reading);
        }
        if self.by_id.len() > MOST {
            let alive: HashSet<ProcessId> = sample.processes.iter().map(|reading| reading.id).collect();
            let parents: HashSet<ProcessId> =
                alive.iter().filter_map(|id| self.by_id.get(id).and_then(|life| life.forked_from)).collect();
            self.by_id.retain(|id, _| alive.contains(id) || parents.contains(id));
        }
    }

    /// Whether all processes of the sample are in the same cgroups, as far as is known.
    pub(crate) fn in_one_group(&self, sample: &Sample) -> bool {
        let mut groups = sample
            .processes
            .iter()
            .filter_map(|reading| self.by_id.get(&reading.id))
            .map(|life| &life.cgroups)
            .filter(|groups| !groups.is_empty());
        let Some(first) = groups.next() else { return true };
        groups.all(|other| other == first)
    }
}
