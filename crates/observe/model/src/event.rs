//! What happened between ticks: processes begin and end, the agent speaks, the kernel logs a kill.

use crate::{
    AgentMessage, At, Ending, EndingSource, MachineFacts, ProcessFacts, ProcessId, ResourceLimits, Role,
};
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When it was noticed.
    pub at: At,
    /// What.
    pub what: EventKind,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The machine's facts; the first event of a recording.
    Machine {
        /// As read at the start.
        facts: Box<MachineFacts>,
    },
    /// A process of the job was seen for the first time, or executed another program.
    ProcessSeen {
        /// What is known of it.
        facts: Box<ProcessFacts>,
    },
    /// Its limits changed (setrlimit, prlimit).
    LimitsChanged {
        /// Which process.
        id: ProcessId,
        /// The new ones.
        limits: ResourceLimits,
    },
    /// Its role became known or changed.
    RoleKnown {
        /// Which process.
        id: ProcessId,
        /// The role.
        role: Role,
    },
    /// It ended.
    ProcessEnded {
        /// Which process.
        id: ProcessId,
        /// How.
        ending: Ending,
        /// How that is known.
        source: EndingSource,
    },
    /// The agent inside a Python said something.
    Agent {
        /// The speaker, by its socket credentials; none where it had ended before its stat was read.
        id: Option<ProcessId>,
        /// Pid of the speaker.
        pid: i32,
        /// What it said.
        message: AgentMessage,
    },
    /// A process is gone that had mapped more of a data file than this has.
    MappedFileShort {
        /// Which process.
        id: ProcessId,
        /// The file.
        path: String,
        /// Where its mapping ended in the file, bytes.
        mapped: u64,
        /// Length of the file now.
        length: u64,
    },
    /// The kernel log reports an OOM kill.
    KernelOomKill(KernelOomKill),
    /// The pids controller refused a fork: path of the cgroup, from the kernel log.
    KernelForkRejected {
        /// Cgroup path.
        cgroup: String,
    },
    /// Processes that are not of the job, by the memory that is theirs alone.
    Neighbours(Neighbours),
    /// A budget set by `--memory-max`: what ullage did (`warn`, `terminate`, `kill`).
    Budget {
        /// What was done.
        action: String,
        /// Bytes of the tree at that moment.
        used: u64,
        /// The budget.
        budget: u64,
    },
    /// The job marked this moment (`ullage.mark`, `ullage mark`).
    Mark {
        /// The process that did; none where it had ended before its stat was read.
        id: Option<ProcessId>,
        /// Its pid.
        pid: i32,
        /// Its text; hostile.
        text: String,
    },
    /// torchrun started its workers again.
    Attempt {
        /// How often it has by now (TORCHELASTIC_RESTART_COUNT).
        number: u32,
    },
    /// Something that ullage could not see or do, in one sentence for the report.
    NotSeen {
        /// The sentence.
        text: String,
    },
    /// COMMAND's own process ended and the run is over; processes that are still alive.
    Finished {
        /// Survivors.
        survivors: Vec<ProcessId>,
    },
}

/// Who else has the machine's memory. Of other containers, whose processes are not in this `/proc`, nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Processes that could be read, and are not of the job.
    pub processes: u64,
    /// Anonymous memory of all of them, swapped out or not, bytes. A page that parent and child share counts in both.
    pub bytes: u64,
    /// Those with most of it, largest first.
    pub largest: Vec<Neighbour>,
}

impl Neighbours {
    /// They matter where less than this share of the machine's memory is available.
    pub const SHORT: f64 = 0.125;
}

/// A process that is not of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Which.
    pub id: ProcessId,
    /// Its comm.
    pub name: String,
    /// Real user id of its owner.
    pub uid: Option<u32>,
    /// Anonymous memory, swapped out or not (RssAnon and VmSwap of status), bytes.
    pub bytes: u64,
}

/// One OOM kill as the kernel log tells it (mm/oom_kill.c, `oom-kill:constraint=…` and `Killed process …`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOomKill {
    /// Whose limit.
    pub constraint: OomConstraint,
    /// Pid of the victim, in the root pid namespace.
    pub pid: i32,
    /// comm of the victim.
    pub task: String,
    /// Path of the cgroup whose limit was met; none for a host OOM.
    pub oom_cgroup: Option<String>,
    /// Path of the victim's cgroup.
    pub task_cgroup: Option<String>,
    /// anon-rss, bytes.
    pub anonymous: u64,
    /// file-rss, bytes.
    pub file: u64,
    /// shmem-rss, bytes.
    pub shared: u64,
}

/// `constraint=` of the kernel's line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OomConstraint {
    /// CONSTRAINT_NONE with global_oom: the machine.
    Host,
    /// CONSTRAINT_MEMCG.
    Cgroup,
    /// CONSTRAINT_CPUSET or CONSTRAINT_MEMORY_POLICY.
    Numa,
    /// Not told.
    #[default]
    Unknown,
}
