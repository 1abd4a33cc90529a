//! How a rule makes its finding. Of which cause it is, and its title, are added behind the rule ([`Cause::judge`]).

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::killed_at_work::{killed_at_work, KilledAtWork};
use crate::analysis::oom::Victim;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::sizes::WARN_BYTES;
use crate::rule::retainers::ELSEWHERE;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use crate::trend::Reach;
use ullage_model::{Evidence, Finding, KernelOomKill, Proof, Role, Severity};

/// A finding about a failure.
pub(crate) fn finding(
    analysis: &Analysis,
    rule: &Rule,
    failure: &Failure,
    proof: Proof,
    evidence: Vec<Evidence>,
    context: &RemedyContext,
) -> Finding {
    Finding {
        cause: String::new(),
        title: String::new(),
        headline: String::new(),
        severity: failure.severity(analysis),
        proof,
        process: failure.process.map(evidence::process_ref),
        at: Some(failure.at),
        evidence,
        fixes: (rule.fixes)(context),
        explains: Vec::new(),
        beyond_its_process: false,
    }
}

/// A finding that no single failure stands for.
pub(crate) fn of_job(
    rule: &Rule,
    severity: Severity,
    proof: Proof,
    evidence: Vec<Evidence>,
    context: &RemedyContext,
) -> Finding {
    Finding {
        cause: String::new(),
        title: String::new(),
        headline: String::new(),
        severity,
        proof,
        process: None,
        at: evidence.first().and_then(|evidence| evidence.at),
        evidence,
        fixes: (rule.fixes)(context),
        explains: Vec::new(),
        beyond_its_process: false,
    }
}

/// A finding about one process, which the remedies go into.
pub(crate) fn of_process(
    analysis: &Analysis,
    rule: &Rule,
    severity: Severity,
    proof: Proof,
    evidence: Vec<Evidence>,
    process: &ProcessHistory,
) -> Finding {
    let context = analysis.remedy_context_of(Some(process));
    Finding {
        process: Some(evidence::process_ref(process)),
        ..of_job(rule, severity, proof, evidence, &context)
    }
}

/// Judges every failure; one that nothing can be said of leaves the cause open, unless another one shows it.
pub(crate) fn by_failure<'a>(
    analysis: &Analysis<'a>,
    judge: impl Fn(&Failure<'a>) -> Result<Option<Finding>, String>,
) -> Judgement {
    let mut found: Option<Finding> = None;
    let mut unsure = None;
    for failure in &analysis.failures {
        match judge(failure) {
            Ok(Some(next)) => found = better(found, next),
            Ok(None) => {}
            Err(because) => {
                unsure.get_or_insert(because);
            }
        }
    }
    match (found, unsure) {
        (Some(found), _) => Judgement::one(found),
        (None, Some(because)) => Judgement::Undetermined { because },
        (None, None) => Judgement::Nothing,
    }
}

/// The better of two candidates of one rule: the earlier failure, unless the later one is known better.
pub(crate) fn better(best: Option<Finding>, next: Finding) -> Option<Finding> {
    match best {
        Some(best) if best.status() >= next.status() => Some(best),
        _ => Some(next),
    }
}

/// What a limit that readings reach rests on.
pub(crate) fn proof_of(reach: Reach) -> Proof {
    match reach {
        Reach::Met => Proof::ReadNearLimit,
        Reach::Projected => Proof::Estimated,
        Reach::Possible | Reach::Excluded => Proof::InPart,
    }
}

/// The first lack of memory whose exception left through a given piece of work, as that work's finding. Which limit was met
/// is a finding of its own, so that this one is a warning at most.
pub(crate) fn no_memory_in(
    analysis: &Analysis,
    rule: &Rule,
    doing: &str,
    at_work: impl Fn(&Failure) -> bool,
    more: impl Fn(&Failure) -> Option<Evidence>,
) -> Judgement {
    let of_work =
        |failure: &&Failure| failure.symptom() == Symptom::NoMemory && !failure.is_echo() && at_work(failure);
    let Some(failure) = analysis.failures.iter().find(of_work) else {
        return match killed_at_work(analysis.timeline, &analysis.oom_victims, &at_work) {
            Some(killed) => Judgement::one(killed_in(analysis, rule, doing, &killed, more(&killed.failure))),
            None => silent(analysis),
        };
    };
    let resident = failure.counts().and_then(|counts| counts.resident);
    let size = resident.map_or(String::new(), |bytes| format!(", with {} in memory", evidence::bytes(bytes)));
    let frame = failure.stack.first().map_or("unknown", |frame| frame.as_str());
    let subject = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let sentence = format!("{} was {doing}{size}, called from {frame}.", evidence::capital(&subject));
    let work = evidence::text("work", frame, failure.agent_source(), Some(failure.at), sentence);
    let mut evidence = vec![work];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(more(failure));
    let mut found =
        finding(analysis, rule, failure, Proof::InPart, evidence, &analysis.remedy_context(Some(failure)));
    found.severity = found.severity.min(Severity::Warning);
    Judgement::one(found)
}

