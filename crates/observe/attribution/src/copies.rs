//! What became of the memory that a forked process inherited?
//!
//! At a place where the process has a page of its own, it copied it, or its parent rewrote or let go of the one that both
//! had: the pages look the same. What tells is who faulted. A process copies no more pages than it took faults, and its
//! parent rewrites no more than it took since the fork. Between both bounds nobody can tell, and that is said.
//!
//! The surprise: while a sibling still shares the parent's page, a page of the child's own is a copy that it made, unless
//! the parent has forked the sibling later, after it rewrote the page.

use crate::lives::{Fork, Lives, Reading};
use crate::surveyed::Surveyed;
use std::collections::BTreeMap;
use ullage_model::{
    At, CopyOnWrite, Counted, MachineFacts, Pages, ProcessId, ProcessReading, ProcessRef, Role, Sample,
};

const PAGE: u64 = 4096;
/// A read of a mapped file brings in so many of its pages at most (fault_around_bytes).
const FAULT_AROUND: u64 = 16;
/// Processes told, those that copied most.
const MOST: usize = 64;
/// Readings of one process kept over time; beyond it every second one is forgotten.
const READINGS: usize = 32;
/// Who began with less is not told.
const LEAST: u64 = 32 << 20;
/// Bounds that are closer than this share of what was inherited are one figure with an error.
const CLOSE: f64 = 0.02;

/// The last reading of each forked process, and some before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    by_id: BTreeMap<ProcessId, CopyOnWrite>,
    no_huge_pages: bool,
}

impl Log {
    pub(crate) fn machine(&mut self, facts: &MachineFacts) {
        self.no_huge_pages = facts.transparent_hugepages.as_known().is_some_and(|word| word == "never");
    }

    pub(crate) fn note(&mut self, sample: &Sample, surveyed: &Surveyed, lives: &Lives) {
        for reading in &sample.processes {
            let Some(life) = lives.get(reading.id) else { continue };
            let (Some(parent), Some(fork)) = (life.forked_from, life.fork) else { continue };
            if !surveyed.own.contains_key(&reading.id) || fork.inherited < LEAST {
                continue;
            }
            let own = |row: &&Pages| row.of == Some(reading.id) && row.kind.counted() == Counted::Anonymous;
            let rows: Vec<Pages> = sample.survey.iter().filter(own).copied().collect();
            let parent_now = sample.processes.iter().find(|other| other.id == parent).and_then(Reading::of);
            let last_fork = lives.get(parent).map_or(0, |parent| parent.faults_at_last_fork);
            let seen = Seen { rows: &rows, reading, fork, parent_now, last_fork };
            self.keep(reading.id, seen.judge(sample.at, self.no_huge_pages));
        }
    }

    fn keep(&mut self, id: ProcessId, mut now: CopyOnWrite) {
        if let Some(before) = self.by_id.remove(&id) {
            now.over_time = before.over_time;
        } else if self.by_id.len() >= 4 * MOST {
            let least = self.by_id.iter().min_by_key(|(_, cow)| cow.copied).map(|(id, _)| *id);
            least.map(|least| self.by_id.remove(&least));
        }
        if now.over_time.len() >= READINGS {
            let mut number = 0;
            now.over_time.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        now.over_time.push((now.at, now.shared, now.copied));
        self.by_id.insert(id, now);
    }

    /// Those that copied most first.
    pub(crate) fn readings(&self) -> Vec<CopyOnWrite> {
        let mut all: Vec<CopyOnWrite> = self.by_id.values().cloned().collect();
        all.sort_by_key(|cow| (std::cmp::Reverse(cow.copied), cow.process.id));
        all.truncate(MOST);
        all
    }
}

/// A forked process at a survey.
struct Seen<'a> {
    rows: &'a [Pages],
    reading: &'a ProcessReading,
    fork: Fork,
    parent_now: Option<Reading>,
    /// Faults of its parent when that forked its youngest child.
    last_fork: u64,
}

