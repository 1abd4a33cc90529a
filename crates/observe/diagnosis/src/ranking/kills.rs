//! What lies behind a kill? A growth, copies or a backlog that filled the limit is why the job died; the limit is how. So what
//! filled most of it explains the kill, weighs as much, and stands before it.

use crate::analysis::oom::limiting;
use crate::analysis::Analysis;
use crate::causes::{explains_growth, ALIKE};
use crate::policy::sizes::FILLED_PART;
use crate::rule::allocators::JOB_GROWTH;
use ullage_model::{At, Evidence, EvidenceValue, Finding, Severity, Status, Unit};

/// Findings that the kernel, or who acts for it, killed for lack of memory.
const KILLS: [&str; 5] =
    ["memcg-oom-kill", "invisible-child-oom", "host-oom-kill", "numa-membind-oom", "userspace-oom-daemon"];

/// Lets what filled the memory explain the first kill: of several, what is known best, then what holds most. Memory that several
/// processes hold alike is no reason of its own where another one was named.
pub(crate) fn explain(analysis: &Analysis, findings: &mut Vec<Finding>) {
    let killed =
        |finding: &&Finding| KILLS.contains(&finding.cause.as_str()) && finding.severity > Severity::Note;
    let kill = findings.iter().find(killed).map(|kill| (kill.cause.clone(), kill.severity, kill.at));
    let Some(((kill, severity, at), room)) = kill.zip(room(analysis)) else { return };
    let weight = |finding: &Finding| {
        let bytes = held(finding);
        let filled = bytes.saturating_mul(FILLED_PART) >= room && may_explain(analysis, finding, at);
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

/// It is a growth, known well enough, that had begun by then, of a process that lived then.
fn may_explain(analysis: &Analysis, finding: &Finding, kill: Option<At>) -> bool {
    let process = finding.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    explains_growth(&finding.cause)
        && finding.severity > Severity::Note
        && finding.status() >= Status::Supported
        && kill.is_none_or(|kill| process.is_none_or(|process| process.first_seen <= kill))
}

/// The most bytes that its evidence speaks of; limits, and the growth of the whole job, aside.
fn held(finding: &Finding) -> u64 {
    let bytes = |value: &EvidenceValue| match value {
        EvidenceValue::Number(value, Unit::Bytes) => Some(*value as u64),
        _ => None,
    };
    let is_own = |evidence: &&Evidence| evidence.limit.is_none() && evidence.what != JOB_GROWTH;
    let own = finding.evidence.iter().filter(is_own);
    own.filter_map(|evidence| bytes(&evidence.value)).max().unwrap_or(0)
}
