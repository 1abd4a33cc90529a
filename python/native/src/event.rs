//! A flag that processes share: one word of the arena, no descriptor; waiting is a futex.
//!
//! Once other processes know of it, its block is never used again: they may look at it longer than its maker lives.

use crate::arena::Arena;
use crate::error::arena_error;
use pyo3::prelude::*;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use ullage_arena::Lease;

/// Between two looks for signals.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// A flag.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Flag {
    /// Keeps the mapping.
    _arena: Py<Arena>,
    lease: Option<Lease>,
    address: usize,
    offset: u64,
}

impl Flag {
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the first word of a block of 64 bytes, in a mapping that `_arena` keeps; the block is leased here,
        // or was retired before its offset was passed on.
        unsafe { &*(self.address as *const AtomicU32) }
    }
}

#[pymethods]
impl Flag {
    /// A new flag, not set.
    #[new]
    fn new(arena: Py<Arena>) -> PyResult<Flag> {
        let mut lease = arena.get().arena.alloc(64).map_err(arena_error)?;
        // SAFETY: just allocated.
        unsafe { lease.bytes_mut() }.fill(0);
        let (address, offset) = (lease.as_ptr() as usize, lease.ticket().offset);
        Ok(Flag { _arena: arena, lease: Some(lease), address, offset })
    }

    /// The flag that another process passed on.
    #[staticmethod]
    fn attach(arena: Py<Arena>, offset: u64) -> PyResult<Flag> {
        let address = arena.get().arena.address_of(offset, 64).map_err(arena_error)? as usize;
        Ok(Flag { _arena: arena, lease: None, address, offset })
    }

    /// Its place, for another process; from now on the place is its own for ever.
    fn pass_on(&self) -> u64 {
        if let Some(lease) = &self.lease {
            lease.retire();
        }
        self.offset
    }

    /// True where it is set.
    fn is_set(&self) -> bool {
        self.word().load(Ordering::Acquire) != 0
    }

    /// Sets it, and wakes all who wait.
    fn set(&self) {
        self.word().store(1, Ordering::Release);
        let _ = futex::wake(self.word(), futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Clears it.
    fn clear(&self) {
        self.word().store(0, Ordering::Release);
    }

    /// Waits until it is set, at most `timeout` seconds; true where it is.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let deadline =
            timeout.map(|timeout| Instant::now() + Duration::from_secs_f64(timeout.clamp(0.0, 1e9)));
        while !self.is_set() {
            let left = deadline.map_or(CHECK_EVERY, |deadline| {
                deadline.saturating_duration_since(Instant::now()).min(CHECK_EVERY)
            });
            if left.is_zero() {
                return Ok(false);
            }
            let left =
                futex::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let _ = py.detach(|| futex::wait(self.word(), futex::Flags::empty(), 0, Some(&left)));
            py.check_signals()?;
        }
        Ok(true)
    }
}
