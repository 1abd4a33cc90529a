//! What does an object refer to that is no container of Python's own: an ElementTree's element in C, the module `atexit`?
//!
//! Asked as the collector asks (`tp_traverse`). `gc.get_referents` would make a list of all: of a million children it would
//! raise malloc's threshold for mappings, and count a reference to each of them.

use crate::ffi::{self, Object};
use crate::large;
use std::ffi::{c_int, c_void};

struct Taken {
    /// Every how many-th is taken; 0 takes none.
    step: usize,
    number: usize,
    list: Object,
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `referents` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, taken: *mut c_void) -> c_int {
    // SAFETY: as above; a part that is put into the list is counted.
    unsafe {
        let taken = &mut *taken.cast::<Taken>();
        if taken.step > 0 && taken.number % taken.step == 0 && !part.is_null() {
            ffi::PyList_Append(taken.list, part);
        }
        taken.number += 1;
    }
    0
}

/// `referents(object, most)`: how many there are, and at most `most` of them, evenly spread. (0, []) where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn referents(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, and no Python code runs, so that nothing comes or goes between the two visits.
    unsafe {
        let object = ffi::PyTuple_GetItem(arguments, 0);
        let most = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 1)).max(0) as usize;
        let mut taken = Taken { step: 0, number: 0, list: ffi::PyList_New(0) };
        let traverse = large::traverse_of(module, object);
        if let (Some(traverse), false) = (traverse, taken.list.is_null()) {
            traverse(object, visit, (&raw mut taken).cast());
            if most > 0 {
                taken.step = taken.number.div_ceil(most).max(1);
                taken.number = 0;
                traverse(object, visit, (&raw mut taken).cast());
            }
        }
        ffi::PyErr_Clear();
        ffi::tuple([ffi::PyLong_FromSize_t(taken.number), taken.list])
    }
}
