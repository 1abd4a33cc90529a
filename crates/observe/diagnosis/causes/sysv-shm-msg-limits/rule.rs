//! Does a run show sysv-shm-msg-limits? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::counts::SEGMENTS_LEFT_BYTES;
use crate::policy::given::DEFAULT_SEGMENTS;
use crate::rule::finding::{by_failure, finding, of_job};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let lowered = lowered(analysis);
    let judgement = by_failure(analysis, |failure| {
        match failure.unexplained_end() && lowered {
        true => Err(
            "a process ended on its own and reported no exception; kernel.shmmax or kernel.shmmni is below its default"
                .into(),
        ),
        false => Ok(refused(analysis, failure)),
    }
    });
    match judgement {
        Judgement::Found(_) => judgement,
        other => match left(analysis) {
            Judgement::Nothing => other,
            left => left,
        },
    }
}

/// Somebody has set a limit below the kernel's default.
fn lowered(analysis: &Analysis) -> bool {
    let total = analysis.machine().memory_total.known().map_or(0, |bytes| bytes.0);
    let lower = |(largest, number): (u64, u64)| largest < total || number < DEFAULT_SEGMENTS;
    analysis.machine().sysv_limits.known().is_some_and(lower)
}

fn refused(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let report = &failure.exception?.report;
    let text = failure.text();
    let call = ["shmget", "semget", "msgget", "mq_open"].into_iter().find(|call| failure.passes(call))?;
    let says = |code: i32, words: &str| report.errno == Some(code) || text.contains(words);
    let (reason, limits) = if says(28, "No space left on device") {
        let number = analysis.machine().sysv_limits.known().map(|(_, number)| number);
        ("its count or size limit is reached", number.map(|n| ("kernel.shmmni", n)))
    } else if says(22, "Invalid argument") {
        let largest = analysis.machine().sysv_limits.known().map(|(largest, _)| largest);
        ("it asked for more than one segment may have", largest.map(|n| ("kernel.shmmax", n)))
    } else {
        return None;
    };
    let limit = match (call, limits) {
        ("shmget", Some((name, value))) if name == "kernel.shmmax" => {
            format!(" ({name} is {})", evidence::bytes(value))
        }
        ("shmget", Some((name, value))) => format!(" ({name} is {})", evidence::count(value)),
        _ => String::new(),
    };
    let sentence = format!("The kernel refused {call}: {reason}{limit}.");
    let mut evidence =
        vec![evidence::text("call refused", call, failure.agent_source(), Some(failure.at), sentence)];
    evidence.extend(sharing::exception_sentence(failure));
    // A limit below the kernel's default is what the message means; else it may be a wrong argument.
    let tight = match limits {
        Some(("kernel.shmmax", largest)) => {
            analysis.machine().memory_total.known().is_some_and(|all| largest < all.0)
        }
        Some((_, number)) => number < DEFAULT_SEGMENTS,
        None => false,
    };
    let known = if tight { Proof::SeenInside } else { Proof::InPart };
    Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure))))
}

/// What the job made and nobody will remove.
fn left(analysis: &Analysis) -> Judgement {
    let over = analysis.timeline.finished().map(|(at, _)| at);
    let Some((at, count, bytes)) =
        analysis.timeline.segments.sysv_left(|id| analysis.timeline.process(id).is_some())
    else {
        return Judgement::Nothing;
    };
    if over.is_none_or(|over| at.since(over) < -1.0) || bytes == 0 {
        return Judgement::Nothing;
    }
    let sentence = format!(
        "The job left {} of System V unattached; they hold {} until removed.",
        evidence::plural(count, "segment", "segments"),
        evidence::bytes(bytes)
    );
    let evidence = vec![evidence::number("left behind", bytes, "bytes", "/proc/sysvipc/shm", at, sentence)];
    let severity = if bytes >= SEGMENTS_LEFT_BYTES { Severity::Warning } else { Severity::Note };
    Judgement::one(of_job(&RULE, severity, Proof::SeenOutside, evidence, &analysis.remedy_context(None)))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![Fix::new(
        "List unattached segments (nattch 0), and remove one by its number",
        "ipcs -m\nipcrm -m SHMID",
    )];
    if context.is_root() {
        fixes.push(Fix::new(
            "Raise the limits to the kernel's own defaults",
            "sysctl -w kernel.shmmax=18446744073692774399 kernel.shmall=18446744073692774399 kernel.shmmni=4096",
        ));
    }
    fixes
}
