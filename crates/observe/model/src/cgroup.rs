//! What one reading of a cgroup holds. v1 and v2 differ in where OOM kills are counted: v1 counts them in
//! the victim's own (leaf) group while `failcnt` moves in the limiting ancestor; v2 counts in the ancestor too.

use crate::{Bytes, Limit, Measured};
use serde::{Deserialize, Serialize};

/// Which interface a reading came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// One hierarchy a controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// One cgroup (the job's own or an ancestor) in one sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CgroupReading {
    /// v1 or v2.
    pub version: CgroupVersion,
    /// Path below the hierarchy's mount as this mount namespace sees it, `/` for the top.
    pub path: String,
    /// Memory controller; missing where this hierarchy does not carry it.
    pub memory: Measured<CgroupMemory>,
    /// Pids controller; missing where this hierarchy does not carry it.
    pub pids: Measured<CgroupPids>,
}

/// The memory controller of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// memory.current, or v1 memory.usage_in_bytes: the lower of two readings, before and after those of the processes.
    pub current: Bytes,
    /// memory.max, or v1 memory.limit_in_bytes.
    pub limit: Limit,
    /// memory.high; unlimited on v1.
    pub high: Limit,
    /// memory.peak, or v1 memory.max_usage_in_bytes.
    pub peak: Measured<Bytes>,
    /// memory.swap.current, or v1 memsw minus memory usage.
    pub swap: Measured<Bytes>,
    /// memory.swap.max, or v1 memsw limit minus memory limit.
    pub swap_limit: Measured<Limit>,
    /// `oom_kill` of memory.events.local where present, else memory.events (v2), or memory.oom_control (v1).
    pub oom_kills: Measured<u64>,
    /// Same, of this group and all below it: memory.events (v2). On v1 equal to `oom_kills`.
    pub oom_kills_subtree: Measured<u64>,
    /// Times the limit was met: `max` of memory.events, or v1 memory.failcnt.
    pub limit_hits: Measured<u64>,
    /// Times that memory.high was exceeded and somebody was slowed down for it: `high` of memory.events (v2).
    pub high_hits: Measured<u64>,
    /// Of the anonymous memory, that in transparent huge pages: anon_thp, or v1 total_rss_huge.
    pub anonymous_huge: Measured<Bytes>,
    /// memory.oom.group = 1: the kernel kills the whole group at once.
    pub oom_group: Measured<bool>,
    /// Parts, from memory.stat (hierarchical figures).
    pub parts: Measured<CgroupMemoryParts>,
}

impl CgroupMemory {
    /// What brings the limit nearer: all but the page cache, which the kernel drops before it kills anyone. Shared
    /// memory (tmpfs, memfd) is counted by the kernel among the files, and stays. Where the parts are not known, all of it.
    pub fn in_use(&self) -> Bytes {
        let Measured::Known(parts) = self.parts else { return self.current };
        let cache = parts.file.saturating_sub(parts.shared).max(parts.inactive_file);
        self.current.saturating_sub(cache)
    }
}

/// Parts of a group's memory, from memory.stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemoryParts {
    /// anon, or v1 total_rss.
    pub anonymous: Bytes,
    /// file, or v1 total_cache: page cache, shmem included.
    pub file: Bytes,
    /// shmem, or v1 total_shmem.
    pub shared: Bytes,
    /// inactive_file: what the kernel gives back first.
    pub inactive_file: Bytes,
    /// kernel memory (v2 `kernel`, else slab + kernel_stack + pagetables; v1 memory.kmem.usage_in_bytes).
    pub kernel: Bytes,
}

/// The pids controller of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupPids {
    /// pids.current: tasks (threads) in the group and below.
    pub current: u64,
    /// pids.max.
    pub limit: Limit,
    /// `max` of pids.events: forks refused.
    pub refused: Measured<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(current: u64, parts: Measured<CgroupMemoryParts>) -> CgroupMemory {
        CgroupMemory {
            current: Bytes(current),
            limit: Limit::Unlimited,
            high: Limit::Unlimited,
            peak: Measured::default(),
            swap: Measured::default(),
            swap_limit: Measured::default(),
            oom_kills: Measured::default(),
            oom_kills_subtree: Measured::default(),
            limit_hits: Measured::default(),
            high_hits: Measured::default(),
            anonymous_huge: Measured::default(),
            oom_group: Measured::default(),
            parts,
        }
    }

    #[test]
    fn page_cache_is_no_use_whether_active_or_not_and_shared_memory_is() {
        let parts = CgroupMemoryParts {
            anonymous: Bytes(100),
            file: Bytes(850),
            shared: Bytes(50),
            inactive_file: Bytes(300),
            kernel: Bytes(30),
        };
        assert_eq!(memory(1000, Measured::Known(parts)).in_use(), Bytes(200));
        assert_eq!(memory(700, Measured::Known(parts)).in_use(), Bytes(0), "parts are read a little later");
        assert_eq!(memory(1000, Measured::default()).in_use(), Bytes(1000), "not known is not dropped");
    }
}
