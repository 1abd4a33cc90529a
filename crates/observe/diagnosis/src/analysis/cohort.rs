//! How many processes of a kind lived at one time, and how much memory was theirs then.
//!
//! The surprise: RssAnon of a forked process counts what it shares with its parent too. Where its pages were looked at,
//! what it alone maps is taken instead, else what it has beyond what its parent had when it was first read.

use crate::history::{ProcessHistory, Timeline};
use ullage_model::At;

/// Processes of one kind, in order of birth.
#[derive(Clone, Debug)]
pub(crate) struct Cohort<'a> {
    pub(crate) members: Vec<&'a ProcessHistory>,
}

impl<'a> Cohort<'a> {
    pub(crate) fn of(members: impl IntoIterator<Item = &'a ProcessHistory>) -> Cohort<'a> {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by_key(|member| (member.first_seen, member.id));
        Cohort { members }
    }

    /// Those of each parent, by its pid.
    pub(crate) fn by_parent(members: impl IntoIterator<Item = &'a ProcessHistory>) -> Vec<(i32, Cohort<'a>)> {
        let mut cohorts: std::collections::BTreeMap<i32, Vec<&ProcessHistory>> = Default::default();
        for member in members {
            cohorts.entry(member.born_to()).or_default().push(member);
        }
        cohorts.into_iter().map(|(parent, members)| (parent, Cohort::of(members))).collect()
    }

    /// Those that lived at a moment; a zombie has ended.
    pub(crate) fn alive(&self, at: At) -> Vec<&'a ProcessHistory> {
        let lived = |member: &&&ProcessHistory| {
            (member.first_seen..=member.last_seen).contains(&at)
                && member.zombie_since.is_none_or(|since| since > at)
        };
        self.members.iter().filter(lived).copied().collect()
    }

    /// The moment at which most of them lived, and how many.
    pub(crate) fn most(&self) -> Option<(At, usize)> {
        let births = self.members.iter().map(|member| member.first_seen);
        births.map(|at| (at, self.alive(at).len())).max_by_key(|(at, number)| (*number, *at))
    }

    /// The moment at which they held most, and how much.
    pub(crate) fn heaviest(&self, timeline: &Timeline) -> Option<(At, u64)> {
        let moments = self.members.iter().filter_map(|member| member.anonymous.peak()).map(|(at, _)| at);
        moments.map(|at| (at, self.held(timeline, at))).max_by_key(|(at, bytes)| (*bytes, *at))
    }

    /// Bytes of their own at a moment.
    pub(crate) fn held(&self, timeline: &Timeline, at: At) -> u64 {
        let own = |member: &ProcessHistory| held_by(timeline, member, at).unwrap_or(0);
        self.alive(at).into_iter().map(own).fold(0, u64::saturating_add)
    }
}

/// Anonymous memory that a process does not share, as far as that was looked at.
pub(crate) fn held_by(timeline: &Timeline, process: &ProcessHistory, at: At) -> Option<u64> {
    let (_, anonymous) = process.anonymous.at_or_before(at).or_else(|| process.anonymous.first())?;
    let nearest = process.probes.iter().rev().find(|probe| probe.at <= at).or_else(|| process.probes.first());
    Some(match nearest {
        Some(probe) => probe.exclusive.bytes.0 + (anonymous as u64).saturating_sub(probe.anonymous),
        None if process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some()) => {
            let (first_at, first) = process.anonymous.first()?;
            // Between its birth and its first reading it may have taken memory of its own; its parent did not for it.
            let parent = timeline.by_pid(process.born_to()).filter(|parent| parent.id != process.id);
            let inherited = parent.and_then(|parent| parent.anonymous.at_or_before(first_at));
            (anonymous - inherited.map_or(first, |(_, held)| held.min(first))).max(0.0) as u64
        }
        None => anonymous as u64,
    })
}
