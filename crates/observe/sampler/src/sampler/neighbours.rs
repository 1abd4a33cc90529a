//! Who else has the machine's memory, when it is short? Processes that are not of the job, ranked by what is theirs alone.
//!
//! From `status` of each, which everyone may read. Looked at once when the job has settled, to compare with, and again when
//! memory is short, each time that a fifth of what was available is gone. The surprise: where `/proc` is that of a
//! container, the processes of others are not in it, though they take the same memory.

use super::files::Files;
use super::meter::{thread_cpu_ns, Meter};
use crate::learned::Learned;
use ullage_model::{At, HostReading, Neighbour, Neighbours};

/// The first look: programs that start take memory.
const FIRST_S: f64 = 2.0;
/// Two looks are so far apart at least.
const APART_S: f64 = 5.0;
/// Less is available than at the last look by so much that it is worth another.
const LESS: f64 = 0.8;
/// The first look may take half of what is saved.
const PART: f64 = 2.0;
/// A machine with so many processes that this is too dear is asked for them again after this long.
const TOO_DEAR_S: f64 = 30.0;
/// How many are told by name, and from how much on, bytes.
const MOST_NAMED: usize = 8;
const WORTH: u64 = 32 << 20;

/// When it was looked last, and what that costs.
#[derive(Debug)]
pub(super) struct NeighbourReadings {
    /// When, and what was available.
    last: Option<(At, u64)>,
    not_before_s: f64,
    each: Learned,
}

impl Default for NeighbourReadings {
    fn default() -> NeighbourReadings {
        NeighbourReadings { last: None, not_before_s: FIRST_S, each: Learned::guess(30_000.0) }
    }
}

impl NeighbourReadings {
    fn due(&self, now: At, available: u64, total: u64) -> bool {
        let less = self.last.is_none_or(|(_, before)| {
            (available as f64) < Neighbours::SHORT * total as f64 && (available as f64) < LESS * before as f64
        });
        less && now.seconds() >= self.not_before_s
    }
}

impl NeighbourReadings {
    /// What was found, where it is time to look and the budget allows it. `of_job` are left out.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        meter: &mut Meter,
        of_job: impl Fn(i32) -> bool,
        now: At,
        host: &HostReading,
    ) -> Option<Neighbours> {
        let memory = host.memory.as_known()?;
        let (available, total) = (memory.available.0, memory.total.0);
        if !self.due(now, available, total) {
            return None;
        }
        let began = thread_cpu_ns();
        let mut pids = Vec::new();
        files.root.pids(&mut pids).ok()?;
        let own = std::process::id() as i32;
        pids.retain(|(pid, _)| *pid != own && !of_job(*pid));
        let expected = self.each.expect(pids.len() as u64);
        let first = self.last.is_none();
        let mut found = None;
        if meter.allows(if first { PART * expected } else { expected }, !first) {
            found = Some(rank(files, &pids));
            self.last = Some((now, available));
            self.not_before_s = now.seconds() + APART_S;
            self.each.took(pids.len() as u64, 16, (thread_cpu_ns() - began) as f64);
        } else {
            self.not_before_s = now.seconds() + TOO_DEAR_S;
        }
        meter.spend((thread_cpu_ns() - began) as f64);
        found
    }
}

fn rank(files: &mut Files, pids: &[(i32, u64)]) -> Neighbours {
    let mut found = Neighbours::default();
    let mut all: Vec<(u64, i32, Option<u32>)> = Vec::new();
    for (pid, _) in pids {
        let status = files.root.process(*pid).and_then(|process| process.status(&mut files.buffer));
        // A kernel thread has no memory; a process may be gone by now.
        let Ok((uid, Some(memory))) = status.map(|status| (status.uid, status.memory)) else { continue };
        let bytes = memory.anonymous.0.saturating_add(memory.swap.0);
        found.processes += 1;
        found.bytes = found.bytes.saturating_add(bytes);
        all.push((bytes, *pid, uid));
    }
    all.sort_unstable_by_key(|(bytes, pid, _)| (std::cmp::Reverse(*bytes), *pid));
    for (bytes, pid, uid) in all.into_iter().take(MOST_NAMED).filter(|(bytes, ..)| *bytes >= WORTH) {
        let Ok(process) = files.root.process(pid) else { continue };
        let Ok(stat) = process.stat(&mut files.buffer) else { continue };
        let name = String::from_utf8_lossy(stat.comm).into_owned();
        found.largest.push(Neighbour { id: stat.id, name, uid, bytes });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 1000;

    #[test]
    fn the_first_reading_waits_until_the_job_has_settled() {
        let readings = NeighbourReadings::default();
        assert!(!readings.due(At::from_seconds(1.9), 900, TOTAL));
        assert!(readings.due(At::from_seconds(2.0), 900, TOTAL));
    }

    #[test]
    fn another_is_due_when_memory_is_short_and_became_less_by_a_fifth() {
        let at = |available| NeighbourReadings {
            last: Some((At::from_seconds(2.0), available)),
            not_before_s: 2.0 + APART_S,
            ..NeighbourReadings::default()
        };
        let late = At::from_seconds(60.0);
        assert!(!at(900).due(late, 200, TOTAL), "it is not short");
        assert!(at(900).due(late, 120, TOTAL));
        assert!(!at(900).due(At::from_seconds(6.9), 120, TOTAL), "too soon");
        assert!(!at(100).due(late, 90, TOTAL), "not much less than at the last look");
        assert!(at(100).due(late, 79, TOTAL));
    }
}
