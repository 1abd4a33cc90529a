//! What one reading of the machine holds, and what is read of it once.

use crate::{Bytes, Facts, Limit, Measured};
use serde::{Deserialize, Serialize};

/// The machine in one sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostReading {
    /// `/proc/meminfo`.
    pub memory: Measured<HostMemory>,
    /// `oom_kill` of `/proc/vmstat`: kills of the kernel's OOM killer on the whole machine, **any** cgroup's
    /// included. Never proof of a host OOM.
    pub oom_kills: Measured<u64>,
    /// What the kernel itself holds, from `/proc/meminfo`.
    #[serde(default)]
    pub kernel: Measured<HostKernel>,
    /// `pswpin` and `pswpout` of vmstat, pages.
    pub swap_in: Measured<u64>,
    /// `pswpout`.
    pub swap_out: Measured<u64>,
    /// Microseconds in which all tasks waited for memory (`full … total=` of /proc/pressure/memory).
    pub memory_stall_full_us: Measured<u64>,
    /// Same, some tasks.
    pub memory_stall_some_us: Measured<u64>,
    /// Open file handles of the whole machine and their limit (`/proc/sys/fs/file-nr`).
    pub open_files: Measured<(u64, u64)>,
}

/// `/proc/meminfo`, the lines that limits and causes need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMemory {
    /// MemTotal.
    pub total: Bytes,
    /// MemFree.
    pub free: Bytes,
    /// MemAvailable.
    pub available: Bytes,
    /// SwapTotal.
    pub swap_total: Bytes,
    /// SwapFree.
    pub swap_free: Bytes,
    /// Shmem.
    pub shared: Bytes,
    /// Cached.
    pub cached: Bytes,
    /// AnonPages.
    pub anonymous: Bytes,
    /// CommitLimit: binding only with overcommit_memory=2.
    pub commit_limit: Bytes,
    /// Committed_AS.
    pub committed: Bytes,
}

/// `/proc/meminfo`, the lines for memory that no process owns. What this kernel does not print is zero: each of them is
/// only ever taken off from what is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostKernel {
    /// Buffers.
    pub buffers: Bytes,
    /// SReclaimable: given back before anybody is killed.
    pub slab_reclaimable: Bytes,
    /// SUnreclaim.
    pub slab_unreclaimable: Bytes,
    /// PageTables, SecPageTables, KernelStack, Percpu and VmallocUsed.
    pub tables: Bytes,
    /// Hugetlb: pages set aside for hugetlb, used or not.
    pub hugetlb: Bytes,
    /// Of these, used by nobody.
    pub hugetlb_free: Bytes,
    /// AnonHugePages: part of AnonPages.
    pub anonymous_huge: Bytes,
}

/// What a filesystem is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesystemUse {
    /// /dev/shm as the job sees it.
    Shm,
    /// $TMPDIR, /tmp.
    Temporary,
    /// The job's working directory.
    Work,
}

/// One filesystem in one sample, from statvfs through `/proc/PID/root`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemReading {
    /// What for.
    pub used_for: FilesystemUse,
    /// Path inside the job's mount namespace.
    pub path: String,
    /// st_dev, so that two paths on one filesystem are told apart from two filesystems.
    pub device: u64,
    /// It is a tmpfs: its files are memory.
    pub tmpfs: bool,
    /// Bytes in all; unlimited for a tmpfs mounted with size=0.
    pub size: Limit,
    /// Bytes in use.
    pub used: Bytes,
    /// Inodes in all; unlimited where the filesystem does not count them (nr_inodes=0, btrfs).
    pub inodes: Limit,
    /// Inodes in use.
    pub inodes_used: u64,
}

/// Facts of the machine that change how memory behaves, read once at the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// `uname -r`.
    pub kernel: String,
    /// Bytes.
    pub page_size: u64,
    /// `sysconf(_SC_CLK_TCK)`.
    pub clock_ticks_per_second: u64,
    /// Cores online.
    pub cores: u32,
    /// MemTotal.
    pub memory_total: Measured<Bytes>,
    /// vm.max_map_count.
    pub max_map_count: Measured<u64>,
    /// vm.overcommit_memory: 0 heuristic, 1 always, 2 strict.
    pub overcommit_memory: Measured<u8>,
    /// vm.overcommit_ratio, percent.
    pub overcommit_ratio: Measured<u8>,
    /// kernel.pid_max.
    pub pid_max: Measured<u64>,
    /// kernel.threads-max.
    pub threads_max: Measured<u64>,
    /// fs.file-max.
    pub file_max: Measured<u64>,
    /// fs.nr_open: what a hard RLIMIT_NOFILE may be raised to.
    pub nr_open: Measured<u64>,
    /// The selected word of /sys/kernel/mm/transparent_hugepage/enabled.
    pub transparent_hugepages: Measured<String>,
    /// CPU time that the tightest of the own cgroups allows, thousandths of a core (cpu.max, or v1 cpu.cfs_quota_us).
    #[serde(default)]
    pub cpu_quota: Measured<Limit>,
    /// Programs that end others when memory is short, as they were seen running (`earlyoom`, `systemd-oomd`).
    #[serde(default)]
    pub memory_daemons: Measured<Vec<String>>,
    /// kernel.shmmax and kernel.shmmni: largest segment of System V in bytes, and their number.
    #[serde(default)]
    pub sysv_limits: Measured<(u64, u64)>,
    /// Cgroup v2 unified hierarchy is mounted and carries the memory controller.
    pub cgroup_v2_memory: bool,
    /// How a descendant that is not our child can tell its exit status here.
    pub exit_status_of_others: Measured<bool>,
    /// Whatever else was read at the start, by name; [`MachineFacts::by_name`] adds those above.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub others: Facts,
}

impl<T> From<Option<T>> for Measured<T> {
    /// `None` becomes "unreadable": use only where the reason is truly not known.
    fn from(value: Option<T>) -> Self {
        value.map_or(Measured::Missing(crate::Missing::Unreadable), Measured::Known)
    }
}
