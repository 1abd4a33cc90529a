//! Which events does a person look for, and in which words?

use ullage_model::{AgentMessage, At, Attempt, Ending, Event, EventKind, KernelOomKill, OomConstraint};
use ullage_report::format;

/// How much an event weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A process started or exited with 0.
    Usual,
    /// Something failed.
    Failure,
}

/// Something that happened at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When it was noticed.
    pub at: At,
    /// How much it weighs.
    pub weight: Weight,
    /// One sentence without its full stop; holds hostile text.
    pub text: String,
}

/// `was killed by SIGKILL (memory limit of cgroup /job)`.
pub(crate) fn ending(ending: Ending, oom: Option<&KernelOomKill>) -> String {
    match (ending, oom) {
        (Ending::Exited(code), _) => format!("exited with status {code}"),
        (Ending::Signaled(_), Some(kill)) => format!("was killed by {}", killer(kill)),
        (Ending::Signaled(number), None) => format!("was killed by {}", format::signal(number)),
        (Ending::NotSeen(why), _) => format!("exited; how was not seen ({})", why.reason()),
    }
}

fn killer(kill: &KernelOomKill) -> String {
    match (kill.constraint, &kill.oom_cgroup) {
        (OomConstraint::Cgroup, Some(cgroup)) => {
            format!("the kernel's OOM killer at the limit of cgroup {cgroup}")
        }
        (OomConstraint::Cgroup, None) => "the kernel's OOM killer at a cgroup's limit".into(),
        _ => "the kernel's OOM killer".into(),
    }
}

/// Words of an event; none for one that nobody looks for. `name` spells a process.
pub(crate) fn happened(event: &Event, name: impl Fn(i32) -> String, how: Option<String>) -> Option<Happened> {
    let (weight, text) = match &event.what {
        EventKind::ProcessSeen { facts } => (Weight::Usual, format!("{} started", name(facts.id.pid))),
        EventKind::ProcessEnded { id, ending: end, .. } => {
            let weight = match end {
                Ending::Exited(0) | Ending::NotSeen(_) => Weight::Usual,
                _ => Weight::Failure,
            };
            (weight, format!("{} {}", name(id.pid), how.unwrap_or_else(|| ending(*end, None))))
        }
        EventKind::Agent { pid, message: AgentMessage::Exception(report), .. } => {
            let first = report.text.lines().next().unwrap_or_default();
            (Weight::Failure, format!("{} raised {}: {first}", name(*pid), report.type_name))
        }
        EventKind::KernelOomKill(kill) => {
            (Weight::Failure, format!("process {} ({}) was killed by {}", kill.pid, kill.task, killer(kill)))
        }
        EventKind::KernelForkRejected { cgroup } => {
            (Weight::Failure, format!("the pids limit of cgroup {cgroup} refused a fork"))
        }
        EventKind::Budget { action, used, budget } => {
            let (used, budget) = (format::bytes(*used), format::bytes(*budget));
            let text = format!("--memory-max: {action} at {used} of {budget}");
            (Weight::Failure, text)
        }
        EventKind::MappedFileShort { path, .. } => {
            (Weight::Failure, format!("the mapped file {path} was shortened"))
        }
        EventKind::Mark { pid, text, .. } => (Weight::Usual, format!("{} marked: {text}", name(*pid))),
        EventKind::Attempt { number } => (Weight::Failure, Attempt::sentence(*number)),
        EventKind::Finished { .. } => (Weight::Usual, "the command exited".into()),
        _ => return None,
    };
    Some(Happened { at: event.at, weight, text })
}
