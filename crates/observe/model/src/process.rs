//! What one reading of a process holds, and what is known of it once and for all.

use crate::{Bytes, ClockTicks, Limit, Measured, ProcessId};
use serde::{Deserialize, Serialize};

/// One process in one sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessReading {
    /// Pid and start time.
    pub id: ProcessId,
    /// Pid of the parent at this moment; changes when the parent ends.
    pub parent: i32,
    /// `State` of `/proc/PID/stat`.
    pub state: ProcessState,
    /// `comm`: at most 15 bytes, set by the program (`pt_data_worker`).
    pub comm: String,
    /// Number of threads.
    pub threads: u32,
    /// User and system CPU time since its start.
    pub cpu: ClockTicks,
    /// Faults served without reading from disk.
    pub minor_faults: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// Sizes from `/proc/PID/status`. Missing for a zombie: its memory is gone.
    pub memory: Measured<ProcessMemory>,
    /// Open descriptors.
    pub descriptors: Measured<Descriptors>,
    /// Memory mappings; read seldom, and then counted completely.
    pub mappings: Measured<Mappings>,
    /// Anonymous memory that no other process maps; probed seldom, in forked processes only.
    pub exclusive: Measured<Exclusive>,
    /// Nanoseconds that its first thread could have run and waited for a core, since its start; read while the process is
    /// young. Not asked in recordings of a version that did not know it.
    #[serde(default)]
    pub run_delay_ns: Measured<u64>,
}

/// `State` of a process (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// R
    Running,
    /// S, and I of kernel threads
    Sleeping,
    /// D
    DiskSleep,
    /// T and t
    Stopped,
    /// Z
    Zombie,
    /// X
    Dead,
    /// A letter that this version does not know.
    Other(char),
}

/// Sizes from `/proc/PID/status`. A field that the kernel did not print is zero only where the kernel
/// leaves out zeros; kernels since 4.5 print every one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// VmPeak: largest address space so far.
    pub peak_virtual: Bytes,
    /// VmSize: address space.
    pub virtual_size: Bytes,
    /// VmLck: locked by mlock(2).
    pub locked: Bytes,
    /// VmHWM: largest resident set so far.
    pub peak_resident: Bytes,
    /// RssAnon.
    pub anonymous: Bytes,
    /// RssFile.
    pub file: Bytes,
    /// RssShmem: tmpfs, memfd, SysV and shared anonymous pages.
    pub shared: Bytes,
    /// VmPTE: page tables.
    pub page_tables: Bytes,
    /// VmSwap.
    pub swap: Bytes,
}

impl ProcessMemory {
    /// VmRSS: anonymous, file and shared together.
    pub fn resident(&self) -> Bytes {
        self.anonymous.saturating_add(self.file).saturating_add(self.shared)
    }
}

/// Open descriptors of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptors {
    /// All of them.
    pub count: u64,
    /// By link target; only where the links were read (when the count moved, or the limit is near).
    pub kinds: Measured<DescriptorKinds>,
}

/// Descriptors by what their links point to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorKinds {
    /// `/dev/shm/torch_*` or `/torch_*`, deleted or not.
    pub torch_shared: u64,
    /// Other files.
    pub files: u64,
    /// Sockets.
    pub sockets: u64,
    /// Pipes.
    pub pipes: u64,
    /// Anonymous inodes, memfds, devices and the rest.
    pub other: u64,
    /// Where most of `files` are; none where they are everywhere, or the recording is of a version that did not ask.
    pub most_files: Option<Box<FilesIn>>,
}

/// Open files in one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesIn {
    /// The folder, with a slash at its end.
    pub folder: String,
    /// How many of the process's open files are in it or below.
    pub count: u64,
    /// The path of the one with the highest number: as a rule the newest.
    pub example: String,
}

/// Mappings of a process, counted line by line in `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mappings {
    /// As `vm.max_map_count` counts them: `[vsyscall]` is listed but not counted.
    pub count: u64,
    /// Mappings of torch's shared segments (`/dev/shm/torch_*`, `/torch_*`, deleted or not).
    pub torch_shared: u64,
    /// Bytes of address space of those.
    pub torch_shared_bytes: Bytes,
    /// Other files in /dev/shm, memfds and SysV segments.
    pub other_shared: u64,
    /// Without a path, or `[heap]`, `[stack]`, `[anon:…]`.
    pub anonymous: u64,
    /// Mapped regular files.
    pub file: u64,
    /// Bytes of address space of those.
    pub file_bytes: Bytes,
    /// Of these, in files that are data: no program, no library.
    #[serde(default)]
    pub data_file_bytes: Bytes,
    /// Bytes of address space without a path that may be executed: code that was generated while the process ran. Of those
    /// in `anonymous`. Not asked in recordings of a version that did not know it.
    #[serde(default)]
    pub executable_bytes: Measured<Bytes>,
}

