//! An object, written once into a sealed memfd.
//!
//! Rows go one after the other as the object is walked; nothing is collected beforehand. Where a guess fails (a list
//! of one shape that is not, records of other keys) what was written of it is taken back and written otherwise. The
//! surprises: code of the object's own can run meanwhile (a property of a dataclass, a signal handler), so that what
//! is walked is held and counted again; and walking a large heap waits for memory, so that objects are fetched ahead.

use super::ahead::{ahead, AHEAD};
use super::format::*;
use super::keys::canonical_key;
use super::memory::Memory;
use super::numpy::Numpy;
use super::pages::Pages;
use super::refusal::Refusal;
use super::scalar::{put_int, put_text};
use super::tables::{seam, Written};
use crate::thread_end::call;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::collections::HashMap;

/// Deeper nesting is taken for a mistake.
const DEPTH: usize = 200;
/// Lists up to this length have an index of four bytes an item, if their rows are near enough.
const NARROW: usize = 4096;
/// Items between two looks for Ctrl-C.
pub(super) const PATIENCE: usize = 1 << 16;
/// Leaves from this size on are written once, however often they are met.
const ONCE: usize = 1024;

pub(super) type Packed = Result<(), Refusal>;
/// Number of a class in the tables, and names of its fields.
type Class = (usize, Vec<Py<PyString>>);

pub(super) struct Packer<'py> {
    pub(super) py: Python<'py>,
    pub(super) memory: Memory,
    pub(super) written: Written,
    pub(super) numpy: Option<Numpy>,
    /// Containers that are being written, outermost first.
    open: Vec<*mut ffi::PyObject>,
    /// Where objects are that may be met again, and what keeps them: an address must not be used anew.
    known: HashMap<usize, usize>,
    retained: Vec<(Py<PyAny>, usize)>,
    /// First key and number of keys, and where such records were last found in the tables.
    schemas: HashMap<(usize, usize), usize>,
    classes: HashMap<usize, Option<Class>>,
    pub(super) dtypes: HashMap<usize, usize>,
}

/// Packs a list, tuple, dict, array or tensor, with all that is in it.
#[pyfunction]
pub(crate) fn pack(py: Python<'_>, object: &Bound<'_, PyAny>, name: &str) -> PyResult<(Pages, usize)> {
    let packed = (|| {
        let mut packer = Packer {
            py,
            memory: Memory::new()?,
            written: Written::default(),
            numpy: Numpy::find(py)?,
            open: Vec::new(),
            known: HashMap::new(),
            retained: Vec::new(),
            schemas: HashMap::new(),
            classes: HashMap::new(),
            dtypes: HashMap::new(),
        };
        packer.memory.room(HEADER)?;
        let root = packer.memory.end();
        // The object itself comes back as a view, however small it is.
        if object.is_exact_instance_of::<PyDict>() {
            packer.container(object, |packer| packer.entries(object))?;
        } else if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            packer.container(object, |packer| packer.tuple_rows(tuple))?;
        } else {
            packer.value(object)?;
        }
        Ok((packer.finish()?, root))
    })();
    packed.map_err(|refusal: Refusal| refusal.into_error(py, name))
}

impl<'py> Packer<'py> {
    fn finish(mut self) -> Result<Pages, Refusal> {
        let tables = self.written.pickled(self.py)?;
        let at = self.memory.end();
        self.memory.put(tables.as_bytes())?;
        let all = self.memory.end();
        self.memory.set(0, &MAGIC);
        for (number, word) in [all, at, tables.as_bytes().len()].into_iter().enumerate() {
            self.memory.set(8 * (number + 1), &(word as u64).to_ne_bytes());
        }
        Ok(Pages::of(self.py, self.memory.finish()?)?)
    }

