//! What is done once, before a process of some size forks for the first time: what each child would load is loaded, so that
//! they share it.

use crate::ffi::{self, Object, PyObject};
use crate::{guard, sandbox};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// Private bytes: a process with less, which may be a script that lives for milliseconds, pays nothing for its children.
const WORTH: i64 = 64 << 20;
/// Another thread of the program's own may have begun meanwhile.
const AT_MOST_NS: i64 = 100_000_000;
static LOADS: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// `before_first_fork(function)`: called once, where a process of some size forks.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn before_first_fork(_module: Object, function: Object) -> Object {
    // SAFETY: as above.
    LOADS.store(unsafe { ffi::held(function) }, SeqCst);
    ffi::none()
}

/// # Safety
/// The interpreter's lock is held, and the agent may run here.
pub(crate) unsafe fn load_once() {
    if LOADS.load(SeqCst).is_null() || guard::in_ours() {
        return;
    }
    let Some((private, threads)) = sandbox::private_if_open() else { return };
    let function = if private < WORTH { null_mut() } else { LOADS.swap(null_mut(), SeqCst) };
    if !function.is_null() {
        // SAFETY: as the caller promises; the reference is given up.
        unsafe {
            guard::notify(function, ffi::tuple([]));
            ffi::Py_DecRef(function);
            // CPython counts threads beside a fork (3.12), and the kernel counts one that was joined for a little longer.
            let until = ffi::now() + AT_MOST_NS;
            while ffi::now() < until && sandbox::private_if_open().is_some_and(|(_, now)| now > threads) {
                ffi::sched_yield();
            }
        }
    }
}
