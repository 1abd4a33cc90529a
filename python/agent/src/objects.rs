//! Which objects does the collector know, without a write to any that lies in a page shared with another process?
//!
//! After a fork parent and child share their pages until one of them writes. `gc.get_objects()` counts a reference to
//! every object: it would copy all of them. So the collector's lists are followed here by their pointers, which only
//! reads, and of the objects only those are handed out whose page is this process's own (bit 56 of
//! /proc/self/pagemap, "exclusively mapped"): what a process has made or changed since the fork, and so all by which it
//! grows. Without a fork that is everything.
//!
//! The surprise: CPython says nowhere where its lists begin. A new object is in the youngest one; its end is known by
//! the thresholds that stand behind it, by those of the next two lists, and by their neighbours that point back. Where
//! this does not fit, nothing is handed out.

use crate::buffer::{Buffer, Ends};
use crate::ffi::{self, Object, Size};
use crate::large;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

const PAGE: usize = 4096;
const HEAD: usize = 16;
const GENERATION: usize = 24;
const FLAGS: usize = 3;
const EXCLUSIVE: u64 = 1 << 56;
const PRESENT: u64 = 1 << 63;
/// In an object's address, and in twice a page's number: the page is shared. Objects lie at multiples of 8 at least.
const SHARED: usize = 1;
/// In an object's address: its type is one of those that were asked for, or a container.
const OF_KINDS: usize = 2;
const CONTAINER: usize = 4;
const MARKS: usize = SHARED | OF_KINDS | CONTAINER;
/// Pages that are asked for at once.
const AT_ONCE: usize = 1 << 12;
/// Pages between two that are asked for, below which both are read at once.
const GAP: usize = 512;
/// Beyond this a list is not followed: it may be torn.
const MOST: usize = 50_000_000;
/// Of the objects that came last so many are counted: some milliseconds.
const FAR_BACK: usize = 1 << 17;
/// A prime number, larger than any step.
const ODD: usize = 15_485_863;

/// # Safety
/// `place` can be read.
unsafe fn word(place: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { *(place as *const usize) }
}

/// # Safety
/// `place` can be read.
unsafe fn int(place: usize) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { *(place as *const i32) }
}

/// The heads of the three lists.
///
/// # Safety
/// The interpreter's lock is held and no collection goes through its lists.
unsafe fn heads(probe: Object, thresholds: [i32; 3]) -> Option<[usize; 3]> {
    // SAFETY: the ring of the youngest list consists of heads of objects and of its own, all readable.
    unsafe {
        let start = probe as usize - HEAD;
        let mut place = word(start) & !FLAGS;
        for _ in 0..MOST {
            if place == start || place == 0 {
                return None;
            }
            let all = [place, place + GENERATION, place + 2 * GENERATION];
            // Of an object, what lies here is its count of references and its fields; so the neighbours are asked only
            // where the numbers fit.
            if all.iter().zip(thresholds).all(|(head, threshold)| int(head + HEAD) == threshold)
                && all.iter().all(|head| word((word(*head) & !FLAGS) + 8) & !FLAGS == *head)
            {
                return Some(all);
            }
            place = word(place) & !FLAGS;
        }
    }
    None
}

/// Shows each object of a list, by its address, until one is not taken: from both ends at once, so that two reads of memory
/// are under way. `take` is shown whether it comes from the far end.
///
/// # Safety
/// As of `heads`.
unsafe fn follow(head: usize, take: &mut impl FnMut(usize, bool) -> bool) -> bool {
    // SAFETY: as of `heads`; outside of a collection an object's head refers to both of its neighbours.
    unsafe {
        let (mut front, mut back) = (word(head) & !FLAGS, word(head + 8) & !FLAGS);
        if front == head {
            return true;
        }
        for _ in 0..MOST {
            // Where a list is torn, the two may have passed each other.
            if front == 0 || back == 0 || front == head || back == head || !take(front + HEAD, false) {
                return false;
            }
            if front == back {
                return true;
            }
            let (after, before) = (word(front) & !FLAGS, word(back + 8) & !FLAGS);
            if !take(back + HEAD, true) {
                return false;
            }
            if after == back {
                return true;
            }
            (front, back) = (after, before);
        }
    }
    false
}

/// Shows each object of all lists. False where they are not found, or a list is torn, or one was not taken. `probe`: a new object. `take` is shown an address, and whether it comes from its list's far end.
///
/// # Safety
/// The interpreter's lock is held and no collection goes through its lists.
pub(crate) unsafe fn each(
    probe: Object,
    thresholds: [i32; 3],
    mut take: impl FnMut(usize, bool) -> bool,
) -> bool {
    // SAFETY: as the caller promises.
    unsafe { heads(probe, thresholds).is_some_and(|heads| heads.iter().all(|head| follow(*head, &mut take))) }
}