    fn value(&mut self, object: &Bound<'py, PyAny>) -> Packed {
        if object.is_exact_instance_of::<PyString>() {
            return self.once(object, |this| put_text(&mut this.memory, object.as_ptr()));
        }
        if object.is_exact_instance_of::<PyInt>() {
            return put_int(&mut self.memory, object);
        }
        if object.is_exact_instance_of::<PyFloat>() {
            self.memory.byte(FLOAT)?;
            return self.memory.put(&object.extract::<f64>()?.to_bits().to_ne_bytes());
        }
        if object.is_exact_instance_of::<PyDict>() {
            return self.container(
                object,
                |this| {
                    if this.record(object)? {
                        Ok(())
                    } else {
                        this.entries(object)
                    }
                },
            );
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            return self.container(object, |this| {
                if this.uniform(list)? {
                    Ok(())
                } else {
                    this.rows(LIST, object, &|at| list.get_item(at).ok(), &|| list.len())
                }
            });
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return self.container(object, |this| this.tuple(tuple));
        }
        if object.is_none() {
            return self.memory.byte(NONE);
        }
        if let Ok(truth) = object.cast_exact::<pyo3::types::PyBool>() {
            return self.memory.byte(if truth.is_true() { TRUE } else { FALSE });
        }
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return self.once(object, |this| {
                this.memory.byte(BYTES)?;
                this.memory.length(bytes.as_bytes().len())?;
                this.memory.put(bytes.as_bytes())
            });
        }
        if let Ok(complex) = object.cast_exact::<PyComplex>() {
            use pyo3::types::PyComplexMethods;
            self.memory.byte(COMPLEX)?;
            self.memory.put(&complex.real().to_bits().to_ne_bytes())?;
            return self.memory.put(&complex.imag().to_bits().to_ne_bytes());
        }
        self.other(object)
    }

    fn other(&mut self, object: &Bound<'py, PyAny>) -> Packed {
        if self.numpy.as_ref().is_some_and(|numpy| numpy.is_array(object)) {
            return self.once(object, |this| this.array(object));
        }
        if self.numpy.as_ref().is_some_and(|numpy| numpy.is_scalar(object)) {
            let dtype = self.dtype(&object.getattr("dtype")?)?;
            let bytes = object.call_method0("tobytes")?;
            self.memory.byte(SCALAR)?;
            self.memory.length(dtype)?;
            return self.memory.put(bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes());
        }
        if self.tensor_written(object)? {
            return Ok(());
        }
        if let Some((class, names)) = self.class(&object.get_type())? {
            return self.container(object, |this| {
                this.memory.byte(OBJECT)?;
                this.memory.length(class)?;
                for name in names {
                    let name = name.bind(this.py);
                    let inside = |refusal: Refusal| refusal.inside(|| format!(".{name}"));
                    this.value(&object.getattr(name)?).map_err(inside)?;
                }
                Ok(())
            });
        }
        let advice: String = call(seam(self.py)?.advise.bind(self.py), (object,))?.extract()?;
        Err(Refusal::says(advice))
    }

    /// A leaf that may be large.
    pub(super) fn once(
        &mut self,
        object: &Bound<'py, PyAny>,
        write: impl FnOnce(&mut Self) -> Packed,
    ) -> Packed {
        let start = self.memory.end();
        if self.wrote_before(object)? {
            return Ok(());
        }
        write(self)?;
        if self.memory.end() - start >= ONCE && is_elsewhere(object) {
            self.remember(object, start);
        }
        Ok(())
    }

    fn container(&mut self, object: &Bound<'py, PyAny>, write: impl FnOnce(&mut Self) -> Packed) -> Packed {
        let start = self.memory.end();
        if self.wrote_before(object)? {
            return Ok(());
        }
        if self.open.contains(&object.as_ptr()) {
            return Err(Refusal::says("it contains itself; a shared object must be a tree"));
        }
        if self.open.len() >= DEPTH {
            return Err(Refusal::says(format!("it is nested deeper than {DEPTH} levels")));
        }
        self.open.push(object.as_ptr());
        let done = write(self);
        self.open.pop();
        done?;
        if is_elsewhere(object) {
            self.remember(object, start);
        }
        Ok(())
    }

    fn remember(&mut self, object: &Bound<'py, PyAny>, at: usize) {
        self.known.insert(object.as_ptr() as usize, at);
        self.retained.push((object.clone().unbind(), at));
    }

    fn wrote_before(&mut self, object: &Bound<'py, PyAny>) -> Result<bool, Refusal> {
        if !is_elsewhere(object) {
            return Ok(false);
        }
        let Some(at) = self.known.get(&(object.as_ptr() as usize)).copied() else { return Ok(false) };
        self.memory.byte(SAME)?;
        self.memory.put(&(at as u64).to_ne_bytes())?;
        Ok(true)
    }

    /// Forgets all that was written from `at` on.
    pub(super) fn rewind(&mut self, at: usize) {
        self.memory.rewind(at);
        while let Some((object, _)) = self.retained.pop_if(|(_, place)| *place >= at) {
            self.known.remove(&(object.as_ptr() as usize));
        }
    }

    fn tuple(&mut self, tuple: &Bound<'py, PyTuple>) -> Packed {
        let length = tuple.len();
        if length > AT_ONCE {
            return self.tuple_rows(tuple);
        }
        self.memory.byte(TUPLE)?;
        self.memory.length(length)?;
        for (at, item) in tuple.iter().enumerate() {
            self.value(&item).map_err(|refusal| refusal.inside(|| format!("[{at}]")))?;
        }
        Ok(())
    }

    fn tuple_rows(&mut self, tuple: &Bound<'py, PyTuple>) -> Packed {
        self.rows(LONG_TUPLE, tuple.as_any(), &|at| tuple.get_item(at).ok(), &|| tuple.len())
    }

    fn rows(
        &mut self,
        tag: u8,
        object: &Bound<'py, PyAny>,
        item: &dyn Fn(usize) -> Option<Bound<'py, PyAny>>,
        length: &dyn Fn() -> usize,
    ) -> Packed {
        let (start, count) = (self.memory.end(), length());
        let mut wide = count > NARROW;
        'again: loop {
            let width = if wide { 8 } else { 4 };
            self.memory.put(&[tag, width])?;
            self.memory.align(8)?;
            let head = self.memory.end();
            self.memory.word(0)?;
            self.memory.word(count)?;
            let index = self.memory.end();
            self.memory
                .room(count.checked_mul(width.into()).ok_or_else(|| Refusal::says("it is too long"))?)?;
            for at in 0..count {
                let place = self.memory.end() - index;
                if wide {
                    self.memory.set(index + 8 * at, &(place as u64).to_ne_bytes());
                } else if let Ok(near) = u32::try_from(place) {
                    self.memory.set(index + 4 * at, &near.to_ne_bytes());
                } else {
                    self.rewind(start);
                    wide = true;
                    continue 'again;
                }
                if at % PATIENCE == PATIENCE - 1 {
                    self.py.check_signals()?;
                }
                if count > AHEAD[0] {
                    ahead(object, at, count);
                }
                let found = item(at).ok_or_else(changed)?;
                self.value(&found).map_err(|refusal| refusal.inside(|| format!("[{at}]")))?;
            }
            if length() != count {
                return Err(changed());
            }
            let end = self.memory.end() as u64;
            self.memory.set(head, &end.to_ne_bytes());
            return Ok(());
        }
    }

    /// A dict of a few strings, by its keys in the tables; false where it is not one.
    fn record(&mut self, object: &Bound<'py, PyAny>) -> Result<bool, Refusal> {
        let dict = object.cast::<PyDict>().map_err(PyErr::from)?;
        let (start, count) = (self.memory.end(), dict.len());
        let Some((first, _)) = next(dict, &mut 0) else { return Ok(false) };
        if count > AT_ONCE {
            return Ok(false);
        }
        let seen = (first.as_ptr() as usize, count);
        let mut guess = self.schemas.get(&seen).copied();
        loop {
            let schema = match guess {
                Some(schema) => schema,
                None => match self.schema(dict)? {
                    Some(schema) => schema,
                    None => return Ok(false),
                },
            };
            self.memory.byte(RECORD)?;
            self.memory.length(schema)?;
            let (mut position, mut done) = (0, 0);
            while let Some((key, value)) = next(dict, &mut position) {
                let expected = self.written.schemas[schema].get(done);
                // The same key is nearly always the same object.
                if expected.is_none_or(|expected| {
                    expected.as_ptr() != key.as_ptr() && !is_same_text(expected.bind(self.py), &key)
                }) {
                    break;
                }
                self.value(&value).map_err(|refusal| refusal.inside(|| shown_key(&key)))?;
                done += 1;
            }
            if dict.len() != count {
                return Err(changed());
            }
            if done == count && done == self.written.schemas[schema].len() {
                self.schemas.insert(seen, schema);
                return Ok(true);
            }
            self.rewind(start);
            if guess.take().is_none() {
                return Err(changed());
            }
        }
    }

    /// Number of a record's keys in the tables; none where one is not a string.
    fn schema(&mut self, dict: &Bound<'py, PyDict>) -> Result<Option<usize>, Refusal> {
        let keys = dict.keys();
        if !keys.iter().all(|key| key.is_exact_instance_of::<PyString>()) {
            return Ok(None);
        }
        let is_like = |schema: &Vec<Py<PyAny>>| {
            schema.len() == keys.len()
                && schema.iter().zip(keys.iter()).all(|(one, other)| is_same_text(one.bind(self.py), &other))
        };
        if let Some(found) = self.written.schemas.iter().position(is_like) {
            return Ok(Some(found));
        }
        if self.written.schemas.len() >= NARROW {
            return Ok(None); // keys that differ from row to row are data
        }
        self.written.schemas.push(keys.iter().map(Bound::unbind).collect());
        Ok(Some(self.written.schemas.len() - 1))
    }

    /// Any other dict: entries, and a table to find them by.
    fn entries(&mut self, object: &Bound<'py, PyAny>) -> Packed {
        let dict = object.cast::<PyDict>().map_err(PyErr::from)?;
        let count = dict.len();
        if count > u32::MAX as usize / 4 {
            return Err(Refusal::says("a dict of more than a billion keys"));
        }
        let slots = (2 * count).next_power_of_two();
        self.memory.byte(DICT)?;
        self.memory.align(8)?;
        let head = self.memory.end();
        for word in [0, count, slots] {
            self.memory.word(word)?;
        }
        let table = self.memory.end();
        self.memory.room(8 * slots)?;
        let index = self.memory.end();
        self.memory.room(8 * count)?;
        let mut filled = vec![0u64; slots];
        let (mut position, mut at) = (0, 0);
        let mut canonical = Vec::new();
        while let Some((key, value)) = next(dict, &mut position) {
            if at == count {
                return Err(changed());
            }
            canonical.clear();
            let inside = |refusal: Refusal| refusal.inside(|| shown_key(&key));
            canonical_key(&key, &mut canonical).map_err(inside)?;
            let place = self.memory.end() as u64;
            self.memory.set(index + 8 * at, &place.to_ne_bytes());
            self.value(&key).map_err(inside)?;
            self.value(&value).map_err(inside)?;
            let hash = hash(&canonical);
            let mut slot = hash as usize & (slots - 1);
            while filled[slot] != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            at += 1;
            filled[slot] = u64::from(hash) << 32 | at as u64;
        }
        if at != count || dict.len() != count {
            return Err(changed());
        }
        for (slot, word) in filled.iter().enumerate() {
            self.memory.set(table + 8 * slot, &word.to_ne_bytes());
        }
        let end = self.memory.end() as u64;
        self.memory.set(head, &end.to_ne_bytes());
        Ok(())
    }

    fn class(&mut self, class: &Bound<'py, PyType>) -> Result<Option<Class>, Refusal> {
        let key = class.as_ptr() as usize;
        if !self.classes.contains_key(&key) {
            let described = call(seam(self.py)?.describe.bind(self.py), (class,))?;
            let described: Option<Vec<Py<PyString>>> = match described.extract::<String>() {
                Ok(advice) => return Err(Refusal::says(advice)),
                Err(_) => described.extract()?,
            };
            let entry = described.map(|names| {
                self.written.classes.push(class.clone().into_any().unbind());
                (self.written.classes.len() - 1, names)
            });
            self.classes.insert(key, entry);
        }
        let found = self.classes.get(&key).and_then(Option::as_ref);
        Ok(found.map(|(number, names)| (*number, names.iter().map(|name| name.clone_ref(self.py)).collect())))
    }
}

