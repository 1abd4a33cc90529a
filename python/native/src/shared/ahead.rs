//! What further items of a list are made of, asked of memory before they are needed.

use pyo3::ffi;
use pyo3::prelude::*;

/// Items ahead whose heads are fetched; what these point to; and what that holds.
pub(super) const AHEAD: [usize; 3] = [24, 16, 8];

/// Asks the processor for what items further on are made of. Only hints: a wrong one costs nothing.
#[inline]
pub(super) fn ahead(list: &Bound<'_, PyAny>, at: usize, count: usize) {
    let item = |at: usize| {
        // SAFETY: a list or tuple that is alive, whose length is asked for at this moment.
        unsafe {
            let list = list.as_ptr();
            if ffi::PyList_CheckExact(list) != 0 {
                (at < ffi::PyList_GET_SIZE(list) as usize).then(|| ffi::PyList_GET_ITEM(list, at as isize))
            } else {
                (at < count).then(|| ffi::PyTuple_GET_ITEM(list, at as isize))
            }
        }
    };
    if let Some(head) = item(at + AHEAD[0]) {
        prefetch(head.cast());
        prefetch(head.cast::<u8>().wrapping_add(32));
    }
    if let Some(near) = item(at + AHEAD[1]) {
        // SAFETY: each object has at least two words; a dict has its keys and values in the fifth and sixth, and what a
        // tensor's object points to is in the third of at least four.
        unsafe {
            let words = near.cast::<*const u8>();
            if ffi::PyDict_CheckExact(near) != 0 {
                let keys = *words.add(4);
                prefetch(keys);
                prefetch(keys.wrapping_add(64));
            } else if (*ffi::Py_TYPE(near)).tp_basicsize >= 32 {
                prefetch(*words.add(2));
            }
        }
    }
    if let Some(next) = item(at + AHEAD[2]) {
        // SAFETY: as in `next`; nothing is kept.
        unsafe {
            if ffi::PyDict_CheckExact(next) != 0 {
                let (mut key, mut value, mut position) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
                for _ in 0..8 {
                    if ffi::PyDict_Next(next, &raw mut position, &raw mut key, &raw mut value) == 0 {
                        break;
                    }
                    prefetch(value.cast());
                    prefetch(value.cast::<u8>().wrapping_add(64));
                }
            }
        }
    }
}

#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
