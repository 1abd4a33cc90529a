//! What lies behind a kill? A growth, copies or a backlog that filled the limit is why the job died; the limit is how. So what
//! was most of all that came before it, in any process of the job, explains the kill, weighs as much, and stands before it.
//!
//! The surprise: the least part of a limit may be most of what came. What was there from the start fills the rest, and was no
//! reason until more came.

use crate::analysis::growth_class::{began, least};
use crate::analysis::oom::limiting;
use crate::analysis::Analysis;
use crate::causes::{explains_growth, ALIKE};
use crate::history::Series;
use crate::policy::sizes::{MOST, WARN_PART};
use crate::rule::allocators::JOB_GROWTH;
use crate::rule::retainers::ELSEWHERE;
use crate::trend::rise;
use ullage_model::{At, Evidence, EvidenceValue, Finding, Severity, Status, Unit};

/// Findings that the kernel, or who acts for it, killed for lack of memory.
const KILLS: [&str; 5] =
    ["memcg-oom-kill", "invisible-child-oom", "host-oom-kill", "numa-membind-oom", "userspace-oom-daemon"];

/// Lets what was most of what came explain the first kill: of several, what is known best, then what holds most. Memory that several
/// processes hold alike is no reason of its own where another one was named.
pub(crate) fn explain(analysis: &Analysis, findings: &mut Vec<Finding>) {
    let killed =
        |finding: &&Finding| KILLS.contains(&finding.cause.as_str()) && finding.severity > Severity::Note;
    let kill = findings.iter().find(killed).map(|kill| (kill.cause.clone(), kill.severity, kill.at));
    let Some(((kill, severity, at), room)) = kill.zip(room(analysis)) else { return };
    let came = came(analysis, at);
    let weight = |finding: &Finding| {
        let bytes = held(finding);
        let most = bytes as f64 >= MOST * came && bytes.saturating_mul(WARN_PART) >= room;
        let filled = most && may_explain(analysis, finding, at);
        filled.then_some((!is_alike(finding), finding.status(), bytes))
    };
    let Some(most) = findings.iter().filter_map(weight).max() else { return };
    let Some(reason) = findings.iter_mut().find(|finding| weight(finding) == Some(most)) else { return };
    reason.severity = reason.severity.max(severity);
    reason.explains.push(kill);
    if !is_alike(reason) {
        findings.retain(|finding| !is_alike(finding));
    }
}

/// What is said of ranks that hold about as much each, and no more is known.
fn is_alike(finding: &Finding) -> bool {
    finding.evidence.first().is_some_and(|evidence| evidence.what == ALIKE)
}

/// Bytes that were there to be filled: of the cgroup, else of the machine.
fn room(analysis: &Analysis) -> Option<u64> {
    let victim = analysis.oom_victims.first()?;
    let of_group = victim.group.filter(|_| !victim.host).and_then(|group| limiting(analysis, group));
    let machine = || analysis.machine().memory_total.known().map(|total| total.0);
    of_group.map(|(_, limit)| limit).or_else(machine)
}

/// Bytes that came to the job before the kill: by which it still rose then, else all since its programs were loaded.
fn came(analysis: &Analysis, kill: Option<At>) -> f64 {
    let mut before = Series::default();
    let readings = analysis.timeline.tree.points();
    readings
        .filter(|(at, _)| kill.is_none_or(|kill| *at <= kill))
        .for_each(|(at, bytes)| before.push(at, bytes));
    let began = began(analysis);
    let rises = rise(&before, began, least(analysis)).filter(|rise| rise.ongoing).map(|rise| rise.by);
    let since = || {
        let loaded = before.at_or_before(At::from_seconds(began)).or(before.first())?;
        Some(before.peak()?.1 - loaded.1)
    };
    rises.or_else(since).unwrap_or(0.0)
}

/// It is a growth, known well enough, that had begun by then, of a process that lived then.
fn may_explain(analysis: &Analysis, finding: &Finding, kill: Option<At>) -> bool {
    let process = finding.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    explains_growth(&finding.cause)
        && finding.status() >= Status::Supported
        && kill.is_none_or(|kill| process.is_none_or(|process| process.first_seen <= kill))
}

/// The most bytes that its evidence speaks of, and those in other processes; limits, and the growth of the whole job, aside.
fn held(finding: &Finding) -> u64 {
    let bytes = |value: &EvidenceValue| match value {
        EvidenceValue::Number(value, Unit::Bytes) => Some(*value as u64),
        _ => None,
    };
    let is_own = |evidence: &&Evidence| evidence.limit.is_none() && evidence.what != JOB_GROWTH;
    let (elsewhere, own): (Vec<&Evidence>, Vec<&Evidence>) =
        finding.evidence.iter().filter(is_own).partition(|evidence| evidence.what == ELSEWHERE);
    let most =
        |of: Vec<&Evidence>| of.iter().filter_map(|evidence| bytes(&evidence.value)).max().unwrap_or(0);
    most(own).saturating_add(most(elsewhere))
}
