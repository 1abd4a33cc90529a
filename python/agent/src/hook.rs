//! Stands for a function: calls one of ours before it, or after it, and then is it in all that can be seen.
//!
//! For functions by which a library prints, stores or carries away an exception, and for those that make a queue. No frame
//! is between the caller and the function.

use crate::ffi::{self, Object, PyMemberDef, PyMethodDef, PyObject, PyTypeSlot, PyTypeSpec, Size};
use crate::guard;
use std::ffi::{c_int, c_long, c_void, CStr};
use std::mem::offset_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

#[repr(C)]
struct Hook {
    head: PyObject,
    original: Object,
    callback: Object,
    weak: Object,
    when: c_long,
}

/// `hook(…, when)`: before the function, after it, or after it where the first argument is longer than its `most`.
const BEFORE: c_long = 0;
const GROWN: c_long = 2;

/// `types.MethodType`, which the stable ABI has no function for.
pub(crate) static METHOD: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// `hook(original, callback, when)`: the callback gets the exception that is being handled, the arguments and the
/// keywords of each call.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn hook(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; the type lives as long as the module, which is never freed.
    unsafe {
        let kind = ffi::PyObject_GetAttrString(module, c"Hook".as_ptr());
        let when = ffi::PyTuple_GetItem(arguments, 2);
        if kind.is_null() || when.is_null() {
            return null_mut();
        }
        let one = ffi::PyType_GenericAlloc(kind, 0).cast::<Hook>();
        ffi::Py_DecRef(kind);
        if !one.is_null() {
            (*one).original = ffi::held(ffi::PyTuple_GetItem(arguments, 0));
            (*one).callback = ffi::held(ffi::PyTuple_GetItem(arguments, 1));
            (*one).when = ffi::PyLong_AsLong(when);
        }
        one.cast()
    }
}

