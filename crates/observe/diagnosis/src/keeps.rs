//! What torch keeps in one Python, as the agent told: counts that became more, batches behind a late one, objects that went
//! through collectives. And whether a count rises to the end.
//!
//! The surprise: a count is told only when it is a quarter more than the last told, or more at all after 5 s. So the last
//! that was told may be that old in a process that is killed, and still have risen to its end.

use crate::history::ProcessHistory;
use std::collections::BTreeMap;
use ullage_model::{At, Collective, Kept, Waiting};

/// Messages of one kind that are kept of a process; beyond it, every second one is forgotten.
const MOST: usize = 64;
/// A count that rises is watched for so long at least, seconds.
const LASTED_S: f64 = 5.0;
/// It was last told within this share of the time before the end.
const LATE: f64 = 0.3;
/// Of its rise, each half of the time has this share.
const HALF: f64 = 0.2;

/// All of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeps {
    counts: BTreeMap<String, Vec<(At, Kept)>>,
    /// Batches behind a late one.
    pub(crate) waiting: Vec<(At, Waiting)>,
    /// Objects that went through collectives.
    pub(crate) sent: Vec<(At, Collective)>,
    /// When its program was through: the process may take seconds more to go.
    done: Option<At>,
}

impl Keeps {
    pub(crate) fn more(&mut self, at: At, kept: &Kept) {
        add(self.counts.entry(kept.what.clone()).or_default(), at, kept);
    }

    /// What was told last of them.
    pub(crate) fn latest(&self, what: &str) -> Option<(At, &Kept)> {
        self.counts.get(what)?.last().map(|(at, kept)| (*at, kept))
    }

    /// The most of them that was told.
    pub(crate) fn count(&self, what: &str) -> Option<u64> {
        self.counts.get(what)?.iter().map(|(_, kept)| kept.count).max()
    }

    pub(crate) fn ends(&mut self, at: At) {
        self.done = Some(at);
    }

    pub(crate) fn waits(&mut self, at: At, waiting: &Waiting) {
        add(&mut self.waiting, at, waiting);
    }

    pub(crate) fn sends(&mut self, at: At, collective: &Collective) {
        add(&mut self.sent, at, collective);
    }
}

fn add<T: Clone>(all: &mut Vec<(At, T)>, at: At, one: &T) {
    if all.len() >= MOST {
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            number % 2 == 1
        });
    }
    all.push((at, one.clone()));
}

/// A count that rose in both halves of the time in which it was watched, and to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rising<'a> {
    pub(crate) process: &'a ProcessHistory,
    pub(crate) since: At,
    pub(crate) before: u64,
    pub(crate) at: At,
    pub(crate) last: &'a Kept,
}

impl Rising<'_> {
    pub(crate) fn more(&self) -> u64 {
        self.last.count - self.before
    }
}

/// The count of `what` in a process, where it rises by at least so many.
pub(crate) fn rising<'a>(process: &'a ProcessHistory, what: &str, least: u64) -> Option<Rising<'a>> {
    let told = process.keeps.counts.get(what)?;
    let ((since, first), (at, last)) = (told.first()?, told.last()?);
    let end = process.keeps.done.unwrap_or(process.last_seen).max(*at);
    let whole = end.since(*since);
    let middle = At::from_seconds(since.seconds() + whole / 2.0);
    let (_, half) = told.iter().rfind(|(at, _)| *at <= middle)?;
    let rise = last.count.checked_sub(first.count)? as f64;
    let early = half.count.saturating_sub(first.count) as f64;
    let late = last.count.saturating_sub(half.count) as f64;
    let rises = rise >= least as f64
        && whole >= LASTED_S
        && end.since(*at) <= LATE * whole
        && early >= HALF * rise
        && late >= HALF * rise;
    rises.then_some(Rising { process, since: *since, before: first.count, at: *at, last })
}
