//! A shared list or tuple: a read-only sequence, whose items are made when they are asked for.

use super::format::*;
use super::keys::is_same;
use super::pages::Pages;
use super::read::{self, Shape};
use super::scalar;
use super::tables::seam;
use crate::thread_end::call;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyFloat, PyList, PySlice, PyTuple};

/// Items that `repr` shows of a longer one.
const SHOWN: usize = 6;

/// Where the items are.
enum Items {
    Rows { index: usize, wide: bool },
    Ints { data: usize },
    Floats { data: usize },
    Stack { data: usize, shape: Shape },
}

/// A read-only sequence over shared pages.
#[pyclass(frozen, weakref, sequence, module = "ullage._native")]
pub(crate) struct SharedList {
    pages: Py<Pages>,
    at: usize,
    end: usize,
    items: Items,
    is_tuple: bool,
    count: usize,
    first: isize,
    step: isize,
    length: usize,
}

impl SharedList {
    /// The whole list at a place.
    pub(crate) fn at(pages: &Bound<'_, Pages>, at: usize) -> PyResult<SharedList> {
        let this = pages.get();
        let mut from = this.cursor(at);
        let tag = from.byte()?;
        let (items, count, end) = match tag {
            LIST | LONG_TUPLE => {
                let wide = from.byte()? == 8;
                from.align(8);
                let (end, count) = (from.size()?, from.size()?);
                let index = from.at;
                from.take(count.checked_mul(if wide { 8 } else { 4 }).ok_or_else(damaged)?)?;
                (Items::Rows { index, wide }, count, end)
            }
            INTS | FLOATS => {
                let count = from.length()?;
                from.align(8);
                let data = from.at;
                from.take(count.checked_mul(8).ok_or_else(damaged)?)?;
                (if tag == INTS { Items::Ints { data } } else { Items::Floats { data } }, count, from.at)
            }
            STACK => {
                let kind = from.byte()?;
                let shape = Shape::read(this, kind, &mut from)?;
                let count = from.length()?;
                from.align(64);
                let data = from.at;
                from.take(count.checked_mul(shape.nbytes).ok_or_else(damaged)?)?;
                (Items::Stack { data, shape }, count, from.at)
            }
            _ => return Err(damaged()),
        };
        let pages = pages.clone().unbind();
        let is_tuple = tag == LONG_TUPLE;
        Ok(SharedList { pages, at, end, items, is_tuple, count, first: 0, step: 1, length: count })
    }

