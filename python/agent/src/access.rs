//! Stands for a method: that somebody asks for it is the moment to tell of its object.
//!
//! The method itself is handed out, bound as its own type binds it, so that nothing of ours is called by the program
//! nor calls it.

use crate::ffi::{self, Object, PyMemberDef, PyObject, PyTypeSlot, PyTypeSpec, Size};
use crate::{guard, safe_points};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Access {
    head: PyObject,
    function: Object,
    callback: Object,
    weak: Object,
    /// Nanoseconds between two calls of the callback at least; below 0: only when a look at memory is due.
    apart: i64,
    last: i64,
    calls: i64,
    /// Name of an attribute: the callback is called only where it is still the same object as when it was asked before.
    name: Object,
    value: Object,
    since: i64,
}

/// `access(function, callback, seconds, name=None)`; seconds below 0: only when a look is due. With the name of an
/// attribute the callback also gets the seconds for which that has not changed.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn access(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; the type lives as long as the module, which is never freed.
    unsafe {
        let kind = ffi::PyObject_GetAttrString(module, c"Access".as_ptr());
        let apart = ffi::PyTuple_GetItem(arguments, 2);
        if kind.is_null() || apart.is_null() {
            return null_mut();
        }
        let seconds = ffi::PyFloat_AsDouble(apart);
        let one = ffi::PyType_GenericAlloc(kind, 0).cast::<Access>();
        ffi::Py_DecRef(kind);
        if !one.is_null() {
            (*one).function = ffi::held(ffi::PyTuple_GetItem(arguments, 0));
            (*one).callback = ffi::held(ffi::PyTuple_GetItem(arguments, 1));
            (*one).apart = (seconds * 1e9) as i64;
            if ffi::PyTuple_Size(arguments) > 3 {
                (*one).name = ffi::held(ffi::PyTuple_GetItem(arguments, 3));
            }
        }
        one.cast()
    }
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn get(this: Object, object: Object, kind: Object) -> Object {
    let one = this.cast::<Access>();
    // SAFETY: the lock is held, and `this` is one of ours. CPython refers to it through its class alone, and the callback may put the
    // method back there, as may another thread: a reference of our own keeps it until the method is handed out.
    unsafe {
        ffi::Py_IncRef(this);
        let bound = notified_and_bound(one, object, kind);
        ffi::Py_DecRef(this);
        bound
    }
}

// SAFETY: called with the interpreter's lock held and objects that stay alive.
unsafe fn notified_and_bound(one: *mut Access, object: Object, kind: Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let is_none = object == &raw mut ffi::_Py_NoneStruct;
        if !object.is_null() && !is_none {
            (*one).calls += 1;
            let passes = if (*one).apart < 0 {
                safe_points::due()
            } else if (*one).apart == 0 {
                true
            } else {
                let now = ffi::now();
                let passes = now - (*one).last >= (*one).apart;
                if passes {
                    (*one).last = now;
                }
                passes
            };
            if passes && !guard::in_ours() {
                if (*one).name.is_null() {
                    guard::notify((*one).callback, ffi::tuple([ffi::held(object)]));
                } else if same_as_before(one, object) {
                    let seconds = (ffi::now() - (*one).since) as f64 / 1e9;
                    let report = ffi::tuple([ffi::held(object), ffi::PyFloat_FromDouble(seconds)]);
                    guard::notify((*one).callback, report);
                }
            }
        }
        if (*one).function.is_null() {
            ffi::PyErr_SetString(ffi::PyExc_TypeError, c"an empty access".as_ptr());
            return null_mut();
        }
        let bind = ffi::PyObject_GetAttrString((*one).function, c"__get__".as_ptr());
        if bind.is_null() {
            ffi::PyErr_Clear();
            return ffi::held((*one).function);
        }
        let or_none = |value: Object| if value.is_null() { ffi::none() } else { ffi::held(value) };
        let arguments = ffi::tuple([or_none(object), or_none(kind)]);
        let bound = ffi::PyObject_CallObject(bind, arguments);
        ffi::Py_DecRef(bind);
        ffi::Py_DecRef(arguments);
        bound
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn same_as_before(one: *mut Access, object: Object) -> bool {
    // SAFETY: the lock is held; the old value is given up after the new one is in its place.
    unsafe {
        let value = ffi::PyObject_GetAttr(object, (*one).name);
        if value.is_null() {
            ffi::PyErr_Clear();
            return false;
        }
        if value == (*one).value {
            ffi::Py_DecRef(value);
            return true;
        }
        let before = std::mem::replace(&mut (*one).value, value);
        (*one).since = ffi::now();
        ffi::Py_DecRef(before);
        false
    }
}

type Visit = unsafe extern "C-unwind" fn(Object, *mut c_void) -> c_int;

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn traverse(this: Object, visit: Visit, data: *mut c_void) -> c_int {
    let one = this.cast::<Access>();
    // SAFETY: the collector calls this for one of ours.
    unsafe {
        for part in [(*this).kind, (*one).function, (*one).callback, (*one).name, (*one).value] {
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
    let one = this.cast::<Access>();
    // SAFETY: the fields are emptied before what they held is given up.
    unsafe {
        let parts = [(*one).function, (*one).callback, (*one).name, (*one).value];
        ((*one).function, (*one).callback) = (null_mut(), null_mut());
        ((*one).name, (*one).value) = (null_mut(), null_mut());
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
        if !(*this.cast::<Access>()).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(this);
        }
        clear(this);
        ffi::PyObject_GC_Del(this.cast());
        ffi::Py_DecRef(kind);
    }
}

pub(crate) fn new_type() -> Object {
    let member = |name: &'static std::ffi::CStr, kind: c_int, offset: usize| PyMemberDef {
        name: name.as_ptr(),
        kind,
        offset: offset as Size,
        flags: ffi::READONLY,
        doc: null(),
    };
    // Both live as long as the type, which is for good.
    let members = Box::leak(Box::new([
        member(c"calls", ffi::T_LONGLONG, offset_of!(Access, calls)),
        member(c"function", ffi::T_OBJECT, offset_of!(Access, function)),
        member(c"__weaklistoffset__", ffi::T_PYSSIZET, offset_of!(Access, weak)),
        PyMemberDef { name: null(), kind: 0, offset: 0, flags: 0, doc: null() },
    ]));
    let slot = |slot: c_int, function: *const c_void| PyTypeSlot { slot, function };
    let slots = [
        slot(ffi::TP_DESCR_GET, get as *const c_void),
        slot(ffi::TP_TRAVERSE, traverse as *const c_void),
        slot(ffi::TP_CLEAR, clear as *const c_void),
        slot(ffi::TP_DEALLOC, dealloc as *const c_void),
        slot(ffi::TP_MEMBERS, members.as_ptr().cast()),
        slot(0, null()),
    ];
    let spec = PyTypeSpec {
        name: c"_ullage_native.Access".as_ptr(),
        size: size_of::<Access>() as c_int,
        item_size: 0,
        flags: ffi::TYPE_DEFAULT | ffi::TYPE_GC,
        slots: slots.as_ptr(),
    };
    // SAFETY: the spec is read during the call only.
    unsafe { ffi::PyType_FromSpec(&spec) }
}