/// Anonymous memory that this process alone maps, estimated from pages picked at random (bit 56 of
/// `/proc/PID/pagemap`). In a forked process the rest is shared with its parent or with siblings: copied on write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusive {
    /// The estimate.
    pub bytes: Bytes,
    /// Half of its 95 % interval.
    pub error: Bytes,
}

/// What is read once per process, and again when it executes another program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Pid and start time.
    pub id: ProcessId,
    /// Parent when first seen.
    pub parent: i32,
    /// Real user id.
    pub uid: Measured<u32>,
    /// Arguments, each at most 256 bytes, at most 64 of them. Empty for a zombie or a kernel thread.
    pub command_line: Vec<String>,
    /// `comm`.
    pub comm: String,
    /// Soft and hard limits.
    pub limits: Measured<ResourceLimits>,
    /// Paths of its cgroups: `0::/x` for v2, `4:memory:/y` for v1 controllers, as in `/proc/PID/cgroup`.
    pub cgroups: Vec<String>,
    /// What it is in the job, as far as seen from outside.
    pub role: Role,
    /// Mode of seccomp: 0 none, 1 strict, 2 a filter that may refuse system calls.
    #[serde(default)]
    pub seccomp: Measured<u64>,
    /// Cores that it may run on (Cpus_allowed_list).
    #[serde(default)]
    pub cores_allowed: Measured<u32>,
    /// The process of the job that it was forked from and still runs the program of: it began with that one's
    /// memory. None where it executed a program of its own, or where its parent was not seen.
    #[serde(default)]
    pub forked_from: Option<ProcessId>,
}

/// Soft limits of `/proc/PID/limits` that memory failures run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Max open files, soft.
    pub open_files: Limit,
    /// Max open files, hard: what the soft one may be raised to.
    pub open_files_hard: Limit,
    /// Max address space, bytes.
    pub address_space: Limit,
    /// Max processes of the real user.
    pub processes: Limit,
    /// Max locked memory, bytes.
    pub locked_memory: Limit,
    /// Max stack size, bytes: what each new thread maps.
    pub stack: Limit,
    /// Max file size, bytes.
    pub file_size: Limit,
}

/// What a process is in the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The command itself.
    Main,
    /// A `multiprocessing.Process` of the user's that trains.
    Trainer,
    /// torchrun's rank N.
    Rank(u32),
    /// A DataLoader worker; its number where known.
    LoaderWorker(Option<u32>),
    /// A worker of a Pool or an executor.
    PoolWorker,
    /// CPython's fork server.
    Forkserver,
    /// The process that took a dataset over and forks the loader workers: `ullage.context("zygote")`.
    Zygote,
    /// CPython's resource tracker.
    ResourceTracker,
    /// `torch_shm_manager`.
    ShmManager,
    /// A program that the job started for help (`sh -c`, `git`, `nvidia-smi`).
    Helper,
    /// None of these, or not known.
    Other,
}

impl Role {
    /// The same for all of a kind: `rank`, `loader worker`.
    pub fn kind(&self) -> String {
        match self {
            Role::Rank(_) => "rank".into(),
            Role::LoaderWorker(_) => Role::LoaderWorker(None).label(),
            role => role.label(),
        }
    }

    /// As it stands in JSON and on the screen: `trainer`, `rank 3`, `loader worker 0`.
    pub fn label(&self) -> String {
        match self {
            Role::Main => "main".into(),
            Role::Trainer => "trainer".into(),
            Role::Rank(n) => format!("rank {n}"),
            Role::LoaderWorker(Some(k)) => format!("loader worker {k}"),
            Role::LoaderWorker(None) => "loader worker".into(),
            Role::PoolWorker => "pool worker".into(),
            Role::Forkserver => "forkserver".into(),
            Role::Zygote => "zygote".into(),
            Role::ResourceTracker => "resource tracker".into(),
            Role::ShmManager => "shm manager".into(),
            Role::Helper => "helper command".into(),
            Role::Other => "other".into(),
        }
    }
}
