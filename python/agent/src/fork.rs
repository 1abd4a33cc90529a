//! What happens in a forked child before the program goes on in it: a word to ullage, and no Python code.
//!
//! The child speaks over its parent's connection: the kernel tells who sent a message (SO_PASSCRED, unix(7)). A
//! connection of its own comes with the first thing that it has to tell.

use crate::ffi::{self, Object};
use crate::{allocated, collector, ending, guard, safe_points, sandbox, speak, waker};
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::OnceLock;

static CONNECTION: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
static FIRST_NS: AtomicI64 = AtomicI64::new(0);
static HELLO: OnceLock<Vec<u8>> = OnceLock::new();

/// `connection(fd, hello, first_look)`: the descriptor that the agent speaks over, and what a forked child says first.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn connection(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; the bytes are copied.
    unsafe {
        let fd = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 0)) as c_int;
        let hello = ffi::PyTuple_GetItem(arguments, 1);
        let first = ffi::PyFloat_AsDouble(ffi::PyTuple_GetItem(arguments, 2));
        let (mut bytes, mut length) = (std::ptr::null_mut(), 0);
        if ffi::PyBytes_AsStringAndSize(hello, &mut bytes, &mut length) == 0 {
            let text = std::slice::from_raw_parts(bytes.cast::<u8>().cast_const(), length as usize);
            HELLO.get_or_init(|| text.to_vec());
        }
        ffi::PyErr_Clear();
        let (device, inode) = sandbox::identity(fd).unwrap_or_default();
        CONNECTION.store(fd, SeqCst);
        DEVICE.store(device, SeqCst);
        INODE.store(inode, SeqCst);
        FIRST_NS.store((first * 1e9) as i64, SeqCst);
        ending::begins();
        ffi::none()
    }
}

fn send(fd: c_int, message: &[u8]) -> bool {
    // SAFETY: the bytes are read during the call only.
    let sent = unsafe { ffi::send(fd, message.as_ptr().cast(), message.len(), speak::AT_ONCE) };
    sent == message.len() as isize
}

/// Sends a message; false where it could not be sent, or that number is not the agent's connection any more.
pub(crate) fn say(message: &[u8]) -> bool {
    let fd = CONNECTION.load(SeqCst);
    let ours = fd >= 0 && sandbox::identity(fd) == Some((DEVICE.load(SeqCst), INODE.load(SeqCst)));
    ours && send(fd, message)
}

/// For os.register_at_fork.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn in_child(_module: Object, _arguments: Object) -> Object {
    guard::after_fork();
    // SAFETY: CPython holds the lock, and calls its hooks with no exception set.
    unsafe { collector::after_fork() };
    safe_points::after_fork(FIRST_NS.load(SeqCst) as f64 / 1e9);
    ending::in_child();
    let fd = CONNECTION.load(SeqCst);
    if fd >= 0 && sandbox::identity_of_ours(fd, DEVICE.load(SeqCst), INODE.load(SeqCst)) {
        safe_points::has_inherited();
        if let Some(hello) = HELLO.get() {
            send(fd, hello);
        }
    }
    let asks_in_vain = waker::was_reading();
    waker::in_child(asks_in_vain);
    allocated::in_child(asks_in_vain);
    ffi::none()
}

/// `status(fd, filters)`: /proc/self/status, and how many filters there were at the start.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn status(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe {
        let fd: c_long = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 0));
        let filters = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 1));
        sandbox::set_up(fd as c_int, filters);
    }
    ffi::none()
}