impl Seen<'_> {
    fn judge(&self, at: At, no_huge_pages: bool) -> CopyOnWrite {
        let sum = |pick: fn(&Pages) -> u64| self.rows.iter().map(pick).fold(0, u64::saturating_add);
        let shared = sum(|row| row.shared.0.saturating_add(row.outside.0));
        let exclusive = sum(|row| row.exclusive.0);
        let beside_shared = sum(|row| row.beside_shared.0).min(exclusive);
        let beside_own = sum(|row| row.beside_own.0).min(exclusive - beside_shared);
        let alone = exclusive - beside_shared - beside_own;
        let resident = shared.saturating_add(exclusive);
        let inherited = self.fork.inherited;

        // New memory lies where the parent has none, or where both took some after the fork.
        let grown = resident.saturating_sub(inherited);
        let new_alone = grown.min(alone);
        let new_beside = (grown - new_alone).min(beside_own);
        let (released, new_more) = self.released(alone - new_alone);
        let diverged = beside_shared + (beside_own - new_beside);
        let (diverged, released) = match self.parent_now {
            Some(_) => (diverged, released),
            // It has let go of everything, and of what the child copied before that too.
            None => (diverged + released, 0),
        };
        let (least, most) = self.copied(diverged, beside_shared, grown, no_huge_pages);
        let apart = most - least;
        let close = apart as f64 <= CLOSE * inherited as f64;
        let copied = if close { least + apart / 2 } else { least };
        let unknown = if close { 0 } else { apart };
        let chance = self.rows.iter().map(|row| (row.error.0 as f64).powi(2)).sum::<f64>().sqrt() as u64;
        CopyOnWrite {
            process: ProcessRef { id: self.reading.id, role: Role::Other, name: self.reading.comm.clone() },
            at,
            inherited,
            shared,
            copied,
            parent_changed: released + diverged - copied - unknown,
            unknown,
            new: new_alone + new_beside + new_more,
            error: if close { chance + apart / 2 } else { chance },
            by_kind: self
                .rows
                .iter()
                .filter(|row| row.bytes.0 > 0)
                .map(|row| {
                    (row.kind.id().to_owned(), (row.shared.0.saturating_add(row.outside.0), row.exclusive.0))
                })
                .collect(),
            over_time: Vec::new(),
        }
    }

    /// Of what the process has where its parent has nothing: what the parent can have let go of, and what must be new.
    fn released(&self, alone: u64) -> (u64, u64) {
        let Some(now) = self.parent_now else { return (alone, 0) };
        let shrunk = self.fork.inherited.saturating_sub(now.anonymous);
        // It may have taken other memory instead.
        let could = shrunk.saturating_add(self.parent_wrote(now)).min(alone);
        (could, alone - could)
    }

    /// At least and at most what the process has copied of the pages that both have now, each its own.
    fn copied(&self, diverged: u64, beside_shared: u64, grown: u64, no_huge_pages: bool) -> (u64, u64) {
        let memory = self.reading.memory.known().unwrap_or_default();
        let of_files = memory.file.saturating_add(memory.shared).0 / FAULT_AROUND;
        // A huge page is new memory for a single fault.
        let of_new = if no_huge_pages { grown } else { 0 };
        let wrote = self.reading.minor_faults.saturating_mul(PAGE);
        let most = wrote.saturating_sub(of_files).saturating_sub(of_new).min(diverged);
        let by_parent = match self.parent_now {
            Some(now) => self.parent_wrote(now),
            None => u64::MAX,
        };
        // What the parent wrote before it forked a younger sibling is shared by these two.
        let rewritten = self.last_fork.saturating_sub(self.fork.parent_then.faults).saturating_mul(PAGE);
        let surely = beside_shared.saturating_sub(rewritten.saturating_add(self.parent_wrote_around()));
        let least = diverged.saturating_sub(by_parent).max(surely).min(most);
        (least, most)
    }

    /// Bytes that the parent can have written anew since the fork, by its faults.
    fn parent_wrote(&self, now: Reading) -> u64 {
        let after = now.faults.saturating_sub(self.fork.parent_then.faults).saturating_mul(PAGE);
        self.parent_wrote_around().saturating_add(after)
    }

    /// The same between the readings around the fork: what the parent grew by there, it mostly took before it.
    fn parent_wrote_around(&self) -> u64 {
        let Fork { parent_before: before, parent_then: then, .. } = self.fork;
        let wrote = then.faults.saturating_sub(before.faults).saturating_mul(PAGE);
        wrote.saturating_sub(then.anonymous.saturating_sub(before.anonymous))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::{Bytes, ClockTicks, Measured, PageKind, ProcessMemory, ProcessState};

    const MIB: u64 = 1 << 20;

    fn reading(faults_mib: u64) -> ProcessReading {
        ProcessReading {
            id: ProcessId { pid: 2, start: ClockTicks(1) },
            parent: 1,
            state: ProcessState::Sleeping,
            comm: "python".into(),
            threads: 1,
            cpu: ClockTicks(0),
            minor_faults: faults_mib * MIB / PAGE,
            major_faults: 0,
            memory: Measured::Known(ProcessMemory::default()),
            descriptors: Measured::default(),
            mappings: Measured::default(),
            exclusive: Measured::default(),
            run_delay_ns: Measured::default(),
        }
    }

    /// MiB: shared, beside the parent's shared, beside its own, alone.
    fn rows(shared: u64, beside_shared: u64, beside_own: u64, alone: u64) -> Vec<Pages> {
        let exclusive = beside_shared + beside_own + alone;
        vec![Pages {
            bytes: Bytes((shared + exclusive) * MIB),
            shared: Bytes(shared * MIB),
            exclusive: Bytes(exclusive * MIB),
            beside_shared: Bytes(beside_shared * MIB),
            beside_own: Bytes(beside_own * MIB),
            ..Pages::none(Some(ProcessId { pid: 2, start: ClockTicks(1) }), PageKind::Anonymous)
        }]
    }

    /// A child of 1000 MiB. The parent: MiB of anonymous memory now, and MiB of faults since the fork.
    fn judge(rows: &[Pages], faults_mib: u64, parent: Option<(u64, u64)>) -> CopyOnWrite {
        judge_with_younger(rows, faults_mib, parent, 0)
    }

    fn judge_with_younger(
        rows: &[Pages],
        faults_mib: u64,
        parent: Option<(u64, u64)>,
        younger_mib: u64,
    ) -> CopyOnWrite {
        let then = Reading { anonymous: 1000 * MIB, faults: 500_000 };
        let fork = Fork { inherited: 1000 * MIB, parent_before: then, parent_then: then };
        let parent_now = parent.map(|(anonymous, wrote)| Reading {
            anonymous: anonymous * MIB,
            faults: 500_000 + wrote * MIB / PAGE,
        });
        let reading = reading(faults_mib);
        let seen =
            Seen { rows, reading: &reading, fork, parent_now, last_fork: 500_000 + younger_mib * MIB / PAGE };
        seen.judge(At(0), false)
    }

    fn mib(cow: &CopyOnWrite) -> [u64; 5] {
        [cow.shared, cow.copied, cow.parent_changed, cow.unknown, cow.new].map(|bytes| bytes / MIB)
    }

    #[test]
    fn a_parent_that_rewrites_and_frees_is_not_called_a_copying_child() {
        let cow = judge(&rows(500, 0, 250, 250), 8, Some((750, 250)));
        assert_eq!(mib(&cow), [500, 4, 496, 0, 0], "give or take its 8 MiB of faults");
        assert!(cow.error >= 4 * MIB);
    }

    #[test]
    fn a_child_that_writes_has_copied() {
        let cow = judge(&rows(500, 100, 400, 0), 505, Some((1000, 2)));
        assert_eq!(mib(&cow), [500, 499, 1, 0, 0]);
        let cow = judge(&rows(500, 500, 0, 0), 900, Some((1000, 900)));
        assert_eq!(mib(&cow), [500, 500, 0, 0, 0], "a sibling still shares the parent's");
        let cow = judge_with_younger(&rows(500, 500, 0, 0), 900, Some((1000, 900)), 300);
        assert_eq!(
            mib(&cow),
            [500, 200, 0, 300, 0],
            "the parent may have rewritten 300 before it forked that one"
        );
    }

    #[test]
    fn where_both_have_faulted_enough_nobody_can_know() {
        let cow = judge(&rows(500, 0, 500, 0), 2000, Some((1000, 2000)));
        assert_eq!(mib(&cow), [500, 0, 0, 500, 0]);
        let cow = judge(&rows(500, 0, 500, 0), 300, Some((1000, 400)));
        assert_eq!(mib(&cow), [500, 100, 200, 200, 0], "at least 100, at most 300");
    }

    #[test]
    fn memory_taken_since_the_fork_is_new() {
        let cow = judge(&rows(1000, 0, 0, 300), 310, Some((1000, 5)));
        assert_eq!(mib(&cow), [1000, 0, 0, 0, 300]);
        let cow = judge(&rows(800, 0, 0, 200), 210, Some((1000, 5)));
        assert_eq!(
            mib(&cow)[3..],
            [0, 195],
            "it let go of as much as it took: the parent has all of its own"
        );
    }

    #[test]
    fn of_a_parent_that_has_ended_only_the_faults_are_left() {
        let cow = judge(&rows(0, 0, 0, 1000), 20, None);
        assert_eq!(mib(&cow), [0, 10, 990, 0, 0], "at most 20");
        let cow = judge(&rows(0, 0, 0, 1000), 600, None);
        assert_eq!(mib(&cow), [0, 0, 400, 600, 0]);
    }
}
