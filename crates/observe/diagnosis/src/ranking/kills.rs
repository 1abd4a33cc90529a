//! What lies behind a kill? A growth, copies or a backlog that filled the limit is why the job died; the limit is how. So what
//! was most of all that came before it, in any process of the job, explains the kill, weighs as much, and stands before it.
//!
//! The surprise: the least part of a limit may be most of what came. What was there from the start fills the rest, and was no
//! reason until more came.

use crate::analysis::came::Came;
use crate::analysis::oom::limiting;
use crate::analysis::Analysis;
use crate::causes::{explains_growth, is_work, ALIKE, SENT};
use crate::history::{ProcessHistory, Series};
use crate::policy::limits::KILL_SLACK_S;
use crate::policy::sizes::{MOST, WARN_PART};
use crate::ranking::gathers::is_gather;
use crate::rule::allocators::{retained_by_allocator, JOB_GROWTH};
use crate::rule::finding::{is_killed_at_work, IN_A_CALL};
use crate::rule::retainers::ELSEWHERE;
use ullage_model::{At, Evidence, EvidenceValue, Finding, Proof, Role, Severity, Status, Unit};

/// Findings that the kernel, or who acts for it, killed for lack of memory.
const KILLS: [&str; 5] =
    ["memcg-oom-kill", "invisible-child-oom", "host-oom-kill", "numa-membind-oom", "userspace-oom-daemon"];

/// Copies that were weighed when their worker began, which is their moment.
const COPIES: &str = "spawn-forkserver-full-copy";

/// Lets what was most of what came explain the first kill: of several, what is known best, then what holds most. Memory that several
/// processes hold alike is no reason of its own where another one was named.
pub(crate) fn explain(analysis: &Analysis, findings: &mut Vec<Finding>) {
    let killed =
        |finding: &&Finding| KILLS.contains(&finding.cause.as_str()) && finding.severity > Severity::Note;
    let kill = findings.iter().find(killed).map(|kill| (kill.cause.clone(), kill.severity, kill.at));
    let Some(((kill, severity, at), room)) = kill.zip(room(analysis)) else { return };
    let victim = analysis.oom_victims.first().filter(|victim| victim.of_cgroup());
    let group = victim.and_then(|victim| limiting(analysis, victim.group?)).map(|(group, _)| group);
    let read = victim.filter(|_| group.is_some()).map(|victim| victim.last_read_before());
    let came = Came::of(analysis, group, read.or(at));
    let free: f64 = analysis.retention.iter().map(|retention| retention.bytes).sum();
    let weight = |finding: &Finding| {
        let (bytes, read) = held(analysis, finding, at);
        let since = finding.at.and_then(|begun| match finding {
            _ if is_in_a_call(finding) => {
                came.since_rest(born(analysis, finding)?, begun, group.map(|_| room))
            }
            // When it began is known to the call.
            _ if is_gather(finding) => came.since(begun),
            _ => None,
        });
        let came = since.unwrap_or(came.until(read));
        // What an allocator holds free between blocks is a consequence of what is in use, up to as much again.
        let in_use = match retained_by_allocator(finding) {
            Some(_) => came,
            None => (came - free).max(MOST * came),
        };
        let most = bytes as f64 >= MOST * in_use && bytes.saturating_mul(WARN_PART) >= room;
        let filled = most && may_explain(analysis, finding, at);
        filled.then_some((!is_alike(finding), finding.status(), !is_in_a_call(finding), bytes))
    };
    // Ranks that do the same work hold alike, and the work is why.
    let is_known = |finding: &Finding| {
        is_work(&finding.cause) && finding.severity > Severity::Note && finding.status() >= Status::Supported
    };
    if findings.iter().any(is_known) {
        findings.retain(|finding| !is_alike(finding));
    }
    let Some(most) = findings.iter().filter_map(weight).max() else { return };
    let Some(reason) = findings.iter().position(|finding| weight(finding) == Some(most)) else { return };
    let reason = root(findings, reason, |finding| may_explain(analysis, finding, at));
    let reason = &mut findings[reason];
    reason.severity = reason.severity.max(severity);
    reason.explains.push(kill);
    reason.beyond_its_process = true;
    if !is_alike(reason) {
        findings.retain(|finding| !is_alike(finding));
    }
}

/// What a finding comes of, where that is known as well: it is why what came of it filled the limit.
fn root(findings: &[Finding], of: usize, may: impl Fn(&Finding) -> bool) -> usize {
    let mut known = vec![of];
    let explains = |finding: &Finding, of: &Finding| {
        finding.severity > Severity::Note && finding.status() >= of.status() && finding.is_cause_of(of)
    };
    // Each at most once: two may explain each other, and neither comes before the other.
    while let Some(last) = known.last() {
        let of = &findings[*last];
        let cause = findings
            .iter()
            .enumerate()
            .find(|(at, finding)| !known.contains(at) && explains(finding, of) && may(finding));
        let Some((cause, _)) = cause else { break };
        known.push(cause);
    }
    known.pop().unwrap_or(of)
}

/// What is said of ranks that hold about as much each, and no more is known.
fn is_alike(finding: &Finding) -> bool {
    finding.evidence.first().is_some_and(|evidence| evidence.what == ALIKE)
}

/// When its process was first seen.
fn born(analysis: &Analysis, finding: &Finding) -> Option<At> {
    Some(analysis.timeline.process(finding.process.as_ref()?.id)?.first_seen)
}

