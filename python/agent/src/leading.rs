//! Which modules have a global that leads to an object: the object itself, or what has it as a part or among its attributes?
//!
//! Asked of all that libraries hold, of which forked workers share the pages: so no reference is counted, and parts are
//! visited as the collector does it (`tp_traverse`). Whoever asks goes into the few that are found.

use crate::below::Met;
use crate::ffi::{self, Object, Size};
use crate::modules::{each, is_text, namespace, whole};
use crate::{large, objects};
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

/// Dicts of one object that are gone into: of an instance its attributes, of a class its namespace.
const MOST_DICTS: usize = 4;
/// Globals of which it is known that they lead to nothing wanted; one more is asked again.
const MOST_KNOWN: usize = 1 << 18;
/// Values between two looks at the clock.
const AT_ONCE: usize = 1 << 10;
/// `Py_TPFLAGS_TYPE_SUBCLASS`: the object is a type.
const IS_TYPE: c_ulong = 1 << 31;
/// Of a type, in every CPython from 3.8 on: its namespace. Null for what CPython itself brings, from 3.12 on.
const NAMESPACE: usize = 264;

struct Search {
    wanted: Vec<usize>,
    passed_by: Vec<Object>,
    known: Met,
    until: i64,
    asked: usize,
    is_late: bool,
}

struct Parts<'a> {
    wanted: &'a [usize],
    is_found: bool,
    dicts: [Object; MOST_DICTS],
    number: usize,
}

impl Parts<'_> {
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn meet(&mut self, part: Object) {
        self.is_found |= self.wanted.contains(&(part as usize));
        // SAFETY: as the caller promises.
        if self.number < MOST_DICTS && unsafe { (*part).kind } == &raw mut ffi::PyDict_Type {
            self.dicts[self.number] = part;
            self.number += 1;
        }
    }
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `leads` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, parts: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        let parts = &mut *parts.cast::<Parts>();
        if !part.is_null() {
            parts.meet(part);
        }
        c_int::from(parts.is_found)
    }
}

impl Search {
    fn is_over(&mut self) -> bool {
        self.asked += 1;
        self.is_late |= self.asked.is_multiple_of(AT_ONCE) && ffi::computed() > self.until;
        self.is_late
    }

    /// One of the wanted is a part of the object, or of its attributes. A type that is not on the heap is not the collector's,
    /// and must not be asked for its parts.
    ///
    /// # Safety
    /// The interpreter's lock is held, and types' slots lie where they are thought to.
    unsafe fn leads(&mut self, object: Object) -> bool {
        let wanted = std::mem::take(&mut self.wanted);
        let mut parts =
            Parts { wanted: &wanted, is_found: false, dicts: [null_mut(); MOST_DICTS], number: 0 };
        // SAFETY: as the caller promises; nothing here runs Python code.
        unsafe {
            if ffi::PyObject_GC_IsTracked(object) == 1 {
                if let Some(traverse) = large::slot(object) {
                    traverse(object, visit, (&raw mut parts).cast());
                }
            } else if ffi::PyType_GetFlags((*object).kind) & IS_TYPE != 0 {
                let names = *((object as usize + NAMESPACE) as *const Object);
                if !names.is_null() {
                    parts.meet(names);
                }
            }
            let mut is_found = parts.is_found;
            for dict in &parts.dicts[..parts.number] {
                if is_found {
                    break;
                }
                each(*dict, |_, value| {
                    is_found = wanted.contains(&(value as usize));
                    is_found || self.is_over()
                });
            }
            self.wanted = wanted;
            is_found
        }
    }

    /// # Safety
    /// As of `leads`.
    unsafe fn is_wanted(&mut self, value: Object) -> bool {
        if self.wanted.contains(&(value as usize)) {
            return true;
        }
        // SAFETY: as the caller promises.
        if self.passed_by.contains(&unsafe { (*value).kind }) || self.known.has(value as usize) {
            return false;
        }
        // SAFETY: as the caller promises.
        let leads = unsafe { self.leads(value) };
        if !leads && !self.is_late {
            self.known.insert(value as usize);
        }
        leads
    }
}

/// `leading(modules, wanted, passed_by, ns)`: the modules, of no class derived from theirs, that the dict `modules` has by an
/// exact text, and of which one global is an object `wanted` (a tuple of ids), or refers to it, or has it among its
/// attributes. `passed_by`: exact types that are not gone into. What is not reached within so many nanoseconds of this thread's own is left out.
/// None where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn leading(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, and nothing below runs Python code: what is found is alive, though nothing is counted.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let wanted = objects::items(argument(1)).into_iter().map(|id| ffi::PyLong_AsSize_t(id)).collect();
        let passed_by = objects::items(argument(2));
        let until = ffi::computed().saturating_add(ffi::PyLong_AsLong(argument(3)));
        let failed = !ffi::PyErr_Occurred().is_null();
        ffi::PyErr_Clear();
        let Some(known) = Met::new(MOST_KNOWN).filter(|_| !failed && large::fits(module)) else {
            return ffi::none();
        };
        let mut search =
            Search { wanted, passed_by, known, until, asked: 0, is_late: ffi::computed() > until };
        let found = ffi::PyList_New(0);
        each(argument(0), |name, one| {
            if !found.is_null() && is_text(name) {
                let leads = each(namespace(one), |_, value| search.is_wanted(value) || search.is_over());
                if leads && !search.is_late {
                    ffi::PyList_Append(found, one);
                }
            }
            search.is_late
        });
        whole(found)
    }
}
