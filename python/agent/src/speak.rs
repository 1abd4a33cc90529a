//! How does the agent reach ullage? Over one SOCK_SEQPACKET socket, made and used without Python's `_socket`.
//!
//! The surprise: to import `_socket` is a tenth of what a start may cost, in a program that may never use it.

use crate::ffi::{self, Object};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

const AF_UNIX: u16 = 1;
/// SOCK_SEQPACKET, SOCK_CLOEXEC and SOCK_NONBLOCK.
const KIND: c_int = 5 | ffi::O_CLOEXEC | 0o4000;
const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;
/// MSG_DONTWAIT and MSG_NOSIGNAL.
pub(crate) const AT_ONCE: c_int = 0x40 | 0x4000;
const POLLIN: i16 = 1;

/// struct sockaddr_un (unix(7)).
#[repr(C)]
struct Address {
    family: u16,
    path: [u8; 108],
}

/// struct ucred (unix(7)).
#[repr(C)]
#[derive(Default)]
struct Peer {
    pid: i32,
    uid: u32,
    gid: u32,
}

/// `connect(path)`: a descriptor, or -1 where nobody listens there or the listener is another user's than root's or ours.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn connect(_module: Object, path: Object) -> Object {
    // SAFETY: the lock is held; the bytes are read during the call only.
    let fd = unsafe { bytes(path).and_then(connected) }.unwrap_or(-1);
    // SAFETY: the lock is held.
    unsafe { ffi::PyLong_FromLong(fd.into()) }
}

/// The bytes of a bytes object; none, and no exception, where it is something else.
///
/// # Safety
/// The interpreter's lock is held, and the object lives as long as what is returned.
unsafe fn bytes<'a>(object: Object) -> Option<&'a [u8]> {
    let (mut start, mut length): (*mut c_char, isize) = (null_mut(), 0);
    // SAFETY: as the caller promises.
    unsafe {
        if ffi::PyBytes_AsStringAndSize(object, &mut start, &mut length) != 0 {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(start.cast::<u8>().cast_const(), usize::try_from(length).ok()?))
    }
}

fn connected(path: &[u8]) -> Option<c_int> {
    let mut address = Address { family: AF_UNIX, path: [0; 108] };
    address.path.get_mut(..path.len()).filter(|_| path.len() < 108)?.copy_from_slice(path);
    // SAFETY: the kernel reads and writes within the structures given; the descriptor is this function's own until it
    // is returned.
    unsafe {
        let fd = ffi::socket(AF_UNIX.into(), KIND, 0);
        if fd < 0 {
            return None;
        }
        let reached = ffi::connect(fd, (&raw const address).cast(), size_of::<Address>() as u32) == 0;
        let (mut peer, mut size) = (Peer::default(), size_of::<Peer>() as u32);
        let known = reached
            && ffi::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, (&raw mut peer).cast(), &mut size) == 0
            && (peer.uid == 0 || peer.uid == ffi::getuid() || peer.uid == ffi::geteuid());
        if !known {
            ffi::close(fd);
            return None;
        }
        Some(fd)
    }
}

/// `speak(fd, message, seconds)`: sends it, and waits so long for an answer, which is one byte; True where it was sent.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn speak(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held, and given up only while nothing of CPython's is used.
    unsafe {
        let fd = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 0)) as c_int;
        let message = ffi::PyTuple_GetItem(arguments, 1);
        let seconds = ffi::PyFloat_AsDouble(ffi::PyTuple_GetItem(arguments, 2));
        let sent = bytes(message).is_some_and(|message| {
            ffi::send(fd, message.as_ptr().cast(), message.len(), AT_ONCE) == message.len() as isize
        });
        ffi::PyErr_Clear();
        if sent && seconds > 0.0 {
            let state = ffi::PyEval_SaveThread();
            answer(fd, (seconds * 1e3) as c_int);
            ffi::PyEval_RestoreThread(state);
        }
        ffi::PyBool_FromLong(sent.into())
    }
}

fn answer(fd: c_int, milliseconds: c_int) {
    let mut waited = ffi::Polled { fd, events: POLLIN, found: 0 };
    let mut byte = [0u8; 1];
    // SAFETY: one structure of poll(2), one byte.
    unsafe {
        if ffi::poll(&mut waited, 1, milliseconds) == 1 {
            ffi::recv(fd, byte.as_mut_ptr().cast::<c_void>(), 1, AT_ONCE);
        }
    }
}
