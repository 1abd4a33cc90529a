//! A sealed memfd with a shared object, as this process has it: one descriptor and one mapping.

use super::format::*;
use super::tables::Tables;
use crate::error::{arena_error, ArenaError};
use crate::keep::{Keep, Mapped};
use crate::once::SetOnce;
use crate::piece::Piece;
use pyo3::prelude::*;
use rustix::fs::SealFlags;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Pages that nobody can change any more.
#[pyclass(frozen, weakref, module = "ullage._native")]
pub(crate) struct Pages {
    pub(super) fd: OwnedFd,
    keep: Keep,
    length: usize,
    pub(super) identity: (u64, u64),
    pub(crate) tables: Tables,
    pub(crate) piece: SetOnce<Py<Piece>>,
}

impl Pages {
    /// Takes the descriptor, and looks whether it has what `pack` wrote.
    pub(crate) fn of(py: Python<'_>, fd: OwnedFd) -> PyResult<Pages> {
        let foreign = |why: &str| ArenaError::new_err(format!("this is no shared object of ullage's: {why}"));
        let stat = rustix::fs::fstat(&fd).map_err(arena_error)?;
        let length = stat.st_size as usize;
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| foreign("it cannot be sealed"))?;
        if !seals.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW) {
            return Err(foreign("it is not sealed, so that others could change it"));
        }
        if length < HEADER {
            return Err(foreign("it is too short"));
        }
        let keep = Keep::Mapped(Arc::new(Mapped::of(fd.as_raw_fd(), length)?));
        // SAFETY: mapped as long as `keep` is there; sealed, so that it neither shrinks nor changes.
        let bytes = unsafe { std::slice::from_raw_parts(keep.address().cast_const(), length) };
        let mut cursor = Cursor::new(bytes, 0);
        if cursor.take(8)? != MAGIC {
            return Err(foreign("it does not begin as one"));
        }
        if cursor.size()? != length {
            return Err(foreign("it was cut off"));
        }
        let (at, size) = (cursor.size()?, cursor.size()?);
        let tables = Tables::load(py, Cursor::new(bytes, at).take(size)?)?;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Pages { fd, keep, length, identity, tables, piece: SetOnce::new() })
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep.clone()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as in `of`. A program that writes through an array of its own sees its own bytes.
        unsafe { std::slice::from_raw_parts(self.keep.address().cast_const(), self.length) }
    }

    pub(crate) fn cursor(&self, at: usize) -> Cursor<'_> {
        Cursor::new(self.bytes(), at)
    }
}
