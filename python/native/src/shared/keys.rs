//! Which keys of a dict are one key, and which items of a list are the one that is looked for?

use super::format::*;
use super::refusal::Refusal;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Bytes that are the same for keys that are equal: 1, 1.0 and True are one key.
pub(crate) fn canonical_key(key: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> Result<(), Refusal> {
    if let Ok(text) = key.cast::<PyString>() {
        to.push(ASCII);
        // As `str` allows: a lone surrogate has no UTF-8.
        match text.to_str() {
            Ok(text) => to.extend_from_slice(text.as_bytes()),
            Err(_) => {
                let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
                to.extend_from_slice(bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes());
            }
        }
        to.push(0xff);
    } else if let Ok(number) = key.cast::<PyInt>() {
        to.push(INT8);
        match number.extract::<i64>() {
            Ok(small) => to.extend_from_slice(&small.to_ne_bytes()),
            Err(_) => to.extend_from_slice(number.str()?.to_string().as_bytes()),
        }
    } else if let Ok(float) = key.cast::<PyFloat>() {
        if float.call_method0("is_integer")?.is_truthy()? {
            return canonical_key(&float.call_method0("__int__")?, to);
        }
        to.push(FLOAT);
        to.extend_from_slice(&float.value().to_bits().to_ne_bytes());
    } else if key.is_none() {
        to.push(NONE);
    } else if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        to.push(BYTES);
        to.extend_from_slice(&bytes.as_bytes().len().to_ne_bytes());
        to.extend_from_slice(bytes.as_bytes());
    } else if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        if tuple.len() > AT_ONCE {
            return Err(Refusal::says(format!("a key of {} items; use a shorter one", tuple.len())));
        }
        to.push(TUPLE);
        to.push(tuple.len() as u8);
        for item in tuple.iter() {
            canonical_key(&item, to)?;
        }
    } else {
        let name = key.get_type().name()?;
        return Err(Refusal::says(format!(
            "a key of type {name}; use str, numbers, bytes, None or tuples of them"
        )));
    }
    Ok(())
}

/// As lists and dicts compare: a nan, of which every access makes another object, is the same as a nan.
pub(crate) fn is_same(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_nan = |value: &Bound<'_, PyAny>| value.cast::<PyFloat>().is_ok_and(|value| value.value().is_nan());
    Ok(one.eq(other)? || is_nan(one) && is_nan(other))
}
