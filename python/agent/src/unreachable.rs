//! Which objects does nothing refer to that lives? Garbage in circles that waits for the collector, in whichever of its lists.
//!
//! CPython's own rule, applied to those objects that came last to each list: one is alive if more references to it exist than
//! come from the others, and so is all that it refers to. What comes from elsewhere counts as alive, so that too little is
//! found and never too much. It only reads, in one hold of the lock: nothing comes, goes or changes meanwhile, and no code of
//! the program runs. What there is no time for counts as alive.

use crate::buffer::{self, Buffer};
use crate::ffi::{self, Object, Size};
use crate::large;
use crate::objects::{self, Listed};
use std::ffi::{c_int, c_void};

/// References between two looks at the clock.
const AT_ONCE: usize = 1 << 12;
/// Beside the number of references from the others: it is alive; what it refers to was not counted.
const ALIVE: usize = 1 << 62;
const PASSED_BY: usize = 1 << 61;
const COUNT: usize = PASSED_BY - 1;

/// The objects that are inspected, by open addressing: addresses, and beside each what is known of it.
pub(crate) struct Table {
    pub(crate) addresses: Buffer,
    pub(crate) known: Buffer,
}

impl Table {
    pub(crate) fn new(objects: &[usize]) -> Option<Table> {
        let (mut addresses, mut known) = (Buffer::new(), Buffer::new());
        let room = (objects.len() * 2).next_power_of_two().max(2);
        if !addresses.zeros(room) || !known.zeros(room) {
            return None;
        }
        let places = addresses.numbers();
        for object in objects {
            let mut at = buffer::place_of(*object, room);
            while places[at] != 0 && places[at] != *object {
                at = (at + 1) & (room - 1);
            }
            places[at] = *object;
        }
        Some(Table { addresses, known })
    }

    pub(crate) fn find(&mut self, address: usize) -> Option<usize> {
        let places = self.addresses.numbers();
        let mut at = buffer::place_of(address, places.len());
        while places[at] != 0 {
            if places[at] == address {
                return Some(at);
            }
            at = (at + 1) & (places.len() - 1);
        }
        None
    }
}

struct Search {
    table: Table,
    /// Places in the table: to which the object refers that is gone through, or that are alive and were not gone through yet.
    todo: Buffer,
    /// References of this object, and the most that are followed of one.
    of_it: usize,
    long: usize,
    followed: usize,
    until: i64,
    is_late: bool,
}

impl Search {
    /// Notes those that an object refers to; whether these are all.
    ///
    /// # Safety
    /// The interpreter's lock is held, and the object is alive.
    unsafe fn go_into(&mut self, object: Object, visit: large::Visit) -> bool {
        self.of_it = 0;
        self.follow();
        // SAFETY: as the caller promises; a type without the slot refers to nothing that the collector could see.
        unsafe {
            if let Some(traverse) = large::slot(object) {
                traverse(object, visit, std::ptr::from_mut(self).cast());
            }
        }
        self.of_it <= self.long && !self.is_late
    }

    fn passes(&mut self) -> bool {
        self.of_it += 1;
        self.follow();
        self.of_it > self.long || self.is_late
    }

    fn follow(&mut self) {
        self.followed += 1;
        self.is_late |= self.followed.is_multiple_of(AT_ONCE) && ffi::computed() > self.until;
    }

