//! An object, written once into a sealed memfd.
//!
//! Rows go one after the other as the object is walked; nothing is collected beforehand. Where a guess fails (a list
//! of one shape that is not, records of other keys) what was written of it is taken back and written otherwise. The
//! surprises: code of the object's own can run meanwhile (a property of a dataclass, a signal handler), so that what
//! is walked is held and counted again; and walking a large heap waits for memory, so that objects are fetched ahead.

use super::format::*;
use super::memory::Memory;
use super::numpy::Numpy;
use super::pages::Pages;
use super::refusal::Refusal;
use super::scalar::{put_int, put_text};
use super::tables::{seam, Written, PLAIN_KINDS};
use crate::dlpack::{self, Dtype, DIMENSIONS};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::collections::HashMap;

/// Deeper nesting is taken for a mistake.
const DEPTH: usize = 200;
/// Lists up to this length have an index of four bytes an item, if their rows are near enough.
const NARROW: usize = 4096;
/// Items between two looks for Ctrl-C.
const PATIENCE: usize = 1 << 16;
/// Items that are fetched ahead: their heads, what these point to, and what that holds.
const AHEAD: [usize; 3] = [24, 16, 8];
/// Leaves from this size on are written once, however often they are met.
const ONCE: usize = 1024;

type Packed = Result<(), Refusal>;
/// Number of a class in the tables, and names of its fields.
type Class = (usize, Vec<Py<PyString>>);

/// What a tensor is made of.
struct Tensor<'py> {
    kind: usize,
    shape: [i64; DIMENSIONS],
    dimensions: usize,
    address: usize,
    nbytes: usize,
    /// Another tensor, whose bytes these are.
    _kept: Option<Bound<'py, PyAny>>,
}

struct Packer<'py> {
    py: Python<'py>,
    memory: Memory,
    written: Written,
    numpy: Option<Numpy>,
    ordered: Vec<Py<PyAny>>,
    /// Containers that are being written, outermost first.
    open: Vec<*mut ffi::PyObject>,
    /// Where objects are that may be met again, and what keeps them: an address must not be used anew.
    known: HashMap<usize, usize>,
    kept: Vec<(Py<PyAny>, usize)>,
    /// First key and number of keys, and where such records were last found in the tables.
    schemas: HashMap<(usize, usize), usize>,
    classes: HashMap<usize, Option<Class>>,
    dtypes: HashMap<usize, usize>,
}

