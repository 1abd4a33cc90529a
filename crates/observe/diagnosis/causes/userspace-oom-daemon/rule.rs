//! Does a run show userspace-oom-daemon? What that is, and how it is told apart, says page.md.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::{SIGKILL, SIGTERM, US_PER_S};
use crate::policy::limits::NEARLY_GONE;
use crate::policy::machine::{DAEMON_LOOKS_BACK_S, DAEMON_STALLED};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Ending, Evidence, Finding, Fix, OutcomeKind, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// What Ray's monitor says to the driver.
const RAY: [&str; 3] =
    ["node running low on memory", "RayOutOfMemoryError", "killed due to memory pressure (OOM)"];

fn judge(analysis: &Analysis) -> Judgement {
    if analysis.plain_outcome().kind == OutcomeKind::Budget {
        return Judgement::Nothing;
    }
    by_failure(analysis, |failure| Ok(by_ray(analysis, failure).or_else(|| by_daemon(analysis, failure))))
}

fn by_ray(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    failure.exception?;
    let text = failure.text();
    RAY.iter().find(|words| text.contains(**words))?;
    let evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    Some(finding(
        analysis,
        &RULE,
        failure,
        Proof::SeenInside,
        evidence,
        &analysis.remedy_context(Some(failure)),
    ))
}

fn by_daemon(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let signal = match failure.ending? {
        Ending::Signaled(signal @ (SIGKILL | SIGTERM)) => signal,
        _ => return None,
    };
    let daemons =
        analysis.machine().memory_daemons.as_known().filter(|daemons| !daemons.is_empty())?.join(", ");
    if failure.follows || !analysis.oom_victims.is_empty() {
        return None;
    }
    let total = analysis.machine().memory_total.known()?.0;
    let short = low(analysis, failure.at, total).or_else(|| stalled(analysis, failure.at))?;
    let process = failure.process?;
    let name = if signal == SIGKILL { "SIGKILL" } else { "SIGTERM" };
    let sentence = format!(
        "{} was ended by {name}, and the kernel counted no OOM kill; {daemons} runs on this machine, and ends processes when memory is short.",
        evidence::capital(&evidence::describe(process))
    );
    let evidence =
        vec![evidence::text("signal", name, "how the process ended", Some(failure.at), sentence), short];
    let known = Proof::ReadNearLimit;
    Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure))))
}

fn low(analysis: &Analysis, at: At, total: u64) -> Option<Evidence> {
    let (read, available) = analysis.timeline.host().available.lowest_before(at)?;
    if available > total as f64 * NEARLY_GONE {
        return None;
    }
    let sentence = format!(
        "The machine had {} of {} available, read {} before.",
        evidence::bytes(available as u64),
        evidence::bytes(total),
        evidence::seconds(at.since(read))
    );
    Some(evidence::out_of(
        evidence::number("available memory", available as u64, "bytes", "/proc/meminfo", read, sentence),
        total,
    ))
}

fn stalled(analysis: &Analysis, at: At) -> Option<Evidence> {
    let stalled = &analysis.timeline.host().stalled;
    let (to, last) = stalled.at_or_before(at)?;
    let (from, first) = stalled.at_or_before(At::from_seconds(at.seconds() - DAEMON_LOOKS_BACK_S))?;
    let share = (last - first) / US_PER_S / to.since(from).max(1.0);
    if share < DAEMON_STALLED {
        return None;
    }
    let percent = (share * 100.0).round() as u64;
    let sentence = format!(
        "In {percent} % of the last {} everything that could run waited for memory.",
        evidence::seconds(to.since(from))
    );
    Some(evidence::apart(evidence::number(
        "time stalled",
        percent,
        "percent",
        "/proc/pressure/memory",
        to,
        sentence,
    )))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Settle it: the daemon's own log names whom it ended",
            "journalctl -b -u systemd-oomd -u earlyoom -u nohang | tail -30",
        ),
        Fix::new(
            "Hold less: fewer workers, fewer batches in flight",
            "DataLoader(dataset, num_workers=2, prefetch_factor=1)",
        )
        .only(Place::Loader),
        Fix::new(
            "Keep the job inside a budget, so that it is ended in order, before the machine is",
            "ullage run --memory-max 16GiB -- python train.py",
        ),
        Fix::new("Ray: a later threshold", "export RAY_memory_usage_threshold=0.98"),
    ]
}
