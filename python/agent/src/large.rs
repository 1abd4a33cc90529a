//! How many bytes of Python's own values lie in malloc, and which tensors are this process's own?
//!
//! CPython takes what is larger than 512 bytes from malloc: long lists, large dicts, text and bytes. Some objects stand for
//! all, and of long containers some elements. To look at an element from Python code would count a reference to it, and
//! so copy its page where that is shared with a forked process: here nothing is counted. Parts are visited as the
//! collector visits them (`tp_traverse`), and sizes come from the built-in types' own `__sizeof__`, which is handed a
//! borrowed reference.

use crate::access;
use crate::ffi::{self, Object, Size};
use crate::objects::{self, Listed};
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

/// Of a type, in every CPython from 3.8 on that has an interpreter's lock.
const TRAVERSE: usize = 184;
/// In front of an object that the collector knows: 0 where it is not in a list now.
const NEXT: usize = 16;
/// Bytes: smaller ones come from CPython's own arenas.
const LARGE: usize = 512;
/// Elements from which on a container is looked at for itself.
const LONG: usize = 256;
/// Elements that stand for all of such a one.
const FEW: usize = 16;
/// Parts of a long dict or set that are visited: the first ones stand for all.
const MOST_VISITED: usize = 1 << 14;
/// `Py_TPFLAGS_LIST_SUBCLASS`, and those of tuples and dicts.
pub(crate) const IS_LIST: c_ulong = 1 << 25;
const IS_TUPLE: c_ulong = 1 << 26;
const IS_DICT: c_ulong = 1 << 29;
/// References to what belongs to everybody, and is no one's growth.
const EVERYBODYS: isize = 64;

pub(crate) type Visit = unsafe extern "C-unwind" fn(Object, *mut c_void) -> c_int;
pub(crate) type Traverse = unsafe extern "C-unwind" fn(Object, Visit, *mut c_void) -> c_int;

/// Exact built-in types, each with its `__sizeof__`.
pub(crate) struct Sizes {
    containers: Vec<(Object, Object)>,
    leaves: Vec<(Object, Object)>,
}

impl Sizes {
    /// Of two tuples: each type, and behind it its `__sizeof__`.
    ///
    /// # Safety
    /// The interpreter's lock is held, and the tuples live on.
    pub(crate) unsafe fn new(containers: Object, leaves: Object) -> Sizes {
        let pairs = |items: Vec<Object>| items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        // SAFETY: as the caller promises.
        unsafe {
            Sizes { containers: pairs(objects::items(containers)), leaves: pairs(objects::items(leaves)) }
        }
    }

    pub(crate) fn is_container(&self, kind: Object) -> bool {
        Self::of(&self.containers, kind).is_some()
    }

