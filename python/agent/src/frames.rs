//! Which functions of the program run: the innermost frame of each thread, and of which thread the agent was called.
//!
//! The surprise: `sys._current_frames()` names the function that asks too. A variable of it that still leads to a frame when it
//! returns makes a circle, which keeps all that its callers were called with, objects of the program among them, until somebody
//! collects garbage. A DataLoader's iterator that was kept so ended its workers with SIGTERM at the interpreter's end. So frames
//! of the agent are none of what is found here.

use crate::ffi::{self, Object, Size};
use crate::{guard, modules};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// A module has its name first; of a namespace that a program made for itself no more than so many are asked.
const MOST_NAMES: usize = 64;
/// `sys._current_frames`, taken before the program could put something of its own there.
static CURRENT: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());

/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn begin() {
    // SAFETY: as the caller promises; kept for good, and null is passed by.
    unsafe { CURRENT.store(ffi::held(ffi::PySys_GetObject(c"_current_frames".as_ptr())), SeqCst) };
}

/// `caller()`: the thread for which the agent was called, as `frames()` names it.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn caller(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyLong_FromSize_t(guard::caller() as usize) }
}

/// `frames()`: what `sys._current_frames()` says, but for the innermost functions that are of the agent, in any thread: another one
/// may have called it too. Nothing beside another interpreter: CPython makes frames of its threads too, with the memory of the
/// interpreter that asks, and the other one frees them as its own (3.12, 3.13: "free(): invalid pointer").
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn frames(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held until CPython has made them: another interpreter is made by a thread that has it.
    unsafe {
        let first = ffi::PyInterpreterState_Head();
        let current = CURRENT.load(SeqCst);
        let found = ffi::PyDict_New();
        if found.is_null() || current.is_null() || !ffi::PyInterpreterState_Next(first).is_null() {
            return found;
        }
        let all = ffi::PyObject_CallObject(current, null_mut());
        let ours = ffi::PyUnicode_FromString(c"_ullage_".as_ptr());
        let mut is_whole = !all.is_null() && !ours.is_null();
        let (mut place, mut thread, mut frame) = (0, null_mut(), null_mut());
        while is_whole && ffi::PyDict_Next(all, &mut place, &mut thread, &mut frame) != 0 {
            let frame = program(frame, ours);
            is_whole = frame.is_null() || ffi::PyDict_SetItem(found, thread, frame) == 0;
            ffi::Py_DecRef(frame);
            is_whole &= ffi::PyErr_Occurred().is_null();
        }
        ffi::Py_DecRef(ours);
        ffi::Py_DecRef(all);
        if !is_whole {
            ffi::Py_DecRef(found);
            return null_mut(); // with CPython's exception: memory is short
        }
        found
    }
}

/// The first frame from here outwards whose module is not named so: a new reference; null for none, and with an exception where
/// memory is short.
///
/// # Safety
/// The interpreter's lock is held, and it is a frame.
unsafe fn program(innermost: Object, ours: Object) -> Object {
    // SAFETY: as the caller promises; a frame holds those outside of it, and has its globals, a dict.
    unsafe {
        let mut frame = ffi::held(innermost);
        loop {
            let globals = ffi::PyObject_GetAttrString(frame, c"f_globals".as_ptr());
            let name = if globals.is_null() {
                None
            } else {
                modules::value_within(globals, c"__name__", MOST_NAMES)
            };
            let is_ours =
                name.is_some_and(|name| ffi::PyUnicode_Tailmatch(name, ours, 0, Size::MAX, -1) == 1);
            let is_lost = globals.is_null();
            ffi::Py_DecRef(globals);
            if !is_ours && !is_lost {
                return frame;
            }
            let outer =
                if is_lost { null_mut() } else { ffi::PyObject_GetAttrString(frame, c"f_back".as_ptr()) };
            ffi::Py_DecRef(frame);
            if outer.is_null() || outer == &raw mut ffi::_Py_NoneStruct {
                ffi::Py_DecRef(outer);
                return null_mut();
            }
            frame = outer;
        }
    }
}
