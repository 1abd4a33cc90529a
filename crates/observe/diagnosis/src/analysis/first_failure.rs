//! What went wrong first in a job that failed, in a sentence, whether or not a cause was found: from the agent's reports
//! of exceptions and from how processes ended.
//!
//! The surprise: SIGKILL names no sender. What can be said is whether the kernel's OOM killer was it, and only where the
//! counter of the process's cgroup was read again afterwards.

use crate::analysis::failures::Failure;
use crate::analysis::oom::own_groups;
use crate::analysis::Analysis;
use crate::evidence;
use crate::history::{CgroupHistory, ProcessHistory};
use crate::policy::given::SIGKILL;
use crate::policy::limits::FOLLOWS_WITHIN_S;
use ullage_model::{Ending, FirstFailure, Role};

/// Ancestors that are asked for a rank.
const MOST_ANCESTORS: usize = 8;

/// The earliest failure of those that COMMAND's own end came of; none where it ended well or still runs.
pub(crate) fn first_failure(analysis: &Analysis) -> Option<FirstFailure> {
    if analysis.ended_well() {
        return None;
    }
    let last = analysis.failures.last()?;
    let first = analysis.failures.iter().find(|failure| last.at.since(failure.at) <= FOLLOWS_WITHIN_S)?;
    let (signal, code) = match first.ending.filter(|_| first.exception.is_none()) {
        Some(Ending::Signaled(signal)) => (Some(signal), None),
        Some(Ending::Exited(code)) => (None, Some(code)),
        _ => (None, None),
    };
    Some(FirstFailure {
        process: first.process.map(evidence::process_ref),
        rank: first.process.and_then(|process| rank(analysis, process)),
        at: first.at,
        exception: first.exception.map(|_| first.message()),
        signal,
        code,
        sentence: sentence(analysis, first),
    })
}

/// The number of the nearest rank among a process and its ancestors.
fn rank(analysis: &Analysis, process: &ProcessHistory) -> Option<u32> {
    let parent = |child: &&ProcessHistory| analysis.timeline.by_pid(child.born_to());
    std::iter::successors(Some(process), parent).take(MOST_ANCESTORS).find_map(|process| match process.role {
        Role::Rank(number) => Some(number),
        _ => None,
    })
}

fn sentence(analysis: &Analysis, failure: &Failure) -> String {
    let subject = failure.process.map_or("a process too short-lived to be read".into(), evidence::describe);
    let when = evidence::seconds(failure.at.seconds());
    let happened = match (failure.exception, failure.ending) {
        (Some(_), _) => format!("raised {}", failure.message()),
        (None, Some(Ending::Signaled(SIGKILL))) => {
            format!("was killed by SIGKILL; {}", sender(analysis, failure))
        }
        (None, Some(Ending::Signaled(signal))) => format!("was killed by {}", evidence::signal_name(signal)),
        (None, Some(Ending::Exited(code))) => format!("exited with status {code}"),
        (None, _) => "exited".into(),
    };
    format!("{} {happened} ({when} after the start).", evidence::capital(&subject))
}

fn sender(analysis: &Analysis, failure: &Failure) -> &'static str {
    let is_victim =
        |id| analysis.oom_victims.iter().any(|victim| victim.process.is_some_and(|process| process.id == id));
    // Who was killed between two readings of a counter that stands still was not killed by the kernel.
    let still = |group: &CgroupHistory| {
        group.oom_kills.last.is_some_and(|(last, _)| last >= failure.at)
            && group.oom_kills.growth().unwrap_or(0) == 0
    };
    let groups = own_groups(analysis);
    if failure.process.is_some_and(|process| is_victim(process.id)) {
        "the kernel's OOM killer sent it"
    } else if !groups.is_empty() && groups.into_iter().all(still) {
        "not by the kernel's OOM killer (its cgroup counted no kill), so by a person or a program"
    } else {
        "its sender is unknown"
    }
}
