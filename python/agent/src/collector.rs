//! No collection begins while Python code of the agent runs.
//!
//! One in the agent's thread would call finalizers, weak references' callbacks and `gc.callbacks` of the program in a
//! thread that the program does not know, while its own thread may hold the lock that a finalizer wants. What is
//! allocated meanwhile is counted all the same, and the program's next allocation collects. The surprise: another
//! thread of the program that asks `gc.isenabled()` in these milliseconds hears no; what the program has set is told by
//! `collects()`.

use crate::ffi::{self, Object, PyObject};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};

static ENABLE: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
static DISABLE: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
static IS_ENABLED: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
/// Threads in which code of the agent runs; all of this changes with the interpreter's lock held.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// It was the agent that disabled the collector.
static OFF: AtomicBool = AtomicBool::new(false);

/// `collector(enable, disable, is_enabled)`: the functions of `gc`. `PyGC_Disable` is not there before CPython 3.10.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn collector(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; the functions are kept for good.
    unsafe {
        for (place, function) in [&ENABLE, &DISABLE, &IS_ENABLED].into_iter().enumerate() {
            function.store(ffi::held(ffi::PyTuple_GetItem(arguments, place as isize)), SeqCst);
        }
    }
    ffi::none()
}

/// What a builtin function without arguments says; false where there is none.
// SAFETY: called with the interpreter's lock held.
unsafe fn call(function: &AtomicPtr<PyObject>) -> bool {
    let function = function.load(SeqCst);
    if function.is_null() {
        return false;
    }
    // SAFETY: the lock is held; null is passed by.
    unsafe {
        let result = ffi::PyObject_CallObject(function, null_mut());
        let truth = !result.is_null() && ffi::PyObject_IsTrue(result) == 1;
        ffi::Py_DecRef(result);
        truth
    }
}

/// # Safety
/// The interpreter's lock is held and no exception is set; `go_on` follows.
pub(crate) unsafe fn stop() {
    // SAFETY: as the caller promises.
    unsafe {
        if INSIDE.fetch_add(1, SeqCst) == 0 && call(&IS_ENABLED) {
            call(&DISABLE);
            OFF.store(true, SeqCst);
        }
    }
}

/// # Safety
/// As of `stop`.
pub(crate) unsafe fn go_on() {
    // SAFETY: as the caller promises.
    unsafe {
        if INSIDE.fetch_sub(1, SeqCst) == 1 && OFF.swap(false, SeqCst) {
            call(&ENABLE);
        }
    }
}

/// In a forked child, which has not the threads that would let it go on.
///
/// # Safety
/// As of `stop`.
pub(crate) unsafe fn after_fork() {
    INSIDE.store(0, SeqCst);
    if OFF.swap(false, SeqCst) {
        // SAFETY: as the caller promises.
        unsafe { call(&ENABLE) };
    }
}

/// `collects()`: `gc.isenabled()` as the program has left it.
// SAFETY: called by CPython, which holds the lock.
pub(crate) unsafe extern "C-unwind" fn collects(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyBool_FromLong((OFF.load(SeqCst) || call(&IS_ENABLED)).into()) }
}