    /// Some items of the list at a place.
    pub(crate) fn part(
        pages: &Bound<'_, Pages>,
        at: usize,
        first: isize,
        step: isize,
        length: usize,
    ) -> PyResult<SharedList> {
        let whole = SharedList::at(pages, at)?;
        let last =
            (length as isize).checked_sub(1).and_then(|last| last.checked_mul(step)?.checked_add(first));
        let is_inside =
            |item: Option<isize>| item.is_some_and(|item| 0 <= item && (item as usize) < whole.count);
        if length > 0 && !(is_inside(Some(first)) && is_inside(last)) {
            return Err(damaged());
        }
        Ok(SharedList { first, step, length, ..whole })
    }

    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// A list or tuple of plain objects.
    pub(crate) fn copied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let items = (0..self.length).map(|at| self.item(py, at, true)).collect::<PyResult<Vec<_>>>()?;
        if self.is_tuple {
            return Ok(PyTuple::new(py, items)?.into_any());
        }
        Ok(PyList::new(py, items)?.into_any())
    }

    /// Where the row of an item begins.
    #[inline]
    fn row(&self, pages: &Pages, index: usize, wide: bool, item: usize) -> PyResult<usize> {
        let place = if wide {
            pages.cursor(index + 8 * item).size()?
        } else {
            pages.cursor(index + 4 * item).small()? as usize
        };
        index.checked_add(place).ok_or_else(damaged)
    }

    #[inline]
    fn item<'py>(&self, py: Python<'py>, at: usize, plain: bool) -> PyResult<Bound<'py, PyAny>> {
        let item = (self.first + self.step * at as isize) as usize;
        let bound = self.pages.bind(py);
        let pages = bound.get();
        match &self.items {
            Items::Rows { index, wide } => {
                let row = self.row(pages, *index, *wide, item)?;
                read::value(bound, &mut pages.cursor(row), plain)
            }
            Items::Ints { data } => scalar::int(py, pages.cursor(data + 8 * item).word()? as i64),
            Items::Floats { data } => {
                Ok(PyFloat::new(py, f64::from_bits(pages.cursor(data + 8 * item).word()?)).into_any())
            }
            Items::Stack { data, shape } => shape.over(bound, data + item * shape.nbytes, plain),
        }
    }

    fn position(&self, at: isize) -> PyResult<usize> {
        let position = if at < 0 { at + self.length as isize } else { at };
        if position < 0 || position as usize >= self.length {
            return Err(PyIndexError::new_err("index out of range of a shared list"));
        }
        Ok(position as usize)
    }

    /// First place, if any, of an item that equals a value.
    fn find(&self, value: &Bound<'_, PyAny>, from: usize, to: usize) -> PyResult<Option<usize>> {
        for at in from..to.min(self.length) {
            if is_same(&self.item(value.py(), at, false)?, value)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

#[pymethods]
impl SharedList {
    fn __len__(&self) -> usize {
        self.length
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(at) = at.extract::<isize>() {
            return self.item(py, self.position(at)?, false);
        }
        let Ok(slice) = at.cast::<PySlice>() else {
            let kind = at.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "indices of a shared list are integers or slices, not {kind}"
            )));
        };
        let some = slice.indices(self.length as isize)?;
        let (first, step) = (self.first + self.step * some.start, self.step * some.step);
        let part = SharedList::part(self.pages.bind(py), self.at, first, step, some.slicelength)?;
        Ok(Bound::new(py, part)?.into_any())
    }

    /// Items at several places, as a list: for a DataLoader, which asks for a whole batch at once.
    fn __getitems__<'py>(&self, py: Python<'py>, places: Vec<isize>) -> PyResult<Bound<'py, PyList>> {
        let places = places.into_iter().map(|at| self.position(at)).collect::<PyResult<Vec<_>>>()?;
        if let Items::Rows { index, wide } = &self.items {
            // All rows are asked of memory before the first is waited for.
            let pages = self.pages.bind(py).get();
            for at in &places {
                let row = self.row(pages, *index, *wide, (self.first + self.step * *at as isize) as usize)?;
                super::ahead::prefetch(pages.bytes().as_ptr().wrapping_add(row));
                super::ahead::prefetch(pages.bytes().as_ptr().wrapping_add(row + 64));
            }
        }
        let items = places.into_iter().map(|at| self.item(py, at, false)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, items)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Iterator {
        Iterator { list: slf.unbind(), at: 0, back: false }
    }

    fn __reversed__(slf: Bound<'_, Self>) -> Iterator {
        let at = slf.get().length;
        Iterator { list: slf.unbind(), at, back: true }
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(value, 0, self.length)?.is_some())
    }

    #[pyo3(signature = (value, start=0, stop=isize::MAX))]
    fn index(&self, value: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<usize> {
        let clamp = |at: isize| if at < 0 { (at + self.length as isize).max(0) } else { at } as usize;
        let found = self.find(value, clamp(start), clamp(stop))?;
        found.ok_or_else(|| PyValueError::new_err("the value is not in the shared list"))
    }

    fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut count = 0;
        for at in 0..self.length {
            count += usize::from(is_same(&self.item(value.py(), at, false)?, value)?);
        }
        Ok(count)
    }

    /// As a list with a list, as a tuple with a tuple, and with what is shared as these.
    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let not_implemented = || Ok(py.NotImplemented().into_bound(py));
        if !matches!(op, CompareOp::Eq | CompareOp::Ne) {
            return not_implemented();
        }
        let shared = other.cast::<SharedList>().ok();
        let is_kind = match shared {
            Some(shared) => shared.get().is_tuple == self.is_tuple,
            None if self.is_tuple => other.is_instance_of::<PyTuple>(),
            None => other.is_instance_of::<PyList>(),
        };
        if !is_kind {
            return not_implemented();
        }
        let mut is_equal = other.len()? == self.length;
        for at in 0..self.length {
            if !is_equal {
                break;
            }
            is_equal = is_same(&self.item(py, at, false)?, &other.get_item(at)?)?;
        }
        let answer = is_equal == matches!(op, CompareOp::Eq);
        Ok(pyo3::types::PyBool::new(py, answer).to_owned().into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = (0..self.length.min(SHOWN))
            .map(|at| Ok(self.item(py, at, false)?.repr()?.to_string()))
            .collect::<PyResult<Vec<_>>>()?;
        let (open, close) = if self.is_tuple { ("(", ")") } else { ("[", "]") };
        let more = if self.length > SHOWN { format!(", ... {} items", self.length) } else { String::new() };
        Ok(format!("shared({open}{}{more}{close})", shown.join(", ")))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let py = slf.py();
        call(seam(py)?.reduce.bind(py), (&this.pages, this.at, this.first, this.step, this.length))
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

    /// A copy in plain lists, dicts, arrays and tensors.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copied(py)
    }
}

/// Goes through a shared list.
#[pyclass(module = "ullage._native")]
pub(crate) struct Iterator {
    list: Py<SharedList>,
    at: usize,
    back: bool,
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let list = self.list.get();
        if self.back {
            if self.at == 0 {
                return Ok(None);
            }
            self.at -= 1;
            return list.item(py, self.at, false).map(Some);
        }
        if self.at >= list.length {
            return Ok(None);
        }
        self.at += 1;
        list.item(py, self.at - 1, false).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        if self.back {
            self.at
        } else {
            self.list.get().length - self.at.min(self.list.get().length)
        }
    }
}
