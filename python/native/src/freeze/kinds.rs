//! What is done with an object, by its type: decided once a type, and looked up for each object.

use super::arrays::Arrays;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What holds references to other objects, and how they are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Children {
    None,
    List,
    Tuple,
    Dict,
    /// By `tp_traverse`, as the collector finds them.
    Traverse,
    /// A subclass of dict: its traverse leaves out keys that are strings, which the collector has no use for.
    TraverseAndKeys,
    Array,
    Range,
}

/// An object that keeps its hash when it is first asked for it, and so must be asked before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hashed {
    No,
    Str,
    Bytes,
    FrozenSet,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) skip: bool,
    pub(super) children: Children,
    pub(super) hashed: Hashed,
    pub(super) collected: bool,
}

impl Plan {
    const SKIP: Plan = Plan { skip: true, children: Children::None, hashed: Hashed::No, collected: false };
}

pub(super) struct Kind {
    pub(super) tp: *mut ffi::PyTypeObject,
    pub(super) plan: Plan,
    pub(super) frozen: u64,
    pub(super) skipped: u64,
}

/// Types met so far. Types are not freed meanwhile: an object of each is alive, and no Python code runs.
pub(super) struct Kinds<'py> {
    stops: Vec<Bound<'py, PyType>>,
    array: *mut ffi::PyTypeObject,
    pub(super) all: Vec<Kind>,
    by_type: HashMap<usize, usize, ByAddress>,
    recent: [(*mut ffi::PyTypeObject, usize); RECENT],
}

const RECENT: usize = 64;

impl<'py> Kinds<'py> {
    pub(super) fn new(stops: Vec<Bound<'py, PyType>>, arrays: Option<&Arrays<'py>>) -> Self {
        Kinds {
            stops,
            array: arrays.map_or(std::ptr::null_mut(), Arrays::type_ptr),
            all: Vec::new(),
            by_type: HashMap::default(),
            recent: [(std::ptr::null_mut(), 0); RECENT],
        }
    }

    /// Number of a type in `all`.
    pub(super) fn of(&mut self, tp: *mut ffi::PyTypeObject) -> usize {
        let place = (tp as usize >> 4) % RECENT;
        if self.recent[place].0 == tp {
            return self.recent[place].1;
        }
        let number = match self.by_type.get(&(tp as usize)) {
            Some(number) => *number,
            None => {
                // SAFETY: the type of a living object, and the GIL is held.
                let plan = unsafe { self.plan(tp) };
                self.all.push(Kind { tp, plan, frozen: 0, skipped: 0 });
                self.by_type.insert(tp as usize, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.recent[place] = (tp, number);
        number
    }

    /// # Safety
    /// `tp` is a living type.
    unsafe fn plan(&self, tp: *mut ffi::PyTypeObject) -> Plan {
        let is = |known: *mut ffi::PyTypeObject| tp == known;
        // SAFETY: two types; asks nothing of their classes.
        let below = |base: *mut ffi::PyTypeObject| unsafe { ffi::PyType_IsSubtype(tp, base) != 0 };
        if self.stops.iter().any(|stop| below(stop.as_type_ptr())) {
            return Plan::SKIP;
        }
        // SAFETY: the caller's word, and the static types of Python itself, whose addresses are compared.
        unsafe {
            let collected = ffi::PyType_HasFeature(tp, ffi::Py_TPFLAGS_HAVE_GC) != 0;
            let children = match () {
                () if is(&raw mut ffi::PyList_Type) => Children::List,
                () if is(&raw mut ffi::PyTuple_Type) => Children::Tuple,
                () if is(&raw mut ffi::PyDict_Type) => Children::Dict,
                () if is(&raw mut ffi::PyRange_Type) => Children::Range,
                () if !self.array.is_null() && below(self.array) => Children::Array,
                () if below(&raw mut ffi::PyDict_Type) => Children::TraverseAndKeys,
                () if collected && (*tp).tp_traverse.is_some() => Children::Traverse,
                () => Children::None,
            };
            // By what would be called: a subclass with a `__hash__` of its own keeps none there.
            let same = |known: *mut ffi::PyTypeObject| {
                below(known)
                    && (*tp).tp_hash.map(|hash| hash as usize) == (*known).tp_hash.map(|hash| hash as usize)
            };
            let hashed = match () {
                () if same(&raw mut ffi::PyUnicode_Type) => Hashed::Str,
                () if same(&raw mut ffi::PyBytes_Type) => Hashed::Bytes,
                () if same(&raw mut ffi::PyFrozenSet_Type) => Hashed::FrozenSet,
                () => Hashed::No,
            };
            Plan { skip: false, children, hashed, collected }
        }
    }
}

/// For keys that are addresses: one multiplication, whose high bits the table uses.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

pub(super) type ByAddress = BuildHasherDefault<AddressHasher>;

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        let spread = (self.0 ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ (spread >> 32);
    }
}