/// In a call, having been steady. What a process retains is a reason before it: in a call that goes over data, both are there.
fn is_in_a_call(finding: &Finding) -> bool {
    finding.evidence.first().is_some_and(|evidence| evidence.what == IN_A_CALL)
}

/// Bytes that were there to be filled: of the cgroup, else of the machine.
fn room(analysis: &Analysis) -> Option<u64> {
    let victim = analysis.oom_victims.first()?;
    let of_group = victim.group.filter(|_| !victim.host).and_then(|group| limiting(analysis, group));
    let machine = || analysis.machine().memory_total.known().map(|total| total.0);
    of_group.map(|(_, limit)| limit).or_else(machine)
}

/// It is a growth, or work that took much, known well enough, that had begun by then, of a process that lived then: what one
/// held that had ended before is given back. That ranks hold alike is a hypothesis, and stands only where nothing else does.
fn may_explain(analysis: &Analysis, finding: &Finding, kill: Option<At>) -> bool {
    let process = finding.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    let lived = |process: &ProcessHistory, kill: At| {
        process.first_seen <= kill && kill.since(process.last_seen) <= KILL_SLACK_S
    };
    let is_work = is_killed_at_work(finding) || is_gather(finding);
    (explains_growth(&finding.cause) || is_work || is_alike(finding))
        && (finding.status() >= Status::Supported || is_alike(finding))
        && !kill.is_some_and(|kill| began_later(finding, kill))
        && kill.is_none_or(|kill| process.is_none_or(|process| lived(process, kill)))
}

/// It is a growth, or copies, that began only after the kill. Where it is not said since when, its moment is that of the last
/// reading, which may be later in a process that lived on.
fn began_later(finding: &Finding, kill: At) -> bool {
    let read = finding.evidence.first().and_then(|evidence| evidence.at);
    let begins = finding.at != read || (finding.cause == COPIES && finding.proof == Proof::SeenInside);
    begins && finding.at.is_some_and(|at| at > kill)
}

/// What the process of a finding had at the kill, where its evidence was read later: no more of it can have been there.
fn there(analysis: &Analysis, finding: &Finding, read: Option<At>, kill: Option<At>) -> u64 {
    let process = finding.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    let (Some(process), Some(kill)) = (process, kill.filter(|kill| read.is_some_and(|read| read > *kill)))
    else {
        return u64::MAX;
    };
    let then = |series: &Series| series.at_or_before(kill).map_or(0.0, |(_, bytes)| bytes);
    (then(&process.private()) + then(&process.shared)) as u64
}

/// The most bytes that its evidence speaks of, and when they were read, with those in other processes; limits, and the growth of
/// the whole job, aside. Where nobody looked into other workers, they hold as much of what came to each.
fn held(analysis: &Analysis, finding: &Finding, kill: Option<At>) -> (u64, Option<At>) {
    let of = |evidence: &&Evidence| match &evidence.value {
        EvidenceValue::Number(value, Unit::Bytes) => *value as u64,
        _ => 0,
    };
    // What a rank would send is not yet what that took.
    let is_own = |evidence: &&Evidence| {
        evidence.limit.is_none() && ![JOB_GROWTH, SENT].contains(&evidence.what.as_str())
    };
    let (elsewhere, own): (Vec<&Evidence>, Vec<&Evidence>) =
        finding.evidence.iter().filter(is_own).partition(|evidence| evidence.what == ELSEWHERE);
    let Some(most) = own.into_iter().max_by_key(of) else { return (0, None) };
    let there = there(analysis, finding, most.at, kill);
    let bytes = |evidence: &&Evidence| of(evidence).min(there);
    let of_one = !is_in_a_call(finding) && !is_alike(finding) && !is_gather(finding);
    if elsewhere.is_empty() && of_one {
        let all = kill.map_or(1.0, |kill| times_alike(analysis, finding, kill));
        return ((all * bytes(&most) as f64) as u64, most.at);
    }
    (elsewhere.iter().map(of).fold(bytes(&most), u64::saturating_add), most.at)
}

/// How many times as much as to the worker of a finding came to it and to those that do the same work.
fn times_alike(analysis: &Analysis, finding: &Finding, kill: At) -> f64 {
    let one = finding.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    let Some(one) =
        one.filter(|one| matches!(one.role, Role::LoaderWorker(_) | Role::PoolWorker | Role::Rank(_)))
    else {
        return 1.0;
    };
    let alike = |other: &&ProcessHistory| {
        std::mem::discriminant(&other.role) == std::mem::discriminant(&one.role)
            && other.born_to() == one.born_to()
            && other.first_seen <= kill
            && kill.since(other.last_seen) <= KILL_SLACK_S
    };
    let came = |process: &ProcessHistory| {
        let (first, last) = (process.anonymous.first(), process.anonymous.at_or_before(kill));
        first.zip(last).map_or(0.0, |(first, last)| (last.1 - first.1).max(0.0))
    };
    let (own, all) = (came(one), analysis.timeline.processes().filter(alike).map(came).sum::<f64>());
    // To one that nothing came to the others are not alike.
    if own <= 0.0 {
        return 1.0;
    }
    (all / own).clamp(1.0, analysis.timeline.processes().filter(alike).count().max(1) as f64)
}
