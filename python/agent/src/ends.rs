//! Has a list, deque or dict been taken from at its front? Its first and last elements, by their addresses, and whether they are
//! still there. Nothing is counted: elements may lie in pages that a forked process shares.

use crate::ffi::{self, Object, Size};
use crate::large;
use std::collections::VecDeque;
use std::ffi::{c_int, c_ulong, c_void};

/// Py_TPFLAGS_DICT_SUBCLASS.
const IS_DICT: c_ulong = 1 << 29;

/// Some 10 ms; of larger ones nothing is said.
const MOST_VISITED: usize = 2_000_000;

struct Visits<'a> {
    take: &'a mut dyn FnMut(usize),
    left: usize,
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `each` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, visits: *mut c_void) -> c_int {
    // SAFETY: as above.
    let visits = unsafe { &mut *visits.cast::<Visits>() };
    (visits.take)(part as usize);
    visits.left -= 1;
    c_int::from(visits.left == 0) // anything but 0 ends the visits
}

/// Shows the address of each element; false where that cannot be done, or not of all.
///
/// # Safety
/// The interpreter's lock is held; `module` is ours.
unsafe fn each<'a>(module: Object, container: Object, take: &'a mut (dyn FnMut(usize) + 'a)) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let is_dict = ffi::PyType_GetFlags((*container).kind) & IS_DICT != 0;
        // A dict of what the collector need not know is not known to it either, before Python 3.14.
        let traverse = match is_dict && large::fits(module) {
            true => large::slot(container),
            false => large::traverse_of(module, container),
        };
        let Some(traverse) = traverse else { return false };
        let mut visits = Visits { take, left: MOST_VISITED };
        traverse(container, visit, (&raw mut visits).cast());
        visits.left > 0
    }
}

/// `ends(container, most)`: at most so many addresses of a list's or deque's first elements, and of its last; of a dict's, those of
/// keys and values. None where that cannot be had.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn ends(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, and no Python code runs.
    unsafe {
        let container = ffi::PyTuple_GetItem(arguments, 0);
        let most = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 1)).max(0) as usize;
        // A list's are read where they lie, however long it is.
        if ffi::PyType_GetFlags((*container).kind) & large::IS_LIST != 0 {
            let length = ffi::PyObject_Size(container).max(0) as usize;
            let address = |place: usize| ffi::PyList_GetItem(container, place as Size) as usize;
            let first = (0..length.min(most)).map(address).collect();
            let last = (length.saturating_sub(most)..length).map(address).collect();
            ffi::PyErr_Clear();
            return ffi::tuple([numbers(first), numbers(last)]);
        }
        let (mut first, mut last) = (Vec::new(), VecDeque::new());
        let was_visited = each(module, container, &mut |part| {
            if first.len() < most {
                first.push(part);
            }
            if last.len() == most {
                last.pop_front();
            }
            last.push_back(part);
        });
        ffi::PyErr_Clear();
        match was_visited {
            true => ffi::tuple([numbers(first), numbers(Vec::from(last))]),
            false => ffi::none(),
        }
    }
}

/// `still(container, addresses)`: how many of these are addresses of its elements. None where that cannot be had.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn still(module: Object, arguments: Object) -> Object {
    // SAFETY: as above.
    unsafe {
        let (container, addresses) = (ffi::PyTuple_GetItem(arguments, 0), ffi::PyTuple_GetItem(arguments, 1));
        let count = ffi::PyTuple_Size(addresses);
        let address = |place: Size| ffi::PyLong_AsSize_t(ffi::PyTuple_GetItem(addresses, place));
        let mut sought: Vec<(usize, bool)> = (0..count).map(|place| (address(place), false)).collect();
        sought.sort_unstable();
        let was_visited = each(module, container, &mut |part| {
            if let Ok(place) = sought.binary_search_by_key(&part, |one| one.0) {
                sought[place].1 = true;
            }
        });
        ffi::PyErr_Clear();
        if !was_visited {
            return ffi::none();
        }
        ffi::PyLong_FromSize_t(sought.iter().filter(|one| one.1).count())
    }
}

/// Each once.
///
/// # Safety
/// The interpreter's lock is held.
unsafe fn numbers(mut of: Vec<usize>) -> Object {
    of.sort_unstable();
    of.dedup();
    // SAFETY: as the caller promises; a tuple that could not be made takes nothing.
    unsafe {
        let tuple = ffi::PyTuple_New(of.len() as Size);
        for (place, number) in of.iter().enumerate() {
            ffi::PyTuple_SetItem(tuple, place as Size, ffi::PyLong_FromSize_t(*number));
        }
        tuple
    }
}
