//! The memfd that is written while an object is packed: grows as it fills, and is sealed at the end.
//!
//! Mapped once with a large reserve, so that nothing moves and no second copy is ever needed. Every ancestor cgroup
//! and the machine are asked before it grows (`headroom`): too large an object is an error here, and no OOM kill.

use super::refusal::Refusal;
use crate::headroom;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::OwnedFd;

const STEP: usize = 1 << 20;

type Guard = Box<dyn Fn(u64, u64) -> Result<(), String> + Send + Sync>;

/// Bytes that are being written.
pub(crate) struct Memory {
    fd: OwnedFd,
    mapping: Mapping,
    /// So far the file reaches.
    length: usize,
    end: usize,
    guard: Guard,
}

impl Memory {
    pub(crate) fn new() -> Result<Memory, Refusal> {
        let failed = |error: rustix::io::Errno| Refusal::memory(format!("memfd_create: {error}"));
        let fd = rustix::fs::memfd_create("ullage-shared", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(failed)?;
        let mapping = Mapping::of(&fd, headroom::reserve() as usize)?;
        Ok(Memory { fd, mapping, length: 0, end: 0, guard: headroom::guard() })
    }

    /// Where the next byte goes.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Forgets all from `at` on.
    pub(crate) fn rewind(&mut self, at: usize) {
        debug_assert!(at <= self.end);
        self.end = at;
    }

    #[cold]
    fn grow(&mut self, needed: usize) -> Result<(), Refusal> {
        if needed > self.mapping.reserve {
            return Err(Refusal::memory(format!("it is larger than {} bytes", self.mapping.reserve)));
        }
        let exact = needed.next_multiple_of(STEP).min(self.mapping.reserve);
        let ample = (self.length + self.length / 4).next_multiple_of(STEP).clamp(exact, self.mapping.reserve);
        let ask = |length: usize| (self.guard)((length - self.length) as u64, self.length as u64);
        let length = match ask(ample) {
            Ok(()) => ample,
            Err(_) => ask(exact).map(|()| exact).map_err(Refusal::memory)?,
        };
        rustix::fs::ftruncate(&self.fd, length as u64)
            .map_err(|error| Refusal::memory(format!("ftruncate to {length} bytes: {error}")))?;
        self.length = length;
        Ok(())
    }

    /// Room for so many bytes, which the caller writes.
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> Result<*mut u8, Refusal> {
        let end = self.end.checked_add(bytes).ok_or_else(|| Refusal::memory("it is too large"))?;
        if end > self.length {
            self.grow(end)?;
        }
        // SAFETY: inside the mapping, and inside the file.
        let at = unsafe { self.mapping.base.add(self.end) };
        self.end = end;
        Ok(at)
    }

    /// # Safety
    /// `from` is valid for `bytes` bytes.
    #[inline]
    pub(crate) unsafe fn copy(&mut self, from: *const u8, bytes: usize) -> Result<(), Refusal> {
        let to = self.room(bytes)?;
        // SAFETY: there is room, and the caller vouches for the source.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        Ok(())
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // SAFETY: a slice.
        unsafe { self.copy(bytes.as_ptr(), bytes.len()) }
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.put(&[byte])
    }

    pub(crate) fn word(&mut self, word: usize) -> Result<(), Refusal> {
        self.put(&(word as u64).to_ne_bytes())
    }

    #[inline]
    pub(crate) fn length(&mut self, length: usize) -> Result<(), Refusal> {
        let mut rest = length as u64;
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80)?;
            rest >>= 7;
        }
        self.byte(rest as u8)
    }

    pub(crate) fn align(&mut self, to: usize) -> Result<(), Refusal> {
        self.room(self.end.next_multiple_of(to) - self.end).map(|_| ())
    }

    /// Writes into room that was made before.
    pub(crate) fn set(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.end, "inside what was written");
        // SAFETY: inside the mapping and the file (asserted).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.mapping.base.add(at), bytes.len()) };
    }

    /// Cut to its length and sealed: nobody can change it any more.
    pub(crate) fn finish(self) -> Result<OwnedFd, Refusal> {
        let failed = |error: rustix::io::Errno| Refusal::memory(format!("sealing: {error}"));
        let Memory { fd, mapping, end, .. } = self;
        drop(mapping); // a writable mapping forbids the seal
        rustix::fs::ftruncate(&fd, end as u64).map_err(failed)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&fd, seals).map_err(failed)?;
        Ok(fd)
    }
}

/// The file's pages, writable.
struct Mapping {
    base: *mut u8,
    reserve: usize,
}

impl Mapping {
    fn of(fd: &OwnedFd, reserve: usize) -> Result<Mapping, Refusal> {
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new mapping at a place of the kernel's choice; pages past the file's end are not touched.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), reserve, protection, flags, fd, 0) };
        let failed =
            |error| Refusal::memory(format!("{reserve} bytes of address space: {error} (ulimit -v)"));
        Ok(Mapping { base: base.map_err(failed)?.cast(), reserve })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`; its owner has given out no pointer that outlives it.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.reserve) };
    }
}
