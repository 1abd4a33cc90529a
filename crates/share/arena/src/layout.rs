//! What lies where in the memfd: a header with its tables, then regions of blocks. Plain words and atomics only.
//!
//! The tables are far larger than any job needs: they are sparse, and a page that nobody touches costs nothing.

use crate::sync::AtomicU64;
use std::sync::atomic::{AtomicU32, AtomicU64 as Word};

pub(crate) const MAGIC: u64 = 0x616e_6572_612d_6c75;
/// Changed with every change of what is in this file.
pub(crate) const VERSION: u32 = 2;
pub(crate) const BLOCK_MAGIC: u32 = 0x6b63_6c62;

pub(crate) const SLOTS: usize = 16_384;
pub(crate) const HEAPS: usize = 4_096;
pub(crate) const REGIONS: usize = 16_384;
pub(crate) const CHANNELS: usize = 16_384;
pub(crate) const HEIRS: usize = 4_096;

pub(crate) const PAGE: u64 = 4096;
/// Blocks begin and end on it: torch aligns its storages to 64 bytes.
pub(crate) const ALIGN: u64 = 64;
/// In front of each block's bytes.
pub(crate) const BLOCK_HEADER: u64 = 64;

#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: Word,
    pub(crate) version: AtomicU32,
    pub(crate) pad: AtomicU32,
    /// Bytes of address space that every process sets aside.
    pub(crate) reserve: Word,
    /// Length of the file; only grows (F_SEAL_SHRINK).
    pub(crate) length: Word,
    /// First byte that belongs to no region.
    pub(crate) top: Word,
    /// Bytes of messages: copied into the arena, handed over in it, gone another way.
    pub(crate) travelled: [Word; 3],
    pub(crate) regions_used: AtomicU32,
    pub(crate) channels_used: AtomicU32,
    pub(crate) slots: [Slot; SLOTS],
    pub(crate) heaps: [HeapEntry; HEAPS],
    pub(crate) regions: [RegionEntry; REGIONS],
    pub(crate) channels: [ChannelEntry; CHANNELS],
    pub(crate) heirs: [Heir; HEIRS],
}

/// A process. Index 0 is nobody.
#[repr(C)]
pub(crate) struct Slot {
    /// pid, zero where free.
    pub(crate) pid: AtomicU32,
    pub(crate) pad: AtomicU32,
    /// Its start in clock ticks since boot (proc_pid_stat(5)): a pid alone is used again.
    pub(crate) start: Word,
}

#[repr(C, align(64))]
pub(crate) struct HeapEntry {
    /// Blocks that came back, the last one first.
    pub(crate) returned: AtomicU64,
    /// Slot of its owner; zero where it has none.
    pub(crate) owner: AtomicU32,
    /// Last generation given to a block.
    pub(crate) generation: AtomicU32,
}

#[repr(C)]
pub(crate) struct RegionEntry {
    pub(crate) start: Word,
    pub(crate) length: Word,
    /// Bytes from the start that are divided into blocks.
    pub(crate) used: Word,
    /// Index of its heap plus one; zero until it is all written.
    pub(crate) heap: AtomicU32,
    pub(crate) pad: AtomicU32,
}

/// A way that tickets go.
#[repr(C)]
pub(crate) struct ChannelEntry {
    /// 0 never used, 1 open, 2 closed: tickets to it that are still out will not be taken.
    pub(crate) state: AtomicU32,
}

/// A process that was forked while another held leases, and sees those blocks through the same mapping.
#[repr(C)]
pub(crate) struct Heir {
    /// pid, zero where free.
    pub(crate) pid: AtomicU32,
    /// Whose leases.
    pub(crate) of_slot: AtomicU32,
    /// That process's fork count after this fork.
    pub(crate) fork: Word,
}

/// In front of a block.
#[repr(C, align(64))]
pub(crate) struct BlockHeader {
    pub(crate) magic: AtomicU32,
    pub(crate) heap: AtomicU32,
    /// Whole size, this header included; the next block of the region begins there.
    pub(crate) size: Word,
    /// [`crate::state`].
    pub(crate) state: AtomicU64,
    /// Link of the return stack.
    pub(crate) next: AtomicU64,
    /// When it was last taken, in seconds of CLOCK_MONOTONIC.
    pub(crate) since: Word,
}

/// Owner of a heap that somebody tidied up after its owner had died: for whoever wants one.
pub(crate) const LEFT: u32 = u32::MAX;

/// Where regions begin.
pub(crate) const DATA: u64 = (std::mem::size_of::<Header>() as u64).div_ceil(PAGE) * PAGE;

const _: () = assert!(std::mem::size_of::<BlockHeader>() as u64 == BLOCK_HEADER);
const _: () = assert!(SLOTS <= 1 << 16 && CHANNELS <= 1 << 16);

/// Up to a multiple of `step`, a power of two.
pub(crate) fn round_up(bytes: u64, step: u64) -> u64 {
    (bytes + step - 1) & !(step - 1)
}
