//! When is the next survey worth its cost?
//!
//! When enough moved since the last one: pages were faulted in, sizes changed, processes came or went. Ever more seldom as
//! the youngest forked process grows old, and no oftener than a share of the budget pays for, except out of what was saved.
//! And once more when a job that moved comes to rest: what stays is told as it is, and not as it was on the way there.

use ullage_model::At;

/// Moved by less than this share of what the job holds: not worth a look.
const MOVED: f64 = 0.01;
/// Nor by less than this, bytes.
const LEAST_MOVED: f64 = 8e6;
/// At rest a tenth of that share is worth one: of memory that many processes share, the share is one of its sum.
const MOVED_BEFORE_REST: f64 = 0.001;
/// From one tick to the next a job at rest moves by less, bytes in a second, and in all where ticks are further apart.
const REST: f64 = 1e6;
/// A job of less is not looked at.
const LEAST_HELD: u64 = 16 << 20;
/// However old the job is, it is looked at this often while it moves, seconds.
const MOST_APART_S: f64 = 60.0;
/// Left in the bucket for what is more urgent, nanoseconds.
pub(crate) const RESERVE_NS: f64 = 0.1e9;
/// Share of the budget that surveys may take in the long run.
const SHARE: f64 = 0.5;

/// What cheap readings say of the job at a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Signs {
    /// Minor faults of all processes.
    pub(crate) faults: u64,
    /// Resident bytes, summed.
    pub(crate) resident: u64,
    /// Processes.
    pub(crate) processes: u64,
    /// When the youngest forked process with memory was first seen.
    pub(crate) youngest_fork: Option<At>,
}

impl Signs {
    /// Bytes that moved since then, or may have.
    fn changed(&self, then: &Signs) -> f64 {
        self.faults.abs_diff(then.faults).saturating_mul(4096) as f64
            + self.resident.abs_diff(then.resident) as f64
    }
}

/// A tick, or the last survey.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: At,
    signs: Signs,
}

/// Remembers what the last one saw and took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    last: Option<Last>,
    /// The tick before, whatever was made of it.
    before: Option<Last>,
    /// Learned: CPU time of the last ones, and of one read of pages.
    cost_ns: Option<f64>,
    read_ns: Option<f64>,
}

impl Schedule {
    /// Expected cost, nanoseconds.
    pub(crate) fn expected_ns(&self, processes: u64) -> f64 {
        self.cost_ns.unwrap_or(4e6 + processes as f64 * 1e6)
    }

    /// Reads of pages that make a survey of so many processes worth its listings of mappings. Where nobody was forked, only
    /// kinds of memory are asked for.
    pub(crate) fn reads(&self, processes: u64, forked: bool) -> u64 {
        let (whole, each) = if forked { (8e6, 0.7e6) } else { (4e6, 0.15e6) };
        let room = whole + processes as f64 * each;
        (room / self.read_ns.unwrap_or(900.0)) as u64
    }

    /// Whether the time since the job's start has earned so much. What is in the bucket at the start was not saved: it is for
    /// what cannot wait.
    pub(crate) fn earned(now: At, cost_ns: f64, share: f64) -> bool {
        now.seconds() * share * SHARE * 1e9 >= cost_ns
    }

    /// Whether one is due, apart from what the budget says at this moment.
    pub(crate) fn due(&mut self, now: At, signs: &Signs) -> bool {
        let tick_before = self.before.replace(Last { at: now, signs: *signs });
        if signs.resident < LEAST_HELD {
            return false;
        }
        let Some(last) = &self.last else { return now.seconds() >= 0.3 };
        let before = &last.signs;
        let changed = signs.changed(before);
        let moved = changed >= LEAST_MOVED.max(MOVED * signs.resident as f64);
        let rests = tick_before.is_some_and(|then| {
            let since = now.since(then.at);
            since > 0.0 && signs.changed(&then.signs) <= REST * since.min(1.0)
        });
        let came_to_rest = rests && changed >= LEAST_MOVED.max(MOVED_BEFORE_REST * signs.resident as f64);
        let came = signs.processes != before.processes && signs.youngest_fork.is_some();
        let apart = match signs.youngest_fork {
            Some(born) => last.at.since(born) / 4.0,
            // Only kinds of memory are at stake.
            None => last.at.seconds() / 3.0,
        };
        let apart = apart.clamp(0.9, MOST_APART_S);
        let since = now.since(last.at);
        (moved || came) && since >= apart || came_to_rest && since >= (apart / 4.0).max(0.9)
    }

