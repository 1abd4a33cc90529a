//! What does native code hold, to call it or to call something with it? Functions registered with `atexit` and their arguments,
//! hooks of torch's graphs in C++, callbacks of a library: no name leads there.
//!
//! CPython's own rule: of these objects, those that have more references than come from all that the collector knows. A walk
//! over all of them is too long a hold of the lock, so that it is made in shares, and between two of them the program goes on. So no
//! reference is kept: a tuple to which one place refers may be in the making. The last call sees in one hold which of them are there
//! still, and what they refer to. One whose holder came or went meanwhile may be among them: whoever asks takes many that
//! are alike, and asks again. What cannot be changed, as a tuple, refers only to what was there before it: of that what came last is
//! enough.

use crate::buffer::Buffer;
use crate::ffi::{self, Object, Size};
use crate::objects::{self, Listed};
use crate::unreachable::Table;
use crate::{large, modules};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// References between two looks at the clock.
const AT_ONCE: usize = 1 << 12;
/// Of one that native code holds: its own, and that of whoever made it.
const FEW_REFERENCES: isize = 2;

/// `may_be_held(thresholds, far_back, callables, dicts, fixed, most, ns)`: bytes, sixteen for each of at most `most` of the `far_back`
/// objects that came last, its address and how many references there are to it that do not come from those of them which cannot be
/// changed (`fixed`: exact types): functions and such (`callables`), dicts with one entry (`dicts`), short tuples, of which
/// each has few references and lies in a page of this process's own. None where that cannot be told within so many nanoseconds of this
/// thread's own.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn may_be_held(module: Object, arguments: Object) -> Object {
    // SAFETY: the lock is held throughout, so that no object comes, goes or moves to another list; nothing below runs Python
    // code.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let number = |place: Size| ffi::PyLong_AsLong(argument(place)).max(1) as usize;
        let (thresholds, far_back, most) = (objects::limits(argument(0)), number(1), number(5));
        let (callables, dicts) = (objects::items(argument(2)), objects::items(argument(3)));
        let (fixed, ns) = (objects::items(argument(4)), ffi::PyLong_AsLong(argument(6)));
        let probe = ffi::PyList_New(0);
        let failed = probe.is_null() || !ffi::PyErr_Occurred().is_null() || !large::fits(module);
        ffi::PyErr_Clear();
        let fits = |object: Object| {
            let (kind, references) = ((*object).kind, (*object).refcount);
            callables.contains(&kind) && references <= FEW_REFERENCES
                || references == 1 && kind == (*arguments).kind && is_short(object)
                || references == 1 && dicts.contains(&kind) && ffi::PyObject_Size(object) == 1
        };
        let came = (!failed).then(|| objects::came_last(probe, thresholds, far_back)).flatten();
        let found = came.and_then(|mut came| {
            let mut some = Buffer::new();
            let room = came
                .numbers()
                .iter()
                .filter(|one| fits(**one as Object))
                .take(most)
                .all(|one| some.push(*one));
            let mut listed = Some(some).filter(|_| room).and_then(Listed::of_kinds)?;
            let mut own = Buffer::new();
            let room =
                listed.own().all(|one| own.push(one as usize) && own.push((*one).refcount.cast_unsigned()));
            let mut search = Search::new(own.numbers(), ns).filter(|_| room)?;
            for one in came.numbers() {
                let object = *one as Object;
                if fixed.contains(&(*object).kind) {
                    search.subtract(object);
                }
            }
            search.left()
        });
        ffi::Py_DecRef(probe);
        found.map_or_else(ffi::none, |found| bytes(found))
    }
}

/// Elements of a tuple of arguments, at most: one of very many would be gone through in one hold.
const MOST_ARGUMENTS: Size = 64;

/// # Safety
/// The interpreter's lock is held, and it is a tuple.
unsafe fn is_short(tuple: Object) -> bool {
    // SAFETY: as the caller promises.
    (1..=MOST_ARGUMENTS).contains(&unsafe { ffi::PyTuple_Size(tuple) })
}

