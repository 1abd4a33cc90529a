//! What is different about a node? Its facts against those that most other nodes have, by the comparison of two machines.
//!
//! The "good machine" has each fact that most of the other nodes agree on, and the median of their figures. The surprise: a
//! value that other nodes have too, which did not fail, explains less than one that this node has alone.

use crate::first::node;
use crate::machines::Machines;
use crate::outliers::median;
use crate::policy::{ALIKE_FROM, ALIKE_SHARE, MAJORITY};
use std::collections::{BTreeMap, BTreeSet};
use ullage_comparison::{compare, Seen, Side};
use ullage_model::{
    Fact, Facts, Finding, FleetDifference, FleetRow, MemorySummary, OddBecause, OddNode, Outcome, Proof,
    RunId, Severity, Verdict,
};

/// Differences and names that are listed.
const MOST_DIFFERENCES: usize = 10;
const MOST_NAMES: usize = 10;

/// What is different about the node of `row`; none where there is no other node.
pub(crate) fn odd(
    row: &FleetRow,
    because: OddBecause,
    rows: &[&FleetRow],
    machines: &Machines,
) -> Option<OddNode> {
    let own = node(row)?;
    let facts = machines.facts(own)?;
    let others: BTreeSet<&str> =
        rows.iter().filter_map(|row| node(row)).filter(|other| *other != own).collect();
    if others.is_empty() {
        return None;
    }
    let counted = machines.counted(others.iter().copied());
    let most: BTreeMap<&str, Fact> = counted
        .iter()
        .map(|(name, values)| (*name, of_most(values)))
        .filter(|(_, (_, count))| *count as f64 >= MAJORITY * others.len() as f64)
        .map(|(name, (fact, _))| (name, fact))
        .collect();
    let good_facts: Facts = most.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
    let same_or_own = |name: &str, fact: Fact| match most.get(name) {
        Some(most) if are_alike(most, &fact) => most.clone(),
        _ => fact,
    };
    let bad_facts: Facts = facts
        .into_iter()
        .filter(|(name, _)| most.contains_key(name.as_str()))
        .map(|(name, fact)| (name.clone(), same_or_own(&name, fact)))
        .collect();
    let peers: Vec<&FleetRow> = rows.iter().filter(|row| node(row) != Some(own)).copied().collect();
    let good = Side {
        name: "most nodes".to_owned(),
        facts: good_facts,
        command: None,
        seen: Some(Seen { verdict: well(), peaks: medians(&peers) }),
    };
    let bad = Side {
        name: own.to_owned(),
        facts: bad_facts,
        command: None,
        seen: Some(Seen { verdict: seen(row), peaks: row.figures.clone() }),
    };
    let compared = compare(&good, std::slice::from_ref(&bad)).others.into_iter().next()?;
    let count = |name: &str, fact: &Fact| {
        let values = counted.get(name).map_or(&[][..], Vec::as_slice);
        values.iter().filter(|(value, _)| are_alike(value, fact)).map(|(_, count)| *count).sum()
    };
    let mut differences: Vec<FleetDifference> = compared
        .differences
        .into_iter()
        .map(|difference| FleetDifference {
            agreeing: count(&difference.change.fact, &difference.change.good),
            same: count(&difference.change.fact, &difference.change.bad),
            difference,
        })
        .collect();
    differences.sort_by_key(|one| (std::cmp::Reverse(one.difference.strength), one.same > 0));
    for (place, one) in (1u32..).zip(&mut differences) {
        one.difference.rank = place;
    }
    differences.truncate(MOST_DIFFERENCES);
    Some(OddNode {
        node: own.to_owned(),
        because,
        others: others.len(),
        differences,
        unimportant: compared.unimportant.into_iter().take(MOST_NAMES).map(|change| change.fact).collect(),
    })
}

/// The value that most nodes have, and how many have it or one like it.
fn of_most(values: &[(&Fact, usize)]) -> (Fact, usize) {
    let most = values
        .iter()
        .max_by_key(|(_, count)| *count)
        .map_or(Fact::missing("no node"), |(fact, _)| (*fact).clone());
    // Of sizes that differ a little everywhere, the one in the middle.
    let mut sizes: Vec<(u64, usize)> =
        values.iter().filter_map(|(fact, count)| Some((fact.number()?, *count))).collect();
    sizes.sort_unstable();
    let half = sizes.iter().map(|(_, count)| count).sum::<usize>().div_ceil(2);
    let mut before = 0;
    let middle = sizes.iter().find(|(_, count)| {
        before += count;
        before >= half
    });
    let alike = |fact: &Fact| -> usize {
        values.iter().filter(|(value, _)| are_alike(value, fact)).map(|(_, count)| *count).sum()
    };
    let of_middle = middle.map(|(size, _)| Fact::Number(*size)).map(|fact| (alike(&fact), fact));
    match of_middle {
        Some((count, fact)) if count > alike(&most) => (fact, count),
        _ => (most.clone(), alike(&most)),
    }
}

/// The same, or sizes that differ by so little that it changes nothing.
fn are_alike(a: &Fact, b: &Fact) -> bool {
    match (a, b) {
        (Fact::Number(a), Fact::Number(b)) if a.min(b) >= &ALIKE_FROM => {
            (*a as f64 - *b as f64).abs() <= ALIKE_SHARE * (*a.max(b) as f64)
        }
        _ => a == b,
    }
}

fn medians(rows: &[&FleetRow]) -> BTreeMap<String, f64> {
    let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    names
        .into_iter()
        .map(|name| {
            (name.clone(), median(rows.iter().filter_map(|row| row.figures.get(name)).copied().collect()))
        })
        .collect()
}

/// A verdict that says as much as a comparison asks: the outcome, and the first finding.
fn seen(row: &FleetRow) -> Verdict {
    let finding = row.cause.clone().zip(row.severity).map(|(cause, severity)| Finding {
        title: row.title.clone().unwrap_or_else(|| cause.clone()),
        cause,
        headline: row.headline.clone(),
        severity: severity.max(Severity::Warning),
        proof: row.proof.unwrap_or(Proof::Consistent),
        process: None,
        at: None,
        evidence: Vec::new(),
        fixes: Vec::new(),
        explains: Vec::new(),
        beyond_its_process: false,
    });
    let outcome = Outcome { code: row.code, signal: row.signal, by: row.by, ..Outcome::of(row.outcome) };
    Verdict { outcome, healthy: row.healthy, findings: finding.into_iter().collect(), ..well() }
}

fn well() -> Verdict {
    Verdict {
        run: RunId::default(),
        command: Vec::new(),
        outcome: Outcome { code: Some(0), ..Outcome::of(ullage_model::OutcomeKind::Exit) },
        healthy: true,
        findings: Vec::new(),
        limits: Vec::new(),
        memory: MemorySummary::default(),
        growth: None,
        first_failure: None,
        segments: None,
        undetermined: Vec::new(),
        not_seen: Vec::new(),
        fixes: Vec::new(),
        cost_cpu_share: None,
        cost_peak_rss: None,
        duration_s: None,
        marks: Vec::new(),
        attempts: Vec::new(),
    }
}
