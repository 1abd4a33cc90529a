//! torch's tensors without torch's headers: what they are made of, and tensors over bytes of ours.
//!
//! Through DLPack's exchange table (dlpack.h 1.3, `DLPackExchangeAPI`), which torch 2.13 shows as
//! `torch.Tensor.__dlpack_c_exchange_api__`; where a torch has none, nothing here is used. The surprise: DLPack
//! knows neither requires_grad nor the neg bit nor attributes, so that a tensor is asked for these beside it.

use crate::error::ArenaError;
use crate::keep::Keep;
use crate::once::{intern, SetOnce};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::os::raw::{c_int, c_void};

const MAJOR: u32 = 1;
const CPU: i32 = 1;
/// Dimensions of a tensor that is handled here.
pub(crate) const DIMENSIONS: usize = 8;

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: Dtype,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Managed {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    flags: u64,
    tensor: Tensor,
}

/// `DLPackExchangeAPI`; what is not called is a plain pointer.
#[repr(C)]
struct Table {
    version: Version,
    previous: *mut c_void,
    allocator: *mut c_void,
    managed_from_object: *mut c_void,
    managed_to_object: Option<unsafe extern "C" fn(*mut Managed, *mut *mut c_void) -> c_int>,
    tensor_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    stream: *mut c_void,
}

/// The seam to the torch of this process.
pub(crate) struct Torch {
    to_object: unsafe extern "C" fn(*mut Managed, *mut *mut c_void) -> c_int,
    from_object: unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int,
    tensor: Py<PyType>,
    has_names: bool,
    /// Makes a tensor over a storage that others of its message share: (number, dtype, shape, strides, offset, 0).
    pub(crate) over_shared: Py<PyAny>,
}

static TORCH: SetOnce<Torch> = SetOnce::new();

/// The seam, once torch is there and has the table.
pub(crate) fn torch(_: Python<'_>) -> Option<&Torch> {
    TORCH.get()
}

/// Lets plain tensors travel without Python code: `torch.Tensor`, and what makes a tensor over a shared storage.
/// False where this torch has no exchange table.
#[pyfunction]
pub(crate) fn use_torch(tensor: Bound<'_, PyType>, over_shared: Py<PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    let Ok(capsule) = tensor.getattr("__dlpack_c_exchange_api__") else { return Ok(false) };
    // SAFETY: CPython's own check of what it is and how it is named (dlpack.h).
    let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
    if table.is_null() {
        let _ = PyErr::take(py);
        return Ok(false);
    }
    // SAFETY: the table's beginning is the same in every version, and it stays for the life of the process (dlpack.h).
    let table = unsafe { &*table.cast::<Table>() };
    let (MAJOR, Some(to_object), Some(from_object)) =
        (table.version.major, table.managed_to_object, table.tensor_from_object)
    else {
        return Ok(false);
    };
    let has_names = tensor.hasattr("has_names")?;
    TORCH.set(Torch { to_object, from_object, tensor: tensor.unbind(), has_names, over_shared });
    Ok(true)
}

/// What a plain tensor is made of: contiguous, on the CPU, with bytes, without a gradient or attributes.
pub(crate) struct Plain {
    pub(crate) address: usize,
    pub(crate) bytes: u64,
    pub(crate) dtype: Dtype,
    ndim: usize,
    shape: [i64; DIMENSIONS],
}

impl Plain {
    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape[..self.ndim]
    }

    pub(crate) fn is_like(&self, other: &Plain) -> bool {
        self.dtype == other.dtype && self.shape() == other.shape()
    }
}

impl Dtype {
    /// torch's name; none for those that do not go through here (complex ones have a conj bit, others no DLPack code).
    pub(crate) fn name(self) -> Option<&'static str> {
        Some(match (self.code, self.bits, self.lanes) {
            (0, 8, 1) => "int8",
            (0, 16, 1) => "int16",
            (0, 32, 1) => "int32",
            (0, 64, 1) => "int64",
            (1, 8, 1) => "uint8",
            (1, 16, 1) => "uint16",
            (1, 32, 1) => "uint32",
            (1, 64, 1) => "uint64",
            (2, 16, 1) => "float16",
            (2, 32, 1) => "float32",
            (2, 64, 1) => "float64",
            (4, 16, 1) => "bfloat16",
            (6, 8, 1) => "bool",
            _ => return None,
        })
    }

    pub(crate) const fn of(code: u8, bits: u8) -> Dtype {
        Dtype { code, bits, lanes: 1 }
    }

    /// Those that have a name here.
    pub(crate) const ALL: [Dtype; 13] = [
        Dtype::of(0, 8),
        Dtype::of(0, 16),
        Dtype::of(0, 32),
        Dtype::of(0, 64),
        Dtype::of(1, 8),
        Dtype::of(1, 16),
        Dtype::of(1, 32),
        Dtype::of(1, 64),
        Dtype::of(2, 16),
        Dtype::of(2, 32),
        Dtype::of(2, 64),
        Dtype::of(4, 16),
        Dtype::of(6, 8),
    ];
}

