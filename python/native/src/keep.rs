//! What keeps bytes that a tensor or a buffer was made of: a lease in the arena, a private mapping, or a copy.
//!
//! Dropped on any thread, without the GIL: torch frees storages in autograd and pin_memory threads.

use crate::error::arena_error;
use pyo3::prelude::*;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use ullage_arena::Lease;

/// Whoever has one may use the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Keep {
    Lease(Arc<Lease>),
    Mapped(Arc<Mapped>),
    Copied(Arc<Copied>),
}

impl Keep {
    pub(crate) fn address(&self) -> *mut u8 {
        match self {
            Keep::Lease(lease) => lease.as_ptr(),
            Keep::Mapped(mapped) => mapped.base,
            Keep::Copied(copied) => copied.0.as_ptr().cast_mut().cast(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Keep::Lease(lease) => lease.len(),
            Keep::Mapped(mapped) => mapped.length,
            Keep::Copied(copied) => copied.0.len() * size_of::<Line>(),
        }
    }
}

/// As torch aligns what it allocates.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    _bytes: [u8; 64],
}

/// A copy on the heap.
#[derive(Debug)]
pub(crate) struct Copied(Box<[Line]>);

impl Copied {
    pub(crate) fn of(bytes: &[u8]) -> Copied {
        let mut lines = vec![Line { _bytes: [0; 64] }; bytes.len().div_ceil(64)].into_boxed_slice();
        // SAFETY: room for them was just made, in memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), lines.as_mut_ptr().cast(), bytes.len()) };
        Copied(lines)
    }
}

/// A private mapping of a sealed memfd: a write stays in this process, as after a fork.
#[derive(Debug)]
pub(crate) struct Mapped {
    base: *mut u8,
    length: usize,
}

// SAFETY: the mapping lives as long as this value; who writes into it is the program's own affair, as with any tensor.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub(crate) fn of(fd: i32, length: usize) -> PyResult<Mapped> {
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: the caller keeps the descriptor open during the call.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let map = |protection| {
            // SAFETY: a new mapping at a place of the kernel's choice.
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, protection, flags, fd, 0) }
        };
        // Under strict overcommit (vm.overcommit_memory = 2) a writable private mapping is charged whole.
        let base = map(protection).or_else(|_| map(ProtFlags::READ)).map_err(arena_error)?;
        Ok(Mapped { base: base.cast(), length })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and nobody uses it any more.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.length) };
    }
}
