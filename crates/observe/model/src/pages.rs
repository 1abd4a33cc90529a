//! What a survey of pages found: of which kind the memory of the job is, and who shares it.
//!
//! A survey looks at pages picked at random, at the same places in all processes that share them. Its figures are
//! estimates, scaled to the exact sizes of `/proc/PID/status`. A row of the whole job counts each page once.

use crate::{Bytes, ProcessId};
use serde::{Deserialize, Serialize};

/// A kind of memory, as the mappings of a process tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// Private memory that was not told apart further: objects, small arrays, variables of libraries.
    Anonymous,
    /// Areas that the interpreter has named as its heap.
    PythonHeap,
    /// `[heap]`, and arenas of malloc.
    Malloc,
    /// Stacks of threads.
    Stacks,
    /// Large areas without a name: arrays, tensors and other blocks that no heap has room for.
    LargeBlocks,
    /// torch's segments.
    TorchShared,
    /// ullage's arena.
    UllageArena,
    /// What `ullage.share` packed, and datasets that ullage sends.
    UllageShare,
    /// Other memfds.
    Memfd,
    /// SysV segments.
    Sysv,
    /// Other files in /dev/shm, and shared anonymous memory.
    OtherShared,
    /// Mapped files.
    MappedFiles,
    /// Mappings of a GPU driver. The kernel does not count them in any resident size.
    GpuMappings,
}

/// How a resident page is counted by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// RssAnon.
    Anonymous,
    /// RssShmem.
    Shared,
    /// RssFile.
    File,
    /// Nowhere.
    Not,
}

impl PageKind {
    /// All of them.
    pub const ALL: [PageKind; 13] = [
        PageKind::Anonymous,
        PageKind::PythonHeap,
        PageKind::Malloc,
        PageKind::Stacks,
        PageKind::LargeBlocks,
        PageKind::TorchShared,
        PageKind::UllageArena,
        PageKind::UllageShare,
        PageKind::Memfd,
        PageKind::Sysv,
        PageKind::OtherShared,
        PageKind::MappedFiles,
        PageKind::GpuMappings,
    ];

    /// Its id in recordings and in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            PageKind::Anonymous => "anonymous",
            PageKind::PythonHeap => "python-heap",
            PageKind::Malloc => "malloc",
            PageKind::Stacks => "stacks",
            PageKind::LargeBlocks => "large-blocks",
            PageKind::TorchShared => "torch-shared",
            PageKind::UllageArena => "ullage-arena",
            PageKind::UllageShare => "ullage-share",
            PageKind::Memfd => "memfd",
            PageKind::Sysv => "sysv",
            PageKind::OtherShared => "other-shared",
            PageKind::MappedFiles => "mapped-files",
            PageKind::GpuMappings => "gpu-mappings",
        }
    }

    /// The kind of this id.
    pub fn of_id(id: &str) -> Option<PageKind> {
        PageKind::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// In which resident size of `/proc/PID/status` its pages are.
    pub const fn counted(self) -> Counted {
        match self {
            PageKind::Anonymous
            | PageKind::PythonHeap
            | PageKind::Malloc
            | PageKind::Stacks
            | PageKind::LargeBlocks => Counted::Anonymous,
            PageKind::MappedFiles => Counted::File,
            PageKind::GpuMappings => Counted::Not,
            _ => Counted::Shared,
        }
    }
}

/// Memory of one kind: of one process, or of the whole job with each page counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Whose; none for the whole job.
    pub of: Option<ProcessId>,
    /// Which kind.
    pub kind: PageKind,
    /// Resident.
    pub bytes: Bytes,
    /// Half of the 95 % interval: of `bytes` for the job, of `exclusive` for a process.
    pub error: Bytes,
    /// Of these, mapped by a single process.
    pub exclusive: Bytes,
    /// Of these, mapped by several processes of the job.
    pub shared: Bytes,
    /// The rest: mapped by one process of the job, and by others outside of it. `exclusive + shared + outside`
    /// is `bytes`.
    pub outside: Bytes,
    /// What is left of `bytes` when each page is divided by the number of processes of the job that map it.
    pub proportional: Bytes,
    /// Of `exclusive`, in a forked process: its parent has a page at the same place, which others still map.
    pub beside_shared: Bytes,
    /// Of `exclusive`, in a forked process: its parent has a page at the same place, which it alone maps.
    pub beside_own: Bytes,
    /// Swapped out.
    pub swapped: Bytes,
    /// Resident bytes that the kernel counts and the survey did not find.
    pub unexplained: Bytes,
}

impl Pages {
    /// Nothing, of this kind.
    pub fn none(of: Option<ProcessId>, kind: PageKind) -> Pages {
        let zero = Bytes(0);
        Pages {
            of,
            kind,
            bytes: zero,
            error: zero,
            exclusive: zero,
            shared: zero,
            outside: zero,
            proportional: zero,
            beside_shared: zero,
            beside_own: zero,
            swapped: zero,
            unexplained: zero,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_id_of_its_own() {
        for kind in PageKind::ALL {
            assert_eq!(PageKind::of_id(kind.id()), Some(kind));
        }
        assert_eq!(PageKind::of_id("heap"), None);
    }
}
