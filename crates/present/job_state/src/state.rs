//! What is known of a job at one reading: values, no sentences but those of its growth and of exits.

use std::collections::BTreeMap;
use std::sync::Arc;
use ullage_model::{At, Cost, Growth, LimitState, ProcessId, Role, SegmentKind, Severity};

/// Height of a process's line at one of its latest readings, from 0 to 8 eighths.
pub type Level = u8;

/// How a job stands at one reading. What seldom changes is shared between moments.
#[derive(Clone, Debug, Default)]
pub struct JobState {
    /// Of the reading.
    pub at: At,
    /// Memory of the job, each page once.
    pub memory: Memory,
    /// Growth over the last minute, bytes a second; none in a young run.
    pub bytes_per_second: Option<f64>,
    /// Its processes: parents before children, those that exited within the last minute among them.
    pub processes: Vec<Process>,
    /// Limits, the nearest first.
    pub limits: Arc<Vec<LimitState>>,
    /// The kind of growth; none where too little was read.
    pub growth: Option<Arc<Growth>>,
    /// Shared segments as last read, the largest first; none where they were never read.
    pub segments: Option<Arc<Vec<SharedSegment>>>,
    /// Seconds that all tasks of the machine waited for memory, since the run began.
    pub stall_s: Option<f64>,
    /// OOM kills of the kernel that were seen in the job.
    pub oom_kills: u64,
    /// How often torchrun has started its workers again, where it has.
    pub restarts: Option<u32>,
    /// What the processes of each role have used since the run began, those that exited among them.
    pub used: BTreeMap<String, Used>,
    /// Findings as they were judged last.
    pub findings: Arc<Vec<Judged>>,
    /// Of ullage.
    pub cost: Cost,
}

/// What only ever becomes more, and stays counted when its process exits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
}

/// A finding of a run that goes on: it may still change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Judged {
    /// Id of its cause.
    pub cause: String,
    /// How bad it is.
    pub severity: Severity,
}

/// Memory of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What its processes hold, each page once.
    pub bytes: u64,
    /// Half of its 95 % interval.
    pub error_bytes: u64,
    /// Bytes by category, the largest first; they sum to `bytes`.
    pub categories: Vec<(String, u64)>,
    /// Bytes that stand beside it.
    pub beside: Vec<(String, u64)>,
}

/// Who a process is; the same at each moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Pid and start time.
    pub id: ProcessId,
    /// What it is in the job.
    pub role: Role,
    /// comm; hostile text.
    pub name: String,
    /// Its arguments; hostile text.
    pub command: Vec<String>,
}

/// One process at a moment.
#[derive(Clone, Debug)]
pub struct Process {
    /// Who it is.
    pub identity: Arc<Identity>,
    /// Pid of its parent.
    pub parent: i32,
    /// How deep it stands in the tree.
    pub depth: u16,
    /// Memory that it alone holds; none where it could not be read.
    pub private: Option<u64>,
    /// Shared pages that it maps.
    pub shared: Option<u64>,
    /// In swap.
    pub swap: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// Mappings, as last counted.
    pub mappings: Option<u64>,
    /// CPU time since its start, seconds.
    pub cpu_s: f64,
    /// Share of one core since the reading before.
    pub cpu_share: Option<f64>,
    /// Private memory at its latest readings, against the most of them.
    pub line: [Level; 8],
    /// Where it has exited: when and how.
    pub exited: Option<Arc<Exit>>,
}

/// How a process exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// When.
    pub at: At,
    /// `was killed by the kernel's OOM killer`, `exited with status 1`.
    pub how: String,
    /// It failed: a signal, or a status that is not 0.
    pub failed: bool,
}

/// A shared segment, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSegment {
    /// What made it, as its name tells.
    pub kind: SegmentKind,
    /// Hostile text.
    pub name: String,
    /// How many this stands for.
    pub count: u64,
    /// Pages that it holds; its length where these cannot be read.
    pub bytes: u64,
    /// Pid of its creator, where that is known.
    pub creator: Option<i32>,
    /// Processes of the job that map it.
    pub mappers: usize,
    /// Nobody of the job uses it.
    pub unused: bool,
}

impl JobState {
    /// Processes that run.
    pub fn running(&self) -> usize {
        self.processes.iter().filter(|process| process.exited.is_none()).count()
    }
}

impl Identity {
    /// Its number within its role, where it has one.
    pub fn index(&self) -> Option<u32> {
        match self.role {
            Role::Rank(n) => Some(n),
            Role::LoaderWorker(index) => index,
            _ => None,
        }
    }
}
