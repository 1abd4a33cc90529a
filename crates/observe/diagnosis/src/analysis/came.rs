//! What came to the job before a kill? That by which it still rose then, else all since its programs were loaded.
//!
//! The surprise: a file in /dev/shm that no process maps is in no process, and yet the cgroup is charged for it. So where a cgroup
//! met its limit, it is what that cgroup was charged for, files that the kernel can drop aside.

use super::growth_class::{began, least};
use super::oom::limiting;
use super::Analysis;
use crate::history::{CgroupHistory, Series};
use crate::trend::rise;
use ullage_model::At;

pub(crate) struct Came {
    held: Series,
    /// Before it came, seconds and bytes.
    from: (f64, f64),
}

impl Came {
    pub(crate) fn of(analysis: &Analysis, kill: Option<At>) -> Came {
        let victim = analysis.oom_victims.first().filter(|victim| victim.of_cgroup());
        let group = victim.and_then(|victim| limiting(analysis, victim.group?)).map(|(group, _)| group);
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
        let level = held.at_or_before(At::from_seconds(since.max(0.0))).or(held.first());
        Came { from: (since, level.map_or(0.0, |(_, bytes)| bytes)), held }
    }

    /// Bytes until a reading: what was counted then is no part of what came afterwards. Until the kill where it is from before.
    pub(crate) fn until(&self, reading: Option<At>) -> f64 {
        let (since, level) = self.from;
        let then = reading.filter(|at| at.seconds() > since).and_then(|at| self.held.at_or_before(at));
        let came = |reading: Option<(At, f64)>| reading.map_or(0.0, |(_, bytes)| bytes - level);
        Some(came(then)).filter(|came| *came > 0.0).unwrap_or_else(|| came(self.held.peak()))
    }

    /// Before it came.
    pub(crate) fn since(&self) -> At {
        At::from_seconds(self.from.0.max(0.0))
    }
}

/// Without page cache; none where it was not told what it is made of.
fn charged(group: &CgroupHistory) -> Option<Series> {
    let mut charged = Series::default();
    for (at, cache) in group.cache.points() {
        let all = group.memory.at_or_before(at).map_or(0.0, |(_, bytes)| bytes);
        charged.push(at, (all - cache).max(0.0));
    }
    charged.last().is_some().then_some(charged)
}
