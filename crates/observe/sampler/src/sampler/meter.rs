//! What watching costs, and what more this tick may spend: CPU clocks of this process and thread, its largest resident set,
//! and the [`crate::budget`].

use crate::budget::Budget;
use crate::learned::Learned;
use rustix::time::{clock_gettime, ClockId};
use std::time::Duration;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{At, Bytes, Cost};

/// Counts what ticks cost.
#[derive(Debug)]
pub(super) struct Meter {
    budget: Budget,
    whole_process: bool,
    own: Option<ProcessDir>,
    /// Costs of one mapping counted, one link read.
    pub(super) each_mapping: Learned,
    pub(super) each_link: Learned,
    /// CPU time of watching when the last tick had been read, and when this one began.
    at_end: Option<u64>,
    at_begin: u64,
    /// Between the two.
    between_ns: f64,
    /// On what is not read at every tick, in this one.
    spent_ns: f64,
    /// Cost of a tick without that, smoothed.
    tick_ns: f64,
}

impl Meter {
    pub(super) fn new(cpu_share: f64, whole_process: bool) -> Meter {
        Meter {
            budget: Budget::new(cpu_share),
            whole_process,
            own: own_files(),
            each_mapping: Learned::guess(1200.0),
            each_link: Learned::guess(1200.0),
            at_end: None,
            at_begin: 0,
            between_ns: 0.0,
            spent_ns: 0.0,
            tick_ns: 0.0,
        }
    }

    pub(super) fn begin(&mut self, now: At) {
        self.at_begin = self.clock();
        // What was done with the last tick belongs to it.
        self.between_ns = self.at_begin.saturating_sub(self.at_end.unwrap_or(self.at_begin)) as f64;
        self.spent_ns = 0.0;
        self.budget.update(now.0, self.at_begin);
    }

    /// After all readings of a tick.
    pub(super) fn end(&mut self, now: At, buffer: &mut Vec<u8>) -> Cost {
        let cost = own_cost(self.own.as_ref(), self.clock(), buffer);
        self.budget.update(now.0, cost.cpu_ns);
        self.at_end = Some(cost.cpu_ns);
        let whole_ns = self.between_ns + cost.cpu_ns.saturating_sub(self.at_begin) as f64;
        self.tick_ns = smoothed(self.tick_ns, (whole_ns - self.spent_ns).max(0.0));
        cost
    }

    /// CPU time of watching so far.
    pub(super) fn clock(&self) -> u64 {
        if self.whole_process {
            nanoseconds(ClockId::ProcessCPUTime)
        } else {
            thread_cpu_ns()
        }
    }

    /// This much of the tick's cost was no part of what every tick reads.
    pub(super) fn spend(&mut self, ns: f64) {
        self.spent_ns += ns;
    }

    /// Whether something of this expected cost may be read in this tick.
    pub(super) fn allows(&self, expected_ns: f64, near_a_limit: bool) -> bool {
        self.budget.allows(self.spent_ns + expected_ns, near_a_limit)
    }

    /// What may still be spent in this tick.
    pub(super) fn room(&self, near_a_limit: bool) -> f64 {
        self.budget.room(self.spent_ns, near_a_limit)
    }

    /// As [`Budget::sustains`].
    pub(super) fn sustains(&self, cost_ns: f64, apart_s: f64, members: usize) -> bool {
        self.budget.sustains(cost_ns, apart_s, members)
    }

    /// Whether one tick more, between two, is within the budget: as near to a limit.
    pub(super) fn allows_a_tick(&self) -> bool {
        self.budget.allows(self.tick_ns, true)
    }

    /// The overdraft is used up.
    pub(super) fn is_exhausted(&self) -> bool {
        !self.budget.allows(0.0, true)
    }

    /// How far apart ticks have to be to stay within the budget.
    pub(super) fn affordable(&self) -> Duration {
        self.budget.pace(self.tick_ns)
    }

    pub(super) fn tick_ns(&self) -> f64 {
        self.tick_ns
    }
}

/// A single dear tick (a part of the recording was written) moves it little; that is paid from what was saved.
fn smoothed(before: f64, now: f64) -> f64 {
    if before == 0.0 {
        now
    } else {
        0.7 * before + 0.3 * now.min(2.0 * before)
    }
}

/// This process's own files, which are the live machine's also where the job's are a fixture.
fn own_files() -> Option<ProcessDir> {
    let own = KernelRoot::live().process(rustix::process::getpid().as_raw_nonzero().get());
    own.ok().map(ProcessDir::keep_open)
}

fn own_cost(own: Option<&ProcessDir>, cpu_ns: u64, buffer: &mut Vec<u8>) -> Cost {
    // ru_maxrss is in KiB on Linux (getrusage(2)); VmHWM says the same and needs no unsafe call.
    let status = own.and_then(|own| own.status(buffer).ok());
    let memory = status.and_then(|status| status.memory);
    Cost { cpu_ns, peak_rss: memory.map_or(Bytes(0), |memory| memory.peak_resident) }
}

pub(super) fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
