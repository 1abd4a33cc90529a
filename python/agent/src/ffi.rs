//! Which functions of CPython and of the C library are called? Those of the stable ABI of Python 3.9, and a few of libc.
//!
//! `C-unwind`: a daemon thread that asks for the interpreter's lock after its end is ended by `pthread_exit`, which
//! unwinds (CPython up to 3.13).

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

#[repr(C)]
pub(crate) struct PyObject {
    pub(crate) refcount: isize,
    pub(crate) kind: *mut PyObject,
}

pub(crate) type Object = *mut PyObject;
pub(crate) type Size = isize;

#[repr(C)]
pub(crate) struct PyMethodDef {
    pub(crate) name: *const c_char,
    pub(crate) function: *const c_void,
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

#[repr(C)]
pub(crate) struct PyModuleDef {
    pub(crate) head: PyObject,
    pub(crate) init: *const c_void,
    pub(crate) index: Size,
    pub(crate) copy: Object,
    pub(crate) name: *const c_char,
    pub(crate) doc: *const c_char,
    pub(crate) size: Size,
    pub(crate) methods: *mut PyMethodDef,
    pub(crate) slots: *const c_void,
    pub(crate) traverse: *const c_void,
    pub(crate) clear: *const c_void,
    pub(crate) free: *const c_void,
}

#[repr(C)]
pub(crate) struct PyTypeSlot {
    pub(crate) slot: c_int,
    pub(crate) function: *const c_void,
}

#[repr(C)]
pub(crate) struct PyTypeSpec {
    pub(crate) name: *const c_char,
    pub(crate) size: c_int,
    pub(crate) item_size: c_int,
    pub(crate) flags: c_uint,
    pub(crate) slots: *const PyTypeSlot,
}

#[repr(C)]
pub(crate) struct PyMemberDef {
    pub(crate) name: *const c_char,
    pub(crate) kind: c_int,
    pub(crate) offset: Size,
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

pub(crate) const METH_VARARGS: c_int = 1;
pub(crate) const METH_KEYWORDS: c_int = 2;
pub(crate) const METH_NOARGS: c_int = 4;
pub(crate) const METH_O: c_int = 8;

pub(crate) const TYPE_DEFAULT: c_uint = 1 << 18;
pub(crate) const TYPE_GC: c_uint = 1 << 14;
pub(crate) const T_LONGLONG: c_int = 17;
pub(crate) const T_OBJECT: c_int = 6;
pub(crate) const T_PYSSIZET: c_int = 19;
pub(crate) const READONLY: c_int = 1;

pub(crate) const TP_CALL: c_int = 50;
pub(crate) const TP_CLEAR: c_int = 51;
pub(crate) const TP_DEALLOC: c_int = 52;
pub(crate) const TP_DESCR_GET: c_int = 54;
pub(crate) const TP_GETATTRO: c_int = 58;
pub(crate) const TP_HASH: c_int = 59;
pub(crate) const TP_REPR: c_int = 66;
pub(crate) const TP_RICHCOMPARE: c_int = 67;
pub(crate) const TP_SETATTRO: c_int = 69;
pub(crate) const TP_TRAVERSE: c_int = 71;
pub(crate) const TP_MEMBERS: c_int = 72;
pub(crate) const TP_METHODS: c_int = 64;

extern "C-unwind" {
    pub(crate) fn Py_IncRef(object: Object);
    pub(crate) fn Py_DecRef(object: Object);
    pub(crate) fn PyGILState_Ensure() -> c_int;
    pub(crate) fn PyGILState_Release(state: c_int);
    pub(crate) fn PyGILState_GetThisThreadState() -> *mut c_void;
    pub(crate) fn PyThreadState_Get() -> *mut c_void;
    pub(crate) fn PyInterpreterState_Get() -> *mut c_void;
    pub(crate) fn PyInterpreterState_Head() -> *mut c_void;
    pub(crate) fn PyInterpreterState_Next(interpreter: *mut c_void) -> *mut c_void;
    pub(crate) fn PyInterpreterState_GetID(interpreter: *mut c_void) -> i64;
    pub(crate) fn PyEval_SaveThread() -> *mut c_void;
    pub(crate) fn PyEval_RestoreThread(state: *mut c_void);
    pub(crate) fn Py_AddPendingCall(
        function: extern "C-unwind" fn(*mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    pub(crate) fn PyErr_Clear();
    pub(crate) fn PyErr_Occurred() -> Object;
    pub(crate) fn PyErr_Print();
    pub(crate) fn PyErr_Fetch(kind: *mut Object, value: *mut Object, traceback: *mut Object);
    pub(crate) fn PyErr_Restore(kind: Object, value: Object, traceback: Object);
    pub(crate) fn PyErr_GetExcInfo(kind: *mut Object, value: *mut Object, traceback: *mut Object);
    pub(crate) fn PyErr_SetString(kind: Object, text: *const c_char);
    pub(crate) fn PyObject_Call(callable: Object, arguments: Object, keywords: Object) -> Object;
    pub(crate) fn PyErr_CheckSignals() -> c_int;
    pub(crate) fn PySys_GetObject(name: *const c_char) -> Object;
    pub(crate) fn PyObject_CallObject(callable: Object, arguments: Object) -> Object;
    pub(crate) fn PyObject_CallFunctionObjArgs(callable: Object, ...) -> Object;
    pub(crate) fn PyObject_GetAttr(object: Object, name: Object) -> Object;
    pub(crate) fn PyObject_GetAttrString(object: Object, name: *const c_char) -> Object;
    pub(crate) fn PyObject_GenericGetAttr(object: Object, name: Object) -> Object;
    pub(crate) fn PyObject_Hash(object: Object) -> Size;
    pub(crate) fn PyObject_Repr(object: Object) -> Object;
    pub(crate) fn PyObject_RichCompare(one: Object, other: Object, how: c_int) -> Object;
    pub(crate) fn PyObject_SetAttr(object: Object, name: Object, value: Object) -> c_int;
    pub(crate) fn PyObject_ClearWeakRefs(object: Object);
    pub(crate) fn PyObject_Size(object: Object) -> Size;
    pub(crate) fn PyTuple_New(size: Size) -> Object;
    pub(crate) fn PyTuple_SetItem(tuple: Object, place: Size, item: Object) -> c_int;
    pub(crate) fn PyTuple_GetItem(tuple: Object, place: Size) -> Object;
    pub(crate) fn PyTuple_Size(tuple: Object) -> Size;
    pub(crate) fn PyList_New(size: Size) -> Object;
    pub(crate) fn PyList_GetItem(list: Object, place: Size) -> Object;
    pub(crate) fn PyList_Append(list: Object, item: Object) -> c_int;
    pub(crate) fn PyDict_New() -> Object;
    pub(crate) fn PyDict_SetItem(dict: Object, key: Object, value: Object) -> c_int;
    pub(crate) fn PyDict_Items(dict: Object) -> Object;
    pub(crate) fn PyDict_Next(dict: Object, place: *mut Size, key: *mut Object, value: *mut Object) -> c_int;
    pub(crate) fn PyFrame_GetCode(frame: Object) -> Object;
    pub(crate) fn PyDict_GetItemString(dict: Object, key: *const c_char) -> Object;
    pub(crate) fn PyLong_AsLong(object: Object) -> c_long;
    pub(crate) fn PyLong_AsSize_t(object: Object) -> usize;
    pub(crate) fn PyLong_FromLong(value: c_long) -> Object;
    pub(crate) fn PyLong_FromSize_t(value: usize) -> Object;
    pub(crate) fn PyFloat_FromDouble(value: f64) -> Object;
    pub(crate) fn PyFloat_AsDouble(object: Object) -> f64;
    pub(crate) fn PyBytes_FromStringAndSize(bytes: *const c_char, size: Size) -> Object;
    pub(crate) fn PyBytes_AsStringAndSize(object: Object, bytes: *mut *mut c_char, size: *mut Size) -> c_int;
    pub(crate) fn PyUnicode_AsUTF8String(object: Object) -> Object;
    pub(crate) fn PyUnicode_FromString(text: *const c_char) -> Object;
    pub(crate) fn PyUnicode_CompareWithASCIIString(text: Object, other: *const c_char) -> c_int;
    pub(crate) fn PyUnicode_Compare(one: Object, other: Object) -> c_int;
    pub(crate) fn PyUnicode_Contains(text: Object, part: Object) -> c_int;
    pub(crate) fn PyUnicode_Tailmatch(text: Object, part: Object, begin: Size, end: Size, way: c_int)
        -> Size;
    pub(crate) fn PyModule_GetDict(module: Object) -> Object;
    pub(crate) fn PyBool_FromLong(value: c_long) -> Object;
    pub(crate) fn PyType_IsSubtype(kind: Object, of: Object) -> c_int;
    pub(crate) fn PyType_GetFlags(kind: Object) -> c_ulong;
    pub(crate) fn PyObject_IsTrue(object: Object) -> c_int;
    pub(crate) fn PyModule_Create2(definition: *mut PyModuleDef, version: c_int) -> Object;
    pub(crate) fn PyModule_AddObject(module: Object, name: *const c_char, value: Object) -> c_int;
    pub(crate) fn PyCFunction_NewEx(definition: *mut PyMethodDef, state: Object, module: Object) -> Object;
    pub(crate) fn PyCFunction_GetFunction(function: Object) -> *const c_void;
    pub(crate) fn PyCFunction_GetFlags(function: Object) -> c_int;
    pub(crate) fn PyCFunction_GetSelf(function: Object) -> Object;
    pub(crate) fn PyType_FromSpec(spec: *const PyTypeSpec) -> Object;
    pub(crate) fn PyType_GenericAlloc(kind: Object, items: Size) -> Object;
    pub(crate) fn PyObject_GC_IsTracked(object: Object) -> c_int;
    pub(crate) fn PyObject_GC_UnTrack(object: Object);
    pub(crate) fn PyObject_GC_Del(object: *mut c_void);

    pub(crate) static mut _Py_NoneStruct: PyObject;
    pub(crate) static mut PyCFunction_Type: PyObject;
    pub(crate) static mut PyList_Type: PyObject;
    pub(crate) static mut PyDict_Type: PyObject;
    pub(crate) static mut PyModule_Type: PyObject;
    pub(crate) static mut PyUnicode_Type: PyObject;
    pub(crate) static PyExc_TypeError: Object;
}

pub(crate) type Pthread = c_ulong;
/// glibc's and musl's are smaller.
pub(crate) type Attributes = [u64; 16];
pub(crate) type SignalSet = [u64; 16];

pub(crate) const O_RDONLY: c_int = 0;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const PROT_READ_AND_WRITE: c_int = 3;
pub(crate) const MAP_PRIVATE_AND_ANONYMOUS: c_int = 0x22;
pub(crate) const MREMAP_MAYMOVE: c_int = 1;
pub(crate) const SIG_SETMASK: c_int = 2;

/// struct pollfd (poll(2)).
#[repr(C)]
pub(crate) struct Polled {
    pub(crate) fd: c_int,
    pub(crate) events: i16,
    pub(crate) found: i16,
}

#[repr(C)]
pub(crate) struct Timespec {
    pub(crate) seconds: c_long,
    pub(crate) nanoseconds: c_long,
}

extern "C-unwind" {
    pub(crate) fn pthread_create(
        thread: *mut Pthread,
        attributes: *const Attributes,
        start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    pub(crate) fn pthread_timedjoin_np(
        thread: Pthread,
        value: *mut *mut c_void,
        until: *const Timespec,
    ) -> c_int;
    pub(crate) fn pthread_join(thread: Pthread, value: *mut *mut c_void) -> c_int;
    pub(crate) fn pthread_detach(thread: Pthread) -> c_int;
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn pthread_self() -> Pthread;
    pub(crate) fn pthread_attr_init(attributes: *mut Attributes) -> c_int;
    pub(crate) fn pthread_attr_setstacksize(attributes: *mut Attributes, size: usize) -> c_int;
    pub(crate) fn pthread_sigmask(how: c_int, set: *const SignalSet, before: *mut SignalSet) -> c_int;
    pub(crate) fn sigfillset(set: *mut SignalSet) -> c_int;
    pub(crate) fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
    pub(crate) fn pread(fd: c_int, buffer: *mut c_void, size: usize, offset: c_long) -> isize;
    pub(crate) fn send(fd: c_int, buffer: *const c_void, size: usize, flags: c_int) -> isize;
    pub(crate) fn recv(fd: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize;
    pub(crate) fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    pub(crate) fn connect(fd: c_int, address: *const c_void, size: u32) -> c_int;
    pub(crate) fn getsockopt(
        fd: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        size: *mut u32,
    ) -> c_int;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn getuid() -> u32;
    pub(crate) fn geteuid() -> u32;
    pub(crate) fn poll(polled: *mut Polled, count: c_ulong, milliseconds: c_int) -> c_int;
    pub(crate) fn mmap(
        place: *mut c_void,
        size: usize,
        rights: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    pub(crate) fn mremap(place: *mut c_void, from: usize, to: usize, flags: c_int, ...) -> *mut c_void;
    pub(crate) fn mprotect(place: *mut c_void, size: usize, rights: c_int) -> c_int;
    pub(crate) fn munmap(place: *mut c_void, size: usize) -> c_int;
    pub(crate) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn free(place: *mut c_void);
    pub(crate) fn fclose(stream: *mut c_void) -> c_int;
}

/// A new reference to None.
pub(crate) fn none() -> Object {
    // SAFETY: None lives as long as the interpreter.
    unsafe {
        let none = &raw mut _Py_NoneStruct;
        Py_IncRef(none);
        none
    }
}

/// Nanoseconds of the clock of `time.monotonic`; answered without a system call.
pub(crate) fn now() -> i64 {
    read_clock(1)
}

/// Nanoseconds that this thread has computed: on a busy machine it waits for longer than it works.
pub(crate) fn computed() -> i64 {
    read_clock(3)
}

fn read_clock(clock: c_int) -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: writes into `time` only; CLOCK_MONOTONIC is 1, CLOCK_THREAD_CPUTIME_ID is 3.
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

/// A tuple of these; each reference is taken over. Null where memory is short.
///
/// # Safety
/// The interpreter's lock is held, and each item is a reference that the caller owns.
pub(crate) unsafe fn tuple<const N: usize>(items: [Object; N]) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let tuple = PyTuple_New(N as Size);
        for (place, item) in items.into_iter().enumerate() {
            if tuple.is_null() {
                Py_DecRef(item);
            } else {
                PyTuple_SetItem(tuple, place as Size, item);
            }
        }
        tuple
    }
}

/// One reference more, the same object.
///
/// # Safety
/// The interpreter's lock is held, and this is an object or null.
pub(crate) unsafe fn held(object: Object) -> Object {
    // SAFETY: Py_IncRef passes null by.
    unsafe { Py_IncRef(object) };
    object
}
