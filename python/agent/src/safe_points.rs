//! Is it time for a look at memory? Nearly always it is too early, and the answer costs a read of the clock.
//!
//! Asked wherever a program comes by: a collection, `time.sleep`, a batch, a step, a model's call.

use crate::ffi::{self, Object, PyObject};
use crate::{guard, sandbox, waker};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::SeqCst};

/// Objects that a collection freed: then a look shows what the allocator keeps of them,
const MUCH_COLLECTED: i64 = 1000;
/// and no more often than so, so that the full look that it puts off comes all the same.
const EARLY_APART: f64 = 10.0;
const AGAIN_WHERE_IT_FAILED_S: f64 = 60.0;
pub(crate) const NEVER: i64 = i64::MAX;
/// Until a forked process has more private memory than this above the least that it had, its first look waits,
const RISEN_SINCE_FORK: i64 = 4 << 20;
/// and is asked for again after so long.
const AT_REST_S: f64 = 1.0;
const NOT_FORKED: i64 = -1;

/// By `ffi::now`.
pub(crate) static NEXT: AtomicI64 = AtomicI64::new(NEVER);
static NEXT_EARLY: AtomicI64 = AtomicI64::new(0);
static NEXT_BEFORE_COLLECTION: AtomicI64 = AtomicI64::new(NEVER);
/// `sample(light, early)`: seconds after which it wants to be called again.
pub(crate) static SAMPLE: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
/// Called before a collection, as often as it asks for: seconds, or None for never.
pub(crate) static BEFORE_COLLECTION: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());
/// There was a first look: a short one has something to compare with.
pub(crate) static SAMPLED: AtomicBool = AtomicBool::new(false);

/// The least private memory of a forked process that was not looked at yet.
static LEAST_SINCE_FORK: AtomicI64 = AtomicI64::new(NOT_FORKED);

pub(crate) fn after(seconds: f64) -> i64 {
    if seconds.is_finite() {
        ffi::now().saturating_add((seconds * 1e9) as i64)
    } else {
        NEVER
    }
}

pub(crate) fn due() -> bool {
    ffi::now() >= NEXT.load(SeqCst) && !rests_since_fork()
}

/// A forked process has nothing of its own to look at yet: any Python code would copy pages that it shares with its parent, for
/// room of CPython's and for counts of what the code names.
fn rests_since_fork() -> bool {
    let least = LEAST_SINCE_FORK.load(SeqCst);
    if least == NOT_FORKED {
        return false;
    }
    match sandbox::private_if_open_here() {
        Some((private, _)) if private - least.min(private) < RISEN_SINCE_FORK => {
            LEAST_SINCE_FORK.store(least.min(private), SeqCst);
            NEXT.store(after(AT_REST_S), SeqCst);
            true
        }
        _ => {
            LEAST_SINCE_FORK.store(NOT_FORKED, SeqCst);
            false
        }
    }
}

/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn safe_point(light: bool, early: bool) {
    let (now, due) = (ffi::now(), NEXT.load(SeqCst));
    let early = early && SAMPLED.load(SeqCst) && NEXT_EARLY.load(SeqCst) <= now && now < due;
    if due == NEVER || now < due && !(early || light) || guard::in_ours() || rests_since_fork() {
        return;
    }
    NEXT.store(NEVER, SeqCst);
    // SAFETY: the lock is held; the references are ours.
    let again = unsafe {
        let arguments = ffi::tuple([ffi::PyBool_FromLong(light.into()), ffi::PyBool_FromLong(early.into())]);
        let again = guard::run(SAMPLE.load(SeqCst), arguments, true);
        ffi::Py_DecRef(arguments);
        seconds(again).unwrap_or(AGAIN_WHERE_IT_FAILED_S)
    };
    SAMPLED.store(true, SeqCst);
    NEXT.store(if early { due.saturating_add((again * 1e9) as i64) } else { after(again) }, SeqCst);
    if early {
        NEXT_EARLY.store(after(EARLY_APART * again), SeqCst);
    }
}

