//! How a process ended, and how the run as a whole did.

use crate::{Measured, Missing};
use serde::{Deserialize, Serialize};

/// How one process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// exit(code).
    Exited(i32),
    /// Killed by this signal.
    Signaled(i32),
    /// It is gone, and its status could not be read.
    NotSeen(Missing),
}

impl Ending {
    /// From a wait(2) status word, which is also field 52 (exit_code) of `/proc/PID/stat`.
    pub fn from_wait_status(status: i32) -> Ending {
        let signal = status & 0x7f;
        if signal == 0 {
            Ending::Exited((status >> 8) & 0xff)
        } else {
            Ending::Signaled(signal)
        }
    }
}

/// Where the knowledge of an ending comes from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingSource {
    /// wait(2) by ullage, its parent or subreaper.
    Wait,
    /// PIDFD_GET_INFO, kernel 6.15 and later.
    Pidfd,
    /// `exit_code` in the zombie's stat.
    ZombieStat,
    /// Nothing could tell.
    NotSeen,
}

/// How COMMAND's own process ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which kind of end.
    pub kind: OutcomeKind,
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal number, where one killed it.
    pub signal: Option<i32>,
    /// Who did it; none for an exit.
    pub by: Option<EndedBy>,
    /// What the job used of its budget, where the budget ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetUse>,
}

/// Who ended COMMAND's own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndedBy {
    /// The kernel, at the memory limit of a cgroup.
    #[serde(rename = "kernel memcg")]
    CgroupLimit,
    /// The kernel, because the machine ran out of memory.
    #[serde(rename = "kernel oom")]
    HostMemory,
    /// ullage, at `--memory-max`.
    #[serde(rename = "ullage budget")]
    Budget,
    /// Whoever sent the signal.
    #[serde(rename = "sender unknown", other)]
    Unknown,
}

/// A budget, and the most that was counted while it was being enforced, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUse {
    /// The budget that the user set.
    pub budget: u64,
    /// The most that was counted; between two readings it may have been more.
    pub used: u64,
}

impl BudgetUse {
    /// Bytes beyond the budget: polling sees an allocation only after it was made.
    pub fn overshoot(self) -> u64 {
        self.used.saturating_sub(self.budget)
    }
}

/// Which kind of end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// exit(code).
    Exit,
    /// Killed by a signal.
    Signal,
    /// Killed by the kernel's OOM killer, proven.
    OomKill,
    /// Ended by ullage at a budget that the user set.
    Budget,
    /// The recording ends while it ran.
    StillRunning,
    /// It could not be started.
    NotStarted,
    /// Not known.
    #[default]
    Unknown,
}

impl OutcomeKind {
    /// As it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            OutcomeKind::Exit => "exit",
            OutcomeKind::Signal => "signal",
            OutcomeKind::OomKill => "oom-kill",
            OutcomeKind::Budget => "budget",
            OutcomeKind::StillRunning => "still-running",
            OutcomeKind::NotStarted => "not-started",
            OutcomeKind::Unknown => "unknown",
        }
    }
}

impl Outcome {
    /// The outcome of a process that ended like this, sender of a signal unknown.
    pub fn from_ending(ending: Ending) -> Outcome {
        match ending {
            Ending::Exited(code) => Outcome { code: Some(code), ..Outcome::of(OutcomeKind::Exit) },
            Ending::Signaled(signal) => Outcome {
                signal: Some(signal),
                by: Some(EndedBy::Unknown),
                ..Outcome::of(OutcomeKind::Signal)
            },
            Ending::NotSeen(_) => Outcome::of(OutcomeKind::Unknown),
        }
    }

    /// An outcome without code, signal or author.
    pub fn of(kind: OutcomeKind) -> Outcome {
        Outcome { kind, code: None, signal: None, by: None, budget: None }
    }
}

/// A process's end, with its source.
pub type MeasuredEnding = Measured<(Ending, EndingSource)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_status_words_are_read_as_wait_2_writes_them() {
        assert_eq!(Ending::from_wait_status(77 << 8), Ending::Exited(77));
        assert_eq!(Ending::from_wait_status(9), Ending::Signaled(9));
        assert_eq!(Ending::from_wait_status(0x80 | 11), Ending::Signaled(11), "core dumped");
    }
}
