//! Bytes of the arena as Python sees them: a writable buffer that keeps them until the last view is gone.
//!
//! torch (`frombuffer`), numpy and memoryview hold the exporter, not their own wrapper, so that a view, a detached
//! tensor or a numpy array over it each keep the bytes.

use crate::keep::Keep;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::Arc;
use ullage_arena::Lease;

/// Some bytes of a leased block, of a shipped dataset, or of a copy.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Piece {
    keep: Keep,
    start: usize,
    length: usize,
}

impl Piece {
    pub(crate) fn of(keep: Keep, start: usize, length: usize) -> Piece {
        debug_assert!(start + length <= keep.len());
        Piece { keep, start, length }
    }

    pub(crate) fn whole(lease: Lease) -> Piece {
        let length = lease.len();
        Piece { keep: Keep::Lease(Arc::new(lease)), start: 0, length }
    }

    fn address(&self) -> *mut u8 {
        // SAFETY: `start` lies inside what is kept (checked where pieces are made).
        unsafe { self.keep.address().add(self.start) }
    }
}

#[pymethods]
impl Piece {
    fn __len__(&self) -> usize {
        self.length
    }

    /// Address of the first byte.
    #[getter(address)]
    fn py_address(&self) -> usize {
        self.address() as usize
    }

    /// Offset of its block in the arena; none for bytes outside it.
    #[getter]
    fn offset(&self) -> Option<u64> {
        match &self.keep {
            Keep::Lease(lease) => Some(lease.ticket().offset),
            Keep::Mapped(_) | Keep::Copied(_) => None,
        }
    }

    /// # Safety
    /// CPython calls it, with a view of its own to fill or with none.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::os::raw::c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let (address, length) = (slf.get().address(), slf.get().length);
        // SAFETY: `view` is CPython's; it keeps `slf`, and with it the bytes, until the view is released.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address.cast(), length as ffi::Py_ssize_t, 0, flags)
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}
