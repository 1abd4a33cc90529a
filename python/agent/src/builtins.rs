//! Builtin functions in place of builtin functions: `time.sleep`, `sys.addaudithook` and the hooks that print an exception.
//!
//! Each is of the type of the one it stands for, with its name, its module, its documentation and its signature, and is
//! pickled by name, because what it belongs to is a module. So what it calls lies here, one place for each.

use crate::ffi::{self, Object, PyMethodDef, PyObject};
use crate::{guard, hook, safe_points};
use std::ffi::{c_int, c_void, CString};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

static SLEEP: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
static SLEEP_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static HOOKS: [AtomicPtr<PyObject>; 2] = [AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())];
static CALLBACKS: [AtomicPtr<PyObject>; 2] = [AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())];

static ADD_AUDIT_HOOK: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn add_audit_hook(_module: Object, arguments: Object, keywords: Object) -> Object {
    guard::AUDITED.store(true, SeqCst);
    // SAFETY: the lock is held, and the function is held for good.
    unsafe { ffi::PyObject_Call(ADD_AUDIT_HOOK.load(SeqCst), arguments, keywords) }
}

type OfOne = unsafe extern "C-unwind" fn(Object, Object) -> Object;

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn sleep(_module: Object, seconds: Object) -> Object {
    // SAFETY: the lock is held; the function was found to take one argument, and its module is held.
    unsafe {
        safe_points::safe_point(false, false);
        let function: OfOne = std::mem::transmute(SLEEP_FUNCTION.load(SeqCst));
        function(ffi::PyCFunction_GetSelf(SLEEP.load(SeqCst)), seconds)
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn hooked(which: usize, arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        if !guard::in_ours() {
            let report = ffi::tuple([hook::handled(), ffi::held(arguments), ffi::none()]);
            guard::notify(CALLBACKS[which].load(SeqCst), report);
        }
        ffi::PyObject_CallObject(HOOKS[which].load(SeqCst), arguments)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn hooked_0(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { hooked(0, arguments) }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn hooked_1(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { hooked(1, arguments) }
}

/// `stand_in(original, callback, which)`: which 0 and 1 tell `callback` before each call, 2 is `time.sleep`, 3
/// `sys.addaudithook`. The original itself where it is no builtin function of a module.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn stand_in(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; what is stored is held for good.
    unsafe {
        let original = ffi::PyTuple_GetItem(arguments, 0);
        let callback = ffi::PyTuple_GetItem(arguments, 1);
        let which = ffi::PyTuple_GetItem(arguments, 2);
        if which.is_null() {
            return null_mut();
        }
        if (*original).kind != &raw mut ffi::PyCFunction_Type {
            return ffi::held(original);
        }
        let flags = ffi::PyCFunction_GetFlags(original);
        let (function, flags): (*const c_void, c_int) = match ffi::PyLong_AsLong(which) {
            0 => (hooked_0 as *const c_void, ffi::METH_VARARGS),
            1 => (hooked_1 as *const c_void, ffi::METH_VARARGS),
            3 => (add_audit_hook as *const c_void, ffi::METH_VARARGS | ffi::METH_KEYWORDS),
            2 if flags == ffi::METH_O => (sleep as *const c_void, flags),
            _ => return ffi::held(original),
        };
        let (Some(name), Some(doc)) = (text(original, c"__name__"), documentation(original)) else {
            ffi::PyErr_Clear();
            return ffi::held(original);
        };
        match ffi::PyLong_AsLong(which) {
            number @ (0 | 1) => {
                HOOKS[number as usize].store(ffi::held(original), SeqCst);
                CALLBACKS[number as usize].store(ffi::held(callback), SeqCst);
            }
            3 => ADD_AUDIT_HOOK.store(ffi::held(original), SeqCst),
            _ => {
                SLEEP_FUNCTION.store(ffi::PyCFunction_GetFunction(original).cast_mut(), SeqCst);
                SLEEP.store(ffi::held(original), SeqCst);
            }
        }
        let definition =
            Box::leak(Box::new(PyMethodDef { name: name.into_raw(), function, flags, doc: doc.into_raw() }));
        let module = ffi::PyObject_GetAttrString(original, c"__module__".as_ptr());
        let made = ffi::PyCFunction_NewEx(definition, ffi::PyCFunction_GetSelf(original), module);
        ffi::Py_DecRef(module);
        made
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn text(object: Object, name: &std::ffi::CStr) -> Option<CString> {
    // SAFETY: the lock is held; the bytes are copied before they are given up.
    unsafe {
        let value = ffi::PyObject_GetAttrString(object, name.as_ptr());
        if value.is_null() || value == &raw mut ffi::_Py_NoneStruct {
            ffi::PyErr_Clear();
            return None;
        }
        let encoded = ffi::PyUnicode_AsUTF8String(value);
        ffi::Py_DecRef(value);
        let (mut bytes, mut length) = (null_mut(), 0);
        if encoded.is_null() || ffi::PyBytes_AsStringAndSize(encoded, &mut bytes, &mut length) != 0 {
            ffi::PyErr_Clear();
            ffi::Py_DecRef(encoded);
            return None;
        }
        let copy = std::slice::from_raw_parts(bytes.cast::<u8>().cast_const(), length as usize).to_vec();
        ffi::Py_DecRef(encoded);
        CString::new(copy).ok()
    }
}

/// As CPython stores it: the signature stands before the text, where there is one.
// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn documentation(original: Object) -> Option<CString> {
    // SAFETY: the lock is held.
    unsafe {
        let name = text(original, c"__name__")?;
        let doc = text(original, c"__doc__").unwrap_or_default();
        let Some(signature) = text(original, c"__text_signature__") else {
            return Some(doc);
        };
        let parts: [&[u8]; 4] = [name.as_bytes(), signature.as_bytes(), b"\n--\n\n", doc.as_bytes()];
        CString::new(parts.concat()).ok()
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn guarded(callback: Object, arguments: Object, _keywords: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        guard::notify(callback, ffi::held(arguments));
    }
    ffi::none()
}

struct Definition(PyMethodDef);
// SAFETY: read only.
unsafe impl Sync for Definition {}
static GUARDED: Definition = Definition(PyMethodDef {
    name: c"ullage".as_ptr(),
    function: guarded as *const c_void,
    flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
    doc: std::ptr::null(),
});

/// `guard(callback)`: a builtin function that calls it where no handler of a signal runs, and returns None.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn guard(_module: Object, callback: Object) -> Object {
    // SAFETY: CPython reads the definition only.
    unsafe { ffi::PyCFunction_NewEx((&raw const GUARDED.0).cast_mut(), callback, null_mut()) }
}
