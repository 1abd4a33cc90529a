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

use crate::ffi::{self, Object, Size};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

const PAGE: usize = 4096;
const HEAD: usize = 16;
const GENERATION: usize = 24;
const FLAGS: usize = 3;
const EXCLUSIVE: u64 = 1 << 56;
const PRESENT: u64 = 1 << 63;
/// Pages between two that are asked for, below which both are read at once.
const GAP: usize = 512;
/// Beyond this a list is not followed: it may be torn.
const MOST: usize = 50_000_000;

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

/// The objects of a list, by their addresses.
///
/// # Safety
/// As of `heads`.
unsafe fn follow(head: usize, into: &mut Vec<usize>) -> bool {
    // SAFETY: as of `heads`.
    unsafe {
        let mut place = word(head) & !FLAGS;
        while place != head {
            if place == 0 || into.len() > MOST {
                return false;
            }
            into.push(place + HEAD);
            place = word(place) & !FLAGS;
        }
    }
    true
}

/// For each of these pages, in order and each once, whether it is this process's own.
fn own_pages(pages: &[usize]) -> Option<Vec<bool>> {
    let mut own = vec![false; pages.len()];
    // SAFETY: closed below.
    let fd = unsafe { ffi::open(c"/proc/self/pagemap".as_ptr(), ffi::O_RDONLY | ffi::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    let mut buffer = vec![0u64; 1 << 13];
    let mut next = 0;
    while let Some(&first) = pages.get(next) {
        let mut end = next + 1;
        while end < pages.len() && pages[end] - pages[end - 1] <= GAP && pages[end] - first < buffer.len() {
            end += 1;
        }
        let count = pages[end - 1] - first + 1;
        // SAFETY: the buffer has room for `count` entries.
        let read = unsafe { ffi::pread(fd, buffer.as_mut_ptr().cast(), count * 8, (first * 8) as i64) };
        let read = usize::try_from(read).unwrap_or(0) / 8;
        for number in next..end {
            let place = pages[number] - first;
            own[number] = place < read && buffer[place] & (EXCLUSIVE | PRESENT) == EXCLUSIVE | PRESENT;
        }
        next = end;
    }
    // SAFETY: it was opened above.
    unsafe { ffi::close(fd) };
    Some(own)
}

/// `objects(thresholds, generation, kinds, most)`: the process's own objects of all lists (generation -1) or of the
/// youngest (0); of those in shared pages, at most `most` whose type is one of `kinds`, evenly spread; how many such
/// there are; and how many objects in all. None where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn objects(_module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs
    // Python code before the references are counted.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let (limits, kinds) = (argument(0), argument(2));
        let generation = ffi::PyLong_AsLong(argument(1));
        let most = ffi::PyLong_AsLong(argument(3)).max(1) as usize;
        let limit = |place: Size| ffi::PyLong_AsLong(ffi::PyTuple_GetItem(limits, place)) as i32;
        let thresholds = [limit(0), limit(1), limit(2)];
        let kinds: Vec<Object> =
            (0..ffi::PyTuple_Size(kinds)).map(|place| ffi::PyTuple_GetItem(kinds, place)).collect();
        let (own, shared) = (ffi::PyList_New(0), ffi::PyList_New(0));
        if own.is_null() || shared.is_null() || !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return ffi::none();
        }
        let mut found = Vec::new();
        let whole = heads(own, thresholds).is_some_and(|heads| {
            heads.iter().take(if generation == 0 { 1 } else { 3 }).all(|head| follow(*head, &mut found))
        });
        let mut pages: Vec<usize> = found.iter().map(|object| object / PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        let owned = if whole { own_pages(&pages) } else { None };
        let Some(owned) = owned else {
            ffi::Py_DecRef(own);
            ffi::Py_DecRef(shared);
            return ffi::none();
        };
        let mut others = Vec::new();
        for &place in &found {
            let object = place as Object;
            if object == own || object == shared {
                continue;
            }
            let is_own = pages.binary_search(&(place / PAGE)).is_ok_and(|number| owned[number]);
            if is_own {
                ffi::PyList_Append(own, object);
            } else if kinds.contains(&(*object).kind) {
                others.push(object);
            }
        }
        let step = others.len() / most + 1;
        others.iter().step_by(step).for_each(|object| {
            ffi::PyList_Append(shared, *object);
        });
        ffi::PyErr_Clear();
        ffi::tuple([own, shared, ffi::PyLong_FromSize_t(others.len()), ffi::PyLong_FromSize_t(found.len())])
    }
}

/// `is_own(object)`: its page is this process's own. True where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the object.
pub(crate) unsafe extern "C-unwind" fn is_own(_module: Object, object: Object) -> Object {
    let own = own_pages(&[object as usize / PAGE]).is_none_or(|own| own.first() == Some(&true));
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
