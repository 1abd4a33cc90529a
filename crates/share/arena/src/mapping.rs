//! The memfd and its one mapping. All raw pointers of the arena are made here.
//!
//! The surprise: several processes grow the file at once. `ftruncate` to less than it has would lose bytes;
//! F_SEAL_SHRINK makes the kernel refuse that, which then means "somebody else grew it further".

use crate::error::ArenaError;
use crate::layout::{BlockHeader, Header, ALIGN, BLOCK_HEADER, BLOCK_MAGIC, DATA, MAGIC, PAGE, VERSION};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The file grows in steps of this: it is sparse, only its length changes.
const LENGTH_STEP: u64 = 256 << 20;
const NAME: &str = "ullage-arena";

#[derive(Debug)]
pub(crate) struct Mapping {
    fd: OwnedFd,
    base: *mut u8,
    reserve: u64,
}

// SAFETY: `base` is the start of a shared mapping that lives as long as this value; everything reached through
// it is atomics, or bytes whose exclusive user the block's state word names.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

fn kernel(what: &'static str, hint: &'static str) -> impl FnOnce(Errno) -> ArenaError {
    move |source| ArenaError::Kernel { what, hint, source }
}

impl Mapping {
    /// A new arena with `reserve` bytes of address space.
    pub(crate) fn create(reserve: u64) -> Result<Mapping, ArenaError> {
        let reserve = round_up_to_step(reserve.max(DATA + LENGTH_STEP));
        let fd = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(kernel("make its memfd", "too many open files (ulimit -n)?"))?;
        rustix::fs::ftruncate(&fd, round_up_to_step(DATA))
            .map_err(kernel("set the length of its memfd", "a file size limit (ulimit -f)?"))?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK)
            .map_err(kernel("seal its memfd", "a sandbox that forbids fcntl?"))?;
        let mapping = Mapping::map(fd, reserve)?;
        let header = mapping.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.reserve.store(reserve, Ordering::Relaxed);
        header.length.store(round_up_to_step(DATA), Ordering::Relaxed);
        header.top.store(DATA, Ordering::Relaxed);
        // Zero is nobody in every table.
        header.channels_used.store(1, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(mapping)
    }

