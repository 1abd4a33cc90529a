//! Where do long lists of the agent lie? In a mapping of their own, which is gone as soon as they are.
//!
//! From malloc they would stay: a block of some megabytes that is given back raises glibc's threshold for mappings
//! (mallopt(3), M_MMAP_THRESHOLD), for the program's own blocks, too, and the heap keeps what is free at its top.

use crate::ffi;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Numbers, one after the other.
pub(crate) struct Buffer {
    place: *mut usize,
    length: usize,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new() -> Buffer {
        Buffer { place: null_mut(), length: 0, bytes: 0 }
    }

    /// False where there is no room.
    pub(crate) fn push(&mut self, number: usize) -> bool {
        if (self.length + 1) * size_of::<usize>() > self.bytes && !self.grow() {
            return false;
        }
        // SAFETY: the mapping has room for one more.
        unsafe { *self.place.add(self.length) = number };
        self.length += 1;
        true
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        let last = self.numbers().last().copied()?;
        self.length -= 1;
        Some(last)
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// So many zeros, as a new mapping has them; false where there is no room. Of an empty one only.
    pub(crate) fn zeros(&mut self, number: usize) -> bool {
        while self.bytes < number * size_of::<usize>() {
            if !self.grow() {
                return false;
            }
        }
        self.length = number;
        true
    }

    fn grow(&mut self) -> bool {
        let bytes = (self.bytes * 2).max(1 << 16);
        // SAFETY: a mapping of no file; the old one is this buffer's own, and is used through `place` only.
        let place = unsafe {
            if self.place.is_null() {
                let (rights, flags) = (ffi::PROT_READ_AND_WRITE, ffi::MAP_PRIVATE_AND_ANONYMOUS);
                ffi::mmap(null_mut(), bytes, rights, flags, -1, 0)
            } else {
                ffi::mremap(self.place.cast(), self.bytes, bytes, ffi::MREMAP_MAYMOVE)
            }
        };
        if place as isize == -1 {
            return false;
        }
        (self.place, self.bytes) = (place.cast(), bytes);
        true
    }

    pub(crate) fn numbers(&mut self) -> &mut [usize] {
        if self.place.is_null() {
            return &mut [];
        }
        // SAFETY: so many were written, and the borrow keeps the mapping.
        unsafe { std::slice::from_raw_parts_mut(self.place, self.length) }
    }
}

/// Where a table of so many places, a power of two, begins to seek an address. Fibonacci hashing: objects lie at multiples of 16.
pub(crate) fn place_of(address: usize, room: usize) -> usize {
    (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 & (room - 1)
}

/// Numbers that come from both ends of a row by turns.
pub(crate) struct Ends {
    near: Buffer,
    far: Buffer,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        Ends { near: Buffer::new(), far: Buffer::new() }
    }

    /// False where there is no room.
    pub(crate) fn push(&mut self, number: usize, far: bool) -> bool {
        if far { &mut self.far } else { &mut self.near }.push(number)
    }

    /// The row in its order; None where there is no room.
    pub(crate) fn joined(mut self) -> Option<Buffer> {
        let mut all = self.near;
        self.far.numbers().iter().rev().all(|number| all.push(*number)).then_some(all)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.place.is_null() {
            // SAFETY: the mapping is this buffer's own.
            unsafe { ffi::munmap(self.place.cast::<c_void>(), self.bytes) };
        }
    }
}