/// May be met again: one reference is the container's that has it, one is held here.
fn is_elsewhere(object: &Bound<'_, PyAny>) -> bool {
    object.get_refcnt() > 2
}

pub(super) fn changed() -> Refusal {
    Refusal::says("it was changed while it was packed; share it before others write to it")
}

fn shown_key(key: &Bound<'_, PyAny>) -> String {
    let shown = if let Ok(text) = key.cast_exact::<PyString>() {
        format!("\"{text}\"")
    } else {
        key.repr().map_or_else(|_| "?".into(), |text| text.to_string())
    };
    format!("[{shown}]")
}

fn is_same_text(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> bool {
    other.is_exact_instance_of::<PyString>() && one.eq(other).unwrap_or(false)
}

/// The next entry of a dict, held.
#[inline]
fn next<'py>(
    dict: &Bound<'py, PyDict>,
    position: &mut ffi::Py_ssize_t,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a dict that is alive, and the GIL is held; what it hands out is held before anything else runs.
    unsafe {
        if ffi::PyDict_Next(dict.as_ptr(), position, &raw mut key, &raw mut value) == 0 {
            return None;
        }
        Some((Bound::from_borrowed_ptr(dict.py(), key), Bound::from_borrowed_ptr(dict.py(), value)))
    }
}