    /// The arena behind a descriptor that another process passed; anything else is refused unmapped or unread.
    pub(crate) fn attach(fd: OwnedFd) -> Result<Mapping, ArenaError> {
        let number = fd.as_raw_fd();
        let foreign = |why| ArenaError::Foreign { fd: number, why };
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| foreign("it is no memfd"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(foreign("it could shrink under its readers"));
        }
        let stat = rustix::fs::fstat(&fd).map_err(kernel("look at its memfd", "a closed descriptor?"))?;
        if (stat.st_size as u64) < DATA {
            return Err(foreign("it is shorter than an arena's header"));
        }
        let first = Mapping::map(fd, round_up_to_step(DATA))?;
        let header = first.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(foreign("it does not begin as an arena does"));
        }
        if header.version.load(Ordering::Relaxed) != VERSION {
            return Err(foreign("its layout is of another version"));
        }
        let (reserve, length) =
            (header.reserve.load(Ordering::Relaxed), header.length.load(Ordering::Relaxed));
        if length > stat.st_size as u64
            || length > reserve
            || reserve > 1 << 47
            || !reserve.is_multiple_of(PAGE)
        {
            return Err(foreign("its header contradicts itself"));
        }
        let fd = first.fd.try_clone().map_err(|error| ArenaError::Kernel {
            what: "copy its descriptor",
            hint: "too many open files (ulimit -n)?",
            source: Errno::from_io_error(&error).unwrap_or(Errno::MFILE),
        })?;
        drop(first);
        Mapping::map(fd, reserve)
    }

    fn map(fd: OwnedFd, reserve: u64) -> Result<Mapping, ArenaError> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else points into it. Bytes beyond
        // the file's length are never touched: `block` and `bytes` check against it.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                reserve as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &fd,
                0,
            )
        }
        .map_err(kernel(
            "map itself",
            "an address space limit (ulimit -v) or vm.max_map_count; ULLAGE_ARENA_RESERVE asks for less",
        ))?;
        Ok(Mapping { fd, base: base.cast(), reserve })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn reserve(&self) -> u64 {
        self.reserve
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a Header (create wrote it, attach checked it), it is page-aligned, the
        // file is at least that long for ever (F_SEAL_SHRINK), and a Header is made of atomics only.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// The header of a block that this arena's tables or a valid ticket name.
    pub(crate) fn block(&self, offset: u64) -> Option<&BlockHeader> {
        let length = self.header().length.load(Ordering::Acquire).min(self.reserve);
        if offset < DATA || !offset.is_multiple_of(ALIGN) || offset.checked_add(BLOCK_HEADER)? > length {
            return None;
        }
        // SAFETY: in bounds of the file and of the mapping, aligned to 64, and made of atomics only: whatever
        // bytes lie there are a valid value.
        let header = unsafe { &*self.base.add(offset as usize).cast::<BlockHeader>() };
        Some(header)
    }

    /// As [`Mapping::block`], where a block really begins.
    pub(crate) fn true_block(&self, offset: u64) -> Option<&BlockHeader> {
        let header = self.block(offset)?;
        let size = header.size.load(Ordering::Acquire);
        let length = self.header().length.load(Ordering::Acquire).min(self.reserve);
        let fits = size >= BLOCK_HEADER && size.is_multiple_of(ALIGN) && offset.checked_add(size)? <= length;
        (fits && header.magic.load(Ordering::Acquire) == BLOCK_MAGIC).then_some(header)
    }

    /// Address of a block's bytes.
    pub(crate) fn bytes(&self, offset: u64) -> *mut u8 {
        // SAFETY: the caller holds a lease on the block at `offset`, so that offset + header is inside the mapping.
        unsafe { self.base.add((offset + BLOCK_HEADER) as usize) }
    }

    /// Offset of an address inside the mapping.
    pub(crate) fn offset_of(&self, address: usize) -> Option<u64> {
        let offset = address.checked_sub(self.base as usize)? as u64;
        (offset < self.reserve).then_some(offset)
    }

    /// Makes the file at least `end` long.
    pub(crate) fn reach(&self, end: u64) -> Result<(), ArenaError> {
        let length = &self.header().length;
        if end <= length.load(Ordering::Acquire) {
            return Ok(());
        }
        if end > self.reserve {
            return Err(ArenaError::ReserveUsedUp { reserve: self.reserve });
        }
        let wanted = round_up_to_step(end).min(self.reserve);
        match rustix::fs::ftruncate(&self.fd, wanted) {
            // EPERM: another process made it longer than that in the meantime.
            Ok(()) | Err(Errno::PERM) => {}
            Err(source) => {
                return Err(kernel("grow its memfd", "a file size limit (ulimit -f)?")(source));
            }
        }
        length.fetch_max(wanted, Ordering::AcqRel);
        Ok(())
    }

    /// Puts memory behind a range now, so that its lack is an error here and no SIGBUS later.
    pub(crate) fn commit(&self, start: u64, end: u64) -> Result<(), ArenaError> {
        loop {
            match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), start, end - start) {
                Err(Errno::INTR) => continue,
                // A kernel or sandbox without it: pages come at the first touch, as anywhere.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(source) => {
                    return Err(kernel("get memory", "the machine or its cgroup is out of memory")(source));
                }
            }
        }
    }

    /// Bytes of the file with memory behind them.
    pub(crate) fn committed(&self) -> u64 {
        rustix::fs::fstat(&self.fd).map_or(0, |stat| stat.st_blocks as u64 * 512)
    }

    /// Gives the memory behind a range back to the kernel.
    pub(crate) fn punch(&self, start: u64, end: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.fd, flags, start, end - start).is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the very range that `map` made, and no lease is left: each holds the arena alive.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.reserve as usize) };
    }
}

fn round_up_to_step(bytes: u64) -> u64 {
    bytes.div_ceil(LENGTH_STEP) * LENGTH_STEP
}