    fn known(&mut self, at: usize) -> &mut usize {
        &mut self.table.known.numbers()[at]
    }
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `go_into` gave it and a part that is alive.
unsafe extern "C-unwind" fn note(part: Object, search: *mut c_void) -> c_int {
    // SAFETY: as above.
    let search = unsafe { &mut *search.cast::<Search>() };
    if let Some(at) = search.table.find(part as usize) {
        search.is_late |= !search.todo.push(at);
    }
    c_int::from(search.passes()) // anything but 0 ends the walk through the parts
}

// SAFETY: as of `note`.
unsafe extern "C-unwind" fn revive(part: Object, search: *mut c_void) -> c_int {
    // SAFETY: as above.
    let search = unsafe { &mut *search.cast::<Search>() };
    if let Some(at) = search.table.find(part as usize) {
        if *search.known(at) & ALIVE == 0 {
            *search.known(at) |= ALIVE;
            search.is_late |= !search.todo.push(at);
        }
    }
    c_int::from(search.passes())
}

/// Of these objects, those to which nothing refers that lives. None where there is no time or room for the answer.
///
/// # Safety
/// The interpreter's lock is held, all of them are alive, and types' slots lie where they are thought to.
unsafe fn garbage(objects: &[usize], long: usize, began: i64, ns: i64) -> Option<Buffer> {
    let table = Table::new(objects)?;
    // What is left is gone through a second time.
    let until = began.saturating_add(ns / 2);
    let mut search =
        Search { table, todo: Buffer::new(), of_it: 0, long, followed: 0, until, is_late: false };
    let mut found = Buffer::new();
    // SAFETY: as the caller promises.
    unsafe {
        for object in objects {
            search.todo.clear();
            let whole = !search.is_late && search.go_into(*object as Object, note);
            if whole {
                for place in 0..search.todo.numbers().len() {
                    let at = search.todo.numbers()[place];
                    *search.known(at) += 1;
                }
            } else {
                let at = search.table.find(*object)?;
                *search.known(at) |= PASSED_BY;
            }
        }
        (search.is_late, search.until) = (false, began.saturating_add(ns));
        search.todo.clear();
        for object in objects {
            let at = search.table.find(*object)?;
            let inside = (*search.known(at) & COUNT).cast_signed();
            let references = (*(*object as Object)).refcount;
            // One to which nothing refers is about to go.
            if references > inside || references < 1 {
                *search.known(at) |= ALIVE;
                search.is_late |= references > 0 && !search.todo.push(at);
            }
        }
        // What one that was passed by refers to is alive: its references were not counted as coming from here.
        while let Some(at) = search.todo.pop() {
            let object = search.table.addresses.numbers()[at] as Object;
            if *search.known(at) & PASSED_BY == 0 && !search.go_into(object, revive) {
                return None;
            }
        }
    }
    for object in objects {
        let at = search.table.find(*object)?;
        if *search.known(at) & ALIVE == 0 && !found.push(*object) {
            return None;
        }
    }
    Some(found)
}

/// `unreachable(thresholds, far_back, long, kinds, most, ns)`: of the `far_back` objects that came last to the collector's lists,
/// the youngest list's first, those to which nothing refers that lives, if they lie in pages of this process's own: at most `most`
/// of `kinds`, evenly spread, and how many these are; the same of the others; and how many were inspected. None where that cannot
/// be told within so many nanoseconds. Of those that refer to more than `long`, all that they refer to counts as alive.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn unreachable(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs
    // Python code before the references are counted.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let number = |place: Size| ffi::PyLong_AsLong(argument(place)).max(1);
        let thresholds = objects::limits(argument(0));
        let (far_back, long, most) = (number(1) as usize, number(2) as usize, number(4) as usize);
        let (kinds, ns) = (objects::items(argument(3)), number(5));
        let (of_kinds, others) = (ffi::PyList_New(0), ffi::PyList_New(0));
        let failed = of_kinds.is_null()
            || others.is_null()
            || !ffi::PyErr_Occurred().is_null()
            || !large::fits(module);
        ffi::PyErr_Clear();
        let began = ffi::computed();
        let came = (!failed).then(|| objects::came_last(of_kinds, thresholds, far_back)).flatten();
        let found = came.and_then(|mut came| {
            let inspected = came.numbers().len();
            let found = garbage(came.numbers(), long, began, ns)?;
            let listed = Listed::of_some(found, |object| kinds.contains(&(*object).kind))?;
            Some((listed, inspected))
        });
        let Some((mut found, inspected)) = found else {
            [of_kinds, others].into_iter().for_each(|list| ffi::Py_DecRef(list));
            return ffi::none();
        };
        let mut hand_out = |wanted: bool, list: Object| {
            let count = found.own_marked().filter(|(_, of_kinds, _)| *of_kinds == wanted).count();
            let some = found.own_marked().filter(|(_, of_kinds, _)| *of_kinds == wanted);
            let chosen = some.enumerate().filter(|(place, _)| objects::is_chosen(*place, count / most + 1));
            chosen.for_each(|(_, (object, ..))| {
                ffi::PyList_Append(list, object);
            });
            count
        };
        let counts = [hand_out(true, of_kinds), hand_out(false, others), inspected];
        ffi::PyErr_Clear();
        let [first, second, inspected] = counts.map(|count| ffi::PyLong_FromSize_t(count));
        ffi::tuple([of_kinds, first, others, second, inspected])
    }
}
