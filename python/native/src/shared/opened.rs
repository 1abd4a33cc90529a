//! Shared pages as Python opens them: by a descriptor, and by the places of values.

use super::list::SharedList;
use super::pages::Pages;
use super::read;
use crate::error::arena_error;
use pyo3::prelude::*;
use std::os::fd::{AsRawFd, BorrowedFd};

#[pymethods]
impl Pages {
    /// Maps what is behind a descriptor, which stays the caller's.
    #[staticmethod]
    fn map(py: Python<'_>, fd: i32) -> PyResult<Pages> {
        // SAFETY: the caller keeps it open during the call.
        let own =
            rustix::io::fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(fd) }, 0).map_err(arena_error)?;
        Pages::of(py, own)
    }

    fn fileno(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Device and inode of the memfd.
    #[getter]
    fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Bytes of the memfd.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes().len()
    }

    /// The value at a place: views of what is large, and read-only forms of what is small.
    fn value<'py>(slf: &Bound<'py, Self>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        read::value(slf, &mut slf.get().cursor(at), false)
    }

    /// A list or tuple at a place, of which every `step`-th item from `first` on is seen.
    fn list(
        slf: &Bound<'_, Self>,
        at: usize,
        first: isize,
        step: isize,
        length: usize,
    ) -> PyResult<SharedList> {
        SharedList::part(slf, at, first, step, length)
    }
}
