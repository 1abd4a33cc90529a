//! Numbers and text, to and from their encoding. Text is kept as CPython keeps it: one, two or four bytes a character.

use super::format::*;
use super::memory::Memory;
use super::refusal::Refusal;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyFloat};

/// An exact `int`.
pub(crate) fn put_int(memory: &mut Memory, object: &Bound<'_, PyAny>) -> Result<(), Refusal> {
    let mut overflow = 0;
    // SAFETY: an int, and the GIL is held.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &raw mut overflow) };
    if overflow == 0 {
        return put_i64(memory, value);
    }
    let bits: usize = object.call_method0("bit_length")?.extract()?;
    let settings = pyo3::types::PyDict::new(object.py());
    settings.set_item("signed", true)?;
    let bytes = object.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&settings))?;
    let bytes = bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
    memory.byte(BIG)?;
    memory.length(bytes.len())?;
    memory.put(bytes)
}

fn put_i64(memory: &mut Memory, value: i64) -> Result<(), Refusal> {
    if let Ok(small) = i8::try_from(value) {
        memory.put(&[INT1, small as u8])
    } else if let Ok(small) = i32::try_from(value) {
        memory.byte(INT4)?;
        memory.put(&small.to_ne_bytes())
    } else {
        memory.byte(INT8)?;
        memory.put(&value.to_ne_bytes())
    }
}

/// An exact `str`.
pub(crate) fn put_text(memory: &mut Memory, object: *mut ffi::PyObject) -> Result<(), Refusal> {
    // SAFETY: a str that is alive, and the GIL is held; its data has as many characters of its kind as its length says.
    unsafe {
        ffi::PyUnicode_READY(object);
        let length = ffi::PyUnicode_GET_LENGTH(object) as usize;
        let kind = ffi::PyUnicode_KIND(object) as usize;
        let bytes = std::slice::from_raw_parts(ffi::PyUnicode_DATA(object).cast::<u8>(), length * kind);
        let tag = match kind {
            // Looked at, because since 3.14 pyo3 does not show the flag that says so.
            1 if bytes.is_ascii() => ASCII,
            1 => TEXT1,
            2 => TEXT2,
            _ => TEXT4,
        };
        memory.byte(tag)?;
        memory.length(length)?;
        memory.put(bytes)
    }
}

/// A scalar whose tag was just read; none for other tags.
#[inline]
pub(crate) fn read<'py>(
    py: Python<'py>,
    tag: u8,
    from: &mut Cursor<'_>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let made = |object: *mut ffi::PyObject| {
        // SAFETY: a new reference, or null with an error set.
        unsafe { Bound::from_owned_ptr_or_err(py, object) }
    };
    Ok(Some(match tag {
        ASCII => {
            let text = from.take_text(1)?;
            // SAFETY: a new str with room for as many characters, which nobody else has yet.
            unsafe {
                let object = made(ffi::PyUnicode_New(text.len() as ffi::Py_ssize_t, 127))?;
                std::ptr::copy_nonoverlapping(
                    text.as_ptr(),
                    ffi::PyUnicode_DATA(object.as_ptr()).cast(),
                    text.len(),
                );
                object
            }
        }
        TEXT1 | TEXT2 | TEXT4 => {
            let kind = match tag {
                TEXT1 => 1,
                TEXT2 => 2,
                _ => 4,
            };
            let text = from.take_text(kind)?;
            let length = (text.len() / kind) as ffi::Py_ssize_t;
            // SAFETY: as many characters as the length says.
            made(unsafe { ffi::PyUnicode_FromKindAndData(kind as i32, text.as_ptr().cast(), length) })?
        }
        INT1 => int(py, i64::from(from.byte()? as i8))?,
        INT4 => int(py, i64::from(from.small()? as i32))?,
        INT8 => int(py, from.word()? as i64)?,
        FLOAT => PyFloat::new(py, f64::from_bits(from.word()?)).into_any(),
        NONE => py.None().into_bound(py),
        FALSE | TRUE => pyo3::types::PyBool::new(py, tag == TRUE).to_owned().into_any(),
        BYTES => {
            let length = from.length()?;
            PyBytes::new(py, from.take(length)?).into_any()
        }
        COMPLEX => {
            PyComplex::from_doubles(py, f64::from_bits(from.word()?), f64::from_bits(from.word()?)).into_any()
        }
        BIG => {
            let length = from.length()?;
            let bytes = PyBytes::new(py, from.take(length)?);
            let settings = pyo3::types::PyDict::new(py);
            settings.set_item("signed", true)?;
            py.get_type::<pyo3::types::PyInt>().call_method(
                "from_bytes",
                (bytes, "little"),
                Some(&settings),
            )?
        }
        _ => return Ok(None),
    }))
}

pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    Ok(value.into_pyobject(py)?.into_any())
}

impl<'a> Cursor<'a> {
    #[inline]
    fn take_text(&mut self, kind: usize) -> PyResult<&'a [u8]> {
        let length = self.length()?;
        self.take(length.checked_mul(kind).ok_or_else(damaged)?)
    }
}
