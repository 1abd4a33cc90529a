//! How does a program end that has nothing to tell? It says so in C: a thread of the agent's for it would be a tenth of what a
//! start and an end may cost.

use crate::ffi::{self, Object};
use crate::{fork, guard, sandbox};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};

const BYE: &[u8] = br#"{"kind":"bye","figures":{}}"#;
/// So young a program has no figures that anybody would ask for.
const BRIEF: i64 = 1_000_000_000;
/// Where CPython keeps the exception by which a program ends: until 3.11, and since.
const LAST: [&std::ffi::CStr; 2] = [c"last_value", c"last_exc"];

/// By `ffi::now`; below zero: another process began.
static BEGAN: AtomicI64 = AtomicI64::new(-1);
static HAS_FIGURES: AtomicBool = AtomicBool::new(false);

/// The agent speaks from now on.
pub(crate) fn begins() {
    BEGAN.store(ffi::now(), SeqCst);
}

/// A forked child's end is the agent's to tell, after it has a connection of its own.
pub(crate) fn in_child() {
    HAS_FIGURES.store(true, SeqCst);
}

/// `has_figures()`: this program used something that the agent has figures of.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn has_figures(_module: Object, _arguments: Object) -> Object {
    HAS_FIGURES.store(true, SeqCst);
    ffi::none()
}

/// `at_exit(callback)`: a builtin function for `atexit`, which calls it where there may be something to tell.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn at_exit(_module: Object, callback: Object) -> Object {
    // SAFETY: CPython reads the definition only.
    unsafe { ffi::PyCFunction_NewEx((&raw const AT_EXIT.0).cast_mut(), callback, null_mut()) }
}

struct Definition(ffi::PyMethodDef);
// SAFETY: read only.
unsafe impl Sync for Definition {}
static AT_EXIT: Definition = Definition(ffi::PyMethodDef {
    name: c"ullage".as_ptr(),
    function: ends as *const c_void,
    flags: ffi::METH_VARARGS,
    doc: std::ptr::null(),
});

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
unsafe extern "C-unwind" fn ends(callback: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        if !(is_brief() && sandbox::is_open() && fork::say(BYE)) {
            guard::notify(callback, ffi::held(arguments));
        }
    }
    ffi::none()
}

// SAFETY: called with the interpreter's lock held.
unsafe fn is_brief() -> bool {
    let began = BEGAN.load(SeqCst);
    began >= 0
        && ffi::now() < began.saturating_add(BRIEF)
        && !HAS_FIGURES.load(SeqCst)
        // SAFETY: the lock is held; what it returns is borrowed and not read.
        && LAST.iter().all(|name| unsafe { ffi::PySys_GetObject(name.as_ptr()) }.is_null())
}
