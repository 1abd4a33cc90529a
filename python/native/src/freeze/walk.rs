//! In which order are the objects touched? So that memory is waited for seldom. An object is prefetched when it is found,
//! looked at when thirty others have been found, and gone into when what it points to has been prefetched as well. The
//! items of a large container whose order is not that of memory (a shuffled list) are sorted by address first.
//!
//! What was made immortal is thereby marked as seen. The surprise: a container that was immortal before is not gone into,
//! so that what was put there after a first `freeze` is not found by a second; the root alone always is.

use super::arrays::Arrays;
use super::found::{Found, Object};
use super::kinds::{ByAddress, Children, Hashed, Kinds};
use super::mark::{is_immortal, Mark};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::collections::HashSet;
use std::os::raw::{c_int, c_void};

/// Objects between the finding of one and the look at it, and from then until it is gone into.
const NEAR: usize = 32;
const FAR: usize = 16;
/// What is longer is not hashed beforehand: to read it takes longer than to copy the page that its hash is written to.
const LONG: isize = 4096;

/// (type, objects newly immortal, objects not gone into) for each type that was met.
pub(super) type Counts = Vec<(Py<PyType>, u64, u64)>;

/// Gives back what was put in `N` puttings before.
struct Delay<T, const N: usize> {
    items: [T; N],
    first: usize,
    length: usize,
}

impl<T: Copy, const N: usize> Delay<T, N> {
    fn new(nothing: T) -> Self {
        Delay { items: [nothing; N], first: 0, length: 0 }
    }

    fn put(&mut self, item: T) -> Option<T> {
        if self.length < N {
            self.items[(self.first + self.length) % N] = item;
            self.length += 1;
            return None;
        }
        let old = std::mem::replace(&mut self.items[self.first], item);
        self.first = (self.first + 1) % N;
        Some(old)
    }

    fn take(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        let old = self.items[self.first];
        self.first = (self.first + 1) % N;
        Some(old)
    }
}

pub(super) struct Walk<'py> {
    kinds: Kinds<'py>,
    namespaces: HashSet<usize, ByAddress>,
    arrays: Option<Arrays<'py>>,
    mark: Mark,
    found: Found,
    near: Delay<Object, NEAR>,
    far: Delay<(Object, usize), FAR>,
    skipped: HashSet<usize, ByAddress>,
    root: Object,
}

impl<'py> Walk<'py> {
    pub(super) fn new(
        kinds: Kinds<'py>,
        namespaces: Vec<usize>,
        arrays: Option<Arrays<'py>>,
        mark: Mark,
    ) -> Self {
        Walk {
            kinds,
            namespaces: namespaces.into_iter().collect(),
            arrays,
            mark,
            found: Found::default(),
            near: Delay::new(std::ptr::null_mut()),
            far: Delay::new((std::ptr::null_mut(), 0)),
            skipped: HashSet::default(),
            root: std::ptr::null_mut(),
        }
    }

    pub(super) fn run(&mut self, root: &Bound<'py, PyAny>) {
        let root = root.as_ptr();
        self.root = root;
        // SAFETY: the GIL is held, and each pointer comes from an object that is alive: the root is the caller's, and
        // whatever holds another was made immortal before it was gone into.
        unsafe {
            if is_immortal(root) {
                let number = self.kinds.of(ffi::Py_TYPE(root));
                if !self.skip(root, number) {
                    self.go_into(root, number);
                }
            } else {
                self.visit(root);
            }
            loop {
                if let Some(object) = self.found.next() {
                    prefetch(object);
                    // The collector's words are before the object, often in another line.
                    prefetch(object.cast::<u8>().wrapping_sub(16));
                    if let Some(object) = self.near.put(object) {
                        self.visit(object);
                    }
                } else if let Some(object) = self.near.take() {
                    self.visit(object);
                } else if let Some((object, number)) = self.far.take() {
                    self.go_into(object, number);
                } else {
                    break;
                }
            }
        }
    }

    /// What was done, and how many arrays of records were left out.
    pub(super) fn counts(self, py: Python<'_>) -> (Counts, u64) {
        let met = self.kinds.all.iter().filter(|kind| kind.frozen > 0 || kind.skipped > 0);
        let counts = met.map(|kind| {
            // SAFETY: a living type, to which a new reference is taken.
            let tp = unsafe { PyType::from_borrowed_type_ptr(py, kind.tp) };
            (tp.unbind(), kind.frozen, kind.skipped)
        });
        (counts.collect(), self.arrays.map_or(0, |arrays| arrays.records))
    }

    /// Is this one that is not to be touched?
    fn skip(&mut self, object: Object, number: usize) -> bool {
        let kind = &mut self.kinds.all[number];
        let namespace = kind.plan.children == Children::Dict && self.namespaces.contains(&(object as usize));
        let skip = kind.plan.skip || namespace;
        if skip && self.skipped.insert(object as usize) {
            kind.skipped += 1;
        }
        skip
    }

