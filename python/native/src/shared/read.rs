//! Values of a shared object, as Python sees them.
//!
//! Scalars, short tuples and records are made anew; lists, long tuples and other dicts are views; arrays and tensors
//! lie in the pages themselves. Asked for `plain` ones, everything is copied out.

use super::dict::SharedDict;
use super::format::*;
use super::list::SharedList;
use super::numpy::{bytes_of, Numpy};
use super::pages::Pages;
use super::scalar;
use super::tables::seam;
use crate::dlpack;
use crate::once::SetOnce;
use crate::piece::Piece;
use crate::thread_end::call;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// The value at the cursor, which is behind it afterwards.
pub(crate) fn value<'py>(
    pages: &Bound<'py, Pages>,
    from: &mut Cursor<'_>,
    plain: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = pages.py();
    let start = from.at;
    let tag = from.byte()?;
    if let Some(scalar) = scalar::read(py, tag, from)? {
        return Ok(scalar);
    }
    match tag {
        RECORD => record(pages, from, plain),
        TUPLE => {
            let count = from.length()?;
            let mut items = Vec::with_capacity(count.min(AT_ONCE));
            for _ in 0..count {
                items.push(value(pages, from, plain)?);
            }
            Ok(PyTuple::new(py, items)?.into_any())
        }
        LIST | LONG_TUPLE | INTS | FLOATS | STACK => {
            let list = SharedList::at(pages, start)?;
            from.at = list.end();
            if plain {
                list.copied(py)
            } else {
                Ok(Bound::new(py, list)?.into_any())
            }
        }
        DICT => {
            let dict = SharedDict::at(pages, start)?;
            from.at = dict.end();
            if plain {
                Ok(dict.copied(py)?.into_any())
            } else {
                Ok(Bound::new(py, dict)?.into_any())
            }
        }
        ARRAY | TENSOR => {
            let shape = Shape::read(pages.get(), tag, from)?;
            from.at = array_start(from.at, shape.nbytes);
            let at = from.at;
            from.take(shape.nbytes)?;
            shape.over(pages, at, plain)
        }
        SCALAR => {
            let (dtype, size) = pages.get().tables.dtypes.get(from.length()?).ok_or_else(damaged)?;
            let bytes = PyBytes::new(py, from.take(*size)?);
            let array = call(&numpy(py)?.getattr("frombuffer")?, (bytes, dtype.bind(py)))?;
            array.get_item(0)
        }
        OBJECT => {
            let class = pages.get().tables.classes.get(from.length()?).ok_or_else(damaged)?.bind(py);
            let described = call(seam(py)?.describe.bind(py), (class,))?;
            let count = described.len()?;
            let mut values = Vec::with_capacity(count);
            for _ in 0..count {
                values.push(value(pages, from, plain)?);
            }
            call(seam(py)?.make.bind(py), (class, described, values, plain))
        }
        SAME => {
            let at = from.size()?;
            // Only what was written before, so that a forged one is no endless circle.
            if at >= start {
                return Err(damaged());
            }
            value(pages, &mut pages.get().cursor(at), plain)
        }
        _ => Err(damaged()),
    }
}

fn record<'py>(pages: &Bound<'py, Pages>, from: &mut Cursor<'_>, plain: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = pages.py();
    let keys = pages.get().tables.schemas.get(from.length()?).ok_or_else(damaged)?;
    let made = if plain { PyDict::new(py).into_any() } else { new_record(py)? };
    for key in keys {
        let value = value(pages, from, plain)?;
        // SAFETY: a dict or a subclass of it; its own mutators raise.
        if unsafe { ffi::PyDict_SetItem(made.as_ptr(), key.as_ptr(), value.as_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(made)
}

fn new_record(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let kind = seam(py)?.record.as_ptr().cast::<ffi::PyTypeObject>();
    // SAFETY: a subclass of dict, whose `__new__` is dict's own (checked by the tests of `ullage._share`).
    unsafe {
        let new = ffi::PyDict_Type.tp_new.ok_or_else(damaged)?;
        Bound::from_owned_ptr_or_err(py, new(kind, PyTuple::empty(py).as_ptr(), std::ptr::null_mut()))
    }
}

pub(crate) fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static NUMPY: SetOnce<Py<PyAny>> = SetOnce::new();
    Ok(NUMPY.get_or_try_init(|| py.import("numpy").map(|numpy| numpy.into_any().unbind()))?.bind(py).clone())
}

/// What an array or tensor is, but for its bytes.
pub(crate) struct Shape {
    tag: u8,
    number: usize,
    sizes: Vec<i64>,
    pub(crate) nbytes: usize,
}

impl Shape {
    pub(crate) fn read(pages: &Pages, tag: u8, from: &mut Cursor<'_>) -> PyResult<Shape> {
        let number = from.length()?;
        let itemsize = match tag {
            ARRAY => pages.tables.dtypes.get(number).ok_or_else(damaged)?.1,
            TENSOR => pages.tables.kinds.get(number).ok_or_else(damaged)?.1,
            _ => return Err(damaged()),
        };
        let dimensions = from.length()?;
        let mut sizes = Vec::with_capacity(dimensions.min(AT_ONCE));
        for _ in 0..dimensions {
            sizes.push(i64::try_from(from.length()?).map_err(|_| damaged())?);
        }
        let nbytes = bytes_of(sizes.iter().map(|size| *size as usize), itemsize)?;
        Ok(Shape { tag, number, sizes, nbytes })
    }

    /// An array or tensor whose bytes are at a place (checked by the caller).
    pub(crate) fn over<'py>(
        &self,
        pages: &Bound<'py, Pages>,
        at: usize,
        plain: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pages.py();
        let this = pages.get();
        if this.bytes().get(at..at + self.nbytes).is_none() {
            return Err(damaged());
        }
        let piece =
            || this.piece.get_or_try_init(|| Py::new(py, Piece::of(this.keep(), 0, this.keep().len())));
        if self.tag == ARRAY {
            static NDARRAY: SetOnce<Py<PyAny>> = SetOnce::new();
            let ndarray = NDARRAY.get_or_try_init(|| Numpy::import(py).map(|numpy| numpy.ndarray))?;
            let dtype = &this.tables.dtypes[self.number].0;
            let shape = PyTuple::new(py, &self.sizes)?;
            let array = call(ndarray.bind(py), (shape, dtype, piece()?, at))?;
            return if plain { array.call_method0("copy") } else { Ok(array) };
        }
        let (name, _, dtype) = &this.tables.kinds[self.number];
        if dlpack::torch(py).is_none() {
            py.import("ullage.torch")?;
        }
        let tensor = match (dlpack::torch(py), dtype) {
            (Some(torch), Some(dtype)) if self.nbytes > 0 && self.sizes.len() <= dlpack::DIMENSIONS => {
                // SAFETY: inside the pages (checked above), which are kept.
                let address = unsafe { this.keep().address().add(at) };
                torch.tensor(py, this.keep(), address, *dtype, &self.sizes)?
            }
            _ => {
                let shape = PyTuple::new(py, &self.sizes)?;
                call(seam(py)?.tensor_over.bind(py), (piece()?, at, name, shape))?
            }
        };
        if plain {
            tensor.call_method0("clone")
        } else {
            Ok(tensor)
        }
    }
}
