//! What was found and not yet looked at, in which order is it taken?

use pyo3::ffi;

/// Rows of at least so many are taken in the order of memory, where they are not already.
const MANY: usize = 1024;
const NEIGHBOURHOOD: usize = 64 << 10;

pub(super) type Object = *mut ffi::PyObject;

/// Objects in a row, such as the items of a list.
struct Row {
    next: *const Object,
    left: usize,
}

/// What was found and not yet looked at. Borrowed pointers: what holds them is immortal when they are taken.
#[derive(Default)]
pub(super) struct Found {
    single: Vec<Object>,
    rows: Vec<Row>,
}

impl Found {
    #[inline]
    pub(super) fn add(&mut self, object: Object) {
        self.single.push(object);
    }

    /// # Safety
    /// `length` objects (or nulls) lie at `items`, and stay there while no Python code runs.
    pub(super) unsafe fn add_row(&mut self, items: *const Object, length: usize) {
        if length >= MANY && items.is_aligned() {
            // SAFETY: the caller's word.
            let items = unsafe { std::slice::from_raw_parts(items, length) };
            if scattered(items) {
                self.single.extend_from_slice(items);
                return;
            }
        }
        self.rows.push(Row { next: items, left: length });
    }

    /// How many were added one by one.
    pub(super) fn singles(&self) -> usize {
        self.single.len()
    }

    /// Has what one container added be taken in the order of memory; there were `before` before it.
    pub(super) fn sort(&mut self, before: usize) {
        let added = &mut self.single[before..];
        if added.len() >= MANY {
            added.sort_unstable_by(|one, other| other.cmp(one)); // the last is taken first
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Object> {
        if let Some(object) = self.single.pop() {
            return Some(object);
        }
        while let Some(row) = self.rows.last_mut() {
            if row.left > 0 {
                row.left -= 1;
                // SAFETY: inside of the row (`add_row`).
                return Some(unsafe {
                    let object = row.next.read_unaligned();
                    row.next = row.next.add(1);
                    object
                });
            }
            self.rows.pop();
        }
        None
    }
}

/// Do neighbours lie far from each other? Not so in the order in which objects were made, where each page serves many.
fn scattered(objects: &[Object]) -> bool {
    let far = |pair: &&[Object]| (pair[0] as usize).abs_diff(pair[1] as usize) > NEIGHBOURHOOD;
    objects.windows(2).filter(far).count() > objects.len() / 8
}
