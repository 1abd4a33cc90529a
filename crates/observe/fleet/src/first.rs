//! Which recording failed first, and what failed after it?
//!
//! Of failures that are no echo, the earliest by wall clock. Each time is an interval: how exactly the end was seen, and how
//! far the node's clock may be off. Two recordings of one boot have one clock, whose error says nothing between them. Where
//! intervals overlap, the only proven cause decides; else all of them are named.
//!
//! The surprise: a node that stops without a word may be the first one too. It counts as unclear, from its last reading on.

use crate::policy::{EXCEPTION_ERROR_S, LOST_AFTER_S, UNKNOWN_CLOCK_ERROR_S};
use crate::row::is_proven;
use std::collections::{BTreeMap, BTreeSet};
use ullage_model::{CascadeStep, FailureKind, FirstBy, FirstOfFleet, FleetCandidate, FleetPlace, FleetRow};

/// Candidates that are listed.
const MOST_CANDIDATES: usize = 64;

/// A recording that failed, or stopped long before the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect<'a> {
    pub(crate) row: &'a FleetRow,
    at: f64,
    /// Without the error of the clock.
    seen_error: f64,
    pub(crate) kind: FailureKind,
    lost: bool,
}

/// Which recording, by the rank that failed.
pub(crate) fn place(row: &FleetRow) -> FleetPlace {
    FleetPlace { path: row.path.clone(), node: row.node.clone(), rank: row.failure_rank.or(row.rank) }
}

/// The name by which a recording's node is known; none where nothing says it.
pub(crate) fn node(row: &FleetRow) -> Option<&str> {
    row.node.as_deref().or(row.boot_id.as_deref())
}

/// Whether a recording has no end and stops long before `latest`, the last wall clock of any.
pub(crate) fn is_lost(row: &FleetRow, latest: f64) -> bool {
    !row.closed && row.problem.is_none() && row.ended_unix.is_some_and(|last| last + LOST_AFTER_S < latest)
}

/// The last wall clock of any recording.
pub(crate) fn latest(rows: &[&FleetRow]) -> f64 {
    rows.iter().filter_map(|row| row.ended_unix).fold(0.0, f64::max)
}

/// All that failed or is lost, earliest first.
pub(crate) fn suspects<'a>(rows: &[&'a FleetRow]) -> Vec<Suspect<'a>> {
    let latest = latest(rows);
    let of = |row: &&'a FleetRow| {
        let row: &'a FleetRow = row;
        let failed = row.failure.zip(row.failure_unix).map(|(kind, at)| Suspect {
            row,
            at,
            seen_error: row.failure_error_s.unwrap_or(EXCEPTION_ERROR_S),
            kind,
            lost: false,
        });
        let lost = || {
            let last = row.ended_unix.filter(|_| is_lost(row, latest))?;
            // Between its last reading and the next copy of it.
            let seen_error = LOST_AFTER_S / 2.0;
            Some(Suspect { row, at: last + seen_error, seen_error, kind: FailureKind::Unclear, lost: true })
        };
        failed.or_else(lost)
    };
    let mut suspects: Vec<Suspect<'a>> = rows.iter().filter_map(of).collect();
    suspects.sort_by(|a, b| a.at.total_cmp(&b.at).then_with(|| a.row.path.cmp(&b.row.path)));
    suspects
}

