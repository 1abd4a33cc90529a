//! How much hangs below each of some objects, however deep? Chains of records, trees of nodes, graphs of instances: what no
//! container holds directly.
//!
//! All that is reached from them is gone through, nearest first, as the collector does it (`tp_traverse`), and counts for
//! the one that it was reached from first. It only reads: no reference is counted, since pages may be shared with a forked
//! process. The surprise: types, modules and frames lead to everything, so that they lead nowhere here.

use crate::buffer::{self, Buffer};
use crate::ffi::{self, Object, Size};
use crate::large::{self, Sizes};
use crate::{modules, objects};
use std::ffi::{c_int, c_ulong, c_void};

/// Where the number stands of the object that another one was reached from: an address takes the bits below it.
const NUMBER: u32 = 48;
const ADDRESS: usize = (1 << NUMBER) - 1;
/// More objects are not numbered, and this is nobody's.
const NOBODY: usize = (1 << 16) - 1;
/// Of a type, in every CPython from 3.8 on: its instances' bytes.
const BASIC_SIZE: usize = 32;
/// The collector's own, in front of an object.
const HEAD: usize = 16;
const LARGEST_BASIC: usize = 1 << 16;
/// `Py_TPFLAGS_TYPE_SUBCLASS`: the object is a type.
pub(crate) const IS_TYPE: c_ulong = 1 << 31;
/// References between two looks at the clock.
const AT_ONCE: usize = 1 << 10;

/// Addresses that were met, by open addressing.
pub(crate) struct Met {
    places: Buffer,
    number: usize,
}

impl Met {
    /// With room for so many; None where there is none.
    pub(crate) fn new(most: usize) -> Option<Met> {
        let mut places = Buffer::new();
        let room = (most * 2).next_power_of_two();
        places.zeros(room).then_some(Met { places, number: 0 })
    }

    pub(crate) fn has(&mut self, address: usize) -> bool {
        let places = self.places.numbers();
        let mask = places.len() - 1;
        let mut at = buffer::place_of(address, places.len());
        while places[at] != 0 && places[at] != address {
            at = (at + 1) & mask;
        }
        places[at] != 0
    }

    /// Whether it is new. One more than there is room for is not.
    pub(crate) fn insert(&mut self, address: usize) -> bool {
        let places = self.places.numbers();
        let mask = places.len() - 1;
        if self.number > places.len() / 2 {
            return false;
        }
        let mut at = buffer::place_of(address, places.len());
        while places[at] != 0 {
            if places[at] == address {
                return false;
            }
            at = (at + 1) & mask;
        }
        places[at] = address;
        self.number += 1;
        true
    }
}

struct Search {
    met: Met,
    /// Those that were met and not gone into yet, each with the number of what it was reached from.
    todo: Buffer,
    number: usize,
    /// References that were followed, and when there is no time left for more.
    followed: usize,
    until: i64,
    is_cut: bool,
}

