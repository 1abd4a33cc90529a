//! A message that arrived, and the tensors that are made of it while it is unpickled.
//!
//! The surprise: the pickle names parts by number, so that whoever unpickles must know of which message: the one
//! that this thread reads at the moment.

use crate::dlpack::{self, Dtype, DIMENSIONS};
use crate::error::ArenaError;
use crate::keep::{Keep, Mapped};
use crate::message::ALONE;
use crate::once::SetOnce;
use crate::piece::Piece;
use crate::thread_end::call;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

/// Where some bytes of a storage are now.
pub(crate) struct Arrived {
    pub(crate) keep: Keep,
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// Where in its storage it begins, and [`ALONE`].
    pub(crate) from: u64,
}

/// A message that arrived.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Incoming {
    /// The pickle and the rows: place and length of each.
    pub(crate) text: Keep,
    pub(crate) pickle: (usize, usize),
    pub(crate) plain: (usize, usize),
    pub(crate) parts: Vec<Arrived>,
    pub(crate) storages: usize,
    shared: SetOnce<Py<PyDict>>,
}

thread_local! {
    static READING: RefCell<Option<Py<Incoming>>> = const { RefCell::new(None) };
}

fn damaged() -> PyErr {
    ArenaError::new_err("a message's table is damaged")
}

impl Incoming {
    pub(crate) fn new(
        text: Keep,
        pickle: (usize, usize),
        plain: (usize, usize),
        parts: Vec<Arrived>,
        storages: usize,
    ) -> Incoming {
        Incoming { text, pickle, plain, parts, storages, shared: SetOnce::new() }
    }

    fn text(&self, (start, length): (usize, usize)) -> &[u8] {
        // SAFETY: inside what is kept (checked where the table was read); written before it was sent, and never after.
        unsafe { std::slice::from_raw_parts(self.text.address().add(start), length) }
    }

    fn piece(&self, py: Python<'_>, number: usize) -> PyResult<Py<Piece>> {
        let part = self.parts.get(number).ok_or_else(damaged)?;
        Py::new(py, Piece::of(part.keep.clone(), part.start, part.length))
    }

    fn tensor<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        if dlpack::torch(py).is_none() {
            py.import("ullage.torch")?; // in a new process
        }
        let torch = dlpack::torch(py)
            .ok_or_else(|| ArenaError::new_err("a tensor arrived from a process with another torch"))?;
        let rows = self.text(self.plain);
        let word = |index: usize| -> PyResult<u64> {
            let bytes = rows.get(at + 8 * index..at + 8 * index + 8).ok_or_else(damaged)?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| damaged())?))
        };
        let (head, first) = (word(0)?, word(1)?);
        let (number, ndim) = ((head as u32) as usize, (head >> 48) as usize);
        let dtype = Dtype::of((head >> 32) as u8, (head >> 40) as u8);
        let (Some(name), true) = (dtype.name(), ndim <= DIMENSIONS) else { return Err(damaged()) };
        let mut shape = [0i64; DIMENSIONS];
        let mut bytes = usize::from(dtype.bits / 8);
        for (index, size) in shape[..ndim].iter_mut().enumerate() {
            *size = word(2 + index)? as i64;
            let times = usize::try_from(*size).map_err(|_| damaged())?;
            bytes = bytes.checked_mul(times).ok_or_else(damaged)?;
        }
        let shape = &shape[..ndim];
        let part = self.parts.get(number).ok_or_else(damaged)?;
        if part.from & ALONE != 0 {
            let start = first.checked_sub(part.from & !ALONE).ok_or_else(damaged)? as usize;
            if start.checked_add(bytes).is_none_or(|end| end > part.length) {
                return Err(damaged());
            }
            // SAFETY: inside the part (checked), which lies inside what is kept.
            let address = unsafe { part.keep.address().add(part.start + start) };
            return torch.tensor(py, part.keep.clone(), address, dtype, shape);
        }
        let mut strides = [1i64; DIMENSIONS];
        for at in (1..ndim).rev() {
            strides[at - 1] = strides[at] * shape[at];
        }
        let offset = first / u64::from(dtype.bits / 8);
        let tuple = |sizes: &[i64]| pyo3::types::PyTuple::new(py, sizes.iter().copied());
        call(torch.over_shared.bind(py), (number, name, tuple(shape)?, tuple(&strides[..ndim])?, offset, 0))
    }
}

