//! Which names has a running function, without a trace of the look?
//!
//! Up to CPython 3.12 a frame keeps the dict that `f_locals` fills: a batch would live on in there. And it may be the
//! program's: of `locals()`, of a debugger, or of a tracer or profiler in Python, after which CPython sets the variables from
//! that dict. So it is put back to what it was, before anybody else can run.

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
}

/// Of CPython 3.`minor` (frameobject.h, internal/pycore_frame.h).
fn layout(minor: i64) -> Option<Layout> {
    match minor {
        9 | 10 => Some(Layout { refers_to: None, code: 32, builtins: 40, globals: 48, locals: 56 }),
        11 => Some(Layout { refers_to: Some(24), globals: 8, builtins: 16, locals: 24, code: 32 }),
        12 => Some(Layout { refers_to: Some(24), code: 0, globals: 24, builtins: 32, locals: 40 }),
        _ => None,
    }
}

/// Where a frame keeps its dict; None where what else lies there is not what the frame says of itself.
///
/// # Safety
/// The interpreter's lock is held, and it is a frame.
unsafe fn place_of_dict(frame: Object, minor: i64) -> Option<*mut Object> {
    // SAFETY: as the caller promises; a frame is larger than that.
    unsafe {
        let layout = layout(minor)?;
        let place = match layout.refers_to {
            Some(at) => *((frame as usize + at) as *const usize),
            None => frame as usize,
        };
        let is_there = |name: &CStr, at: usize| {
            let value = ffi::PyObject_GetAttrString(frame, name.as_ptr());
            ffi::Py_DecRef(value);
            !value.is_null() && *((place + at) as *const Object) == value
        };
        let fits = place != 0
            && is_there(c"f_code", layout.code)
            && is_there(c"f_globals", layout.globals)
            && is_there(c"f_builtins", layout.builtins);
        fits.then_some((place + layout.locals) as *mut Object)
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
        let minor = ffi::PyLong_AsLong(argument(1));
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
        let pairs = place_of_dict(frame, minor).map_or(null_mut(), |place| pairs_of(frame, place));
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

/// # Safety
/// As of `locals`; `place` is where the frame keeps its dict.
unsafe fn pairs_of(frame: Object, place: *mut Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let before = if (*place).is_null() { null_mut() } else { ffi::PyDict_Copy(*place) };
        if before.is_null() && !(*place).is_null() {
            return null_mut();
        }
        let names = ffi::PyObject_GetAttrString(frame, c"f_locals".as_ptr());
        let pairs = if names.is_null() { null_mut() } else { ffi::PyDict_Items(names) };
        ffi::PyErr_Clear();
        if before.is_null() {
            // Where there was none, there must be none: CPython sets variables from an empty one, too.
            ffi::Py_DecRef(std::mem::replace(&mut *place, null_mut()));
        } else if !pairs.is_null() {
            ffi::PyDict_Clear(*place);
            ffi::PyDict_Update(*place, before);
        }
        ffi::Py_DecRef(names);
        ffi::Py_DecRef(before);
        pairs
    }
}
