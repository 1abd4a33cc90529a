//! Everything read in one tick, and what reading it cost.

use crate::{
    At, Bytes, CgroupReading, FilesystemReading, HostReading, Measured, Pages, ProcessReading, Segment,
};
use serde::{Deserialize, Serialize};

/// One tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the tick began.
    pub at: At,
    /// Processes of the job alive (or zombie) at this tick.
    pub processes: Vec<ProcessReading>,
    /// The machine.
    pub host: HostReading,
    /// The job's /dev/shm and temporary directories.
    pub filesystems: Vec<FilesystemReading>,
    /// The job's cgroups and every ancestor of them, the job's own first.
    pub cgroups: Vec<CgroupReading>,
    /// Shared segments: all that the job uses, and every file in its /dev/shm. Read seldom, and then completely.
    #[serde(default)]
    pub segments: Measured<Vec<Segment>>,
    /// The survey of pages, where one was made at this tick: the job's rows first, then those of processes.
    #[serde(default)]
    pub survey: Vec<Pages>,
    /// Processes that were created machine-wide since the last tick (`processes` of /proc/stat), an upper
    /// bound of those that lived and died between two ticks.
    pub forks_since_last: u64,
    /// Of ullage itself.
    pub cost: Cost,
}

/// What watching cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of ullage since its start, nanoseconds.
    pub cpu_ns: u64,
    /// Largest resident set of ullage so far.
    pub peak_rss: Bytes,
}

impl Cost {
    /// Share of one core that watching may take, unless it is told otherwise.
    pub const SHARE: f64 = 0.005;
    /// And CPU time beside it, for the start, nanoseconds: a fresh job's processes are all new.
    pub const AT_THE_START_NS: u64 = 300_000_000;
}
