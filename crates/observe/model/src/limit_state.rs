//! How near is a limit? Which limit it is and whose, what is used of it, and when it is met.
//!
//! Kind and scope are values, so that nobody has to take their names apart; reports spell them.

use crate::{Limit, Measured, ProcessId, Role};
use std::fmt;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Mappings of one process: vm.max_map_count.
    Mappings,
    /// Descriptors of one process: RLIMIT_NOFILE.
    Descriptors,
    /// Address space of one process: RLIMIT_AS.
    AddressSpace,
    /// Locked memory of one process: RLIMIT_MEMLOCK.
    LockedMemory,
    /// Tasks of one user: RLIMIT_NPROC.
    UserTasks,
    /// Memory of a cgroup.
    CgroupMemory,
    /// Tasks of a cgroup: pids.max.
    CgroupTasks,
    /// `--memory-max`.
    MemoryBudget,
    /// Memory and swap of the machine.
    HostMemory,
    /// What the machine may promise: CommitLimit.
    Committed,
    /// Bytes of /dev/shm.
    ShmBytes,
    /// Inodes of /dev/shm.
    ShmInodes,
    /// Bytes of the filesystem of temporary files.
    TemporaryFiles,
}

impl LimitKind {
    /// As it stands in JSON and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Mappings => "mappings",
            LimitKind::Descriptors => "descriptors",
            LimitKind::AddressSpace => "address space",
            LimitKind::LockedMemory => "locked memory",
            LimitKind::UserTasks => "processes",
            LimitKind::CgroupMemory => "cgroup memory",
            LimitKind::CgroupTasks => "cgroup tasks",
            LimitKind::MemoryBudget => "memory budget",
            LimitKind::HostMemory => "memory and swap",
            LimitKind::Committed => "commit limit",
            LimitKind::ShmBytes => "/dev/shm bytes",
            LimitKind::ShmInodes => "/dev/shm inodes",
            LimitKind::TemporaryFiles => "temporary files",
        }
    }

    /// In what it is counted.
    pub fn unit(self) -> &'static str {
        match self {
            LimitKind::Mappings => "mappings",
            LimitKind::Descriptors => "descriptors",
            LimitKind::UserTasks | LimitKind::CgroupTasks => "tasks",
            LimitKind::ShmInodes => "inodes",
            _ => "bytes",
        }
    }
}

/// Whose limit it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Of one process.
    Process(ProcessId, Role),
    /// Of a user; none where nobody knows which. Only the job's tasks are counted.
    User(Option<u32>),
    /// Of a cgroup, by its path.
    Cgroup(String),
    /// Of the job.
    Job,
    /// Of the machine.
    Host,
    /// Of a filesystem, by where it is mounted.
    Filesystem(String),
}

impl Scope {
    /// The process, where it is of one.
    pub fn process(&self) -> Option<ProcessId> {
        match self {
            Scope::Process(id, _) => Some(*id),
            _ => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Process(id, role) => write!(f, "process {} ({})", id.pid, role.label()),
            Scope::User(Some(uid)) => write!(f, "user {uid} (tasks of this job)"),
            Scope::User(None) => f.write_str("user"),
            Scope::Cgroup(path) => write!(f, "cgroup {path}"),
            Scope::Job => f.write_str("job"),
            Scope::Host => f.write_str("host"),
            Scope::Filesystem(path) => f.write_str(path),
        }
    }
}

/// A limit at the end of what was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitState {
    /// What is limited.
    pub kind: LimitKind,
    /// Whose limit it is.
    pub scope: Scope,
    /// In use.
    pub used: Measured<u64>,
    /// Allowed.
    pub limit: Measured<Limit>,
    /// Growth a second over the last part of the run; none where it cannot be told.
    pub slope_per_s: Option<f64>,
    /// Seconds until `used` meets `limit` at that slope; none where it does not grow, or where that is too far
    /// ahead to tell.
    pub time_left_s: Option<f64>,
    /// For how many seconds it has grown at that slope; none where it does not.
    pub growing_for_s: Option<f64>,
    /// It is about to be met: worth a word while the job runs.
    pub warning: bool,
}

impl LimitState {
    /// What is left; none where unlimited or unknown.
    pub fn headroom(&self) -> Option<u64> {
        self.limit.as_known()?.headroom(*self.used.as_known()?)
    }
}
