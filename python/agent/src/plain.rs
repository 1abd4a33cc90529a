//! Lies in a class where a function lay: that somebody asks the class for it is a moment to read memory.
//!
//! What is handed out is the function itself, so that nothing of ours is called by the program. Who reads the class's
//! `__dict__` meets this object: it is called, compared, hashed, copied and shown as the function is, and not pickled.

use crate::ffi::{self, Object, PyMemberDef, PyObject, PyTypeSlot, PyTypeSpec, Size};
use crate::safe_points;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Plain {
    head: PyObject,
    function: Object,
    weak: Object,
}

/// `plain(function)`: one for a builtin function, which its class binds to nothing; another object as it is.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn plain(module: Object, function: Object) -> Object {
    // SAFETY: the lock is held; the type lives as long as the module, which is never freed.
    unsafe {
        if (*function).kind != &raw mut ffi::PyCFunction_Type {
            return ffi::held(function);
        }
        let kind = ffi::PyObject_GetAttrString(module, c"Plain".as_ptr());
        if kind.is_null() {
            return null_mut();
        }
        let one = ffi::PyType_GenericAlloc(kind, 0).cast::<Plain>();
        ffi::Py_DecRef(kind);
        if !one.is_null() {
            (*one).function = ffi::held(function);
        }
        one.cast()
    }
}

/// The function; null with an exception for one that the collector emptied or somebody made by calling its type.
// SAFETY: called with the interpreter's lock held and one of ours.
unsafe fn function(this: Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let function = (*this.cast::<Plain>()).function;
        if function.is_null() {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"an empty place".as_ptr());
        }
        function
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn get(this: Object, _object: Object, _kind: Object) -> Object {
    // SAFETY: the lock is held, and the caller holds `this`, which may be taken out of its class meanwhile.
    unsafe {
        let function = ffi::held(function(this));
        safe_points::safe_point(false, false);
        function
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn call(this: Object, arguments: Object, keywords: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return null_mut();
        }
        ffi::PyObject_Call(function, arguments, keywords)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn get_attribute(this: Object, name: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return null_mut();
        }
        ffi::PyObject_GetAttr(function, name)
    }
}

/// Refused, as the function refuses it.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn set_attribute(this: Object, name: Object, value: Object) -> c_int {
    // SAFETY: the lock is held, and `this` is one of ours; a value of null deletes.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return -1;
        }
        ffi::PyObject_SetAttr(function, name, value)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn representation(this: Object) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return null_mut();
        }
        ffi::PyObject_Repr(function)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn hash(this: Object) -> Size {
    // SAFETY: the lock is held, and `this` is one of ours.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return -1;
        }
        ffi::PyObject_Hash(function)
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn compare(this: Object, other: Object, how: c_int) -> Object {
    // SAFETY: the lock is held, and `this` is one of ours; two of ours compare what they hold.
    unsafe {
        let function = function(this);
        if function.is_null() {
            return null_mut();
        }
        let other = if (*other).kind == (*this).kind { (*other.cast::<Plain>()).function } else { other };
        if other.is_null() {
            return ffi::PyBool_FromLong(0);
        }
        ffi::PyObject_RichCompare(function, other, how)
    }
}

type Visit = unsafe extern "C-unwind" fn(Object, *mut c_void) -> c_int;

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn traverse(this: Object, visit: Visit, data: *mut c_void) -> c_int {
    // SAFETY: the collector calls this for one of ours.
    unsafe {
        for part in [(*this).kind, (*this.cast::<Plain>()).function] {
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
    // SAFETY: the field is emptied before what it held is given up.
    unsafe {
        let function = std::mem::replace(&mut (*this.cast::<Plain>()).function, null_mut());
        ffi::Py_DecRef(function);
    }
    0
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn dealloc(this: Object) {
    // SAFETY: the last reference is gone.
    unsafe {
        let kind = (*this).kind;
        ffi::PyObject_GC_UnTrack(this);
        if !(*this.cast::<Plain>()).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(this);
        }
        clear(this);
        ffi::PyObject_GC_Del(this.cast());
        ffi::Py_DecRef(kind);
    }
}

pub(crate) fn new_type() -> Object {
    // They live as long as the type, which is for good.
    let members = Box::leak(Box::new([
        PyMemberDef {
            name: c"__weaklistoffset__".as_ptr(),
            kind: ffi::T_PYSSIZET,
            offset: offset_of!(Plain, weak) as Size,
            flags: ffi::READONLY,
            doc: null(),
        },
        PyMemberDef { name: null(), kind: 0, offset: 0, flags: 0, doc: null() },
    ]));
    let slot = |slot: c_int, function: *const c_void| PyTypeSlot { slot, function };
    let slots = [
        slot(ffi::TP_CALL, call as *const c_void),
        slot(ffi::TP_CLEAR, clear as *const c_void),
        slot(ffi::TP_DEALLOC, dealloc as *const c_void),
        slot(ffi::TP_DESCR_GET, get as *const c_void),
        slot(ffi::TP_GETATTRO, get_attribute as *const c_void),
        slot(ffi::TP_HASH, hash as *const c_void),
        slot(ffi::TP_REPR, representation as *const c_void),
        slot(ffi::TP_RICHCOMPARE, compare as *const c_void),
        slot(ffi::TP_SETATTRO, set_attribute as *const c_void),
        slot(ffi::TP_TRAVERSE, traverse as *const c_void),
        slot(ffi::TP_MEMBERS, members.as_ptr().cast()),
        slot(0, null()),
    ];
    let spec = PyTypeSpec {
        name: c"_ullage_native.Plain".as_ptr(),
        size: size_of::<Plain>() as c_int,
        item_size: 0,
        flags: ffi::TYPE_DEFAULT | ffi::TYPE_GC,
        slots: slots.as_ptr(),
    };
    // SAFETY: the spec is read during the call only.
    unsafe { ffi::PyType_FromSpec(&spec) }
}