#[pymethods]
impl Incoming {
    /// What was packed into a file of `size` bytes behind `fd`: pickle and rows of plain tensors, and the table and
    /// number of storages of `Encoder.layout`. Mapped privately; without `fd` there is no memory beside the pickle.
    #[staticmethod]
    fn mapped(
        fd: Option<i32>,
        size: usize,
        data: &[u8],
        plain: &[u8],
        table: &[u8],
        storages: usize,
    ) -> PyResult<Incoming> {
        let file =
            fd.map(|fd| Mapped::of(fd, size).map(|mapped| Keep::Mapped(Arc::new(mapped)))).transpose()?;
        let nothing = Keep::Copied(Arc::new(crate::keep::Copied::of(&[])));
        let keep = file.unwrap_or(nothing);
        let mut parts = Vec::with_capacity(table.len() / 24);
        for row in table.chunks_exact(24) {
            let word = |at: usize| -> PyResult<u64> {
                Ok(u64::from_ne_bytes(row[at..at + 8].try_into().map_err(|_| damaged())?))
            };
            let (start, length, from) = (word(0)? as usize, word(8)? as usize, word(16)?);
            if length > 0 && start.checked_add(length).is_none_or(|end| end > keep.len()) {
                return Err(damaged());
            }
            let start = if length > 0 { start } else { 0 };
            parts.push(Arrived { keep: keep.clone(), start, length, from });
        }
        let both = [data, plain].concat();
        let text = Keep::Copied(Arc::new(crate::keep::Copied::of(&both)));
        Ok(Incoming::new(text, (0, data.len()), (data.len(), plain.len()), parts, storages))
    }

    /// The object.
    fn load<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        static LOADS: SetOnce<Py<PyAny>> = SetOnce::new();
        let loads = LOADS.import(py, "pickle", "loads")?;
        let before = READING.replace(Some(slf.clone().unbind()));
        let result = (|| {
            let data = Bound::new(py, Piece::of(this.text.clone(), this.pickle.0, this.pickle.1))?;
            call(loads, (data,))
        })();
        drop(READING.replace(before));
        result
    }

    /// Bytes of a storage that arrived, and which byte of it they begin with.
    fn part(&self, py: Python<'_>, number: usize) -> PyResult<(Py<Piece>, u64)> {
        let piece = self.piece(py, number)?;
        Ok((piece, self.parts[number].from & !ALONE))
    }

    /// A buffer that arrived, by its number among the buffers.
    fn buffer(&self, py: Python<'_>, number: usize) -> PyResult<Py<Piece>> {
        self.piece(py, self.storages.checked_add(number).ok_or_else(damaged)?)
    }

    /// For storages that several objects of the message share: by number.
    #[getter]
    fn shared<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        let Ok(shared) = self.shared.get_or_try_init(|| Ok::<_, Infallible>(PyDict::new(py).unbind()));
        shared.bind(py).clone()
    }
}

/// The message that this thread reads.
#[pyfunction]
pub(crate) fn reading(py: Python<'_>) -> PyResult<Py<Incoming>> {
    let found = READING.with_borrow(|reading| reading.as_ref().map(|message| message.clone_ref(py)));
    found.ok_or_else(|| ArenaError::new_err("no message is being read: this pickle is a part of one"))
}

/// A plain tensor of the message that this thread reads.
#[pyfunction]
pub(crate) fn rebuild<'py>(py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
    reading(py)?.get().tensor(py, at)
}

/// [`rebuild`] as Python knows it.
pub(crate) fn rebuild_function(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static REBUILD: SetOnce<Py<PyAny>> = SetOnce::new();
    REBUILD.import(py, "ullage._native", "rebuild").map(|function| function.clone().into_any())
}
