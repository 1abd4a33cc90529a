//! The job's memory by what the kernel would do with it, over time: private, shared, mapped files, the kernel's own for
//! the job, page cache. From attribution's categories, each page once.

use crate::series::Series;
use ullage_model::{At, Counted, MemoryAt, PageKind};

/// Bytes of the job over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// tmpfs, memfds, SysV, mapped or not.
    pub(crate) shared: Series,
    /// Pages of mapped files.
    pub(crate) files: Series,
    /// Page tables and other kernel memory.
    pub(crate) kernel: Series,
    /// Files in memory that nobody maps, where a cgroup of the job's own counts them.
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
        let beside = |id: &str| memory.beside.get(id).copied().unwrap_or(0);
        let shared = sum(|id| id == "shared" || counted(id) == Some(Counted::Shared));
        self.shared.push(at, shared.saturating_add(beside("shm-unmapped")) as f64);
        self.files.push(at, sum(|id| id == "file" || counted(id) == Some(Counted::File)) as f64);
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