/// Of a float that is given up here; none for null and for what is no number.
// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn seconds(object: Object) -> Option<f64> {
    if object.is_null() {
        return None;
    }
    // SAFETY: the lock is held; a failed conversion leaves an exception that is cleared.
    unsafe {
        let value = ffi::PyFloat_AsDouble(object);
        ffi::Py_DecRef(object);
        if ffi::PyErr_Occurred().is_null() {
            return Some(value);
        }
        ffi::PyErr_Clear();
    }
    None
}

/// For gc.callbacks: `(phase, info)`.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn on_collection(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held, and the arguments are borrowed for the call.
    unsafe {
        let info = ffi::PyTuple_GetItem(arguments, 1);
        let phase = ffi::PyTuple_GetItem(arguments, 0);
        if info.is_null() || phase.is_null() {
            ffi::PyErr_Clear();
            return ffi::none();
        }
        // "start" and "stop" are told by their lengths.
        if ffi::PyObject_Size(phase) == 4 {
            let collected = ffi::PyDict_GetItemString(info, c"collected".as_ptr());
            let many = !collected.is_null() && ffi::PyLong_AsLong(collected) >= MUCH_COLLECTED;
            // A program that waits after it has collected comes by nowhere else for long.
            safe_point(false, many);
            waker::at_collection();
        } else if ffi::now() >= NEXT_BEFORE_COLLECTION.load(SeqCst)
            && LEAST_SINCE_FORK.load(SeqCst) == NOT_FORKED
            && !guard::in_ours()
        {
            NEXT_BEFORE_COLLECTION.store(NEVER, SeqCst);
            let nothing = ffi::tuple([]);
            let again = guard::run(BEFORE_COLLECTION.load(SeqCst), nothing, true);
            ffi::Py_DecRef(nothing);
            NEXT_BEFORE_COLLECTION.store(after(seconds(again).unwrap_or(f64::INFINITY)), SeqCst);
        }
        ffi::PyErr_Clear();
        ffi::none()
    }
}

/// `before_collection(callable)`: from now on.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn before_collection(_module: Object, callable: Object) -> Object {
    // SAFETY: kept for good.
    BEFORE_COLLECTION.store(unsafe { ffi::held(callable) }, SeqCst);
    NEXT_BEFORE_COLLECTION.store(0, SeqCst);
    ffi::none()
}

/// `sample_with(callable)`.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn sample_with(_module: Object, callable: Object) -> Object {
    // SAFETY: kept for good.
    SAMPLE.store(unsafe { ffi::held(callable) }, SeqCst);
    ffi::none()
}

/// `next_sample(seconds)`: from now; infinite for never.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn next_sample(_module: Object, object: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        match seconds(ffi::held(object)) {
            Some(value) => NEXT.store(after(value), SeqCst),
            None => NEXT.store(NEVER, SeqCst),
        }
        ffi::none()
    }
}

/// `safe_point(*args, **kwargs)`: for a library that calls functions that were registered with it.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn passing(
    _module: Object,
    _arguments: Object,
    _keywords: Object,
) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        safe_point(false, false);
    }
    ffi::none()
}

/// `is_due()`.
// SAFETY: called by CPython, which holds the lock.
pub(crate) unsafe extern "C-unwind" fn is_due(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyBool_FromLong(due().into()) }
}

/// In a forked child, whose own status is open: what it has was its parent's.
pub(crate) fn has_inherited() {
    let private = sandbox::private_if_open_here().map_or(NOT_FORKED, |(private, _)| private);
    LEAST_SINCE_FORK.store(private, SeqCst);
}

pub(crate) fn after_fork(first_s: f64) {
    LEAST_SINCE_FORK.store(NOT_FORKED, SeqCst);
    NEXT_EARLY.store(0, SeqCst);
    SAMPLED.store(false, SeqCst);
    if NEXT_BEFORE_COLLECTION.load(SeqCst) == NEVER && !BEFORE_COLLECTION.load(SeqCst).is_null() {
        NEXT_BEFORE_COLLECTION.store(0, SeqCst);
    }
    if !SAMPLE.load(SeqCst).is_null() {
        NEXT.store(after(first_s), SeqCst);
    }
}