    /// # Safety
    /// `object` is null or alive, and the GIL is held.
    unsafe fn visit(&mut self, object: Object) {
        // SAFETY: the caller's word; what is cast was recognised by its type.
        unsafe {
            // numpy leaves null in arrays of objects that were never filled.
            if object.is_null() || is_immortal(object) {
                return;
            }
            let number = self.kinds.of(ffi::Py_TYPE(object));
            if self.skip(object, number) {
                return;
            }
            self.mark.put(object);
            let kind = &mut self.kinds.all[number];
            kind.frozen += 1;
            let plan = kind.plan;
            match plan.children {
                Children::List => prefetch((*object.cast::<ffi::PyListObject>()).ob_item),
                Children::Dict => {
                    let keys = (*object.cast::<ffi::PyDictObject>()).ma_keys;
                    prefetch(keys);
                    prefetch(keys.cast::<u8>().wrapping_add(64));
                }
                Children::None if plan.hashed == Hashed::No && !plan.collected => return,
                Children::None => prefetch(object.cast::<u8>().add(64)),
                _ => {}
            }
            if plan.collected {
                // The neighbours in the collector's list. Only fetched: where the words mean something else, nothing is lost.
                let head = object.cast::<usize>().sub(2);
                prefetch(*head as *const u8);
                prefetch(*head.add(1) as *const u8);
            }
            if let Some((object, number)) = self.far.put((object, number)) {
                self.go_into(object, number);
            }
        }
    }

    /// # Safety
    /// `object` is alive and of the type with this number, and the GIL is held.
    unsafe fn go_into(&mut self, object: Object, number: usize) {
        let plan = self.kinds.all[number].plan;
        let before = self.found.singles();
        // SAFETY: the caller's word; what is cast was recognised by its type.
        unsafe {
            keep_hash(object, plan.hashed);
            match plan.children {
                Children::None => {}
                Children::List => {
                    let list = object.cast::<ffi::PyListObject>();
                    self.found.add_row((*list).ob_item, ffi::PyList_GET_SIZE(object) as usize);
                }
                Children::Tuple => {
                    let items = &raw const (*object.cast::<ffi::PyTupleObject>()).ob_item;
                    self.found.add_row(items.cast(), ffi::PyTuple_GET_SIZE(object) as usize);
                }
                Children::Dict => self.entries(object, true),
                Children::Range => {
                    for name in [c"start", c"stop", c"step"] {
                        let value = ffi::PyObject_GetAttrString(object, name.as_ptr());
                        self.found.add(value);
                        ffi::Py_XDECREF(value); // the range keeps it
                    }
                }
                Children::Array => {
                    if let Some(arrays) = &mut self.arrays {
                        arrays.children(object, &mut self.found);
                    }
                    self.traverse(object, plan.collected);
                }
                Children::Traverse => self.traverse(object, plan.collected),
                Children::TraverseAndKeys => {
                    self.traverse(object, plan.collected);
                    self.entries(object, false);
                }
            }
            self.found.sort(before);
            if plan.collected && ffi::PyObject_IS_GC(object) != 0 {
                ffi::PyObject_GC_UnTrack(object.cast());
            }
        }
    }

    /// # Safety
    /// `dict` is a living dict.
    unsafe fn entries(&mut self, dict: Object, values: bool) {
        let mut at = 0;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the caller's word; borrowed references.
        while unsafe { ffi::PyDict_Next(dict, &raw mut at, &raw mut key, &raw mut value) } != 0 {
            self.found.add(key);
            if values {
                self.found.add(value);
            }
        }
    }

    /// # Safety
    /// `object` is alive, and `collected` what its type says.
    unsafe fn traverse(&mut self, object: Object, collected: bool) {
        // SAFETY: an object that the collector tracks is one whose `tp_traverse` may be called at any time;
        // so is the root, which is in the hands of Python code (and untracked where it was frozen before).
        unsafe {
            if !collected || (object != self.root && ffi::PyObject_GC_IsTracked(object) == 0) {
                return;
            }
            let tp = ffi::Py_TYPE(object);
            if let Some(traverse) = (*tp).tp_traverse {
                let mut visitor = Visitor { found: &mut self.found, tp: tp.cast() };
                traverse(object, visit, (&raw mut visitor).cast());
            }
        }
    }
}

struct Visitor<'a> {
    found: &'a mut Found,
    /// Every instance holds its class; that is no object to be told of.
    tp: Object,
}

/// # Safety
/// For `tp_traverse` as `traverse` calls it, with the visitor that it was handed.
unsafe extern "C" fn visit(object: Object, visitor: *mut c_void) -> c_int {
    // SAFETY: what `traverse` handed to `tp_traverse`, which hands it on.
    let visitor = unsafe { &mut *visitor.cast::<Visitor<'_>>() };
    if object != visitor.tp {
        visitor.found.add(object);
    }
    0
}

/// Has an object compute the hash that it would otherwise write when it is first a key.
///
/// # Safety
/// `object` is alive and as `hashed` says.
unsafe fn keep_hash(object: Object, hashed: Hashed) {
    // SAFETY: the caller's word; these functions of Python's own run no code of a class.
    unsafe {
        let ask = match hashed {
            Hashed::No => false,
            Hashed::Str => {
                let text = object.cast::<ffi::PyASCIIObject>();
                (*text).hash == -1 && (*text).length <= LONG
            }
            Hashed::Bytes => ffi::Py_SIZE(object) <= LONG,
            Hashed::FrozenSet => true,
        };
        if ask {
            ffi::PyObject_Hash(object);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn prefetch<T>(at: *const T) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    // SAFETY: a hint; it fails at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch<T>(_: *const T) {}
