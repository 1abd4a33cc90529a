//! Which modules have a global that leads to an object: the object itself, or what has it as a part or among its attributes?
//!
//! Asked of all that libraries hold, of which forked workers share the pages: so no reference is counted, and parts are
//! visited as the collector does it (`tp_traverse`). Whoever asks goes into the few that are found.

use crate::below::{Met, IS_TYPE};
use crate::ffi::{self, Object, Size};
use crate::modules::{each, is_text, namespace, value_of, whole};
use crate::{large, objects};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Dicts of one object that are gone into: of an instance its attributes, of a class its namespace.
const MOST_DICTS: usize = 4;
/// Globals of which it is known that they lead to nothing wanted; one more is asked again.
const MOST_KNOWN: usize = 1 << 18;
/// Values between two looks at the clock.
const AT_ONCE: usize = 1 << 10;
/// Of a type, in every CPython from 3.8 on: its namespace. Null for what CPython itself brings, from 3.12 on.
const NAMESPACE: usize = 264;

struct Clock {
    until: i64,
    asked: usize,
    is_late: bool,
}

impl Clock {
    fn is_late(&mut self) -> bool {
        self.asked += 1;
        self.is_late |= self.asked.is_multiple_of(AT_ONCE) && ffi::computed() > self.until;
        self.is_late
    }
}

struct Search {
    wanted: Vec<usize>,
    passed_by: Vec<Object>,
    known: Met,
    clock: Clock,
}

struct Parts<'a> {
    wanted: &'a [usize],
    clock: &'a mut Clock,
    is_found: bool,
    dicts: [Object; MOST_DICTS],
    number: usize,
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `leads` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, parts: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        let parts = &mut *parts.cast::<Parts>();
        if part.is_null() {
            return 0;
        }
        parts.is_found |= parts.wanted.contains(&(part as usize));
        if parts.number < MOST_DICTS && (*part).kind == &raw mut ffi::PyDict_Type {
            parts.dicts[parts.number] = part;
            parts.number += 1;
        }
        c_int::from(parts.is_found || parts.clock.is_late()) // anything but 0 ends the walk
    }
}

impl Search {
    /// # Safety
    /// The interpreter's lock is held, and it is a dict.
    unsafe fn holds(&mut self, dict: Object) -> bool {
        let mut is_found = false;
        // SAFETY: as the caller promises.
        unsafe {
            each(dict, |_, value| {
                is_found = self.wanted.contains(&(value as usize));
                is_found || self.clock.is_late()
            });
        }
        is_found
    }

    /// One of the wanted is a part of the object, or of its attributes. A type leads there from its own module alone, of those
    /// that have it; one that is not on the heap does not say which that is, and must not be asked for its parts.
    ///
    /// # Safety
    /// The interpreter's lock is held, and types' slots lie where they are thought to.
    unsafe fn leads(&mut self, object: Object, module: Object) -> bool {
        // SAFETY: as the caller promises; nothing here runs Python code.
        unsafe {
            if ffi::PyType_GetFlags((*object).kind) & IS_TYPE != 0 {
                let names = *((object as usize + NAMESPACE) as *const Object);
                let of = value_of(names, c"__module__");
                return of.is_none_or(|of| ffi::PyUnicode_Compare(of, module) == 0) && self.holds(names);
            }
            if ffi::PyObject_GC_IsTracked(object) != 1 {
                return false;
            }
            let (dicts, number) = ([null_mut(); MOST_DICTS], 0);
            let mut parts =
                Parts { wanted: &self.wanted, clock: &mut self.clock, is_found: false, dicts, number };
            if let Some(traverse) = large::slot(object) {
                traverse(object, visit, (&raw mut parts).cast());
            }
            let (is_found, dicts, number) = (parts.is_found, parts.dicts, parts.number);
            is_found || dicts[..number].iter().any(|dict| self.holds(*dict))
        }
    }

    /// # Safety
    /// As of `leads`.
    unsafe fn is_wanted(&mut self, value: Object, module: Object) -> bool {
        if self.wanted.contains(&(value as usize)) {
            return true;
        }
        // SAFETY: as the caller promises.
        if self.passed_by.contains(&unsafe { (*value).kind }) || self.known.has(value as usize) {
            return false;
        }
        // SAFETY: as the caller promises.
        let leads = unsafe { self.leads(value, module) };
        // SAFETY: as the caller promises.
        let is_type = unsafe { ffi::PyType_GetFlags((*value).kind) } & IS_TYPE != 0;
        if !leads && !self.clock.is_late && !is_type {
            self.known.insert(value as usize);
        }
        leads
    }
}

/// `leading(modules, wanted, passed_by, ns)`: the modules, of no class derived from theirs, that the dict `modules` has by an
/// exact text, and of which one global is an object `wanted` (a tuple of ids), or refers to it, or has it among its
/// attributes; a class counts in the module that it says it is of. `passed_by`: exact types that are not gone into. What is not reached within so many nanoseconds of this thread's own is left out.
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
        let clock = Clock { until, asked: 0, is_late: ffi::computed() > until };
        let mut search = Search { wanted, passed_by, known, clock };
        let found = ffi::PyList_New(0);
        each(argument(0), |name, one| {
            let names = namespace(one);
            if let (Some(own), false, true) = (value_of(names, c"__name__"), found.is_null(), is_text(name)) {
                let leads = each(names, |_, value| search.is_wanted(value, own) || search.clock.is_late());
                if leads && !search.clock.is_late {
                    ffi::PyList_Append(found, one);
                }
            }
            search.clock.is_late
        });
        whole(found)
    }
}