impl Torch {
    /// True for `torch.Tensor` itself, no subclass.
    pub(crate) fn is_tensor(&self, object: &Bound<'_, PyAny>) -> bool {
        object.get_type_ptr().cast() == self.tensor.as_ptr()
    }

    /// None for any tensor that is not plain.
    pub(crate) fn plain(&self, object: &Bound<'_, PyAny>) -> Option<Plain> {
        if !self.is_tensor(object) {
            return None;
        }
        let py = object.py();
        let mut found = std::mem::MaybeUninit::<Tensor>::uninit();
        // SAFETY: an object of the type that the table was found at; torch fills the tensor, or fails.
        if unsafe { (self.from_object)(object.as_ptr().cast(), found.as_mut_ptr()) } != 0 {
            let _ = PyErr::take(py); // sparse, nested, quantized: no DLPack
            return None;
        }
        // SAFETY: filled, as zero was returned.
        let found = unsafe { found.assume_init() };
        let ndim = usize::try_from(found.ndim).ok().filter(|ndim| *ndim <= DIMENSIONS)?;
        if found.device.kind != CPU || found.data.is_null() || found.dtype.name().is_none() {
            return None;
        }
        let mut plain = Plain {
            address: found.data as usize + found.byte_offset as usize,
            bytes: u64::from(found.dtype.bits / 8),
            dtype: found.dtype,
            ndim,
            shape: [0; DIMENSIONS],
        };
        if ndim > 0 {
            // SAFETY: torch's own sizes and strides, valid until control goes back to it (dlpack.h).
            let (shape, strides) = unsafe {
                (
                    std::slice::from_raw_parts(found.shape, ndim),
                    std::slice::from_raw_parts(found.strides, ndim),
                )
            };
            let mut step: i64 = 1;
            for at in (0..ndim).rev() {
                // To torch any stride of a dimension of one element is contiguous; it must arrive as it was.
                if strides[at] != step || shape[at] < 1 {
                    return None;
                }
                step = step.checked_mul(shape[at])?;
                plain.shape[at] = shape[at];
            }
            plain.bytes = plain.bytes.checked_mul(u64::try_from(step).ok()?)?;
        }
        // SAFETY: only its address is compared.
        let no = unsafe { ffi::Py_False() };
        let is_false = |result: PyResult<Bound<'_, PyAny>>| result.is_ok_and(|value| value.as_ptr() == no);
        let simple = is_false(object.getattr(intern!(py, "requires_grad")))
            && is_false(object.call_method0(intern!(py, "is_neg")))
            && (!self.has_names || is_false(object.call_method0(intern!(py, "has_names"))));
        simple.then_some(plain)
    }

    /// A new tensor over bytes that `keep` keeps, contiguous, from `address` on.
    pub(crate) fn tensor<'py>(
        &self,
        py: Python<'py>,
        keep: Keep,
        address: *mut u8,
        dtype: Dtype,
        shape: &[i64],
    ) -> PyResult<Bound<'py, PyAny>> {
        if shape.len() > DIMENSIONS {
            return Err(PyValueError::new_err("too many dimensions"));
        }
        let mut owned = Box::new(Owned {
            managed: Managed {
                version: Version { major: MAJOR, minor: 0 },
                context: std::ptr::null_mut(),
                deleter: Some(delete),
                flags: 0,
                tensor: Tensor {
                    data: address.cast(),
                    device: Device { kind: CPU, number: 0 },
                    ndim: shape.len() as i32,
                    dtype,
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
            },
            shape: [0; DIMENSIONS],
            strides: [0; DIMENSIONS],
            _keep: keep,
        });
        let mut step = 1i64;
        for at in (0..shape.len()).rev() {
            owned.shape[at] = shape[at];
            owned.strides[at] = step;
            step = step.saturating_mul(shape[at].max(1));
        }
        let owned = Box::into_raw(owned);
        let mut made = std::ptr::null_mut();
        // SAFETY: the box is whole; torch takes it, and calls its deleter once. The pointers into the box stay valid
        // until then, for a box does not move.
        let failed = unsafe {
            (*owned).managed.tensor.shape = (&raw mut (*owned).shape).cast();
            (*owned).managed.tensor.strides = (&raw mut (*owned).strides).cast();
            (self.to_object)(owned.cast(), &raw mut made)
        };
        if failed != 0 || made.is_null() {
            // Whether torch took it before it failed is not said: better to leak than to free twice.
            return Err(PyErr::take(py).unwrap_or_else(|| ArenaError::new_err("torch made no tensor")));
        }
        // SAFETY: a new reference, as the table says.
        Ok(unsafe { Bound::from_owned_ptr(py, made.cast()) })
    }
}

/// A managed tensor with what it points to; the first field's address is its own.
#[repr(C)]
struct Owned {
    managed: Managed,
    shape: [i64; DIMENSIONS],
    strides: [i64; DIMENSIONS],
    _keep: Keep,
}

/// Called by the last storage over the bytes, on any thread, without the GIL.
///
/// # Safety
/// Once for what `Torch::tensor` made.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: made by `Torch::tensor` from a box of this type, and torch calls this once.
    drop(unsafe { Box::from_raw(managed.cast::<Owned>()) });
}
