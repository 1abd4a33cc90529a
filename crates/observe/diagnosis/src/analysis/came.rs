//! What came to the job before a kill? That by which it still rose then, else all since its programs were loaded.
//!
//! The surprise: a file in /dev/shm that no process maps is in no process, and yet the cgroup is charged for it. So where a cgroup
//! met its limit, it is what that cgroup was charged for, files that the kernel can drop aside.

use super::growth_class::{began, least};
use super::Analysis;
use crate::history::{CgroupHistory, Series};
use crate::trend::{rested_at, rise, stood_at};
use ullage_model::At;

pub(crate) struct Came {
    held: Series,
    /// Before it came, seconds and bytes.
    from: (f64, f64),
    /// Bytes at which it was at rest before.
    rested: Option<f64>,
}

impl Came {
    /// `group`: whose limit was met, where one was. `kill`: the last reading that may be from before it.
    pub(crate) fn of(analysis: &Analysis, group: Option<&CgroupHistory>, kill: Option<At>) -> Came {
        let mut held = Series::default();
        group
            .and_then(charged)
            .unwrap_or_else(|| analysis.timeline.tree.clone())
            .points()
            .filter(|(at, _)| kill.is_none_or(|kill| *at <= kill))
            .for_each(|(at, bytes)| held.push(at, bytes));
        let began = began(analysis);
        let rises = rise(&held, began, least(analysis)).filter(|rise| rise.ongoing);
        let since = rises.map_or(began, |rise| rise.since);
        // Of a rise in a line that is what the line brought: what came with a bound before it is no part of that.
        let base = before(&held, since).map_or(0.0, |(_, bytes)| bytes);
        let top = rises.and_then(|rise| held.at_or_before(At::from_seconds(rise.until)));
        let level = rises.zip(top).map_or(base, |(rise, (_, top))| base.max(top - rise.by));
        let end = held.last().map(|(at, _)| at);
        let rested = end.and_then(|end| Some(rested_at(&held, At::from_seconds(began), end)?.1));
        Came { from: (since, level), rested, held }
    }

    /// Bytes until a reading: what was counted then is no part of what came afterwards. Until the kill where it is from before.
    pub(crate) fn until(&self, reading: Option<At>) -> f64 {
        let (since, level) = self.from;
        let then = reading.filter(|at| at.seconds() > since).and_then(|at| self.held.at_or_before(at));
        let came = |reading: Option<(At, f64)>| reading.map_or(0.0, |(_, bytes)| bytes - level);
        Some(came(then)).filter(|came| *came > 0.0).unwrap_or_else(|| came(self.held.peak()))
    }

    /// Bytes since it was at rest, where it was: what a piece of work of a process that was born then, and that began later, can
    /// have brought.
    /// `limit`: what a cgroup that met it was filled to, whether or not the last of it was read.
    pub(crate) fn since_rest(&self, born: At, begun: At, limit: Option<u64>) -> Option<f64> {
        let (end, _) = self.held.last()?;
        let (_, read) = self.held.highest_before(end)?;
        let top = limit.map_or(read, |limit| read.max(limit as f64));
        let level = self.rested.or_else(|| stood_at(&self.held, (born, end), begun, top))?;
        Some(top - level).filter(|came| *came > 0.0)
    }

    /// Bytes since a moment that is known.
    pub(crate) fn since(&self, begun: At) -> Option<f64> {
        let (end, _) = self.held.last()?;
        Some(self.held.highest_before(end)?.1 - self.held.at_or_before(begun)?.1)
    }

    /// Bytes until a limit was met, whether or not the last of it was read.
    pub(crate) fn until_full(&self, limit: u64) -> f64 {
        (limit as f64 - self.from.1).max(self.until(None))
    }

    /// What a series stood at before it came.
    pub(crate) fn before(&self, series: &Series) -> f64 {
        before(series, self.from.0).map_or(0.0, |(_, bytes)| bytes)
    }
}

fn before(series: &Series, seconds: f64) -> Option<(At, f64)> {
    series.at_or_before(At::from_seconds(seconds.max(0.0))).or(series.first())
}

/// Without page cache, with swap; none where it was not told what it is made of.
fn charged(group: &CgroupHistory) -> Option<Series> {
    let mut charged = Series::default();
    for (at, cache) in group.cache.points() {
        let then = |series: &Series| series.at_or_before(at).map_or(0.0, |(_, bytes)| bytes);
        charged.push(at, (then(&group.memory) - cache).max(0.0) + then(&group.swap));
    }
    charged.last().is_some().then_some(charged)
}
