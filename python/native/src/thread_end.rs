//! What becomes of a daemon thread that is in this module when Python ends? It hangs, as from CPython 3.14 on.
//!
//! Up to 3.13, a thread that asks for the GIL after Python's end is ended by `pthread_exit`, which unwinds. pyo3 catches what
//! unwinds, and glibc then ends the whole process: "FATAL: exception not rethrown". torch's `pin_memory` thread is such a
//! thread. The surprise: build.rs reads the list below and has the linker put each function here in front of CPython's.

use pyo3::ffi::{PyObject, PyThreadState, PyTypeObject, Py_buffer, Py_hash_t, Py_ssize_t};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::{c_char, c_double, c_int, c_long};

struct Hangs;

impl Drop for Hangs {
    fn drop(&mut self) {
        loop {
            std::thread::sleep(std::time::Duration::MAX);
        }
    }
}

/// Functions of CPython that may run Python code, wait, or take the GIL, each behind one that lets nothing unwind.
macro_rules! unwound_by_none {
    ($($wrapped:ident $real:ident ($($name:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        extern "C-unwind" {
            $(fn $real($($name: $kind),*) $(-> $result)?;)*
        }
        $(
            /// In front of CPython's function of this name.
            ///
            /// # Safety
            /// As of CPython's.
            #[no_mangle]
            unsafe extern "C" fn $wrapped($($name: $kind),*) $(-> $result)? {
                let hangs = Hangs;
                // SAFETY: as the caller promises. Where it unwinds, `hangs` keeps this thread here for good, without the
                // GIL, and no frame above is touched.
                let result = unsafe { $real($($name),*) };
                std::mem::forget(hangs);
                result
            }
        )*
    };
}

type Object = *mut PyObject;

unwound_by_none! {
    __wrap_PyBuffer_Release __real_PyBuffer_Release(view: *mut Py_buffer);
    __wrap_PyDict_GetItemWithError __real_PyDict_GetItemWithError(dict: Object, key: Object) -> Object;
    __wrap_PyDict_Keys __real_PyDict_Keys(dict: Object) -> Object;
    __wrap_PyDict_New __real_PyDict_New() -> Object;
    __wrap_PyDict_SetItem __real_PyDict_SetItem(dict: Object, key: Object, value: Object) -> c_int;
    __wrap_PyErr_CheckSignals __real_PyErr_CheckSignals() -> c_int;
    __wrap_PyErr_NormalizeException __real_PyErr_NormalizeException(kind: *mut Object, value: *mut Object, trace: *mut Object);
    __wrap_PyErr_Print __real_PyErr_Print();
    __wrap_PyErr_PrintEx __real_PyErr_PrintEx(keep: c_int);
    __wrap_PyErr_SetObject __real_PyErr_SetObject(kind: Object, value: Object);
    __wrap_PyErr_WriteUnraisable __real_PyErr_WriteUnraisable(object: Object);
    __wrap_PyEval_RestoreThread __real_PyEval_RestoreThread(state: *mut PyThreadState);
    __wrap_PyFloat_AsDouble __real_PyFloat_AsDouble(object: Object) -> c_double;
    __wrap_PyImport_Import __real_PyImport_Import(name: Object) -> Object;
    __wrap_PyIter_Next __real_PyIter_Next(object: Object) -> Object;
    __wrap_PyList_New __real_PyList_New(length: Py_ssize_t) -> Object;
    __wrap_PyLong_AsLong __real_PyLong_AsLong(object: Object) -> c_long;
    __wrap_PyNumber_Index __real_PyNumber_Index(object: Object) -> Object;
    __wrap_PyObject_Call __real_PyObject_Call(object: Object, arguments: Object, keywords: Object) -> Object;
    __wrap_PyObject_CallNoArgs __real_PyObject_CallNoArgs(object: Object) -> Object;
    __wrap_PyObject_ClearWeakRefs __real_PyObject_ClearWeakRefs(object: Object);
    __wrap_PyObject_DelItem __real_PyObject_DelItem(object: Object, key: Object) -> c_int;
    __wrap_PyObject_GetAttr __real_PyObject_GetAttr(object: Object, name: Object) -> Object;
    __wrap_PyObject_GetAttrString __real_PyObject_GetAttrString(object: Object, name: *const c_char) -> Object;
    __wrap_PyObject_GetBuffer __real_PyObject_GetBuffer(object: Object, view: *mut Py_buffer, flags: c_int) -> c_int;
    __wrap_PyObject_GetItem __real_PyObject_GetItem(object: Object, key: Object) -> Object;
    __wrap_PyObject_GetIter __real_PyObject_GetIter(object: Object) -> Object;
    __wrap_PyObject_Hash __real_PyObject_Hash(object: Object) -> Py_hash_t;
    __wrap_PyObject_IsInstance __real_PyObject_IsInstance(object: Object, kind: Object) -> c_int;
    __wrap_PyObject_IsTrue __real_PyObject_IsTrue(object: Object) -> c_int;
    __wrap_PyObject_LengthHint __real_PyObject_LengthHint(object: Object, default: Py_ssize_t) -> Py_ssize_t;
    __wrap_PyObject_Repr __real_PyObject_Repr(object: Object) -> Object;
    __wrap_PyObject_RichCompare __real_PyObject_RichCompare(left: Object, right: Object, how: c_int) -> Object;
    __wrap_PyObject_SetAttr __real_PyObject_SetAttr(object: Object, name: Object, value: Object) -> c_int;
    __wrap_PyObject_SetAttrString __real_PyObject_SetAttrString(object: Object, name: *const c_char, value: Object) -> c_int;
    __wrap_PyObject_SetItem __real_PyObject_SetItem(object: Object, key: Object, value: Object) -> c_int;
    __wrap_PyObject_Size __real_PyObject_Size(object: Object) -> Py_ssize_t;
    __wrap_PyObject_Str __real_PyObject_Str(object: Object) -> Object;
    __wrap_PyObject_VectorcallDict __real_PyObject_VectorcallDict(object: Object, values: *const Object, number: usize, names: Object) -> Object;
    __wrap_PyObject_VectorcallMethod __real_PyObject_VectorcallMethod(name: Object, values: *const Object, number: usize, names: Object) -> Object;
    __wrap_PySequence_Contains __real_PySequence_Contains(object: Object, value: Object) -> c_int;
    __wrap_PyTraceBack_Print __real_PyTraceBack_Print(trace: Object, file: Object) -> c_int;
    __wrap_PyTuple_New __real_PyTuple_New(length: Py_ssize_t) -> Object;
    __wrap_PyType_GenericAlloc __real_PyType_GenericAlloc(kind: *mut PyTypeObject, items: Py_ssize_t) -> Object;
    __wrap__Py_Dealloc __real__Py_Dealloc(object: Object);
}

/// Calls it. pyo3's `call1` may jump into CPython by an address, past the functions above.
pub(crate) fn call<'py, A>(callable: &Bound<'py, PyAny>, arguments: A) -> PyResult<Bound<'py, PyAny>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    #[expect(clippy::disallowed_methods, reason = "of a tuple, it is PyObject_Call")]
    callable.call1(arguments.into_pyobject(callable.py())?)
}
