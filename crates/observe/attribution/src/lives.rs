//! What is remembered of each process: whom it was forked from, what it began with, and where its cgroups are.

use std::collections::{BTreeMap, HashSet};
use ullage_model::{
    figure, CgroupVersion, MallocFigures, ProcessFacts, ProcessId, ProcessMemory, ProcessReading, Sample,
};

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
    /// What malloc said in it last, and its private memory then.
    pub(crate) malloc: Option<(u64, MallocFigures)>,
}

/// Of lines as `/proc/PID/cgroup` has them: v1's memory controller, where it is mounted that way.
fn memory_group(lines: &[String]) -> Option<(CgroupVersion, &str)> {
    let fields = || lines.iter().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let v1 = fields().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
    let v2 = || fields().find(|(controllers, _)| controllers.is_empty());
    v1.map(|(_, path)| (CgroupVersion::V1, path)).or_else(|| v2().map(|(_, path)| (CgroupVersion::V2, path)))
}

fn below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
            life.malloc = None;
        }
        life.forked_from = facts.forked_from;
        life.cgroups.clone_from(&facts.cgroups);
    }

    pub(crate) fn said(&mut self, id: ProcessId, figures: &BTreeMap<String, f64>) {
        let then = figure(figures, "anonymous").map(|bytes| bytes as u64);
        self.by_id.entry(id).or_default().malloc = then.zip(MallocFigures::of(figures));
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

    /// The cgroup that counts the memory of all processes of the sample: its version and path. None where it is not known.
    pub(crate) fn memory_group(&self, sample: &Sample) -> Option<(CgroupVersion, String)> {
        // One that is ending has left its group already: v1 shows the root in its place.
        let mut groups = sample
            .processes
            .iter()
            .filter(|reading| Reading::of(reading).is_some())
            .filter_map(|reading| self.by_id.get(&reading.id))
            .filter_map(|life| memory_group(&life.cgroups));
        let (version, first) = groups.next()?;
        let mut common: &str = first;
        for (other_version, other) in groups {
            if other_version != version {
                return None;
            }
            while !below(other, common) {
                common = common.rfind('/').map_or("", |at| &common[..at]);
            }
        }
        Some((version, if common.is_empty() { "/".into() } else { common.into() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_by_v1_s_controller_where_there_is_one() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let hybrid = lines(&["8:pids:/", "4:memory:/a/b", "0::/"]);
        assert_eq!(memory_group(&hybrid), Some((CgroupVersion::V1, "/a/b")));
        assert_eq!(memory_group(&lines(&["5:cpu,memory:/a", "0::/"])), Some((CgroupVersion::V1, "/a")));
        assert_eq!(memory_group(&lines(&["0::/user.slice/x"])), Some((CgroupVersion::V2, "/user.slice/x")));
        assert_eq!(memory_group(&lines(&["8:pids:/"])), None);
        assert!(below("/a/b", "/a") && below("/a", "/a") && !below("/ab", "/a") && below("/x", ""));
    }
}
