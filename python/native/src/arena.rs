//! The arena as a Python object.

use crate::error::{arena_error, ArenaError};
use crate::headroom;
use crate::piece::Piece;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use ullage_arena::Travelled;

/// One memfd that batches travel through.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Arena {
    pub(crate) arena: ullage_arena::Arena,
    identity: (u64, u64),
    /// Bytes from which on it is told who holds them; once.
    soft_cap: AtomicU64,
}

pub(crate) fn duplicate(fd: i32) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(ArenaError::new_err(format!("{fd} is no file descriptor")));
    }
    // SAFETY: borrowed for this call only; a number that is no descriptor is an error of `dup`.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed
        .try_clone_to_owned()
        .map_err(|error| ArenaError::new_err(format!("descriptor {fd} could not be duplicated: {error}")))
}

impl Arena {
    fn over(arena: ullage_arena::Arena, soft_cap: u64) -> PyResult<Arena> {
        let stat = rustix::fs::fstat(arena.fd()).map_err(arena_error)?;
        Ok(Arena { arena, identity: (stat.st_dev, stat.st_ino), soft_cap: AtomicU64::new(soft_cap) })
    }

    /// In the process that made it: says once who holds what, when it is over its soft cap.
    pub(crate) fn warn_once(&self, py: Python<'_>) {
        let cap = self.soft_cap.load(Ordering::Relaxed);
        if self.arena.reached() < cap || self.arena.committed() < cap {
            return;
        }
        if self.soft_cap.swap(u64::MAX, Ordering::Relaxed) == u64::MAX {
            return;
        }
        let warned =
            py.import("ullage._context").and_then(|context| context.call_method1("_over_soft_cap", (cap,)));
        // A batch was received, and must not be lost for a warning that was made an error.
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    }
}

#[pymethods]
impl Arena {
    /// A new arena; `reserve` bytes of address space, by default twice the machine's memory.
    #[new]
    #[pyo3(signature = (reserve=None))]
    fn new(reserve: Option<u64>) -> PyResult<Arena> {
        let settings = ullage_arena::Settings {
            reserve: reserve.unwrap_or_else(headroom::reserve),
            guard: headroom::guard(),
        };
        Arena::over(ullage_arena::Arena::create(settings).map_err(arena_error)?, headroom::soft_cap())
    }

    /// The arena behind a descriptor from another process; the descriptor itself stays the caller's.
    #[staticmethod]
    fn attach(fd: i32) -> PyResult<Arena> {
        let arena = ullage_arena::Arena::attach(duplicate(fd)?, headroom::guard()).map_err(arena_error)?;
        Arena::over(arena, u64::MAX)
    }

    /// Its descriptor.
    fn fileno(&self) -> i32 {
        self.arena.fd().as_raw_fd()
    }

    /// Device and inode of its memfd: the same in every process.
    #[getter]
    fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// A block of `nbytes`.
    fn alloc(&self, nbytes: u64) -> PyResult<Piece> {
        self.arena.alloc(nbytes).map(Piece::whole).map_err(arena_error)
    }

    /// True where an address lies in this arena.
    fn contains(&self, address: usize) -> bool {
        self.arena.offset_of(address).is_some()
    }

    /// The block that begins at an address is never used again. False where none does.
    fn retire(&self, address: usize) -> bool {
        self.arena.retire_at(address)
    }

    /// Notes bytes that came to another process beside the queues: in a memfd of their own, and in torch's segments.
    fn travelled(&self, copied: u64, passed_by: u64) {
        self.arena.travelled(Travelled { copied, in_place: 0, passed_by });
    }

    /// Gives memory that holds no block back to the kernel; returns the bytes.
    fn trim(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.arena.trim())
    }

    /// Takes back what the dead held.
    fn sweep(&self, py: Python<'_>) {
        py.detach(|| self.arena.sweep());
    }

    /// committed, in_use and retired bytes; bytes of messages so far: copied, handed over in_place, passed_by (in torch's
    /// own segments); holdings: (pid, blocks, bytes, age of the oldest in s), largest first.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| self.arena.report());
        let dict = PyDict::new(py);
        dict.set_item("reserved", self.arena.reserve())?;
        dict.set_item("committed", report.committed)?;
        dict.set_item("in_use", report.in_use)?;
        dict.set_item("retired", report.retired)?;
        dict.set_item("copied", report.travelled.copied)?;
        dict.set_item("in_place", report.travelled.in_place)?;
        dict.set_item("passed_by", report.travelled.passed_by)?;
        let holdings: Vec<(u32, u64, u64, u64)> = report
            .holdings
            .iter()
            .map(|holding| (holding.pid, holding.blocks, holding.bytes, holding.oldest_s))
            .collect();
        dict.set_item("holdings", holdings)?;
        Ok(dict)
    }
}
