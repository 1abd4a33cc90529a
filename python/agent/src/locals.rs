//! Which names has a running function, without a trace of the look?
//!
//! Up to CPython 3.12 a frame keeps the dict that `f_locals` fills: a batch would live on in there. And it may be the
//! program's: of `locals()`, of a debugger, or of a tracer or profiler in Python, after which CPython sets the variables from
//! that dict. So a look gets one of its own, and the
//! frame is as it was before anybody else can run.

use crate::ffi::{self, Object, Size};
use std::ffi::CStr;
use std::ptr::null_mut;

/// Where a frame's words lie: in itself, or since 3.11 in what it refers to there.
struct Layout {
    refers_to: Option<usize>,
    code: usize,
    globals: usize,
    builtins: usize,
    locals: usize,
    /// In the frame, a byte that says that `f_locals` was read: only then the variables are set from the dict.
    was_read: Option<usize>,
}

/// Of CPython 3.`minor` (frameobject.h, internal/pycore_frame.h).
fn layout(minor: i64) -> Option<Layout> {
    match minor {
        9 | 10 => {
            Some(Layout { refers_to: None, code: 32, builtins: 40, globals: 48, locals: 56, was_read: None })
        }
        11 => Some(Layout {
            refers_to: Some(24),
            globals: 8,
            builtins: 16,
            locals: 24,
            code: 32,
            was_read: Some(46),
        }),
        12 => Some(Layout {
            refers_to: Some(24),
            code: 0,
            globals: 24,
            builtins: 32,
            locals: 40,
            was_read: Some(46),
        }),
        _ => None,
    }
}

/// Where a frame keeps its dict, and whether it was read; None where what else lies there is not what the frame says of itself.
///
/// # Safety
/// The interpreter's lock is held, and it is a frame.
unsafe fn places(frame: Object, layout: &Layout) -> Option<(*mut Object, *mut u8)> {
    // SAFETY: as the caller promises; a frame is larger than that.
    unsafe {
        let place = match layout.refers_to {
            Some(at) => *((frame as usize + at) as *const usize),
            None => frame as usize,
        };
        let is_there = |value: Object, at: usize| {
            ffi::Py_DecRef(value);
            !value.is_null() && *((place + at) as *const Object) == value
        };
        let of = |name: &CStr| ffi::PyObject_GetAttrString(frame, name.as_ptr());
        // Not by its attribute, of which a hook of the program's would be told: other threads could run.
        let fits = place != 0
            && is_there(ffi::PyFrame_GetCode(frame), layout.code)
            && is_there(of(c"f_globals"), layout.globals)
            && is_there(of(c"f_builtins"), layout.builtins);
        let was_read = layout.was_read.map_or(null_mut(), |at| (frame as usize + at) as *mut u8);
        fits.then_some(((place + layout.locals) as *mut Object, was_read))
    }
}

/// `locals(frame, minor, isenabled, disable, enable)`: names and values of the locals of a function's frame; None where they
/// cannot be had. The last three are the collector's: what it frees may run code of the program's, and other threads.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn locals(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held; between the look at the dict and its end nothing runs but CPython's own code.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let frame = argument(0);
        let layout = layout(ffi::PyLong_AsLong(argument(1)));
        let call = |place: Size| {
            let answer = ffi::PyObject_CallObject(argument(place), null_mut());
            ffi::Py_DecRef(answer);
            answer
        };
        let collects = ffi::PyObject_CallObject(argument(2), null_mut());
        let was_on = !collects.is_null() && ffi::PyObject_IsTrue(collects) == 1;
        ffi::Py_DecRef(collects);
        if was_on {
            call(3);
        }
        let places = layout.and_then(|layout| places(frame, &layout));
        let pairs = places.map_or(null_mut(), |(place, was_read)| pairs_of(frame, place, was_read));
        ffi::PyErr_Clear();
        if was_on {
            call(4);
        }
        if pairs.is_null() {
            ffi::none()
        } else {
            pairs
        }
    }
}

/// The frame makes a dict anew, and gets its own back, or none.
///
/// # Safety
/// As of `locals`; `place` is where the frame keeps its dict, and `was_read` the byte that is set as it does, or null.
unsafe fn pairs_of(frame: Object, place: *mut Object, was_read: *mut u8) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let before = std::mem::replace(&mut *place, null_mut());
        let read_before = if was_read.is_null() { 0 } else { *was_read };
        let names = ffi::PyObject_GetAttrString(frame, c"f_locals".as_ptr());
        let pairs = if names.is_null() { null_mut() } else { ffi::PyDict_Items(names) };
        ffi::PyErr_Clear();
        ffi::Py_DecRef(std::mem::replace(&mut *place, before));
        if !was_read.is_null() {
            *was_read = read_before;
        }
        ffi::Py_DecRef(names);
        pairs
    }
}
