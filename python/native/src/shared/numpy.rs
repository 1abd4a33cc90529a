//! numpy's arrays without numpy's headers: where their bytes are.
//!
//! The fields are numpy's public C ABI (ndarraytypes.h, `PyArrayObject_fields`), the same in 1.x and 2.x.

use super::format::damaged;
use crate::thread_end::call;
use pyo3::ffi;
use pyo3::prelude::*;
use std::os::raw::c_int;

const C_CONTIGUOUS: c_int = 1;

#[repr(C)]
struct Fields {
    head: ffi::PyObject,
    data: *mut u8,
    nd: c_int,
    dimensions: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
}

/// The numpy of this process.
pub(crate) struct Numpy {
    pub(crate) ndarray: Py<PyAny>,
    memmap: Py<PyAny>,
    generic: Py<PyAny>,
    contiguous: Py<PyAny>,
}

/// What an array is made of.
pub(crate) struct Array<'a> {
    pub(crate) data: *const u8,
    pub(crate) shape: &'a [isize],
    pub(crate) dtype: *mut ffi::PyObject,
    pub(crate) is_contiguous: bool,
}

impl Array<'_> {
    pub(crate) fn items(&self) -> usize {
        self.shape.iter().product::<isize>() as usize
    }
}

impl Numpy {
    /// None where this program has not imported it.
    pub(crate) fn find(py: Python<'_>) -> PyResult<Option<Numpy>> {
        let modules = py.import("sys")?.getattr("modules")?;
        if !modules.contains("numpy")? {
            return Ok(None);
        }
        Numpy::import(py).map(Some)
    }

    pub(crate) fn import(py: Python<'_>) -> PyResult<Numpy> {
        let numpy = py.import("numpy")?;
        let name = |name: &str| Ok::<_, PyErr>(numpy.getattr(name)?.unbind());
        Ok(Numpy {
            ndarray: name("ndarray")?,
            memmap: name("memmap")?,
            generic: name("generic")?,
            contiguous: name("ascontiguousarray")?,
        })
    }

    /// True for an array, or one in a file; no other subclass, which may mean more than its bytes.
    pub(crate) fn is_array(&self, object: &Bound<'_, PyAny>) -> bool {
        let kind = object.get_type_ptr().cast();
        kind == self.ndarray.as_ptr() || kind == self.memmap.as_ptr()
    }

    pub(crate) fn is_scalar(&self, object: &Bound<'_, PyAny>) -> bool {
        object.is_instance(self.generic.bind(object.py())).unwrap_or(false)
    }

    /// The same array, in C order.
    pub(crate) fn contiguous<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call(self.contiguous.bind(object.py()), (object,))
    }

    /// None for anything but an array.
    pub(crate) fn array<'a>(&self, object: &'a Bound<'_, PyAny>) -> Option<Array<'a>> {
        if !self.is_array(object) {
            return None;
        }
        // SAFETY: an array, whose fields begin as numpy's ABI says; it is alive as long as `object`.
        unsafe {
            let fields = &*object.as_ptr().cast::<Fields>();
            let nd = fields.nd as usize;
            let shape = if nd == 0 { &[][..] } else { std::slice::from_raw_parts(fields.dimensions, nd) };
            Some(Array {
                data: fields.data,
                shape,
                dtype: fields.descr,
                is_contiguous: fields.flags & C_CONTIGUOUS != 0,
            })
        }
    }
}

/// Bytes of so many items of a shape; none may be negative or too large.
pub(crate) fn bytes_of(shape: impl IntoIterator<Item = usize>, itemsize: usize) -> PyResult<usize> {
    shape.into_iter().try_fold(itemsize, usize::checked_mul).ok_or_else(damaged)
}