    /// What must be in the bucket for it, nanoseconds: nothing is taken from the reserve unless the time since the last
    /// survey has earned it.
    pub(crate) fn price(&self, now: At, processes: u64, share: f64) -> f64 {
        let expected = self.expected_ns(processes);
        let earned = self.last.map_or(0.0, |last| now.since(last.at) * share * SHARE * 1e9);
        if earned >= expected {
            expected
        } else {
            expected + RESERVE_NS
        }
    }

    /// One was made; its cost is told for a single helping of places.
    pub(crate) fn made(&mut self, now: At, signs: Signs, cost_ns: f64, reads: u64, reads_ns: u64) {
        self.last = Some(Last { at: now, signs });
        self.cost_ns = Some(self.cost_ns.map_or(cost_ns, |before| before * 0.5 + cost_ns * 0.5));
        if reads >= 100 {
            let each = (reads_ns as f64 / reads as f64).clamp(200.0, 50_000.0);
            self.read_ns = Some(self.read_ns.map_or(each, |before| before * 0.5 + each * 0.5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Signs = Signs { faults: 10_000, resident: 1 << 30, processes: 3, youngest_fork: Some(At(0)) };

    fn at(seconds: f64) -> At {
        At::from_seconds(seconds)
    }

    #[test]
    fn it_is_made_when_something_moved_and_ever_more_seldom() {
        let mut schedule = Schedule::default();
        assert!(schedule.due(at(0.5), &CALM), "the first");
        assert!(!schedule.due(at(0.1), &CALM), "not while it starts");
        assert!(!schedule.due(at(0.5), &Signs { resident: 1 << 20, ..CALM }), "nothing to look at");
        schedule.made(at(2.0), CALM, 5e6, 1000, 1_000_000);
        let busy = Signs { faults: 20_000, ..CALM };
        assert!(schedule.due(at(3.1), &busy));
        assert!(!schedule.due(at(2.5), &busy), "too soon");
        assert!(!schedule.due(at(300.0), &CALM), "nothing moved");
        assert!(schedule.due(at(3.1), &Signs { processes: 4, ..CALM }), "somebody came");
        schedule.made(at(100.0), CALM, 5e6, 1000, 1_000_000);
        assert!(!schedule.due(at(120.0), &busy), "100 s old: every 25 s");
        assert!(schedule.due(at(125.5), &busy));
    }

    #[test]
    fn what_moved_a_little_is_read_when_it_has_come_to_rest() {
        let mut schedule = Schedule::default();
        schedule.made(at(20.0), CALM, 5e6, 1000, 1_000_000);
        let later = |faults| Signs { faults: CALM.faults + faults, ..CALM };
        assert!(!schedule.due(at(21.0), &later(1000)), "4 MiB: still moving");
        assert!(!schedule.due(at(22.0), &later(2500)), "10 MiB of 1 GiB: less than a hundredth, and moving");
        assert!(schedule.due(at(23.0), &later(2510)), "at rest");
        schedule.made(at(23.0), later(2510), 5e6, 1000, 1_000_000);
        assert!(!schedule.due(at(24.0), &later(2510)), "once");
        assert!(!schedule.due(at(90.0), &later(2600)), "nothing worth a look");
    }

    #[test]
    fn what_was_there_at_the_start_was_not_earned() {
        assert!(!Schedule::earned(at(5.0), 46e6, 0.005));
        assert!(Schedule::earned(at(20.0), 46e6, 0.005));
    }

    #[test]
    fn what_was_not_earned_must_be_there_twice() {
        let mut schedule = Schedule::default();
        assert!(schedule.price(at(1.0), 10, 0.005) > RESERVE_NS);
        schedule.made(at(1.0), CALM, 20e6, 10_000, 9_000_000);
        assert_eq!((schedule.reads(10, true), schedule.reads(10, false)), (16_666, 6111));
        assert!(schedule.price(at(2.0), 10, 0.005) > RESERVE_NS);
        assert_eq!(schedule.price(at(9.1), 10, 0.005), 20e6, "8 s of half the share pay for 20 ms");
    }
}