    /// The bytes of an object of one of these types: none for what is everybody's.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    pub(crate) unsafe fn whole(&self, object: Object) -> Option<usize> {
        // SAFETY: as the caller promises.
        unsafe {
            let kind = (*object).kind;
            let leaf = Self::of(&self.leaves, kind);
            if leaf.is_some() && (*object).refcount > EVERYBODYS {
                return Some(0);
            }
            leaf.or_else(|| Self::of(&self.containers, kind)).map(|size| Self::bytes(size, object))
        }
    }

    fn of(kinds: &[(Object, Object)], kind: Object) -> Option<Object> {
        kinds.iter().find(|(one, _)| *one == kind).map(|(_, size)| *size)
    }

    /// The bytes of an object, where they are more than CPython's arenas give.
    ///
    /// # Safety
    /// The interpreter's lock is held, and `size` is the `__sizeof__` of the object's type.
    unsafe fn large(size: Object, object: Object) -> usize {
        // SAFETY: as the caller promises.
        let bytes = unsafe { Self::bytes(size, object) };
        if bytes > LARGE {
            bytes
        } else {
            0
        }
    }

    /// # Safety
    /// As of `large`.
    unsafe fn bytes(size: Object, object: Object) -> usize {
        // SAFETY: as the caller promises; the arguments end with null.
        unsafe {
            let answer = ffi::PyObject_CallFunctionObjArgs(size, object, std::ptr::null_mut::<c_void>());
            let bytes = if answer.is_null() { 0 } else { ffi::PyLong_AsSize_t(answer) };
            ffi::Py_DecRef(answer);
            ffi::PyErr_Clear();
            if bytes < isize::MAX as usize {
                bytes
            } else {
                0
            }
        }
    }

    /// Of text, bytes and numbers.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn leaf(&self, part: Object) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            match Self::of(&self.leaves, (*part).kind) {
                Some(size) if (*part).refcount <= EVERYBODYS => Self::large(size, part),
                _ => 0,
            }
        }
    }

    /// A part, with what hangs below it where the collector does not list it: a dict of nothing but text, say.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn part(&self, part: Object, deep: bool) -> usize {
        // SAFETY: as the caller promises; exact containers are known to the collector, so that its word lies before them.
        unsafe {
            let Some(size) = Self::of(&self.containers, (*part).kind) else { return self.leaf(part) };
            if !deep || *((part as usize - NEXT) as *const usize) != 0 {
                return 0;
            }
            let length = ffi::PyObject_Size(part).max(0) as usize;
            let below = match length >= LONG {
                true => self.parts_of_long(part, length, false),
                false => self.parts(part, false),
            };
            Self::large(size, part) + below
        }
    }

    /// What hangs directly below an object, each part of it.
    ///
    /// # Safety
    /// The interpreter's lock is held, and the collector knows the object.
    unsafe fn parts(&self, object: Object, deep: bool) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.visited(object, 1, usize::MAX, deep).bytes }
    }

    /// What hangs below a container of so many elements, of which some stand for all. The time that it takes is bounded: all
    /// elements of a list are a second for a hundred million of them. `deep`: and below parts that the collector does not list.
    ///
    /// # Safety
    /// As of `parts`, and it is of a container's exact type.
    unsafe fn parts_of_long(&self, object: Object, length: usize, deep: bool) -> usize {
        // SAFETY: as the caller promises; a slot that is still empty is null, and passed by.
        unsafe {
            let flags = ffi::PyType_GetFlags((*object).kind);
            let part = |item: Object| if item.is_null() { 0 } else { self.part(item, deep) };
            let (mut bytes, mut sampled) = (0, 0);
            if flags & (IS_LIST | IS_TUPLE) != 0 {
                for place in (0..length).step_by(length / FEW) {
                    let place = place as Size;
                    bytes += part(match flags & IS_LIST {
                        0 => ffi::PyTuple_GetItem(object, place),
                        _ => ffi::PyList_GetItem(object, place),
                    });
                    sampled += 1;
                }
            } else if flags & IS_DICT != 0 {
                let (mut place, mut key, mut value) = (0, null_mut(), null_mut());
                let step = length.min(MOST_VISITED) / FEW;
                for number in 0..MOST_VISITED {
                    if ffi::PyDict_Next(object, &mut place, &mut key, &mut value) == 0 {
                        break;
                    }
                    if number % step == 0 {
                        bytes += part(key) + part(value);
                        sampled += 1;
                    }
                }
            } else {
                let seen = self.visited(object, length.min(MOST_VISITED) / FEW, MOST_VISITED, deep);
                (bytes, sampled) = (seen.bytes, seen.sampled);
            }
            (bytes as f64 * length as f64 / sampled.max(1) as f64) as usize
        }
    }

    /// # Safety
    /// As of `parts`.
    unsafe fn visited(&self, object: Object, step: usize, most: usize, deep: bool) -> Seen<'_> {
        let mut seen = Seen { sizes: self, step, most, deep, number: 0, sampled: 0, bytes: 0 };
        // SAFETY: as the caller promises; a type without the slot has no parts. Slots that are still empty are passed
        // by.
        unsafe {
            if let Some(traverse) = slot(object) {
                traverse(object, visit, (&raw mut seen).cast());
            }
        }
        seen
    }
}