/// Bits that say of which addresses the table has none: most of what is asked for is not there.
const BITS: usize = 1 << 16;

struct Search<'a> {
    held: &'a [usize],
    table: Table,
    bits: [u64; BITS / 64],
    left: Vec<usize>,
    followed: usize,
    until: i64,
    is_late: bool,
}

fn bit_of(address: usize) -> (usize, u64) {
    let place = (address >> 4) % BITS;
    (place / 64, 1 << (place % 64))
}

impl<'a> Search<'a> {
    /// `held`: addresses, and beside each how many references are left.
    fn new(held: &'a [usize], ns: i64) -> Option<Search<'a>> {
        let (mut table, mut bits) = (Table::new(&addresses(held))?, [0; BITS / 64]);
        for (place, one) in held.chunks_exact(2).enumerate() {
            let at = table.find(one[0])?;
            table.known.numbers()[at] = place;
            let (word, bit) = bit_of(one[0]);
            bits[word] |= bit;
        }
        let left = held.chunks_exact(2).map(|one| one[1]).collect();
        let until = ffi::computed().saturating_add(ns);
        Some(Search { held, table, bits, left, followed: 0, until, is_late: false })
    }

    /// Without the references of this object.
    ///
    /// # Safety
    /// The interpreter's lock is held, the object is alive and the collector's, and types' slots lie where they are thought to.
    unsafe fn subtract(&mut self, object: Object) {
        self.follow();
        // SAFETY: as the caller promises; a type without the slot refers to nothing that the collector could see.
        unsafe {
            if let Some(traverse) = large::slot(object) {
                traverse(object, count, std::ptr::from_mut(self).cast());
            }
        }
    }

    fn follow(&mut self) {
        self.followed += 1;
        self.is_late |= self.followed.is_multiple_of(AT_ONCE) && ffi::computed() > self.until;
    }

    /// Those of which references are left. None where there was no time for all.
    fn left(self) -> Option<Buffer> {
        let mut found = Buffer::new();
        let mut rest = self.held.chunks_exact(2).zip(self.left).filter(|(_, left)| *left > 0);
        let room = rest.all(|(one, left)| found.push(one[0]) && found.push(left));
        (room && !self.is_late).then_some(found)
    }
}

// SAFETY: called by a type's `tp_traverse`, with the argument that `subtract` gave it and a part that is alive.
unsafe extern "C-unwind" fn count(part: Object, search: *mut c_void) -> c_int {
    // SAFETY: as above.
    let search = unsafe { &mut *search.cast::<Search>() };
    search.follow();
    let (word, bit) = bit_of(part as usize);
    if search.bits[word] & bit != 0 {
        if let Some(at) = search.table.find(part as usize) {
            let place = search.table.known.numbers()[at];
            search.left[place] = search.left[place].saturating_sub(1);
        }
    }
    c_int::from(search.is_late) // anything but 0 ends the walk through the parts
}

/// `less_referred(thresholds, held, closed, fixed, share, shares, ns)`: the same bytes as `held`, without the references that come from
/// this share of all objects that the collector knows, but for `closed` (ids) and those of which it was asked before (`fixed`), and
/// without those of which none is left. None where that cannot be told within so many nanoseconds of this thread's own.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn less_referred(module: Object, arguments: Object) -> Object {
    // SAFETY: as of `may_be_held`.
    unsafe {
        let argument = |place: Size| ffi::PyTuple_GetItem(arguments, place);
        let number = |place: Size| ffi::PyLong_AsLong(argument(place)).max(0) as usize;
        let (thresholds, held) = (objects::limits(argument(0)), numbers(argument(1)));
        let closed = objects::items(argument(2)).into_iter().map(|id| ffi::PyLong_AsSize_t(id));
        let closed: Vec<usize> = closed.collect();
        let fixed = objects::items(argument(3));
        let (share, shares, ns) = (number(4), number(5).max(1), ffi::PyLong_AsLong(argument(6)));
        let probe = ffi::PyList_New(0);
        let failed = probe.is_null() || !ffi::PyErr_Occurred().is_null() || !large::fits(module);
        ffi::PyErr_Clear();
        let found = held.filter(|_| !failed).and_then(|held| Search::new(held, ns)).and_then(|mut search| {
            let whole = objects::each(probe, thresholds, |address, _| {
                let object = address as Object;
                if (address >> 4) % shares == share
                    && !fixed.contains(&(*object).kind)
                    && !closed.contains(&address)
                {
                    search.subtract(object);
                }
                !search.is_late
            });
            search.left().filter(|_| whole)
        });
        ffi::Py_DecRef(probe);
        found.map_or_else(ffi::none, |found| bytes(found))
    }
}

