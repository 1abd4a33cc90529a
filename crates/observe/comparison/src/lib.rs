//! Which difference between two machines explains what went wrong on one of them? Pure: facts, verdicts and figures
//! in, ranked differences out.
//!
//! [`table`](self) holds what each fact changes; `weigh` says how strongly one difference is tied to what was seen;
//! here they are put in order. The surprise: one change brings others with it (another torch brings another OpenMP),
//! and those stand under it, unless they explain more than it does.
#![forbid(unsafe_code)]

mod known;
mod table;
mod view;
mod weigh;

pub use known::known_bad;
use std::collections::{BTreeMap, BTreeSet};
use table::Row;
use ullage_model::{Against, Change, Comparison, Difference, Fact, Facts, Strength, Verdict};
use view::View;
use weigh::Weighed;

/// What was seen in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its verdict.
    pub verdict: Verdict,
    /// The most that was used of each figure.
    pub peaks: BTreeMap<String, f64>,
}

/// One machine: a snapshot, or a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The file or run.
    pub name: String,
    /// Its facts.
    pub facts: Facts,
    /// The job as a person would type it; none for a snapshot.
    pub command: Option<String>,
    /// What was seen; none for a snapshot.
    pub seen: Option<Seen>,
}

/// Below it a difference is not worth a line.
const LEAST: f64 = 0.012;

/// The good one against each other.
pub fn compare(good: &Side, others: &[Side]) -> Comparison {
    Comparison {
        schema: Comparison::SCHEMA,
        good: good.name.clone(),
        others: others.iter().map(|bad| against(good, bad)).collect(),
    }
}

fn against(good: &Side, bad: &Side) -> Against {
    let view = View::new(good, bad);
    let mut against = Against {
        name: bad.name.clone(),
        symptoms: view.symptoms(),
        differences: Vec::new(),
        unimportant: Vec::new(),
        same: 0,
        not_compared: Vec::new(),
    };
    let mut changes = Vec::new();
    let names: BTreeSet<&String> =
        good.facts.keys().chain(bad.facts.keys()).filter(|name| !is_of_now(name)).collect();
    for name in names {
        match pair(name, good, bad) {
            Pair::Same => against.same += 1,
            Pair::Unknown(change) => against.not_compared.push(change),
            Pair::Changed(change) => changes.push(change),
        }
    }
    let mut candidates: Vec<(Change, &Row, Weighed)> = Vec::new();
    for change in changes {
        match table::row(&change.fact) {
            Some(row) => {
                let weighed = weigh::weigh(row, &change, &view);
                candidates.push((change, row, weighed));
            }
            None => against.unimportant.push(change),
        }
    }
    candidates.sort_by(|a, b| b.2.score.total_cmp(&a.2.score).then(a.0.fact.cmp(&b.0.fact)));
    rank(candidates, good, bad, &mut against);
    against
}

/// Which boot it is and how far its clock is off: of no two runs alike, and no condition that a job meets.
fn is_of_now(name: &str) -> bool {
    name == "boot.id" || name.starts_with("clock.")
}

enum Pair {
    Same,
    Unknown(Change),
    Changed(Change),
}

fn pair(name: &str, good: &Side, bad: &Side) -> Pair {
    let value = |side: &Side| match side.facts.get(name) {
        Some(fact) => fact.clone(),
        None => absent(name, &side.facts),
    };
    let (of_good, of_bad) = (value(good), value(bad));
    if of_good == of_bad {
        return if of_good.is_missing() { unknown(name, of_good, of_bad) } else { Pair::Same };
    }
    if of_good.is_missing() || of_bad.is_missing() {
        return unknown(name, of_good, of_bad);
    }
    Pair::Changed(Change { fact: name.to_owned(), good: of_good, bad: of_bad })
}

fn unknown(name: &str, good: Fact, bad: Fact) -> Pair {
    Pair::Unknown(Change { fact: name.to_owned(), good, bad })
}

/// A variable, a boot option or a package that is not listed is not there; of anything else nothing is known.
fn absent(name: &str, facts: &Facts) -> Fact {
    let lists = |prefix: &str| facts.keys().any(|name| name.starts_with(prefix));
    let complete = (name.starts_with("env.") && lists("limit."))
        || (name.starts_with("boot.") && !facts.contains_key("boot"))
        || (name.starts_with("package.") && lists("package."));
    match complete {
        true => "not set".into(),
        false => Fact::missing("not recorded"),
    }
}

/// Puts what comes with another under it, and the rest in order.
fn rank(candidates: Vec<(Change, &Row, Weighed)>, good: &Side, bad: &Side, against: &mut Against) {
    // A change that several bring goes to the strongest of them; the list is in that order.
    let is_brought = |at: usize| {
        let (change, _, weighed) = &candidates[at];
        candidates.iter().enumerate().find(|(other, (parent, row, above))| {
            *other != at
                && parent.fact != change.fact
                && row.brings.iter().any(|brought| table::matches(brought, &change.fact))
                && weighed.score <= above.score + 1e-9
        })
    };
    let parents: Vec<Option<usize>> =
        (0..candidates.len()).map(|at| is_brought(at).map(|(parent, _)| parent)).collect();
    for (at, (change, row, weighed)) in candidates.iter().enumerate() {
        if parents[at].is_some() {
            continue;
        }
        if weighed.score < LEAST {
            against.unimportant.push(change.clone());
            continue;
        }
        let with = (0..candidates.len()).filter(|&child| top(&parents, child) == Some(at));
        let difference = Difference {
            rank: 0,
            change: change.clone(),
            title: row.title.into(),
            unit: row.unit.into(),
            score: (weighed.score * 1000.0).round() / 1000.0,
            strength: strength(weighed.score),
            ties: weighed.ties.clone(),
            mechanism: row.mechanism.into(),
            test: weigh::test(row, change, good, bad),
            causes: row.causes().iter().map(|cause| (*cause).to_owned()).collect(),
            with: with.map(|child| candidates[child].0.clone()).collect(),
        };
        against.differences.push(difference);
    }
    for (place, difference) in (1u32..).zip(&mut against.differences) {
        difference.rank = place;
    }
    // What a parent that is itself unimportant brings goes with it.
    let reported: BTreeSet<String> = against
        .differences
        .iter()
        .flat_map(|one| one.with.iter().chain([&one.change]))
        .chain(&against.unimportant)
        .map(|change| change.fact.clone())
        .collect();
    against.unimportant.extend(
        candidates.into_iter().map(|(change, _, _)| change).filter(|change| !reported.contains(&change.fact)),
    );
}

/// The one at the top that brings this one; none for one that stands for itself.
fn top(parents: &[Option<usize>], child: usize) -> Option<usize> {
    let mut at = parents[child]?;
    // Two rows of equal weight may each bring the other: the chain is cut.
    for _ in 0..8 {
        match parents[at] {
            Some(above) => at = above,
            None => return Some(at),
        }
    }
    None
}

fn strength(score: f64) -> Strength {
    match score {
        score if score >= 0.75 => Strength::Explains,
        score if score >= 0.4 => Strength::Likely,
        _ => Strength::Possible,
    }
}

#[cfg(test)]
mod tests;
