//! Which functions of the program run: the innermost frame of each thread, and of which thread the agent was called.
//!
//! The surprise: `sys._current_frames()` names the function that asks too. A variable of it that still leads to a frame when it
//! returns makes a circle, which keeps all that its callers were called with, objects of the program among them, until somebody
//! collects garbage. A DataLoader's iterator that was kept so ended its workers with SIGTERM at the interpreter's end. So frames
//! of the agent are none of what is found here.

use crate::ffi::{self, Object};
use crate::{guard, modules};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;

/// `caller()`: the thread that came by, as `frames()` names it.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn caller(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyLong_FromSize_t(guard::CALLER.load(SeqCst) as usize) }
}

/// `frames()`: what `sys._current_frames()` says, but for frames of the agent: where it runs in the program's own thread, the
/// program's innermost one. Nothing beside another interpreter: CPython makes frames of its threads too, with
/// the memory of the interpreter that asks, and the other one frees them as its own (3.12, 3.13: "free(): invalid pointer").
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn frames(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held until CPython has made them: another interpreter is made by a thread that has it.
    unsafe {
        let first = ffi::PyInterpreterState_Head();
        let current = ffi::PySys_GetObject(c"_current_frames".as_ptr());
        if current.is_null() || !ffi::PyInterpreterState_Next(first).is_null() {
            return ffi::PyDict_New();
        }
        let found = ffi::PyObject_CallObject(current, null_mut());
        if found.is_null() {
            return null_mut();
        }
        let thread = ffi::PyLong_FromSize_t(ffi::pthread_self() as usize);
        let frame = program(ffi::PyDict_GetItem(found, thread));
        if frame.is_null() {
            ffi::PyDict_DelItem(found, thread);
        } else {
            ffi::PyDict_SetItem(found, thread, frame);
        }
        ffi::Py_DecRef(frame);
        ffi::Py_DecRef(thread);
        ffi::PyErr_Clear(); // a thread without a frame had none to take out
        found
    }
}

/// The first frame from here outwards that is not of the agent: a new reference, or null.
///
/// # Safety
/// The interpreter's lock is held, and it is a frame or null.
unsafe fn program(innermost: Object) -> Object {
    // SAFETY: as the caller promises; a frame holds those outside of it, and has its globals, a dict.
    unsafe {
        let mut frame = ffi::held(innermost);
        while !frame.is_null() && is_ours(frame) {
            let outer = ffi::PyObject_GetAttrString(frame, c"f_back".as_ptr());
            ffi::Py_DecRef(frame);
            frame = outer;
            if frame == &raw mut ffi::_Py_NoneStruct {
                ffi::Py_DecRef(frame);
                frame = null_mut();
            }
        }
        frame
    }
}

/// # Safety
/// As of `program`; it is not null.
unsafe fn is_ours(frame: Object) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let globals = ffi::PyObject_GetAttrString(frame, c"f_globals".as_ptr());
        let prefix = ffi::PyUnicode_FromString(c"_ullage_".as_ptr());
        let is_ours = !globals.is_null()
            && !prefix.is_null()
            && modules::value_of(globals, c"__name__")
                .is_some_and(|name| ffi::PyUnicode_Tailmatch(name, prefix, 0, ffi::Size::MAX, -1) == 1);
        ffi::Py_DecRef(prefix);
        ffi::Py_DecRef(globals);
        is_ours
    }
}
