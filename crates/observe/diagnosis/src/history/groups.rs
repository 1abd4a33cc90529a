//! The job's memory by what the kernel would do with it, over time: shared, the kernel's own for the job, page cache, swap.
//! From attribution's categories, each page once. What lies in /dev/shm and nobody of the job maps is left out: it may be
//! another job's.

use super::series::Series;
use ullage_model::{At, Counted, MemoryAt, PageKind};

/// Bytes of the job over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// tmpfs, memfds, SysV.
    pub(crate) shared: Series,
    /// Page tables and other kernel memory.
    pub(crate) kernel: Series,
    /// Files in memory that no process of the job maps, where the cgroup it is in counts them; others may be in it too.
    pub(crate) cache: Series,
    /// Swapped out.
    pub(crate) swap: Series,
}

impl Groups {
    pub(crate) fn read(&mut self, at: At, memory: &MemoryAt) {
        let sum = |belongs: fn(&str) -> bool| {
            let of_it = memory.categories.iter().filter(|(id, _)| belongs(id));
            of_it.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
        };
        let shared = sum(|id| id == "shared" || counted(id) == Some(Counted::Shared));
        self.shared.push(at, shared as f64);
        self.kernel.push(at, sum(|id| id == "page-tables" || id == "kernel") as f64);
        self.swap.push(at, sum(|id| id == "swap") as f64);
        if let Some(bytes) = memory.beside.get("page-cache") {
            self.cache.push(at, *bytes as f64);
        }
    }
}

fn counted(id: &str) -> Option<Counted> {
    PageKind::of_id(id).map(PageKind::counted)
}