/// Packs a list, tuple, dict, array or tensor, with all that is in it.
#[pyfunction]
pub(crate) fn pack(py: Python<'_>, object: &Bound<'_, PyAny>, name: &str) -> PyResult<(Pages, usize)> {
    let packed = (|| {
        let collections = py.import("collections")?;
        let ordered =
            ["OrderedDict", "defaultdict"].iter().map(|name| Ok(collections.getattr(*name)?.unbind()));
        let mut packer = Packer {
            py,
            memory: Memory::new()?,
            written: Written::default(),
            numpy: Numpy::find(py)?,
            ordered: ordered.collect::<PyResult<_>>()?,
            open: Vec::new(),
            known: HashMap::new(),
            kept: Vec::new(),
            schemas: HashMap::new(),
            classes: HashMap::new(),
            dtypes: HashMap::new(),
        };
        packer.memory.room(HEADER)?;
        let root = packer.memory.end();
        // The object itself comes back as a view, however small it is.
        if packer.is_dict(object) {
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

    fn is_dict(&self, object: &Bound<'py, PyAny>) -> bool {
        object.is_exact_instance_of::<PyDict>()
            || self.ordered.iter().any(|kind| object.get_type_ptr().cast() == kind.as_ptr())
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
        if self.is_dict(object) {
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
        if let Some(tensor) = self.tensor(object)? {
            return self.once(object, |this| {
                let shape = tensor.shape[..tensor.dimensions].iter().map(|size| *size as usize);
                this.memory.byte(TENSOR)?;
                this.shape(tensor.kind, shape)?;
                // SAFETY: torch said so, and the tensor is held.
                unsafe { this.bytes(tensor.address as *const u8, tensor.nbytes) }
            });
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
        let advice: String = seam(self.py)?.advise.bind(self.py).call1((object,))?.extract()?;
        Err(Refusal::says(advice))
    }

    /// A leaf that may be large.
    fn once(&mut self, object: &Bound<'py, PyAny>, write: impl FnOnce(&mut Self) -> Packed) -> Packed {
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
        self.kept.push((object.clone().unbind(), at));
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
    fn rewind(&mut self, at: usize) {
        self.memory.rewind(at);
        while let Some((object, _)) = self.kept.pop_if(|(_, place)| *place >= at) {
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

    /// A list of ints, of floats, or of arrays or tensors of one shape; false where it is none of them.
    fn uniform(&mut self, list: &Bound<'py, PyList>) -> Result<bool, Refusal> {
        let start = self.memory.end();
        let Ok(first) = list.get_item(0) else { return Ok(false) };
        let is_uniform = if first.is_exact_instance_of::<PyInt>() {
            self.numbers(INTS, list, |item| {
                let mut overflow = 0;
                if !item.is_exact_instance_of::<PyInt>() {
                    return None;
                }
                // SAFETY: an int, and the GIL is held.
                let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(item.as_ptr(), &raw mut overflow) };
                (overflow == 0).then_some(value.to_ne_bytes())
            })?
        } else if first.is_exact_instance_of::<PyFloat>() {
            self.numbers(FLOATS, list, |item| {
                let float = item.cast_exact::<PyFloat>().ok()?;
                Some(float.value().to_bits().to_ne_bytes())
            })?
        } else if list.len() < 2 {
            false
        } else if let Some(tensor) = self.tensor(&first)? {
            self.tensors(list, &tensor)?
        } else {
            self.arrays(list, &first)?
        };
        if !is_uniform {
            self.rewind(start);
        }
        Ok(is_uniform)
    }

    fn numbers(
        &mut self,
        tag: u8,
        list: &Bound<'py, PyList>,
        bits: impl Fn(&Bound<'py, PyAny>) -> Option<[u8; 8]>,
    ) -> Result<bool, Refusal> {
        self.memory.byte(tag)?;
        self.memory.length(list.len())?;
        self.memory.align(8)?;
        for item in list.iter() {
            let Some(bits) = bits(&item) else { return Ok(false) };
            self.memory.put(&bits)?;
        }
        Ok(true)
    }

    fn tensors(&mut self, list: &Bound<'py, PyList>, first: &Tensor<'py>) -> Result<bool, Refusal> {
        let count = list.len();
        let shape = &first.shape[..first.dimensions];
        self.memory.put(&[STACK, TENSOR])?;
        self.shape(first.kind, shape.iter().map(|size| *size as usize))?;
        self.memory.length(count)?;
        self.memory.align(64)?;
        for at in 0..count {
            if at % PATIENCE == PATIENCE - 1 {
                self.py.check_signals()?;
            }
            if count > AHEAD[0] {
                ahead(list.as_any(), at, count);
            }
            let item = list.get_item(at).map_err(|_| changed())?;
            let is_alike = |tensor: &Tensor<'_>| {
                tensor.kind == first.kind && tensor.shape[..tensor.dimensions] == *shape
            };
            match self.tensor(&item).map_err(|refusal| refusal.inside(|| format!("[{at}]")))? {
                Some(tensor) if is_alike(&tensor) => {
                    // SAFETY: torch said so, and the tensor is held.
                    unsafe { self.memory.copy(tensor.address as *const u8, tensor.nbytes)? };
                }
                _ => return Ok(false),
            }
        }
        if list.len() != count {
            return Err(changed());
        }
        Ok(true)
    }

    fn arrays(&mut self, list: &Bound<'py, PyList>, first: &Bound<'py, PyAny>) -> Result<bool, Refusal> {
        let Some(numpy) = &self.numpy else { return Ok(false) };
        let Some(array) = numpy.array(first) else { return Ok(false) };
        let (dtype, count) = (array.dtype, list.len());
        // SAFETY: the array's own dtype; both are held.
        let number = self.dtype(&unsafe { Bound::from_borrowed_ptr(self.py, dtype) })?;
        let nbytes = array.items() * self.written.dtypes[number].1;
        self.memory.put(&[STACK, ARRAY])?;
        self.shape(number, array.shape.iter().map(|size| *size as usize))?;
        self.memory.length(count)?;
        self.memory.align(64)?;
        for item in list.iter() {
            let alike = self.numpy.as_ref().and_then(|numpy| numpy.array(&item));
            let alike =
                alike.filter(|one| one.dtype == dtype && one.shape == array.shape && one.is_contiguous);
            let Some(alike) = alike else { return Ok(false) };
            // SAFETY: numpy said so, and the array is held.
            unsafe { self.memory.copy(alike.data, nbytes)? };
        }
        Ok(true)
    }

    fn array(&mut self, object: &Bound<'py, PyAny>) -> Packed {
        let Some(numpy) = &self.numpy else { return Err(changed()) };
        let mut object = object.clone();
        if numpy.array(&object).is_some_and(|array| !array.is_contiguous) {
            object = numpy.contiguous(&object)?;
        }
        let Some(array) = numpy.array(&object) else { return Err(changed()) };
        // SAFETY: the array's own dtype.
        let dtype = self.dtype(&unsafe { Bound::from_borrowed_ptr(self.py, array.dtype) })?;
        let nbytes = array.items() * self.written.dtypes[dtype].1;
        self.memory.byte(ARRAY)?;
        self.shape(dtype, array.shape.iter().map(|size| *size as usize))?;
        // SAFETY: numpy said so, and the array is held.
        unsafe { self.bytes(array.data, nbytes) }
    }

    fn shape(&mut self, number: usize, shape: impl ExactSizeIterator<Item = usize>) -> Packed {
        self.memory.length(number)?;
        self.memory.length(shape.len())?;
        for size in shape {
            self.memory.length(size)?;
        }
        Ok(())
    }

    /// # Safety
    /// `from` is valid for `nbytes` bytes.
    unsafe fn bytes(&mut self, from: *const u8, nbytes: usize) -> Packed {
        let start = array_start(self.memory.end(), nbytes);
        self.memory.room(start - self.memory.end())?;
        // SAFETY: the caller's.
        unsafe { self.memory.copy(from, nbytes) }
    }

    fn dtype(&mut self, dtype: &Bound<'py, PyAny>) -> Result<usize, Refusal> {
        let key = dtype.as_ptr() as usize;
        if let Some(number) = self.dtypes.get(&key) {
            return Ok(*number);
        }
        if dtype.getattr("hasobject")?.is_truthy()? {
            return Err(Refusal::says(
                "an array of Python objects; use a list, or an array of numbers or of fixed-size strings",
            ));
        }
        let number = self.written.dtypes.len();
        self.written.dtypes.push((dtype.clone().unbind(), dtype.getattr("itemsize")?.extract()?));
        self.dtypes.insert(key, number);
        Ok(number)
    }

    fn class(&mut self, class: &Bound<'py, PyType>) -> Result<Option<Class>, Refusal> {
        let key = class.as_ptr() as usize;
        if !self.classes.contains_key(&key) {
            let described = seam(self.py)?.describe.bind(self.py).call1((class,))?;
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

    /// None for anything but a tensor.
    fn tensor(&mut self, object: &Bound<'py, PyAny>) -> Result<Option<Tensor<'py>>, Refusal> {
        // SAFETY: every object has a type. torch's classes are made by Python, the common builtins are not.
        if unsafe { (*object.get_type_ptr()).tp_flags } & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
            return Ok(None);
        }
        if let Some(plain) = dlpack::torch(self.py).and_then(|torch| torch.plain(object)) {
            let kind = Dtype::ALL.iter().position(|dtype| *dtype == plain.dtype).ok_or_else(damaged)?;
            let mut shape = [0; DIMENSIONS];
            let dimensions = plain.shape().len();
            shape[..dimensions].copy_from_slice(plain.shape());
            let (address, nbytes) = (plain.address, plain.bytes as usize);
            return Ok(Some(Tensor { kind, shape, dimensions, address, nbytes, _kept: None }));
        }
        let parts = seam(self.py)?.tensor_parts.bind(self.py).call1((object,))?;
        if parts.is_none() {
            return Ok(None);
        }
        if let Ok(advice) = parts.extract::<String>() {
            return Err(Refusal::says(advice));
        }
        type Parts<'py> = (Bound<'py, PyAny>, String, usize, Vec<i64>, usize, usize);
        let (kept, name, itemsize, sizes, address, nbytes): Parts<'py> = parts.extract()?;
        if sizes.len() > DIMENSIONS {
            return Err(Refusal::says(format!("a tensor of more than {DIMENSIONS} dimensions")));
        }
        let mut shape = [0; DIMENSIONS];
        shape[..sizes.len()].copy_from_slice(&sizes);
        let kind = self.kind(name, itemsize);
        Ok(Some(Tensor { kind, shape, dimensions: sizes.len(), address, nbytes, _kept: Some(kept) }))
    }

    fn kind(&mut self, name: String, itemsize: usize) -> usize {
        if let Some(plain) = Dtype::ALL.iter().position(|dtype| dtype.name() == Some(&name)) {
            return plain;
        }
        let known = self.written.other_kinds.iter().position(|kind| kind.0 == name);
        PLAIN_KINDS
            + known.unwrap_or_else(|| {
                self.written.other_kinds.push((name, itemsize));
                self.written.other_kinds.len() - 1
            })
    }
}

/// May be met again: one reference is the container's that has it, one is held here.
fn is_elsewhere(object: &Bound<'_, PyAny>) -> bool {
    object.get_refcnt() > 2
}

fn changed() -> Refusal {
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

/// Asks the processor for what items further on are made of. Only hints: a wrong one costs nothing.
#[inline]
fn ahead(list: &Bound<'_, PyAny>, at: usize, count: usize) {
    let item = |at: usize| {
        // SAFETY: a list or tuple that is alive, whose length is asked for at this moment.
        unsafe {
            let list = list.as_ptr();
            if ffi::PyList_CheckExact(list) != 0 {
                (at < ffi::PyList_GET_SIZE(list) as usize).then(|| ffi::PyList_GET_ITEM(list, at as isize))
            } else {
                (at < count).then(|| ffi::PyTuple_GET_ITEM(list, at as isize))
            }
        }
    };
    if let Some(head) = item(at + AHEAD[0]) {
        prefetch(head.cast());
        prefetch(head.cast::<u8>().wrapping_add(32));
    }
    if let Some(near) = item(at + AHEAD[1]) {
        // SAFETY: each object has at least two words; a dict has its keys and values in the fifth and sixth, and what a
        // tensor's object points to is in the third of at least four.
        unsafe {
            let words = near.cast::<*const u8>();
            if ffi::PyDict_CheckExact(near) != 0 {
                let keys = *words.add(4);
                prefetch(keys);
                prefetch(keys.wrapping_add(64));
            } else if (*ffi::Py_TYPE(near)).tp_basicsize >= 32 {
                prefetch(*words.add(2));
            }
        }
    }
    if let Some(next) = item(at + AHEAD[2]) {
        // SAFETY: as in `next`; nothing is kept.
        unsafe {
            if ffi::PyDict_CheckExact(next) != 0 {
                let (mut key, mut value, mut position) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
                for _ in 0..8 {
                    if ffi::PyDict_Next(next, &raw mut position, &raw mut key, &raw mut value) == 0 {
                        break;
                    }
                    prefetch(value.cast());
                    prefetch(value.cast::<u8>().wrapping_add(64));
                }
            }
        }
    }
}

#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Bytes that are the same for keys that are equal: 1, 1.0 and True are one key.
pub(crate) fn canonical_key(key: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> Packed {
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
