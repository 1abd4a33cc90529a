//! A batch of like tensors, stacked straight into a block of the arena: what torch's collate does with `out`, in one
//! step.
//!
//! torch.stack itself does the copying, which asks less of each tensor than can be asked from here; only a batch so
//! large that it is better written past the cache is copied here.

use crate::arena::Arena;
use crate::copy::{self, STREAMED};
use crate::dlpack::{self, Plain, Torch};
use crate::error::arena_error;
use crate::keep::Keep;
use crate::once::{intern, SetOnce};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

/// The tensors of a list or tuple, stacked; None where the first is not plain, or one of a large batch unlike it: then torch's
/// own way says what is to be said.
#[pyfunction]
pub(crate) fn stack<'py>(
    py: Python<'py>,
    arena: &Arena,
    batch: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(torch) = dlpack::torch(py) else { return Ok(None) };
    let length = match (batch.cast::<PyList>(), batch.cast::<PyTuple>()) {
        (Ok(list), _) => list.len(),
        (_, Ok(tuple)) => tuple.len(),
        _ => return Ok(None),
    };
    let Some(first) = batch.get_item(0).ok().and_then(|first| torch.plain(&first)) else { return Ok(None) };
    let Some(total) = first.bytes.checked_mul(length as u64) else { return Ok(None) };
    if first.shape().len() >= dlpack::DIMENSIONS {
        return Ok(None);
    }
    let large = if total < STREAMED { None } else { addresses(torch, &first, batch) };
    if total >= STREAMED && large.is_none() {
        return Ok(None);
    }
    let lease = arena.arena.alloc(total).map_err(arena_error)?;
    let start = lease.as_ptr();
    let mut shape = [0; dlpack::DIMENSIONS];
    shape[0] = length as i64;
    shape[1..=first.shape().len()].copy_from_slice(first.shape());
    let shape = &shape[..=first.shape().len()];
    let out = torch.tensor(py, Keep::Lease(Arc::new(lease)), start, first.dtype, shape)?;
    if let Some(addresses) = large {
        fill(py, start as usize, first.bytes as usize, &addresses);
        return Ok(Some(out));
    }
    static STACK: SetOnce<Py<PyAny>> = SetOnce::new();
    let settings = PyDict::new(py);
    settings.set_item(intern!(py, "out"), out)?;
    STACK.import(py, "torch", "stack")?.call((batch, 0), Some(&settings)).map(Some)
}

/// Where each tensor of a batch lies; None where one is not plain or unlike the first.
fn addresses(torch: &Torch, first: &Plain, batch: &Bound<'_, PyAny>) -> Option<Vec<usize>> {
    let address = |item: PyResult<Bound<'_, PyAny>>| {
        let plain = torch.plain(&item.ok()?).filter(|plain| plain.is_like(first))?;
        Some(plain.address)
    };
    batch.try_iter().ok()?.map(address).collect()
}

fn fill(py: Python<'_>, start: usize, row: usize, addresses: &[usize]) {
    py.detach(|| {
        for (number, from) in addresses.iter().enumerate() {
            // SAFETY: the block has room for as many rows, and nobody else knows of it; the tensors of the batch are
            // kept by it, and are not resized while they are collated.
            unsafe { copy::copy(*from as *const u8, (start + number * row) as *mut u8, row) };
        }
        copy::finish();
    });
}