struct Seen<'a> {
    sizes: &'a Sizes,
    step: usize,
    most: usize,
    deep: bool,
    number: usize,
    sampled: usize,
    bytes: usize,
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `parts` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, seen: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        let seen = &mut *seen.cast::<Seen>();
        if seen.number % seen.step == 0 {
            seen.sampled += 1;
            seen.bytes += seen.sizes.part(part, seen.deep);
        }
        seen.number += 1;
        c_int::from(seen.number >= seen.most) // anything but 0 ends the visits
    }
}

/// How the parts of an object are visited; None where its type has none.
///
/// # Safety
/// The interpreter's lock is held, the collector knows the object or it is a dict, and a type's slot `fits`.
pub(crate) unsafe fn slot(object: Object) -> Option<Traverse> {
    // SAFETY: as the caller promises; a function pointer that may be null is an Option.
    unsafe { *(((*object).kind as usize + TRAVERSE) as *const Option<Traverse>) }
}

/// The same where the slot fits and the collector knows the object.
///
/// # Safety
/// The interpreter's lock is held, and this is our module.
pub(crate) unsafe fn traverse_of(module: Object, object: Object) -> Option<Traverse> {
    // SAFETY: as the caller promises.
    unsafe { (fits(module) && ffi::PyObject_GC_IsTracked(object) == 1).then(|| slot(object)).flatten() }
}

/// Whether a type's slot lies where it is thought to: tried out on one of ours.
///
/// # Safety
/// The interpreter's lock is held, and this is our module.
pub(crate) unsafe fn fits(module: Object) -> bool {
    // SAFETY: as the caller promises; a type is larger than that.
    unsafe {
        let kind = ffi::PyObject_GetAttrString(module, c"Access".as_ptr());
        if kind.is_null() {
            ffi::PyErr_Clear();
            return false;
        }
        let found = *((kind as usize + TRAVERSE) as *const *const c_void);
        ffi::Py_DecRef(kind);
        found == access::traverse as *const c_void
    }
}

/// `large(thresholds, kinds, most, containers, leaves, sample)`: (the process's own objects of these types, at most `most` of
/// the others, how many such there are, bytes of Python's values in malloc); None where that cannot be told.
/// `containers` and `leaves`: exact types and their `__sizeof__`, one after the other.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn large(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs
    // Python code.
    unsafe {
        if !fits(module) {
            return ffi::none();
        }
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let (thresholds, kinds) = (objects::limits(argument(0)), objects::items(argument(1)));
        let most = ffi::PyLong_AsLong(argument(2)).max(1) as usize;
        let sizes = Sizes::new(argument(3), argument(4));
        let sample = ffi::PyLong_AsLong(argument(5)).max(1) as usize;
        let (own, shared) = (ffi::PyList_New(0), ffi::PyList_New(0));
        if own.is_null() || shared.is_null() || !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return ffi::none();
        }
        let is_container = |kind| sizes.is_container(kind);
        let Some(mut listed) = Listed::read(own, thresholds, &kinds, is_container) else {
            ffi::Py_DecRef(own);
            ffi::Py_DecRef(shared);
            return ffi::none();
        };
        let step = listed.own().count() / sample + 1;
        let (mut long, mut small) = (0, 0);
        let marked = listed.own_marked().filter(|(object, ..)| *object != own && *object != shared);
        for (number, (object, is_of_kinds, is_container)) in marked.enumerate() {
            let length = if is_container { ffi::PyObject_Size(object).max(0) as usize } else { 0 };
            if length >= LONG || number % step == 0 {
                let size = Sizes::of(&sizes.containers, (*object).kind);
                let itself = size.map_or(0, |size| Sizes::large(size, object));
                if length >= LONG {
                    long += itself + sizes.parts_of_long(object, length, true);
                } else {
                    small += itself + sizes.parts(object, false);
                }
            }
            if is_of_kinds && !objects::may_be_unfinished(object, arguments) {
                ffi::PyList_Append(own, object);
            }
        }
        let others = listed.some_shared(most, shared, arguments);
        ffi::PyErr_Clear();
        let bytes = long + small * step;
        ffi::tuple([own, shared, ffi::PyLong_FromSize_t(others), ffi::PyLong_FromSize_t(bytes)])
    }
}