/// Which pages, in the order of their numbers, are this process's own: marks the others. False where that cannot be told.
fn mark_shared(pages: &mut [usize]) -> bool {
    // SAFETY: closed below.
    let fd = unsafe { ffi::open(c"/proc/self/pagemap".as_ptr(), ffi::O_RDONLY | ffi::O_CLOEXEC) };
    if fd < 0 {
        return false;
    }
    let mut facts = [0u64; AT_ONCE];
    let mut next = 0;
    while let Some(first) = pages.get(next).map(|page| page >> 1) {
        let mut end = next + 1;
        while end < pages.len()
            && (pages[end] >> 1) - (pages[end - 1] >> 1) <= GAP
            && (pages[end] >> 1) - first < AT_ONCE
        {
            end += 1;
        }
        let count = (pages[end - 1] >> 1) - first + 1;
        // SAFETY: there is room for `count` entries.
        let read = unsafe { ffi::pread(fd, facts.as_mut_ptr().cast(), count * 8, (first * 8) as i64) };
        let read = usize::try_from(read).unwrap_or(0) / 8;
        for page in &mut pages[next..end] {
            let place = (*page >> 1) - first;
            if place >= read || facts[place] & (EXCLUSIVE | PRESENT) != EXCLUSIVE | PRESENT {
                *page |= SHARED;
            }
        }
        next = end;
    }
    // SAFETY: it was opened above.
    unsafe { ffi::close(fd) };
    true
}

/// Marks those of these objects that lie in pages which are not this process's own. Objects that follow each other mostly
/// share a page: so pages are sorted, not objects. False where that cannot be told.
fn mark_objects(objects: &mut [usize]) -> bool {
    let mut buffer = Buffer::new();
    let mut last = 0;
    for object in objects.iter() {
        if object / PAGE != last {
            last = object / PAGE;
            if !buffer.push(last << 1) {
                return false;
            }
        }
    }
    let pages = buffer.numbers();
    pages.sort_unstable();
    let mut distinct = 0;
    for place in 0..pages.len() {
        if distinct == 0 || pages[distinct - 1] != pages[place] {
            pages[distinct] = pages[place];
            distinct += 1;
        }
    }
    let pages = &mut pages[..distinct];
    if !mark_shared(pages) {
        return false;
    }
    let (mut last, mut shared) = (0, 0);
    for object in objects {
        let page = *object / PAGE;
        if page != last {
            last = page;
            let found = pages.binary_search_by_key(&page, |one| one >> 1);
            shared = found.map_or(SHARED, |place| pages[place] & SHARED);
        }
        *object |= shared;
    }
    true
}

/// What the collector lists, and which of it lies in pages that are this process's own.
pub(crate) struct Listed(Buffer);

impl Listed {
    /// Of all lists; None where they are not found, or a list is torn. `probe`: a new object.
    /// Objects of `kinds`, and of the types that `is_container` takes, are known as such from then on.
    ///
    /// # Safety
    /// The interpreter's lock is held and no collection goes through its lists.
    pub(crate) unsafe fn read(
        probe: Object,
        thresholds: [i32; 3],
        kinds: &[Object],
        is_container: impl Fn(Object) -> bool,
    ) -> Option<Listed> {
        let mut objects = Ends::new();
        // SAFETY: as the caller promises. The type stands beside what the list is followed by.
        let all = unsafe {
            each(probe, thresholds, |object, far| {
                let kind = (*(object as Object)).kind;
                let marks = if kinds.contains(&kind) {
                    OF_KINDS
                } else if is_container(kind) {
                    CONTAINER
                } else {
                    0
                };
                objects.push(object | marks, far)
            })
        };
        Listed::of(objects.joined().filter(|_| all)?)
    }

    fn of(mut objects: Buffer) -> Option<Listed> {
        mark_objects(objects.numbers()).then_some(Listed(objects))
    }

    /// Of objects by their addresses; those that `is_of_kinds` takes are known as such from then on.
    pub(crate) fn of_some(mut objects: Buffer, is_of_kinds: impl Fn(Object) -> bool) -> Option<Listed> {
        for object in objects.numbers() {
            *object |= if is_of_kinds(*object as Object) { OF_KINDS } else { 0 };
        }
        Listed::of(objects)
    }

    /// Of objects of the types asked for, by their addresses.
    pub(crate) fn of_kinds(mut objects: Buffer) -> Option<Listed> {
        objects.numbers().iter_mut().for_each(|object| *object |= OF_KINDS);
        Listed::of(objects)
    }

