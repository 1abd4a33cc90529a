//! A shared dict: a read-only mapping, whose values are made when they are asked for.
//!
//! The surprise: Python's own hash of a str differs from process to process, so that the table has another one, of
//! bytes that are the same for keys that are equal.

use super::format::*;
use super::keys::{canonical_key, is_same};
use super::pages::Pages;
use super::read;
use super::tables::seam;
use crate::thread_end::call;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A read-only mapping over shared pages.
#[pyclass(frozen, weakref, mapping, module = "ullage._native")]
pub(crate) struct SharedDict {
    pages: Py<Pages>,
    at: usize,
    end: usize,
    count: usize,
    slots: usize,
    table: usize,
    index: usize,
}

impl SharedDict {
    pub(crate) fn at(pages: &Bound<'_, Pages>, at: usize) -> PyResult<SharedDict> {
        let mut from = pages.get().cursor(at);
        if from.byte()? != DICT {
            return Err(damaged());
        }
        from.align(8);
        let (end, count, slots) = (from.size()?, from.size()?, from.size()?);
        let table = from.at;
        from.take(
            slots.checked_mul(8).filter(|_| slots.is_power_of_two() && slots > count).ok_or_else(damaged)?,
        )?;
        let index = from.at;
        from.take(count.checked_mul(8).ok_or_else(damaged)?)?;
        Ok(SharedDict { pages: pages.clone().unbind(), at, end, count, slots, table, index })
    }

    pub(crate) fn end(&self) -> usize {
        self.end
    }

    pub(crate) fn copied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for number in 0..self.count {
            let (key, value) = self.entry(py, number, true)?;
            dict.set_item(key, value)?;
        }
        Ok(dict)
    }

    fn entry<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        plain: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let pages = self.pages.bind(py);
        let mut from = pages.get().cursor(pages.get().cursor(self.index + 8 * number).size()?);
        Ok((read::value(pages, &mut from, plain)?, read::value(pages, &mut from, plain)?))
    }

    fn key<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let pages = self.pages.bind(py);
        let mut from = pages.get().cursor(pages.get().cursor(self.index + 8 * number).size()?);
        read::value(pages, &mut from, false)
    }

    /// Number of the entry with this key.
    fn find(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let py = key.py();
        key.hash()?; // what is unhashable raises, as with any dict
        let mut canonical = Vec::new();
        let mut wanted = key.clone();
        if canonical_key(&wanted, &mut canonical).is_err() {
            // A scalar of numpy, for instance, equals a number.
            canonical.clear();
            let Ok(item) = key.call_method0("item") else { return Ok(None) };
            wanted = item;
            if canonical_key(&wanted, &mut canonical).is_err() {
                return Ok(None);
            }
        }
        let hash = hash(&canonical);
        let mut slot = hash as usize & (self.slots - 1);
        for _ in 0..self.slots {
            let word = self.pages.get().cursor(self.table + 8 * slot).word()?;
            let number = word as u32 as usize;
            if number == 0 || number > self.count {
                return Ok(None);
            }
            if (word >> 32) as u32 == hash && is_same(&self.key(py, number - 1)?, &wanted)? {
                return Ok(Some(number - 1));
            }
            slot = (slot + 1) & (self.slots - 1);
        }
        Ok(None)
    }

    fn view<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        call(&slf.py().import("collections.abc")?.getattr(name)?, (slf,))
    }
}

#[pymethods]
impl SharedDict {
    fn __len__(&self) -> usize {
        self.count
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let number = self.find(key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))?;
        Ok(self.entry(key.py(), number, false)?.1)
    }

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(key)? {
            Some(number) => Ok(Some(self.entry(key.py(), number, false)?.1)),
            None => Ok(default),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(key)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let keys = (0..self.count).map(|number| self.key(py, number)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, keys)?.try_iter()?.into_any().unbind())
    }

    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        SharedDict::view(slf, "KeysView")
    }

    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        SharedDict::view(slf, "ValuesView")
    }

    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        SharedDict::view(slf, "ItemsView")
    }

    fn __eq__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        if !other.is_instance_of::<PyDict>() && !other.is_instance_of::<SharedDict>() {
            return Ok(py.NotImplemented().into_bound(py));
        }
        let mut is_equal = other.len()? == this.count;
        for number in 0..this.count {
            if !is_equal {
                break;
            }
            let (key, value) = this.entry(py, number, false)?;
            is_equal = other.contains(&key)? && is_same(&value, &other.get_item(&key)?)?;
        }
        Ok(pyo3::types::PyBool::new(py, is_equal).to_owned().into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 6;
        let shown = (0..self.count.min(SHOWN))
            .map(|number| {
                let (key, value) = self.entry(py, number, false)?;
                Ok(format!("{}: {}", key.repr()?, value.repr()?))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let more = if self.count > SHOWN { format!(", ... {} entries", self.count) } else { String::new() };
        Ok(format!("shared({{{}{more}}})", shown.join(", ")))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        call(seam(py)?.reduce.bind(py), (&this.pages, this.at))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// Bytes of all that is shared with it.
    #[getter]
    fn nbytes(&self) -> usize {
        self.pages.get().bytes().len()
    }

    /// A copy in plain dicts, lists, arrays and tensors.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.copied(py)
    }
}