/// `held(thresholds, held, far_back)`: of those of `held` that are there still, among the `far_back` objects that came last, (object,
/// what it refers to); None in place of a tuple, which may be in the making. None where that cannot be told.
// SAFETY: called by CPython, which holds the lock and the arguments.
pub(crate) unsafe extern "C-unwind" fn held(module: Object, arguments: Object) -> Object {
    // SAFETY: as of `may_be_held`; what is handed out is counted once all lists have been gone through.
    unsafe {
        let (thresholds, held) = (
            objects::limits(ffi::PyTuple_GetItem(arguments, 0)),
            numbers(ffi::PyTuple_GetItem(arguments, 1)),
        );
        let far_back = ffi::PyLong_AsSize_t(ffi::PyTuple_GetItem(arguments, 2));
        let list = ffi::PyList_New(0);
        let failed = list.is_null() || !ffi::PyErr_Occurred().is_null() || !large::fits(module);
        ffi::PyErr_Clear();
        let table = held.filter(|_| !failed).and_then(|held| Table::new(&addresses(held)));
        let came = table.and_then(|table| Some((table, objects::came_last(list, thresholds, far_back)?)));
        let Some((mut table, mut came)) = came else {
            ffi::Py_DecRef(list);
            return ffi::none();
        };
        for address in came.numbers() {
            if *address != list as usize && table.find(*address).is_some() {
                add(list, *address as Object, arguments);
            }
        }
        modules::whole(list)
    }
}

/// # Safety
/// The interpreter's lock is held, and the object is alive.
unsafe fn add(list: Object, object: Object, arguments: Object) {
    // SAFETY: as the caller promises; each reference is handed over.
    unsafe {
        let parts = ffi::PyList_New(0);
        let is_tuple = (*object).kind == (*arguments).kind;
        if is_tuple && is_short(object) && !parts.is_null() {
            (0..ffi::PyTuple_Size(object)).map(|place| ffi::PyTuple_GetItem(object, place)).for_each(
                |part| {
                    ffi::PyList_Append(parts, part);
                },
            );
        }
        let one = ffi::tuple([if is_tuple { ffi::none() } else { ffi::held(object) }, parts]);
        ffi::PyList_Append(list, one);
        ffi::Py_DecRef(one);
    }
}

fn addresses(held: &[usize]) -> Vec<usize> {
    held.chunks_exact(2).map(|one| one[0]).collect()
}

/// The numbers that are the bytes of an object `bytes`, where they lie.
///
/// # Safety
/// The interpreter's lock is held, and the object lives on.
unsafe fn numbers<'a>(bytes: Object) -> Option<&'a [usize]> {
    let (mut place, mut length) = (null_mut(), 0);
    // SAFETY: as the caller promises; CPython says how many bytes there are, and none that is not aligned is taken.
    unsafe {
        if ffi::PyBytes_AsStringAndSize(bytes, &mut place, &mut length) != 0
            || !(place as usize).is_multiple_of(size_of::<usize>())
        {
            return None;
        }
        Some(std::slice::from_raw_parts(place.cast(), usize::try_from(length).ok()? / size_of::<usize>()))
    }
}

/// # Safety
/// The interpreter's lock is held.
unsafe fn bytes(mut found: Buffer) -> Object {
    let found = found.numbers();
    // SAFETY: as the caller promises; so many bytes lie there.
    unsafe { ffi::PyBytes_FromStringAndSize(found.as_ptr().cast(), size_of_val(found) as Size) }
}
