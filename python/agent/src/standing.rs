//! Which of a process's objects does a census look at? Its tensors, some of which stand for all, and its longest
//! containers: of a million objects these are few, and the others are not handed out.
//!
//! A container's length is the number of its elements that are not None: `[None] * n` that the program fills in place
//! never becomes longer. No reference is counted for that, because elements may lie in pages that a forked process shares.

use crate::buffer::Ends;
use crate::ffi::{self, Object, Size};
use crate::objects::{self, Listed};
use std::ptr::null_mut;

/// Elements of a container that are looked at; of more, every n-th stands for all.
const MOST_READ: usize = 1 << 15;
/// The same where each is read from memory to know its type.
const MOST_ASKED: usize = 1 << 12;
/// Elements that say what the others are.
const FEW: usize = 64;

/// `standing(thresholds, kinds, most, shared, containers, long, most_long, apart, most_apart, most_objects)`: at most `most` of the process's
/// own objects of these types, evenly spread; how many there are; at most `shared` of those in shared pages; how many there
/// are; at most `most_long` of its own containers of these exact types that have `long` elements, the longest; how many
/// objects in all; and of the types `apart` the first two again. None where that cannot be told, or where there are more
/// than `most_objects`: the walk holds the program up.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn standing(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs
    // Python code before the references are counted.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let number = |place: Size| ffi::PyLong_AsLong(argument(place)).max(1) as usize;
        let (thresholds, kinds) = (objects::limits(argument(0)), objects::items(argument(1)));
        let (most, most_shared, containers) = (number(2), number(3), objects::items(argument(4)));
        let (least, most_long) = (number(5) as Size, number(6));
        let (kinds_apart, most_apart, most_objects) = (objects::items(argument(7)), number(8), number(9));
        let lists = [ffi::PyList_New(0), ffi::PyList_New(0), ffi::PyList_New(0), ffi::PyList_New(0)];
        let give_up = || {
            lists.into_iter().for_each(|list| ffi::Py_DecRef(list));
            ffi::PyErr_Clear();
            ffi::none()
        };
        if lists.iter().any(|list| list.is_null()) || !ffi::PyErr_Occurred().is_null() {
            return give_up();
        }
        let [own, shared, long, apart] = lists;
        // Of most objects nothing but their type is read.
        let (mut tensors, mut others, mut all) = (Ends::new(), Ends::new(), 0usize);
        let mut of_apart = Ends::new();
        let complete = objects::each(own, thresholds, |place, far| {
            all += 1;
            if all > most_objects {
                return false;
            }
            let object = place as Object;
            let kind = (*object).kind;
            if kinds.contains(&kind) {
                return tensors.push(place, far);
            }
            if kinds_apart.contains(&kind) {
                return of_apart.push(place, far);
            }
            let is_long = containers.contains(&kind) && ffi::PyObject_Size(object) >= least;
            let may_go =
                is_long && !lists.contains(&object) && !objects::may_be_unfinished(object, arguments);
            !may_go || others.push(place, far)
        });
        let listed = |found: Ends| found.joined().filter(|_| complete).and_then(Listed::of_kinds);
        let found = (listed(tensors), listed(others), listed(of_apart));
        let (Some(mut tensors), Some(mut others), Some(mut of_apart)) = found else {
            return give_up();
        };
        let spread = |found: &mut Listed, most: usize, list: Object| {
            let of_kinds = found.own().count();
            let step = of_kinds / most + 1;
            let chosen = found.own().enumerate().filter(|(place, _)| objects::is_chosen(*place, step));
            let chosen = chosen.map(|(_, object)| object);
            chosen.filter(|object| !objects::may_be_unfinished(*object, arguments)).for_each(|object| {
                ffi::PyList_Append(list, object);
            });
            of_kinds
        };
        let of_kinds = spread(&mut tensors, most, own);
        let number_apart = spread(&mut of_apart, most_apart, apart);
        let sized = others.own().map(|object| (ffi::PyObject_Size(object), object));
        let mut found: Vec<(Size, Object)> = sized.collect();
        if found.len() > most_long {
            found.select_nth_unstable_by(most_long, |a, b| b.0.cmp(&a.0));
            found.truncate(most_long);
        }
        for (_, object) in found {
            ffi::PyList_Append(long, object);
        }
        let number = tensors.some_shared(most_shared, shared, arguments);
        ffi::PyErr_Clear();
        let count = |count: usize| ffi::PyLong_FromSize_t(count);
        ffi::tuple([
            own,
            count(of_kinds),
            shared,
            count(number),
            long,
            count(all),
            apart,
            count(number_apart),
        ])
    }
}

/// The elements of a list, by place: null where there is none yet.
///
/// # Safety
/// The interpreter's lock is held, and the place is within the list.
unsafe fn of_list(list: Object, place: usize) -> Object {
    // SAFETY: as the caller promises.
    unsafe { ffi::PyList_GetItem(list, place as Size) }
}

/// `filled(container, most)`: how many elements of a list are neither None nor an empty list, both of which stand where
/// something will be put, and at most `most` of them, evenly spread. With `(address, count)` in place of the list, of an
/// array of objects.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn filled(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout; what is handed out is counted as it is put into the list. The caller holds
    // the array whose elements lie at the address.
    unsafe {
        let container = ffi::PyTuple_GetItem(arguments, 0);
        let most = ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, 1)).max(0) as usize;
        let of_array = ffi::PyTuple_Size(arguments) == 4;
        let (address, length) = if of_array {
            let number = |place| ffi::PyLong_AsSize_t(ffi::PyTuple_GetItem(arguments, place));
            (number(2) as *const Object, number(3))
        } else {
            (std::ptr::null(), ffi::PyObject_Size(container).max(0) as usize)
        };
        if !ffi::PyErr_Occurred().is_null() {
            return null_mut();
        }
        let none = &raw mut ffi::_Py_NoneStruct;
        let element = |place| if of_array { *address.add(place) } else { of_list(container, place) };
        let is_list = |one: Object| (*one).kind == &raw mut ffi::PyList_Type;
        // Each element that is asked for its type is read from memory: where these are no lists, the others are not asked.
        let of_lists = (0..length).step_by(length / FEW + 1).any(|place| {
            let one = element(place);
            !one.is_null() && is_list(one)
        });
        let is_filled = |place: &usize| {
            let one = element(*place);
            !one.is_null() && one != none && !(of_lists && is_list(one) && ffi::PyObject_Size(one) == 0)
        };
        // By a power of two: the same elements are looked at after it has become longer.
        let most_read = if of_lists { MOST_ASKED } else { MOST_READ };
        let step = (length / most_read + 1).next_power_of_two();
        let count = (0..length).step_by(step).filter(is_filled).count();
        let some = ffi::PyList_New(0);
        if !some.is_null() && most > 0 {
            let places = (0..length).step_by(step).filter(is_filled);
            places.step_by(count / most + 1).for_each(|place| {
                ffi::PyList_Append(some, element(place));
            });
        }
        ffi::PyErr_Clear();
        ffi::tuple([ffi::PyLong_FromSize_t(length.min(count * step)), some])
    }
}
