//! Memory behind a descriptor that is filled once and never changes again.
//!
//! Here and not from Python's `os` and `fcntl`: those lack it where Python was built on an older system, as conda's is.

use pyo3::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, IntoRawFd};

/// A new one, empty; its name is seen in /proc/PID/maps.
#[pyfunction]
pub(crate) fn memfd(name: &str) -> PyResult<i32> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    Ok(made.map_err(std::io::Error::from)?.into_raw_fd())
}

/// Nobody can change it any more.
#[pyfunction]
pub(crate) fn seal(fd: i32) -> PyResult<()> {
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    if fd < 0 {
        return Err(std::io::Error::from(Errno::BADF).into());
    }
    // SAFETY: borrowed for this call only; a number that is no descriptor is an error of it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::fs::fcntl_add_seals(fd, seals).map_err(std::io::Error::from)?)
}
