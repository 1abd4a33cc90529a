//! What a numpy array holds: the array that it is a view of, and its items where these are objects. numpy's arrays
//! take no part in the collection, so that there is no `tp_traverse` to ask.
//!
//! Asked through the descriptors of `numpy.ndarray` itself: a subclass may answer the same names in Python.

use super::found::Found;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::mem::MaybeUninit;

pub(super) struct Arrays<'py> {
    array: Bound<'py, PyType>,
    base: Bound<'py, PyAny>,
    dtype: Bound<'py, PyAny>,
    /// The dtype that was met last (kept alive, so that no other can have its address), and what its items are.
    last: Option<(Bound<'py, PyAny>, Items)>,
    /// Arrays of records with fields that are objects. Their items are left out.
    pub(super) records: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Plain,
    Objects,
    Records,
}

impl<'py> Arrays<'py> {
    pub(super) fn new(array: Bound<'py, PyType>) -> PyResult<Self> {
        let names = array.getattr("__dict__")?;
        let (base, dtype) = (names.get_item("base")?, names.get_item("dtype")?);
        for descriptor in [&base, &dtype] {
            // SAFETY: reads a slot of a type.
            if unsafe { (*ffi::Py_TYPE(descriptor.as_ptr())).tp_descr_get }.is_none() {
                return Err(PyRuntimeError::new_err("numpy.ndarray is not as it was known"));
            }
        }
        Ok(Arrays { array, base, dtype, last: None, records: 0 })
    }

    pub(super) fn type_ptr(&self) -> *mut ffi::PyTypeObject {
        self.array.as_type_ptr()
    }

    /// Adds what an array holds to what was found.
    pub(super) fn children(&mut self, object: *mut ffi::PyObject, found: &mut Found) {
        let py = self.array.py();
        let (Some(base), Some(dtype)) = (get(py, &self.base, object), get(py, &self.dtype, object)) else {
            return;
        };
        // The array keeps it alive when the reference to it is dropped.
        found.add(base.as_ptr());
        let items = match &self.last {
            Some((last, items)) if last.is(&dtype) => *items,
            _ => {
                let items = items(&dtype);
                self.last = Some((dtype, items));
                items
            }
        };
        match items {
            Items::Plain => {}
            Items::Objects => self.objects(object, found),
            Items::Records => self.records += 1,
        }
    }

    fn objects(&self, object: *mut ffi::PyObject, found: &mut Found) {
        let py = self.array.py();
        let mut view = MaybeUninit::<ffi::Py_buffer>::uninit();
        // SAFETY: numpy's own function on one of its arrays; the view is read after it succeeded, and released. The items
        // stay where they are without it: an array is resized by Python code only.
        unsafe {
            let Some(buffers) = (*self.type_ptr()).tp_as_buffer.as_ref() else { return };
            let Some(export) = buffers.bf_getbuffer else { return };
            if export(object, view.as_mut_ptr(), ffi::PyBUF_FULL_RO) != 0 {
                let _ = PyErr::take(py);
                return;
            }
            let mut view = view.assume_init();
            if view.itemsize == size_of::<usize>() as isize {
                if ffi::PyBuffer_IsContiguous(&raw const view, b'A' as std::os::raw::c_char) != 0 {
                    found.add_row(view.buf.cast(), (view.len / view.itemsize) as usize);
                } else {
                    let dimensions = usize::try_from(view.ndim).unwrap_or(0);
                    let shape = std::slice::from_raw_parts(view.shape, dimensions);
                    let strides = std::slice::from_raw_parts(view.strides, dimensions);
                    strided(view.buf.cast(), shape, strides, found);
                }
            }
            ffi::PyBuffer_Release(&raw mut view);
        }
    }
}

/// # Safety
/// `at` is the first item of an array of objects with this shape and these strides.
unsafe fn strided(at: *const u8, shape: &[isize], strides: &[isize], found: &mut Found) {
    let (Some((length, shape)), Some((step, strides))) = (shape.split_first(), strides.split_first()) else {
        // SAFETY: the caller's word; records may lie at any address.
        found.add(unsafe { at.cast::<*mut ffi::PyObject>().read_unaligned() });
        return;
    };
    for number in 0..*length {
        // SAFETY: inside of the array, by its own shape.
        unsafe { strided(at.offset(number * step), shape, strides, found) };
    }
}

/// An attribute of an array, by numpy's descriptor.
fn get<'py>(
    py: Python<'py>,
    descriptor: &Bound<'py, PyAny>,
    object: *mut ffi::PyObject,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a descriptor of numpy.ndarray (`new` has seen its slot) and an array; a new reference, or null.
    unsafe {
        let getter = (*ffi::Py_TYPE(descriptor.as_ptr())).tp_descr_get?;
        let value = getter(descriptor.as_ptr(), object, ffi::Py_TYPE(object).cast());
        if value.is_null() {
            let _ = PyErr::take(py);
        }
        Bound::from_owned_ptr_or_opt(py, value)
    }
}

fn items(dtype: &Bound<'_, PyAny>) -> Items {
    let has = dtype.getattr("hasobject").and_then(|has| has.is_truthy());
    if !has.unwrap_or(false) {
        return Items::Plain;
    }
    let kind = dtype.getattr("kind").and_then(|kind| kind.extract::<String>());
    if kind.is_ok_and(|kind| kind == "O") {
        Items::Objects
    } else {
        Items::Records
    }
}