/// The exception that is being handled where this is called, or None.
// SAFETY: called with the interpreter's lock held and objects that are alive.
pub(crate) unsafe fn handled() -> Object {
    let (mut kind, mut value, mut traceback) = (null_mut(), null_mut(), null_mut());
    // SAFETY: the lock is held; the references are new ones.
    unsafe {
        ffi::PyErr_GetExcInfo(&mut kind, &mut value, &mut traceback);
        ffi::Py_DecRef(kind);
        ffi::Py_DecRef(traceback);
        if value.is_null() {
            ffi::none()
        } else {
            value
        }
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn notify(callback: Object, arguments: Object, keywords: Object) {
    if guard::in_ours() {
        return;
    }
    // SAFETY: the lock is held; null is passed by.
    unsafe {
        let keywords = if keywords.is_null() { ffi::none() } else { ffi::held(keywords) };
        guard::notify(callback, ffi::tuple([handled(), ffi::held(arguments), keywords]));
    }
}

/// One that somebody made by calling its type.
// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn empty() -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"an empty hook".as_ptr()) };
    null_mut()
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn call(this: Object, arguments: Object, keywords: Object) -> Object {
    let one = this.cast::<Hook>();
    // SAFETY: the lock is held, and `this` is one of ours, held by the caller.
    unsafe {
        if (*one).original.is_null() {
            return empty();
        }
        let when = (*one).when;
        if when == BEFORE {
            notify((*one).callback, arguments, keywords);
        }
        let result = ffi::PyObject_Call((*one).original, arguments, keywords);
        if when != BEFORE && !result.is_null() && (when != GROWN || has_grown(arguments)) {
            notify((*one).callback, arguments, keywords);
        }
        result
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn has_grown(arguments: Object) -> bool {
    // SAFETY: the lock is held; an attribute that is not there leaves an exception that is cleared.
    unsafe {
        let one = ffi::PyTuple_GetItem(arguments, 0);
        let most = if one.is_null() { one } else { ffi::PyObject_GetAttrString(one, c"most".as_ptr()) };
        let grown = !most.is_null() && ffi::PyObject_Size(one) >= ffi::PyLong_AsLong(most) as Size;
        ffi::Py_DecRef(most);
        let failed = !ffi::PyErr_Occurred().is_null();
        ffi::PyErr_Clear();
        grown && !failed
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn get(this: Object, object: Object, _kind: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        if object.is_null() || object == &raw mut ffi::_Py_NoneStruct {
            return ffi::held(this);
        }
        let arguments = ffi::tuple([ffi::held(this), ffi::held(object)]);
        let bound = ffi::PyObject_CallObject(METHOD.load(SeqCst), arguments);
        ffi::Py_DecRef(arguments);
        bound
    }
}

/// What it is asked for is the function's, but for how it is called, bound and pickled.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn get_attribute(this: Object, name: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let original = (*this.cast::<Hook>()).original;
        if original.is_null() {
            return empty();
        }
        let text = ffi::PyUnicode_AsUTF8String(name);
        if text.is_null() {
            return null_mut();
        }
        let (mut bytes, mut length) = (null_mut(), 0);
        let read = ffi::PyBytes_AsStringAndSize(text, &mut bytes, &mut length);
        let name_is = |wanted: &CStr| {
            read == 0
                && std::slice::from_raw_parts(bytes.cast::<u8>().cast_const(), length as usize)
                    == wanted.to_bytes()
        };
        let own = [c"__call__", c"__get__", c"__reduce__", c"__reduce_ex__"].into_iter().any(name_is);
        let wrapped = name_is(c"__wrapped__");
        ffi::Py_DecRef(text);
        if wrapped {
            return ffi::held(original);
        }
        if own {
            return ffi::PyObject_GenericGetAttr(this, name);
        }
        ffi::PyObject_GetAttr(original, name)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn representation(this: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let original = (*this.cast::<Hook>()).original;
        if original.is_null() {
            return empty();
        }
        ffi::PyObject_Repr(original)
    }
}

/// A name to look up, as of any function.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn reduce(this: Object, _protocol: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let original = (*this.cast::<Hook>()).original;
        if original.is_null() {
            return empty();
        }
        ffi::PyObject_GetAttrString(original, c"__qualname__".as_ptr())
    }
}

type Visit = unsafe extern "C-unwind" fn(Object, *mut c_void) -> c_int;

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn traverse(this: Object, visit: Visit, data: *mut c_void) -> c_int {
    let one = this.cast::<Hook>();
    // SAFETY: the collector calls this for one of ours.
    unsafe {
        for part in [(*this).kind, (*one).original, (*one).callback] {
            if !part.is_null() {
                let found = visit(part, data);
                if found != 0 {
                    return found;
                }
            }
        }
    }
    0
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn clear(this: Object) -> c_int {
    let one = this.cast::<Hook>();
    // SAFETY: the fields are emptied before what they held is given up.
    unsafe {
        let parts = [(*one).original, (*one).callback];
        ((*one).original, (*one).callback) = (null_mut(), null_mut());
        parts.into_iter().for_each(|part| ffi::Py_DecRef(part));
    }
    0
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn dealloc(this: Object) {
    // SAFETY: the last reference is gone.
    unsafe {
        let kind = (*this).kind;
        ffi::PyObject_GC_UnTrack(this);
        if !(*this.cast::<Hook>()).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(this);
        }
        clear(this);
        ffi::PyObject_GC_Del(this.cast());
        ffi::Py_DecRef(kind);
    }
}

pub(crate) fn new_type() -> Object {
    // Both live as long as the type, which is for good.
    let members = Box::leak(Box::new([
        PyMemberDef {
            name: c"__weaklistoffset__".as_ptr(),
            kind: ffi::T_PYSSIZET,
            offset: offset_of!(Hook, weak) as Size,
            flags: ffi::READONLY,
            doc: null(),
        },
        PyMemberDef { name: null(), kind: 0, offset: 0, flags: 0, doc: null() },
    ]));
    let method = |name: &'static CStr, flags: c_int| PyMethodDef {
        name: name.as_ptr(),
        function: reduce as *const c_void,
        flags,
        doc: null(),
    };
    let methods = Box::leak(Box::new([
        method(c"__reduce__", ffi::METH_NOARGS),
        method(c"__reduce_ex__", ffi::METH_O),
        PyMethodDef { name: null(), function: null(), flags: 0, doc: null() },
    ]));
    let slot = |slot: c_int, function: *const c_void| PyTypeSlot { slot, function };
    let slots = [
        slot(ffi::TP_CALL, call as *const c_void),
        slot(ffi::TP_DESCR_GET, get as *const c_void),
        slot(ffi::TP_GETATTRO, get_attribute as *const c_void),
        slot(ffi::TP_REPR, representation as *const c_void),
        slot(ffi::TP_TRAVERSE, traverse as *const c_void),
        slot(ffi::TP_CLEAR, clear as *const c_void),
        slot(ffi::TP_DEALLOC, dealloc as *const c_void),
        slot(ffi::TP_MEMBERS, members.as_ptr().cast()),
        slot(ffi::TP_METHODS, methods.as_ptr().cast()),
        slot(0, null()),
    ];
    let spec = PyTypeSpec {
        name: c"_ullage_native.Hook".as_ptr(),
        size: size_of::<Hook>() as c_int,
        item_size: 0,
        flags: ffi::TYPE_DEFAULT | ffi::TYPE_GC,
        slots: slots.as_ptr(),
    };
    // SAFETY: the spec is read during the call only.
    unsafe { ffi::PyType_FromSpec(&spec) }
}
