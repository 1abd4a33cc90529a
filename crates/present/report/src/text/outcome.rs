//! How did the command end? As a sentence of a page, and in the few words of a line.

use crate::format;
use ullage_model::{EndedBy, Outcome, OutcomeKind};

/// How the command's own process ended, as a sentence.
pub fn outcome(outcome: &Outcome, duration_s: Option<f64>) -> String {
    let after = duration_s.map(|s| format!(" after {}", format::duration(s))).unwrap_or_default();
    let signal = || match outcome.signal {
        Some(n) => format!("{} (signal {n})", format::signal(n)),
        None => "a signal".into(),
    };
    match outcome.kind {
        OutcomeKind::Exit => match outcome.code {
            Some(code) => format!("The command ended with exit status {code}{after}."),
            None => format!("The command exited{after}; its exit status is not known."),
        },
        OutcomeKind::Signal => {
            format!("The command was killed by {}{after}; who sent it is not known.", signal())
        }
        OutcomeKind::OomKill => {
            let reason = match outcome.by {
                Some(EndedBy::CgroupLimit) => " at the memory limit of its cgroup",
                Some(EndedBy::HostMemory) => " because the machine ran out of memory",
                _ => "",
            };
            format!("The kernel's out-of-memory killer ended the command{reason}{after}.")
        }
        OutcomeKind::Budget if outcome.by == Some(EndedBy::CgroupLimit) => {
            let of = outcome
                .budget
                .map_or_else(String::new, |spent| format!(" of {}", format::bytes(spent.budget)));
            format!("The kernel killed the job at the --memory-max budget{of}{after}, without a grace.")
        }
        OutcomeKind::Budget => match outcome.budget {
            None => format!("ullage ended the command at the --memory-max budget{after}."),
            Some(spent) => {
                let over = match spent.overshoot() {
                    0 => String::new(),
                    bytes => {
                        format!(
                            "; it was seen at {}, {} over",
                            format::bytes(spent.used),
                            format::bytes(bytes)
                        )
                    }
                };
                let budget = format::bytes(spent.budget);
                format!("ullage ended the command at the --memory-max budget of {budget}{after}{over}.")
            }
        },
        OutcomeKind::StillRunning => format!("The command still ran when the recording ends{after}."),
        OutcomeKind::NotStarted => "The command could not be started.".into(),
        OutcomeKind::Unknown => format!("The command ended{after}; how was not seen."),
    }
}

/// The same in a few words, for a line with other things on it: `exit status 1 after 14.8 s`.
pub(super) fn in_short(outcome: &Outcome, duration_s: Option<f64>) -> String {
    const SIGINT: i32 = 2;
    let after = duration_s.map(|s| format!(" after {}", format::duration(s))).unwrap_or_default();
    let budget = outcome.budget.map_or_else(String::new, |spent| format!(" {}", format::bytes(spent.budget)));
    match outcome.kind {
        OutcomeKind::Exit => match outcome.code {
            Some(code) => format!("exit status {code}{after}"),
            None => format!("ended{after}, exit status not known"),
        },
        OutcomeKind::Signal if outcome.signal == Some(SIGINT) => format!("interrupted (SIGINT){after}"),
        OutcomeKind::Signal => {
            let signal = outcome.signal.map_or_else(|| "a signal".into(), format::signal);
            format!("killed by {signal}{after}, sender not known")
        }
        OutcomeKind::OomKill => match outcome.by {
            Some(EndedBy::CgroupLimit) => format!("OOM-killed at the limit of its cgroup{after}"),
            Some(EndedBy::HostMemory) => format!("OOM-killed on a machine out of memory{after}"),
            _ => format!("OOM-killed{after}"),
        },
        OutcomeKind::Budget if outcome.by == Some(EndedBy::CgroupLimit) => {
            format!("killed by the kernel at --memory-max{budget}{after}")
        }
        OutcomeKind::Budget => format!("ended by ullage at --memory-max{budget}{after}"),
        OutcomeKind::StillRunning => format!("still running{after}"),
        OutcomeKind::NotStarted => "the command could not be started".into(),
        OutcomeKind::Unknown => format!("ended{after}, how was not seen"),
    }
}

/// The same beside a finding that says by what it was killed.
pub(super) fn beside_a_cause(outcome: &Outcome, duration_s: Option<f64>) -> String {
    let after = duration_s.map(|s| format!(" after {}", format::duration(s))).unwrap_or_default();
    match (outcome.kind, outcome.by) {
        (OutcomeKind::OomKill, _) | (OutcomeKind::Budget, Some(EndedBy::CgroupLimit)) => {
            format!("killed{after}")
        }
        (OutcomeKind::Budget, _) => format!("ended by ullage{after}"),
        _ => in_short(outcome, duration_s),
    }
}
