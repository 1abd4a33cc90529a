//! Does a count that the agent reported rise to the end of its process?
//!
//! The surprise: a count is told only when it is a quarter more than the last told, or more at all after 5 s. So the last
//! that was told may be that old in a process that is killed, and still have risen to its end.

use crate::history::ProcessHistory;
use crate::policy::trends::{COUNTER_HALF, COUNTER_LASTED_S, COUNTER_LATE};
use ullage_model::{At, TorchCount};

/// A count that rose in both halves of the time in which it was watched, and to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RisingCounter<'a> {
    pub(crate) process: &'a ProcessHistory,
    pub(crate) since: At,
    pub(crate) before: u64,
    pub(crate) at: At,
    pub(crate) last: &'a TorchCount,
}

impl RisingCounter<'_> {
    pub(crate) fn more(&self) -> u64 {
        self.last.count - self.before
    }
}

/// The count of `what` in a process, where it rises by at least so many.
pub(crate) fn rising_counter<'a>(
    process: &'a ProcessHistory,
    what: &str,
    least: u64,
) -> Option<RisingCounter<'a>> {
    let readings = process.torch_counters.counts.get(what)?;
    let ((since, first), (at, last)) = (readings.first()?, readings.last()?);
    let end = process.torch_counters.done.unwrap_or(process.last_seen).max(*at);
    let whole = end.since(*since);
    let middle = At::from_seconds(since.seconds() + whole / 2.0);
    let (_, half) = readings.iter().rfind(|(at, _)| *at <= middle)?;
    let rise = last.count.checked_sub(first.count)? as f64;
    let early = half.count.saturating_sub(first.count) as f64;
    let late = last.count.saturating_sub(half.count) as f64;
    let rises = rise >= least as f64
        && whole >= COUNTER_LASTED_S
        && end.since(*at) <= COUNTER_LATE * whole
        && early >= COUNTER_HALF * rise
        && late >= COUNTER_HALF * rise;
    rises.then_some(RisingCounter { process, since: *since, before: first.count, at: *at, last })
}