    pub(crate) fn own(&mut self) -> impl Iterator<Item = Object> + '_ {
        self.0.numbers().iter().filter(|place| **place & SHARED == 0).map(|place| (*place & !MARKS) as Object)
    }

    /// With whether it is of the types that were asked for, and whether it is a container.
    pub(crate) fn own_marked(&mut self) -> impl Iterator<Item = (Object, bool, bool)> + '_ {
        let own = self.0.numbers().iter().filter(|place| **place & SHARED == 0);
        own.map(|place| ((*place & !MARKS) as Object, *place & OF_KINDS != 0, *place & CONTAINER != 0))
    }

    /// Of those in shared pages that are of the types asked for at most `most`, evenly spread, into a list; and how many
    /// there are. `arguments`: any tuple.
    ///
    /// # Safety
    /// As of `read`, and no object has gone since.
    pub(crate) unsafe fn some_shared(&mut self, most: usize, list: Object, arguments: Object) -> usize {
        const WANTED: usize = SHARED | OF_KINDS;
        let others = self.0.numbers().iter().filter(|place| **place & WANTED == WANTED);
        let number = others.clone().count();
        // SAFETY: as the caller promises.
        others.step_by(number / most.max(1) + 1).for_each(|place| unsafe {
            let object = (*place & !MARKS) as Object;
            if !may_be_unfinished(object, arguments) {
                ffi::PyList_Append(list, object);
            }
        });
        number
    }
}

/// Of each row of so many another one: what a step makes comes in the same order again and again.
pub(crate) fn is_chosen(place: usize, step: usize) -> bool {
    place % step == place / step * ODD % step
}

/// It may be a tuple in the making (`tuple(iterator)`), which CPython refuses to finish where anybody else refers to it
/// (`_PyTuple_Resize`: SystemError). One that is done, and that nothing but one place refers to, cannot be told from it by
/// itself: its length is one that the program said of an iterator. `arguments`: any tuple.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn may_be_unfinished(object: Object, arguments: Object) -> bool {
    // SAFETY: as the caller promises.
    unsafe { (*object).refcount == 1 && (*object).kind == (*arguments).kind }
}

/// Those that the collector starts a collection at, of each list.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn limits(thresholds: Object) -> [i32; 3] {
    // SAFETY: as the caller promises.
    [0, 1, 2].map(|place| unsafe { ffi::PyLong_AsLong(ffi::PyTuple_GetItem(thresholds, place)) } as i32)
}

/// The items of a tuple, whose references are its own.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn items(tuple: Object) -> Vec<Object> {
    // SAFETY: as the caller promises.
    unsafe { (0..ffi::PyTuple_Size(tuple)).map(|place| ffi::PyTuple_GetItem(tuple, place)).collect() }
}

/// In an address: an object of the list refers to it.
const MARK: usize = 1;

struct Referred<'a> {
    places: &'a mut [usize],
    alone: &'a dyn Fn(Object) -> bool,
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `referred_to` gave it and a part that is alive.
unsafe extern "C-unwind" fn refers(part: Object, referred: *mut c_void) -> c_int {
    // SAFETY: as above.
    let referred = unsafe { &mut *referred.cast::<Referred>() };
    if !part.is_null() && (referred.alone)(part) {
        if let Ok(place) = referred.places.binary_search_by_key(&(part as usize), |one| one & !MARK) {
            referred.places[place] |= MARK;
        }
    }
    0
}

/// Tuples to which one place refers (`alone`), in the order of their addresses; marked where that is an object of the list, so
/// that they are done: to one in the making only CPython itself does.
///
/// # Safety
/// As of `read`, and no object has gone since; `module` is ours.
unsafe fn referred_to(listed: &mut Listed, module: Object, alone: &dyn Fn(Object) -> bool) -> Option<Buffer> {
    let mut places = Buffer::new();
    if !listed.own().filter(|object| alone(*object)).all(|object| places.push(object as usize)) {
        return None;
    }
    let mut referred = Referred { places: places.numbers(), alone };
    referred.places.sort_unstable();
    // SAFETY: as the caller promises; without the slot none is marked.
    unsafe {
        if !referred.places.is_empty() && large::fits(module) {
            for object in listed.own() {
                if let Some(traverse) = large::slot(object) {
                    traverse(object, refers, (&raw mut referred).cast());
                }
            }
        }
    }
    Some(places)
}