impl Search {
    fn meet(&mut self, object: Object, number: usize) {
        let address = object as usize;
        if address != 0 && address & ADDRESS == address && self.met.insert(address) && number != NOBODY {
            self.is_cut |= !self.todo.push(address | number << NUMBER);
        }
        self.followed += 1;
        self.is_cut |= self.followed.is_multiple_of(AT_ONCE) && ffi::now() > self.until;
    }
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `below` gave it and a part that is alive.
unsafe extern "C-unwind" fn visit(part: Object, search: *mut c_void) -> c_int {
    // SAFETY: as above.
    let search = unsafe { &mut *search.cast::<Search>() };
    search.meet(part, search.number);
    c_int::from(search.is_cut) // anything but 0 ends the walk through the parts
}

/// `below(roots, parents, closed, modules, passed_by, kinds, containers, leaves, least, most, ns, late)`: (whether all was gone through;
/// number, bytes and objects of each root below which there are `least` bytes, one after the other; those of `kinds`; the
/// number of the root that each was reached from). None where that cannot be told. `parents`: the number of the root that
/// each hangs below, an earlier one, or -1. `closed`: objects that lead nowhere; so do the namespaces of what the dict
/// `modules` holds. `passed_by`: exact types whose instances do. `containers` and `leaves`: exact types and their
/// `__sizeof__`, one after the other. `most` objects, and for so many nanoseconds. The last `late` roots
/// get only what no other leads to.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn below(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes or goes: nothing below runs Python code. What is
    // called may set an exception, which is cleared.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let (roots, parents) = (argument(0), argument(1));
        let count = usize::try_from(ffi::PyObject_Size(roots)).unwrap_or(0);
        let mut closed = objects::items(argument(2));
        closed.extend(modules::namespaces(argument(3)));
        let (passed_by, kinds) = (objects::items(argument(4)), objects::items(argument(5)));
        let sizes = Sizes::new(argument(6), argument(7));
        let number = |place: Size| ffi::PyLong_AsLong(argument(place)).max(1);
        let (least, most) = (number(8) as usize, number(9) as usize);
        let until = ffi::now().saturating_add(number(10));
        let mut sums = Buffer::new();
        let met = Met::new(most + count + closed.len()).filter(|_| sums.zeros(2 * count.max(1)));
        let failed = !ffi::PyErr_Occurred().is_null();
        ffi::PyErr_Clear();
        let Some(met) = met.filter(|_| !failed && large::fits(module) && count < NOBODY) else {
            return ffi::none();
        };
        let mut search = Search { met, todo: Buffer::new(), number: 0, followed: 0, until, is_cut: false };
        closed.iter().for_each(|object| search.meet(*object, NOBODY));
        let mut next = count.saturating_sub(ffi::PyLong_AsLong(argument(11)).max(0) as usize);
        (0..next).for_each(|root| search.meet(ffi::PyList_GetItem(roots, root as Size), root));
        let (found, numbers) = (ffi::PyList_New(0), ffi::PyList_New(0));
        let (mut at, mut complete, mut is_late) = (0, true, false);
        loop {
            let Some(one) = search.todo.numbers().get(at).copied() else {
                if next >= count || (search.is_cut && !is_late) {
                    break;
                }
                is_late = true;
                search.meet(ffi::PyList_GetItem(roots, next as Size), next);
                next += 1;
                continue;
            };
            at += 1;
            if at > most || search.is_cut {
                complete = is_late;
                break;
            }
            let (object, root) = ((one & ADDRESS) as Object, one >> NUMBER);
            let kind = (*object).kind;
            if passed_by.contains(&kind) || ffi::PyType_GetFlags(kind) & IS_TYPE != 0 {
                continue;
            }
            let bytes = size(&sizes, object);
            let sums = sums.numbers();
            sums[2 * root] += bytes;
            sums[2 * root + 1] += 1;
            if kinds.contains(&kind) {
                ffi::PyList_Append(found, object);
                append(numbers, root);
            } else if sizes.is_container(kind) || ffi::PyObject_GC_IsTracked(object) == 1 {
                search.number = root;
                if let Some(traverse) = large::slot(object) {
                    traverse(object, visit, (&raw mut search).cast());
                }
            }
        }
        complete &= !search.is_cut || is_late;
        let sums = sums.numbers();
        let heavy = ffi::PyList_New(0);
        for root in (0..count).rev() {
            let parent = ffi::PyLong_AsLong(ffi::PyList_GetItem(parents, root as Size));
            if let Some(parent) = usize::try_from(parent).ok().filter(|parent| *parent < root) {
                sums[2 * parent] += sums[2 * root];
                sums[2 * parent + 1] += sums[2 * root + 1];
            }
            if sums[2 * root] >= least {
                [root, sums[2 * root], sums[2 * root + 1]].into_iter().for_each(|one| append(heavy, one));
            }
        }
        ffi::PyErr_Clear();
        ffi::tuple([ffi::PyBool_FromLong(complete.into()), heavy, found, numbers])
    }
}

/// # Safety
/// The interpreter's lock is held.
unsafe fn append(list: Object, number: usize) {
    // SAFETY: as the caller promises; a list that could not be made takes nothing.
    unsafe {
        let number = ffi::PyLong_FromSize_t(number);
        ffi::PyList_Append(list, number);
        ffi::Py_DecRef(number);
    }
}

/// By a built-in type's own word, or else without what is of variable length.
///
/// # Safety
/// The interpreter's lock is held, and a type's slots lie where they are thought to.
unsafe fn size(sizes: &Sizes, object: Object) -> usize {
    // SAFETY: as the caller promises.
    unsafe {
        let basic = *(((*object).kind as usize + BASIC_SIZE) as *const usize);
        sizes.whole(object).unwrap_or(if basic <= LARGEST_BASIC { basic + HEAD } else { 0 })
    }
}
