//! What marks an object as immortal, in this version of Python?

use super::found::Object;
use pyo3::ffi;
use pyo3::prelude::*;

/// What is written into the first word of an object's head (64 bits) so that it is never freed.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Minor version of CPython 3. One is entered here when the tests have run on it.
    minor: u8,
    /// The reference count, its lower half.
    count: u32,
    /// Bits of the upper half.
    flags: u64,
}

const MARKS: [Mark; 3] = [
    // `_Py_IMMORTAL_REFCNT` in Include/object.h. No other value will do: only this one is never counted up.
    Mark { minor: 12, count: 0xFFFF_FFFF, flags: 0 },
    Mark { minor: 13, count: 0xFFFF_FFFF, flags: 0 },
    // `_Py_IMMORTAL_INITIAL_REFCNT` and `_Py_IMMORTAL_FLAGS` in Include/refcount.h. A little more than the former, from which
    // on nothing is counted up: references that the running frames took before are counted down when they end.
    Mark { minor: 14, count: (3 << 30) + (1 << 20), flags: 1 << 48 },
];

/// Free-threaded builds and those that trace references have a longer head before an object, and other rules.
const KNOWN_HEAD: bool = size_of::<ffi::PyObject>() == 16 && size_of::<usize>() == 8;

impl Mark {
    /// That of this Python; none where it is not known.
    pub(super) fn of(py: Python<'_>) -> PyResult<Option<Mark>> {
        let version = py.version_info();
        // Debug builds ("d") check what they would not find in a string that was made immortal.
        let plain = py.import("sys")?.getattr("abiflags")?.len()? == 0;
        let known = MARKS.into_iter().find(|mark| (version.major, version.minor) == (3, mark.minor));
        Ok(known.filter(|_| KNOWN_HEAD && plain))
    }

    /// # Safety
    /// `object` is alive, and no other thread runs Python code.
    #[inline]
    pub(super) unsafe fn put(self, object: Object) {
        let head = object.cast::<u64>();
        // SAFETY: the first word of an object is its reference count (`KNOWN_HEAD`), whose upper half has flags in some versions.
        unsafe { head.write((head.read() & !u64::from(u32::MAX)) | self.flags | u64::from(self.count)) };
    }
}

/// # Safety
/// `object` is alive.
#[inline]
pub(super) unsafe fn is_immortal(object: Object) -> bool {
    // SAFETY: the first word of an object is its reference count. `_Py_IsImmortal` (Include/object.h) looks at this sign.
    unsafe { (object.cast::<i64>().read() as i32) < 0 }
}
