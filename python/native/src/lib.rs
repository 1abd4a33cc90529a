//! `ullage._native`: the arena, its queues and flags, for Python. A seam: no policy, no torch.
#![allow(unsafe_code)]

use pyo3::prelude::*;

mod arena;
mod event;
mod headroom;
mod message;
mod piece;
mod queue;
mod watch;

pyo3::create_exception!(
    _native,
    ArenaError,
    pyo3::exceptions::PyRuntimeError,
    "The arena could not do what was asked."
);

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ArenaError", module.py().get_type::<ArenaError>())?;
    module.add_class::<arena::Arena>()?;
    module.add_class::<event::Flag>()?;
    module.add_class::<piece::Piece>()?;
    module.add_class::<queue::Queue>()?;
    module.add_function(wrap_pyfunction!(watch::end_with, module)?)?;
    module.add_function(wrap_pyfunction!(address_of, module)?)?;
    module.add_function(wrap_pyfunction!(gather, module)?)?;
    module.add_function(wrap_pyfunction!(equal, module)?)?;
    Ok(())
}

/// Any error of the rooms below, with its own words.
fn arena_error(error: impl std::fmt::Display) -> PyErr {
    ArenaError::new_err(error.to_string())
}

/// Copies memory into a buffer: address, bytes, where to.
#[pyfunction]
fn gather(
    py: Python<'_>,
    target: pyo3::buffer::PyBuffer<u8>,
    parts: Vec<(usize, usize, usize)>,
) -> PyResult<()> {
    let (start, length) = (target.buf_ptr() as usize, target.len_bytes());
    if target.readonly() || !target.is_c_contiguous() {
        return Err(ArenaError::new_err("the target must be writable and contiguous"));
    }
    if parts.iter().any(|(_, bytes, to)| to.checked_add(*bytes).is_none_or(|end| end > length)) {
        return Err(ArenaError::new_err("a part does not fit into the target"));
    }
    py.detach(|| {
        for (from, bytes, to) in parts {
            // SAFETY: inside the target (checked), whose view is held; the source is kept alive by the caller, and
            // does not overlap a mapping that only it knows.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, (start + to) as *mut u8, bytes) };
        }
    });
    Ok(())
}

/// Address of a buffer's first byte; the caller keeps the buffer.
#[pyfunction]
fn address_of(buffer: pyo3::buffer::PyBuffer<u8>) -> usize {
    buffer.buf_ptr() as usize
}

/// True where memory holds the same bytes as a buffer: address, bytes, where in the buffer.
#[pyfunction]
fn equal(
    py: Python<'_>,
    target: pyo3::buffer::PyBuffer<u8>,
    parts: Vec<(usize, usize, usize)>,
) -> PyResult<bool> {
    let (start, length) = (target.buf_ptr() as usize, target.len_bytes());
    if !target.is_c_contiguous()
        || parts.iter().any(|(_, bytes, to)| to.checked_add(*bytes).is_none_or(|end| end > length))
    {
        return Ok(false);
    }
    Ok(py.detach(|| {
        parts.iter().all(|(from, bytes, to)| {
            // SAFETY: as in `gather`; both are only read.
            let (ours, theirs) = unsafe {
                (
                    std::slice::from_raw_parts(*from as *const u8, *bytes),
                    std::slice::from_raw_parts((start + to) as *const u8, *bytes),
                )
            };
            ours == theirs
        })
    }))
}