/// What evidence of work is called in which a process was killed.
pub(crate) const MEANWHILE: &str = "memory that came meanwhile";
/// Within one call, to a process that had been steady.
pub(crate) const IN_A_CALL: &str = "memory that came in a call";

/// What a process that was killed was in the midst of.
pub(crate) fn is_killed_at_work(finding: &Finding) -> bool {
    finding.evidence.first().is_some_and(|evidence| [MEANWHILE, IN_A_CALL].contains(&evidence.what.as_str()))
}

/// What a process was in the midst of when the kernel killed it.
fn killed_in(
    analysis: &Analysis,
    rule: &Rule,
    doing: &str,
    killed: &KilledAtWork,
    more: Option<Evidence>,
) -> Finding {
    let KilledAtWork { failure, process, came, held, elsewhere, within } = killed;
    let frame = failure.stack.first().map_or("unknown", |frame| frame.as_str());
    let subject = evidence::capital(&evidence::describe(process));
    let held = within.as_ref().map_or(held, |call| &call.held);
    let [came_of_it, held] = [came, held].map(|bytes| evidence::bytes(*bytes as u64));
    let sentence = match within {
        None => format!(
            "{subject} was {doing} when the kernel killed for lack of memory: {came_of_it} of the {held} that it held came meanwhile. It was called from {frame}."
        ),
        Some(call) => format!(
            "{subject} was in {}, called from {}, when the kernel killed for lack of memory: {} of the {held} that it held came meanwhile, {came_of_it} of it while {doing}.",
            evidence::frame(call.frame),
            evidence::frame(call.from),
            evidence::bytes(call.came as u64)
        ),
    };
    let source = evidence::Source::Agent(process.id.pid);
    let what = if within.is_some() { IN_A_CALL } else { MEANWHILE };
    let work = evidence::number(what, *came as u64, "bytes", source, failure.at, sentence);
    let others = (*elsewhere > 0.0).then(|| {
        let sentence = format!(
            "{} came to other processes in the midst of the same.",
            evidence::bytes(*elsewhere as u64)
        );
        let source = evidence::Source::Named("/proc/PID/status of each");
        evidence::number(ELSEWHERE, *elsewhere as u64, "bytes", source, failure.at, sentence)
    });
    let evidence = std::iter::once(work).chain(others).chain(more).collect();
    let mut finding = of_process(analysis, rule, Severity::Warning, Proof::InPart, evidence, process);
    finding.at = within.as_ref().map(|call| call.begun).or(finding.at);
    finding
}

/// How many ranks of the node were there when it failed, and what they were `doing`; nothing of one alone.
pub(crate) fn ranks_beside(analysis: &Analysis, failure: &Failure, doing: &str) -> Option<Evidence> {
    let is_rank = |process: &&ProcessHistory| {
        matches!(process.role, Role::Rank(_))
            && (process.first_seen..=process.last_seen).contains(&failure.at)
    };
    let ranks = analysis.timeline.processes().filter(is_rank).count() as u64;
    (ranks > 1).then(|| {
        let sentence = format!("{} ranks of this node {doing}.", evidence::count(ranks));
        evidence::number("ranks", ranks, "processes", "RANK of each", failure.at, sentence)
    })
}

/// A large process ended by itself, and nobody inside it said why.
fn silent(analysis: &Analysis) -> Judgement {
    let unheard = analysis.failures.iter().filter(|failure| failure.unexplained_end()).find_map(|failure| {
        let process = failure.process.filter(|process| !process.agent)?;
        (process.anonymous.peak()?.1 >= WARN_BYTES as f64).then_some(process)
    });
    unheard.map_or(Judgement::Nothing, |process| {
        let subject = evidence::describe(process);
        Judgement::undetermined(format!("{subject} ended on its own; no agent was inside to see its work"))
    })
}

/// A finding about a process that the OOM killer ended; the kernel said so.
pub(crate) fn of_victim(
    analysis: &Analysis,
    rule: &Rule,
    victim: &Victim,
    evidence: Vec<Evidence>,
    context: &RemedyContext,
) -> Finding {
    let severity = if analysis.ended_well() { Severity::Warning } else { Severity::Fatal };
    let mut finding = of_job(rule, severity, Proof::KernelSaid, evidence, context);
    finding.process = victim.process.map(evidence::process_ref);
    finding.at = Some(victim.at);
    finding
}

/// What the kernel log says of it.
pub(crate) fn logged(victim: &Victim, sentence: impl Fn(&KernelOomKill) -> String) -> Option<Evidence> {
    let line = victim.line?;
    Some(evidence::text("OOM kill", &line.task, "kernel log", Some(victim.at), sentence(line)))
}