/// The objects that came last, at most so many, of the youngest list first: an object that lives on goes to the end of the
/// next one. None where the lists are not found, or one is torn.
///
/// # Safety
/// The interpreter's lock is held and no collection goes through its lists.
pub(crate) unsafe fn came_last(probe: Object, thresholds: [i32; 3], most: usize) -> Option<Buffer> {
    let mut found = Buffer::new();
    // SAFETY: outside of a collection an object's head refers to both of its neighbours.
    unsafe {
        for head in heads(probe, thresholds)? {
            let mut place = word(head + 8) & !FLAGS;
            while place != head && found.numbers().len() < most {
                if place == 0 || !found.push(place + HEAD) {
                    return None;
                }
                place = word(place + 8) & !FLAGS;
            }
        }
    }
    Some(found)
}

/// The objects of the youngest list that came last, at most `FAR_BACK`, and whether that is all of it. None where it is not
/// found, or is torn.
///
/// # Safety
/// The interpreter's lock is held and no collection goes through its lists.
unsafe fn last(probe: Object, thresholds: [i32; 3]) -> Option<(Buffer, bool)> {
    let mut found = Buffer::new();
    // SAFETY: outside of a collection an object's head refers to both of its neighbours.
    unsafe {
        let [head, ..] = heads(probe, thresholds)?;
        let mut place = word(head + 8) & !FLAGS;
        for _ in 0..FAR_BACK {
            if place == head || place == 0 || !found.push(place + HEAD) {
                break;
            }
            place = word(place + 8) & !FLAGS;
        }
        (place != 0).then_some((found, place == head))
    }
}

/// `newest(thresholds, since, most, came)`: of the objects that came last, but for the `since` oldest of the youngest list (of
/// one that is longer than is counted: of those `came` last), the `most` in their middle that are this process's own; how many the list has, and whether it has no more than that. None
/// where that cannot be told. Not all of them: where the collector is off, that list is the whole heap.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn newest(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs
    // Python code before the references are counted.
    unsafe {
        let number = |place: Size| ffi::PyLong_AsLong(ffi::PyTuple_GetItem(arguments, place)).max(0) as usize;
        let (thresholds, since, most) = (limits(ffi::PyTuple_GetItem(arguments, 0)), number(1), number(2));
        let own = ffi::PyList_New(0);
        let failed = own.is_null() || !ffi::PyErr_Occurred().is_null();
        ffi::PyErr_Clear();
        let Some((mut found, whole)) = (!failed).then(|| last(own, thresholds)).flatten() else {
            ffi::Py_DecRef(own);
            return ffi::none();
        };
        let count = found.numbers().len();
        let came = if whole { count.saturating_sub(since) } else { count.min(number(3)) };
        let skipped = came.saturating_sub(most) / 2;
        let mut chosen = Buffer::new();
        let some = found.numbers()[skipped..came.min(skipped + most)].iter().rev();
        let room = some.into_iter().all(|object| chosen.push(*object));
        let alone = |object: Object| may_be_unfinished(object, arguments);
        let listed = Some(chosen).filter(|_| room).and_then(Listed::of);
        let with_tuples = listed.and_then(|mut listed| {
            let referred = referred_to(&mut listed, module, &alone)?;
            Some((listed, referred))
        });
        let Some((mut listed, mut referred)) = with_tuples else {
            ffi::Py_DecRef(own);
            return ffi::none();
        };
        let referred = referred.numbers();
        let may_go = |object: &Object| {
            *object != own && (!alone(*object) || referred.binary_search(&(*object as usize | MARK)).is_ok())
        };
        listed.own().filter(may_go).for_each(|object| {
            ffi::PyList_Append(own, object);
        });
        ffi::PyErr_Clear();
        ffi::tuple([own, ffi::PyLong_FromSize_t(count), ffi::PyBool_FromLong(whole.into())])
    }
}

/// `is_own(object)`: its page is this process's own. True where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the object.
pub(crate) unsafe extern "C-unwind" fn is_own(_module: Object, object: Object) -> Object {
    let mut one = [object as usize];
    let own = !mark_objects(&mut one) || one[0] & SHARED == 0;
    // SAFETY: the lock is held.
    unsafe { ffi::PyBool_FromLong(c_int::from(own).into()) }
}

/// `pointer(address)`: the eight bytes there.
///
/// # Safety
/// They can be read: the caller has computed the address from a layout that it tried out.
pub(crate) unsafe extern "C-unwind" fn pointer(_module: Object, address: Object) -> Object {
    // SAFETY: as the caller promises.
    unsafe {
        let address = ffi::PyLong_AsSize_t(address);
        if !ffi::PyErr_Occurred().is_null() {
            return null_mut();
        }
        ffi::PyLong_FromSize_t(*(address as *const usize))
    }
}

const _: () = assert!(size_of::<*const c_void>() == 8);