/// The first one; none where nothing failed. `suspects` as [`suspects`] gives them.
pub(crate) fn first(suspects: &[Suspect<'_>]) -> Option<FirstOfFleet> {
    let no_echo = |suspect: &&Suspect<'_>| suspect.kind != FailureKind::Echo;
    let mut pool: Vec<&Suspect<'_>> = suspects.iter().filter(no_echo).collect();
    if pool.is_empty() {
        pool = suspects.iter().collect();
    }
    // By the end of its interval, so that a wide one hides nobody behind it.
    let surest = pool.iter().min_by(|a, b| (a.at + a.error()).total_cmp(&(b.at + b.error())))?;
    let contenders: Vec<&Suspect<'_>> =
        pool.iter().filter(|other| other.at - surest.at <= apart(other, surest)).copied().collect();
    let proven: Vec<&Suspect<'_>> = contenders.iter().filter(|one| is_proven(one.row)).copied().collect();
    let others_unclear = || contenders.iter().all(|one| is_proven(one.row) || one.kind != FailureKind::Own);
    let (by, named) = match (contenders.as_slice(), proven.as_slice()) {
        ([one], _) if pool.len() == 1 => (Some(FirstBy::Only), vec![*one]),
        ([one], _) => (Some(FirstBy::Clock), vec![*one]),
        (_, [one]) if others_unclear() => (Some(FirstBy::Cause), vec![*one]),
        _ => (None, contenders.clone()),
    };
    let nodes: BTreeSet<Option<&str>> = named.iter().map(|suspect| node(suspect.row)).collect();
    let node = nodes.into_iter().collect::<Vec<_>>();
    Some(FirstOfFleet {
        determined: by.is_some(),
        by,
        node: if let [Some(node)] = node.as_slice() { Some((*node).to_owned()) } else { None },
        more: named.len().saturating_sub(MOST_CANDIDATES),
        candidates: named.iter().take(MOST_CANDIDATES).map(|suspect| suspect.candidate()).collect(),
    })
}

/// Endings of all that failed and is no candidate, the most frequent first.
pub(crate) fn cascade(suspects: &[Suspect<'_>], first: Option<&FirstOfFleet>) -> Vec<CascadeStep> {
    let candidates = first.map_or(&[][..], |first| first.candidates.as_slice());
    let named: BTreeSet<&str> = candidates.iter().map(|candidate| candidate.place.path.as_str()).collect();
    let from =
        first.filter(|first| first.determined).and_then(|first| Some(first.candidates.first()?.at_unix));
    let mut steps: BTreeMap<(String, FailureKind), (usize, f64)> = BTreeMap::new();
    for suspect in suspects.iter().filter(|suspect| !named.contains(suspect.row.path.as_str())) {
        let step = steps.entry((suspect.ending(), suspect.kind)).or_insert((0, f64::MIN));
        *step = (step.0 + 1, step.1.max(suspect.at));
    }
    let mut steps: Vec<CascadeStep> = steps
        .into_iter()
        .map(|((ending, failure), (recordings, last))| CascadeStep {
            ending,
            failure,
            recordings,
            within_s: from.map(|from| (last - from).max(0.0)),
        })
        .collect();
    steps.sort_by(|a, b| b.recordings.cmp(&a.recordings).then_with(|| a.ending.cmp(&b.ending)));
    steps
}

/// How far two times must lie apart, so that one is earlier for sure.
fn apart(a: &Suspect<'_>, b: &Suspect<'_>) -> f64 {
    let one_clock = a.row.boot_id.is_some() && a.row.boot_id == b.row.boot_id;
    let clocks = if one_clock { 0.0 } else { a.clock_error() + b.clock_error() };
    a.seen_error + b.seen_error + clocks
}

impl Suspect<'_> {
    fn clock_error(&self) -> f64 {
        self.row.clock_error_s.unwrap_or(UNKNOWN_CLOCK_ERROR_S)
    }

    fn error(&self) -> f64 {
        self.seen_error + self.clock_error()
    }

    fn ending(&self) -> String {
        match &self.row.ending {
            Some(ending) if !self.lost => ending.clone(),
            _ => "no end recorded".to_owned(),
        }
    }

    fn candidate(&self) -> FleetCandidate {
        let row = self.row;
        let fatal = is_proven(row) || row.severity == Some(ullage_model::Severity::Fatal);
        let sentence = match &row.failure_sentence {
            _ if fatal => row.headline.clone(),
            Some(sentence) => sentence.trim_end_matches('.').to_owned(),
            None if self.lost => {
                "Nothing was recorded after that: the node was lost, or ullage was killed with its container"
                    .to_owned()
            }
            None => row.headline.clone(),
        };
        FleetCandidate {
            place: place(row),
            at_unix: self.at,
            error_s: self.error(),
            failure: self.kind,
            role: row.failure_role.clone().or_else(|| row.cause_role.clone()),
            cause: row.cause.clone().filter(|_| fatal),
            proof: row.proof.filter(|_| fatal),
            ending: self.ending(),
            sentence,
        }
    }
}
