//! Arrays and tensors as they are packed: one by one, or as a column where all of a list have one shape. Beside them
//! lists of ints and of floats, which are columns too.

use super::ahead::{ahead, AHEAD};
use super::format::*;
use super::pack::{changed, Packed, Packer, PATIENCE};
use super::refusal::Refusal;
use super::tables::{seam, PLAIN_KINDS};
use crate::dlpack::{self, Dtype, DIMENSIONS};
use crate::thread_end::call;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList};

/// What a tensor is made of.
struct Tensor<'py> {
    kind: usize,
    shape: [i64; DIMENSIONS],
    dimensions: usize,
    address: usize,
    nbytes: usize,
    /// Another tensor, whose bytes these are.
    _owner: Option<Bound<'py, PyAny>>,
}

impl<'py> Packer<'py> {
    /// A list of ints, of floats, or of arrays or tensors of one shape; false where it is none of them.
    pub(super) fn uniform(&mut self, list: &Bound<'py, PyList>) -> Result<bool, Refusal> {
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

    pub(super) fn array(&mut self, object: &Bound<'py, PyAny>) -> Packed {
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

    pub(super) fn dtype(&mut self, dtype: &Bound<'py, PyAny>) -> Result<usize, Refusal> {
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

    /// False for anything but a tensor.
    pub(super) fn tensor_written(&mut self, object: &Bound<'py, PyAny>) -> Result<bool, Refusal> {
        let Some(tensor) = self.tensor(object)? else { return Ok(false) };
        self.once(object, |this| {
            this.memory.byte(TENSOR)?;
            this.shape(tensor.kind, tensor.shape[..tensor.dimensions].iter().map(|size| *size as usize))?;
            // SAFETY: torch said so, and the tensor is held.
            unsafe { this.bytes(tensor.address as *const u8, tensor.nbytes) }
        })?;
        Ok(true)
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
            return Ok(Some(Tensor { kind, shape, dimensions, address, nbytes, _owner: None }));
        }
        let parts = call(seam(self.py)?.tensor_parts.bind(self.py), (object,))?;
        if parts.is_none() {
            return Ok(None);
        }
        if let Ok(advice) = parts.extract::<String>() {
            return Err(Refusal::says(advice));
        }
        type Parts<'py> = (Bound<'py, PyAny>, String, usize, Vec<i64>, usize, usize);
        let (owner, name, itemsize, sizes, address, nbytes): Parts<'py> = parts.extract()?;
        if sizes.len() > DIMENSIONS {
            return Err(Refusal::says(format!("a tensor of more than {DIMENSIONS} dimensions")));
        }
        let mut shape = [0; DIMENSIONS];
        shape[..sizes.len()].copy_from_slice(&sizes);
        let kind = self.kind(name, itemsize);
        Ok(Some(Tensor { kind, shape, dimensions: sizes.len(), address, nbytes, _owner: Some(owner) }))
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
