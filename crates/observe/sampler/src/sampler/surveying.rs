//! The survey of pages at a tick: of whom, whether it is due and paid for, and what forked processes have alone.

use super::files::Files;
use super::meter::{thread_cpu_ns, Meter};
use crate::member::Member;
use crate::pace::random;
use crate::survey::schedule::{Schedule, Signs, RESERVE_NS};
use crate::survey::{survey, Candidate, Effort, MOST_PROCESSES};
use std::collections::HashMap;
use ullage_model::{At, Bytes, Counted, Exclusive, Measured, Missing, Pages, ProcessReading};

/// Processes with less are left out: a few libraries, and little else.
const LEAST_RESIDENT: u64 = 4 << 20;
/// Listing more mappings than this takes too much memory, and a second and more.
const MOST_MAPPINGS: u64 = 100_000;
/// A forked process with less private memory has nothing of its parent's that matters.
const LEAST_INHERITED: u64 = 32 << 20;
/// A survey may take so many times what was expected before it stops short.
const OVERRUN: f64 = 2.0;
/// No survey is made longer than this for the sake of more places, nanoseconds: readings wait for it.
const LONGEST_NS: f64 = 80e6;

/// When surveys are made.
#[derive(Debug)]
pub(super) struct Surveying {
    schedule: Schedule,
    cpu_share: f64,
}

type Members = HashMap<i32, Member>;

impl Surveying {
    pub(super) fn new(cpu_share: f64) -> Surveying {
        Surveying { schedule: Schedule::default(), cpu_share }
    }

    /// Makes one where it is due; the readings learn what their processes have alone. `bits` are random.
    pub(super) fn pages(
        &mut self,
        files: &mut Files,
        meter: &mut Meter,
        members: &Members,
        bits: &mut u64,
        now: At,
        readings: &mut [ProcessReading],
    ) -> Vec<Pages> {
        let signs = signs(members, readings);
        if !self.schedule.due(now, &signs) {
            return Vec::new();
        }
        let candidates = candidates(members, readings);
        let count = candidates.len() as u64;
        let price = self.schedule.price(now, count, self.cpu_share);
        if candidates.is_empty() || !meter.allows(price, false) {
            return Vec::new();
        }
        let expected = self.schedule.expected_ns(count);
        let forked = signs.youngest_fork.is_some();
        // What was saved pays for more places where shares are asked for: four times as many halve the error. What others
        // may need at once is not taken for them.
        let affordable = |times: f64| {
            let whole = times * expected;
            forked
                && whole <= LONGEST_NS
                && Schedule::earned(now, whole, self.cpu_share)
                && meter.allows(whole + RESERVE_NS, false)
        };
        let times = [4u32, 2].into_iter().find(|times| affordable(f64::from(*times))).unwrap_or(1);
        let effort = Effort {
            reads: self.schedule.reads(count, forked) * u64::from(times),
            most_ns: (expected * OVERRUN) as u64 * u64::from(times),
        };
        let before = thread_cpu_ns();
        let made = survey(&files.root, &candidates, effort, &mut files.maps, thread_cpu_ns, || random(bits));
        let cost = (thread_cpu_ns() - before) as f64;
        meter.spend(cost);
        let (reads, reads_ns) = made.as_ref().map_or((0, 0), |made| (made.reads, made.reads_ns));
        self.schedule.made(now, signs, cost / f64::from(times), reads, reads_ns);
        let Some(made) = made else { return Vec::new() };
        for reading in readings {
            let forked = members.get(&reading.id.pid).is_some_and(|member| member.forked);
            if forked && reading.memory.as_known().is_some() {
                reading.exclusive = exclusive(&made.rows, reading, made.refused.contains(&reading.id));
            }
        }
        made.rows
    }
}

fn signs(members: &Members, readings: &[ProcessReading]) -> Signs {
    let mut signs = Signs { processes: readings.len() as u64, ..Signs::default() };
    for reading in readings {
        let Measured::Known(memory) = &reading.memory else { continue };
        signs.faults = signs.faults.saturating_add(reading.minor_faults);
        signs.resident = signs.resident.saturating_add(memory.resident().0);
        let member = members.get(&reading.id.pid);
        if let Some(member) = member.filter(|member| member.forked) {
            if memory.anonymous.0 >= LEAST_INHERITED {
                signs.youngest_fork = signs.youngest_fork.max(Some(member.joined_at));
            }
        }
    }
    signs
}

/// The largest first, in the order of pids.
fn candidates(members: &Members, readings: &[ProcessReading]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = readings
        .iter()
        .filter_map(|reading| {
            let sizes = reading.memory.known()?;
            let member = members.get(&reading.id.pid)?;
            let mappings = member.mappings_to_read().unwrap_or(0);
            (sizes.resident().0 >= LEAST_RESIDENT && mappings <= MOST_MAPPINGS).then_some(Candidate {
                id: reading.id,
                family: member.family,
                forked_from: member.forked_from,
                sizes,
            })
        })
        .collect();
    found.sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.sizes.resident()));
    found.truncate(MOST_PROCESSES);
    found.sort_unstable_by_key(|candidate| candidate.id);
    found
}

/// Private memory that this process alone maps.
fn exclusive(rows: &[Pages], reading: &ProcessReading, refused: bool) -> Measured<Exclusive> {
    let own = |row: &&Pages| row.of == Some(reading.id) && row.kind.counted() == Counted::Anonymous;
    let mut found = rows.iter().filter(own).peekable();
    if found.peek().is_none() {
        return Measured::Missing(if refused { Missing::NoPermission } else { Missing::NotAsked });
    }
    let (mut bytes, mut squares) = (0, 0.0);
    for row in found {
        bytes += row.exclusive.0;
        squares += (row.error.0 as f64).powi(2);
    }
    Measured::Known(Exclusive { bytes: Bytes(bytes), error: Bytes(squares.sqrt() as u64) })
}
