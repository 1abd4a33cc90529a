//! Where does code of the agent run in a program that has no address space left? In a mapping that was never touched, which is
//! given up as an exception leaves: CPython maps a megabyte where it needs one object more.

use crate::ffi::{self, Object};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

const BYTES: usize = 4 << 20;

static SPARE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `room(keep)`: keeps it, or gives it up.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn room(_module: Object, keep: Object) -> Object {
    // SAFETY: the lock is held, so that one thread at a time comes by; the mapping is of no file, and nobody refers to it.
    unsafe {
        let before = SPARE.swap(null_mut(), SeqCst);
        if !before.is_null() {
            ffi::munmap(before, BYTES);
        }
        if ffi::PyObject_IsTrue(keep) == 1 {
            let place = ffi::mmap(null_mut(), BYTES, 0, ffi::MAP_PRIVATE_AND_ANONYMOUS, -1, 0);
            if place as isize != -1 {
                SPARE.store(place.cast(), SeqCst);
            }
        }
    }
    ffi::none()
}
