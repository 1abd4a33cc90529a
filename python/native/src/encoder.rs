//! What an object becomes on its way: its pickle, and the memory that travels beside it.
//!
//! The pickler writes into it, and asks it how to reduce each object. A plain tensor becomes a row of numbers; every
//! other type goes to the reducer that is registered for it, or pickle's own way. The
//! surprise: memory is named by address and not copied here, so that whoever sends must do so before the next
//! `clear`.

use crate::dlpack;
use crate::error::ArenaError;
use crate::incoming;
use crate::message::{Part, Source, ALONE};
use crate::once::intern;
use crate::thread_end::call;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Views of other item sizes may begin elsewhere; every item size divides this.
const ITEMS: u64 = 16;
/// What a cleared encoder keeps for the next message.
const RETAINED_BYTES: usize = 64 << 10;

/// A storage of which a message reaches some bytes.
struct Storage {
    /// Keeps it alive.
    _object: Py<PyAny>,
    address: usize,
    nbytes: u64,
    first: u64,
    last: u64,
    alone: bool,
}

#[derive(Default)]
struct State {
    pickle: Vec<u8>,
    plain: Vec<u8>,
    storages: Vec<Storage>,
    numbers: HashMap<usize, usize>,
    buffers: Vec<PyBuffer<u8>>,
    passed_by: u64,
}

/// Collects a message.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Encoder {
    reducers: Py<PyDict>,
    fast: bool,
    state: Mutex<State>,
    sent: AtomicBool,
}

/// A whole message, taken out of its encoder and put back when this is dropped: no lock is held while it is copied,
/// when other threads run.
pub(crate) struct Encoded<'a> {
    encoder: &'a Encoder,
    state: State,
}

impl Drop for Encoded<'_> {
    fn drop(&mut self) {
        *self.encoder.lock() = std::mem::take(&mut self.state);
    }
}

impl Encoder {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_sent(&self) {
        self.sent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn encoded(&self) -> Encoded<'_> {
        Encoded { encoder: self, state: std::mem::take(&mut self.lock()) }
    }

    /// Writes a row for a plain tensor; None for any other.
    fn row(&self, object: &Bound<'_, PyAny>) -> Option<usize> {
        let py = object.py();
        let torch = dlpack::torch(py)?;
        let plain = torch.plain(object)?;
        let attributes = object.getattr(intern!(py, "__dict__")).ok()?;
        if !attributes.cast::<PyDict>().ok()?.is_empty() {
            return None;
        }
        let storage = object.call_method0(intern!(py, "untyped_storage")).ok()?;
        let number = |name| storage.call_method0(name).ok()?.extract::<usize>().ok();
        let is_shared = storage.call_method0(intern!(py, "is_shared")).ok()?.is_truthy().ok()?;
        let base = number(intern!(py, "data_ptr"))?;
        let nbytes = number(intern!(py, "nbytes"))? as u64;
        let key = storage.getattr(intern!(py, "_cdata")).ok()?.extract::<usize>().ok()?;
        let first = plain.address.checked_sub(base)? as u64;
        let last = first + plain.bytes;
        // What the user shared stays shared, torch's way; what was freed has fewer bytes than it seems.
        if is_shared || !first.is_multiple_of(ITEMS) || last > nbytes {
            return None;
        }
        let mut state = self.lock();
        let number = state.storage(key, storage.unbind(), base, nbytes, first, last);
        let at = state.plain.len();
        let shape = plain.shape();
        let head = number as u64 | u64::from(plain.dtype.code) << 32 | u64::from(plain.dtype.bits) << 40;
        state.plain.extend_from_slice(&(head | (shape.len() as u64) << 48).to_ne_bytes());
        state.plain.extend_from_slice(&first.to_ne_bytes());
        for size in shape {
            state.plain.extend_from_slice(&size.to_ne_bytes());
        }
        Some(at)
    }
}

impl State {
    fn storage(
        &mut self,
        key: usize,
        object: Py<PyAny>,
        address: usize,
        nbytes: u64,
        first: u64,
        last: u64,
    ) -> usize {
        let first = first / ITEMS * ITEMS;
        if let Some(number) = self.numbers.get(&key) {
            let known = &mut self.storages[*number];
            known.alone = false;
            if first < last {
                if known.first == known.last {
                    (known.first, known.last) = (first, last);
                } else {
                    (known.first, known.last) = (known.first.min(first), known.last.max(last));
                }
            }
            return *number;
        }
        let number = self.storages.len();
        self.numbers.insert(key, number);
        self.storages.push(Storage { _object: object, address, nbytes, first, last, alone: true });
        number
    }
}

#[pymethods]
impl Encoder {
    /// `reducers`: by exact type, what gives (callable, arguments) of (encoder, object), or NotImplemented. Without
    /// `fast` plain tensors go to them as well.
    #[new]
    #[pyo3(signature = (reducers, fast=true))]
    fn new(reducers: Py<PyDict>, fast: bool) -> Encoder {
        Encoder { reducers, fast, state: Mutex::default(), sent: AtomicBool::new(false) }
    }

    /// For the pickler: a piece of the pickle.
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        if let Ok(bytes) = data.cast::<PyBytes>() {
            self.lock().pickle.extend_from_slice(bytes.as_bytes());
            return Ok(bytes.as_bytes().len());
        }
        let bytes = PyBuffer::<u8>::get(data)?.to_vec(data.py())?;
        self.lock().pickle.extend_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Number, among the buffers of this message, of a contiguous `pickle.PickleBuffer`.
    fn buffer(&self, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let raw = PyBuffer::<u8>::get(&buffer.call_method0(intern!(buffer.py(), "raw"))?)?;
        let mut state = self.lock();
        state.buffers.push(raw);
        Ok(state.buffers.len() - 1)
    }

