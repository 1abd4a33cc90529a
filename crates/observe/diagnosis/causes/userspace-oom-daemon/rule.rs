//! Does a run show userspace-oom-daemon? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::{SIGKILL, SIGTERM, US_PER_S};
use crate::policy::limits::NEARLY_GONE;
use crate::policy::machine::{DAEMON_STALLED, DAEMON_WINDOW_S};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Ending, Evidence, Finding, Fix, OutcomeKind, Proof};

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
        "{} was killed by {name} and the kernel counted no OOM kill; {daemons} runs here and kills for memory.",
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
        "The machine had {} of {} available {} before.",
        evidence::bytes(available as u64),
        evidence::bytes(total),
        evidence::seconds(at.since(read))
    );
    Some(evidence::with_limit(
        evidence::number("available memory", available as u64, "bytes", "/proc/meminfo", read, sentence),
        total,
    ))
}

fn stalled(analysis: &Analysis, at: At) -> Option<Evidence> {
    let stalled = &analysis.timeline.host().stalled;
    let (to, last) = stalled.at_or_before(at)?;
    let (from, first) = stalled.at_or_before(At::from_seconds(at.seconds() - DAEMON_WINDOW_S))?;
    let share = (last - first) / US_PER_S / to.since(from).max(1.0);
    if share < DAEMON_STALLED {
        return None;
    }
    let percent = (share * 100.0).round() as u64;
    let sentence = format!(
        "All runnable processes waited for memory {percent} % of the last {}.",
        evidence::seconds(to.since(from))
    );
    Some(evidence::number("time stalled", percent, "percent", "/proc/pressure/memory", to, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Confirm it: the daemon's log names the process it killed",
            "journalctl -b -u systemd-oomd -u earlyoom -u nohang | tail -30",
        ),
        sharing::fewer_batches(context),
        sharing::budget(context),
        Fix::new("For Ray: raise its threshold", "export RAY_memory_usage_threshold=0.98"),
    ]
}
