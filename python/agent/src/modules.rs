//! Which modules are the program's own?
//!
//! A program has thousands of modules, nearly all of them libraries'. To ask each for its file in Python counts a reference to
//! the module, its namespace and the file's name: three pages each, that forked workers share. Here they are only read.

use crate::ffi::{self, Object, Size};
use crate::objects;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Calls it with each name and value of a dict, until it says that this is enough. What it is handed is not counted, so that
/// it may run no Python code.
///
/// # Safety
/// The interpreter's lock is held. Of what is no dict there is none.
pub(crate) unsafe fn each(dict: Object, mut is_enough: impl FnMut(Object, Object) -> bool) -> bool {
    let (mut place, mut key, mut value) = (0, null_mut(), null_mut());
    // SAFETY: as the caller promises.
    while !dict.is_null() && unsafe { ffi::PyDict_Next(dict, &mut place, &mut key, &mut value) } != 0 {
        if is_enough(key, value) {
            return true;
        }
    }
    false
}

/// The namespace of a module of no class derived from theirs; null of what is none.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn namespace(module: Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        if (*module).kind == &raw mut ffi::PyModule_Type {
            ffi::PyModule_GetDict(module)
        } else {
            null_mut()
        }
    }
}

/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn is_text(object: Object) -> bool {
    // SAFETY: as the caller promises.
    unsafe { (*object).kind == &raw mut ffi::PyUnicode_Type }
}

/// What a namespace has under a name; None where that is no exact text. Not looked up: a key of the program's with the same
/// hash would be compared, by code of its own.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn value_of(names: Object, wanted: &CStr) -> Option<Object> {
    // SAFETY: as the caller promises.
    unsafe { value_within(names, wanted, usize::MAX) }
}

/// So, among the first `most` names.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn value_within(names: Object, wanted: &CStr, most: usize) -> Option<Object> {
    let (mut found, mut number) = (None, 0);
    // SAFETY: as the caller promises; nothing here runs Python code.
    unsafe {
        each(names, |key, value| {
            number += 1;
            let is_it = is_text(key) && ffi::PyUnicode_CompareWithASCIIString(key, wanted.as_ptr()) == 0;
            if is_it && is_text(value) {
                found = Some(value);
            }
            is_it || number >= most
        });
    }
    found
}

/// `program_modules(modules, within, begins)`: one after the other, the names, exact texts, by which the dict `modules` has
/// modules, of no class derived from theirs, and those modules: that are called `__main__`, or have a `__file__` that neither
/// holds one of the texts `within` nor begins with one of `begins`. None where memory is short.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn program_modules(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, and nothing below runs Python code: what is found is alive, though nothing is counted.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let (within, begins) = (objects::items(argument(1)), objects::items(argument(2)));
        let is_own = |file: Object| {
            !within.iter().any(|part| ffi::PyUnicode_Contains(file, *part) != 0)
                && !begins.iter().any(|first| ffi::PyUnicode_Tailmatch(file, *first, 0, Size::MAX, -1) != 0)
        };
        let found = ffi::PyList_New(0);
        each(argument(0), |name, module| {
            let names = namespace(module);
            let is_main = || {
                value_of(names, c"__name__")
                    .is_some_and(|own| ffi::PyUnicode_CompareWithASCIIString(own, c"__main__".as_ptr()) == 0)
            };
            let is_there = is_text(name) && !names.is_null() && !found.is_null();
            if is_there && (value_of(names, c"__file__").is_some_and(is_own) || is_main()) {
                ffi::PyList_Append(found, name);
                ffi::PyList_Append(found, module);
            }
            false
        });
        whole(found)
    }
}

/// The list; None where there was no room for all of it.
///
/// # Safety
/// The interpreter's lock is held, and the list is the caller's own or null.
pub(crate) unsafe fn whole(list: Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        if list.is_null() || !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            if !list.is_null() {
                ffi::Py_DecRef(list);
            }
            return ffi::none();
        }
    }
    list
}

/// `module_with(modules, names)`: the module in the dict `modules` whose namespace this dict is, or None.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn module_with(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, and nothing below runs Python code.
    unsafe {
        let (modules, names) = (ffi::PyTuple_GetItem(arguments, 0), ffi::PyTuple_GetItem(arguments, 1));
        let mut found = None;
        each(modules, |_, module| {
            found = (namespace(module) == names).then_some(module);
            found.is_some()
        });
        found.map_or_else(ffi::none, |module| ffi::held(module))
    }
}

/// The namespaces of all that is a module, in the dict `modules`.
///
/// # Safety
/// The interpreter's lock is held; they live as long as nothing runs that could take a module away.
pub(crate) unsafe fn namespaces(modules: Object) -> Vec<Object> {
    let mut found = Vec::new();
    // SAFETY: as the caller promises.
    unsafe {
        each(modules, |_, module| {
            if ffi::PyType_IsSubtype((*module).kind, &raw mut ffi::PyModule_Type) != 0 {
                found.push(ffi::PyModule_GetDict(module));
            }
            false
        });
    }
    found
}