    /// For the pickler, as its `reducer_override`.
    fn reduce<'py>(slf: &Bound<'py, Self>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        if this.fast {
            if let Some(at) = this.row(object) {
                let argument = PyTuple::new(py, [at])?;
                return Ok(
                    PyTuple::new(py, [incoming::rebuild_function(py)?, argument.into_any()])?.into_any()
                );
            }
        }
        let kind: Bound<'py, PyType> = object.get_type();
        match this.reducers.bind(py).get_item(kind)? {
            Some(reducer) => call(&reducer, (slf, object)),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    /// Number of a storage in this message, of which the bytes from `first` to `last` are reached.
    fn storage(
        &self,
        key: usize,
        storage: Py<PyAny>,
        address: usize,
        nbytes: u64,
        first: u64,
        last: u64,
    ) -> usize {
        self.lock().storage(key, storage, address, nbytes, first, last)
    }

    /// So many bytes of the message go another way, in segments of torch's own.
    fn pass_by(&self, nbytes: u64) {
        self.lock().passed_by += nbytes;
    }

    /// Bytes of the message that go another way.
    #[getter(passed_by)]
    fn py_passed_by(&self) -> u64 {
        self.lock().passed_by
    }

    /// The pickle and the rows of its plain tensors.
    fn data<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let state = self.lock();
        (PyBytes::new(py, &state.pickle), PyBytes::new(py, &state.plain))
    }

    /// How its memory lies in a file: bytes of the file, number of storages, and a table for `Incoming.mapped`.
    fn layout<'py>(&self, py: Python<'py>) -> (u64, usize, Bound<'py, PyBytes>) {
        let encoded = self.encoded();
        let (mut table, mut end) = (Vec::new(), 0u64);
        for source in encoded.sources() {
            for word in [end, source.length, source.from] {
                table.extend_from_slice(&word.to_ne_bytes());
            }
            end += source.length.div_ceil(64) * 64;
        }
        (end, encoded.storages(), PyBytes::new(py, &table))
    }

    /// Copies its memory into a buffer as `layout` says.
    fn fill(&self, py: Python<'_>, target: PyBuffer<u8>) -> PyResult<()> {
        let (start, length) = (target.buf_ptr() as usize, target.len_bytes() as u64);
        if target.readonly() || !target.is_c_contiguous() {
            return Err(ArenaError::new_err("the target must be writable and contiguous"));
        }
        let sources = self.encoded().sources().collect::<Vec<_>>();
        py.detach(|| {
            each_place(&sources, length, |source, at| {
                // SAFETY: inside the target, whose view is held; the source is alive (see the head of this file).
                unsafe {
                    let to = (start as u64 + at) as *mut u8;
                    std::ptr::copy_nonoverlapping(source.address as *const u8, to, source.length as usize);
                }
                true
            })
        })
        .then_some(())
        .ok_or_else(|| ArenaError::new_err("the message does not fit into the target"))
    }

    /// True where a buffer has the very bytes of its memory.
    fn matches(&self, py: Python<'_>, target: PyBuffer<u8>) -> bool {
        let (start, length) = (target.buf_ptr() as usize, target.len_bytes() as u64);
        let sources = self.encoded().sources().collect::<Vec<_>>();
        target.is_c_contiguous()
            && py.detach(|| {
                each_place(&sources, length, |source, at| {
                    // SAFETY: as in `fill`; both are only read.
                    unsafe {
                        let theirs = (start as u64 + at) as *const u8;
                        std::slice::from_raw_parts(source.address as *const u8, source.length as usize)
                            == std::slice::from_raw_parts(theirs, source.length as usize)
                    }
                })
            })
    }

    /// The message was sent, whatever was raised since.
    #[getter]
    fn sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ready for the next message.
    fn clear(&self) {
        self.sent.store(false, Ordering::Relaxed);
        let mut state = self.lock();
        let old = (std::mem::take(&mut state.storages), std::mem::take(&mut state.buffers));
        state.numbers.clear();
        state.passed_by = 0;
        state.numbers.shrink_to(RETAINED_BYTES);
        state.pickle.clear();
        state.pickle.shrink_to(RETAINED_BYTES);
        state.plain.clear();
        state.plain.shrink_to(RETAINED_BYTES);
        // Their end may run code of the user's.
        drop(state);
        drop(old);
    }
}

/// Calls `each` with every source that has bytes, and its place; false where one says no or does not fit.
fn each_place(sources: &[Source], length: u64, mut each: impl FnMut(&Source, u64) -> bool) -> bool {
    let mut end = 0u64;
    sources.iter().all(|source| {
        let at = end;
        end += source.length.div_ceil(64) * 64;
        source.length == 0 || (at + source.length <= length && each(source, at))
    })
}

impl Encoded<'_> {
    pub(crate) fn pickle(&self) -> &[u8] {
        &self.state.pickle
    }

    pub(crate) fn plain(&self) -> &[u8] {
        &self.state.plain
    }

    pub(crate) fn passed_by(&self) -> u64 {
        self.state.passed_by
    }

    pub(crate) fn storages(&self) -> usize {
        self.state.storages.len()
    }

    /// What would be copied of each storage and buffer.
    fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.parts().map(|part| part.copied())
    }

    /// Each storage and buffer, whole.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let storages = self.state.storages.iter().map(|one| Part {
            address: one.address,
            nbytes: one.nbytes,
            first: one.first,
            last: one.last,
            mark: if one.alone { ALONE } else { 0 },
        });
        let buffers = self.state.buffers.iter().map(|buffer| {
            let nbytes = buffer.len_bytes() as u64;
            Part { address: buffer.buf_ptr() as usize, nbytes, first: 0, last: nbytes, mark: 0 }
        });
        storages.chain(buffers)
    }
}
