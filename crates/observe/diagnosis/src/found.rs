//! How a rule makes its finding.

use crate::failure::{Failure, Symptom};
use crate::oom::Victim;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::{say, sharing};
use ullage_model::{Evidence, Finding, KernelOomKill, Severity, Status};

/// A finding about a failure.
pub(crate) fn finding(
    case: &Case,
    rule: &Rule,
    failure: &Failure,
    (status, confidence): (Status, f64),
    evidence: Vec<Evidence>,
    setting: &Setting,
) -> Finding {
    Finding {
        cause: rule.id.into(),
        title: rule.title.into(),
        severity: case.severity(failure),
        confidence,
        status,
        process: failure.process.map(say::process_ref),
        at: Some(failure.at),
        evidence,
        fixes: (rule.fixes)(setting),
    }
}

/// A finding that no single failure stands for.
pub(crate) fn of_job(
    rule: &Rule,
    severity: Severity,
    (status, confidence): (Status, f64),
    evidence: Vec<Evidence>,
    setting: &Setting,
) -> Finding {
    Finding {
        cause: rule.id.into(),
        title: rule.title.into(),
        severity,
        confidence,
        status,
        process: None,
        at: evidence.first().and_then(|evidence| evidence.at),
        evidence,
        fixes: (rule.fixes)(setting),
    }
}

/// Judges every failure; one that nothing can be said of leaves the cause open, unless another one shows it.
pub(crate) fn by_failure<'a>(
    case: &Case<'a>,
    judge: impl Fn(&Failure<'a>) -> Result<Option<Finding>, String>,
) -> Judgement {
    let mut found: Option<Finding> = None;
    let mut unsure = None;
    for failure in &case.failures {
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
        (None, Some(because)) => Judgement::CannotTell { because },
        (None, None) => Judgement::Nothing,
    }
}

/// The better of two candidates of one rule: the earlier failure, unless the later one is known better.
pub(crate) fn better(kept: Option<Finding>, next: Finding) -> Option<Finding> {
    match kept {
        Some(kept) if kept.status >= next.status => Some(kept),
        _ => Some(next),
    }
}

/// The first lack of memory whose exception left through a given piece of work, as that work's finding. Which limit was met
/// is a finding of its own, so that this one is a warning at most.
pub(crate) fn no_memory_in(
    case: &Case,
    rule: &Rule,
    doing: &str,
    at_work: impl Fn(&Failure) -> bool,
    more: impl Fn(&Failure) -> Option<Evidence>,
) -> Judgement {
    let of_work =
        |failure: &&Failure| failure.symptom() == Symptom::NoMemory && !failure.is_echo() && at_work(failure);
    let Some(failure) = case.failures.iter().find(of_work) else { return silent(case) };
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    let resident = failure.counts().and_then(|counts| counts.resident);
    let size =
        resident.map_or(String::new(), |bytes| format!(" The process had {} in memory.", say::bytes(bytes)));
    let stack = failure.exception.map_or(&[][..], |seen| &seen.report.stack[..]);
    let frame = stack.first().map_or("unknown", |frame| frame.as_str());
    let sentence = format!("At that moment {doing}, called from {frame}.{size}");
    evidence.push(say::text("work", frame, &failure.agent_source(), Some(failure.at), sentence));
    evidence.extend(more(failure));
    let known = (Status::Supported, 0.85);
    let mut found = finding(case, rule, failure, known, evidence, &case.setting(Some(failure)));
    found.severity = found.severity.min(Severity::Warning);
    Judgement::one(found)
}

/// A large process ended by itself, and nobody inside it said why.
fn silent(case: &Case) -> Judgement {
    const LARGE: f64 = (256u64 << 20) as f64;
    let unheard = case.failures.iter().filter(|failure| failure.unexplained_end()).find_map(|failure| {
        let process = failure.process.filter(|process| !process.agent)?;
        (process.anonymous.peak()?.1 >= LARGE).then_some(process)
    });
    unheard.map_or(Judgement::Nothing, |process| {
        let who = say::who(process);
        Judgement::cannot_tell(format!("{who} ended on its own; what it was doing is known from inside only, and the agent did not speak"))
    })
}

/// A finding about a process that the OOM killer ended; established, because the kernel said so.
pub(crate) fn of_victim(
    case: &Case,
    rule: &Rule,
    victim: &Victim,
    confidence: f64,
    evidence: Vec<Evidence>,
    setting: &Setting,
) -> Finding {
    let severity = if case.ended_well() { Severity::Warning } else { Severity::Fatal };
    let mut finding = of_job(rule, severity, (Status::Established, confidence), evidence, setting);
    finding.process = victim.process.map(say::process_ref);
    finding.at = Some(victim.at);
    finding
}

/// What the kernel log says of it.
pub(crate) fn logged(victim: &Victim, sentence: impl Fn(&KernelOomKill) -> String) -> Option<Evidence> {
    let line = victim.line?;
    Some(say::text("OOM kill", &line.task, "kernel log", Some(victim.at), sentence(line)))
}
