//! The kernel's files, and buffers to read them into that are kept from tick to tick.

use ullage_kernel::KernelRoot;

/// Where everything is read.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) root: KernelRoot,
    pub(super) buffer: Vec<u8>,
    /// For `maps` and `pagemap`, which are large.
    pub(super) maps: Vec<u8>,
}

impl Files {
    pub(super) fn of(root: KernelRoot) -> Files {
        Files { root, buffer: Vec::new(), maps: Vec::new() }
    }
}
