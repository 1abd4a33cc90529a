//! The arena as its users see it: make or attach, allocate, take, trim, report.

use crate::error::ArenaError;
use crate::heap::Guard;
use crate::inner::Inner;
use crate::layout::{BlockHeader, BLOCK_HEADER, CHANNELS};
use crate::lease::{Lease, Ticket};
use crate::mapping::Mapping;
use crate::report::{self, Report, Travelled};
use crate::state::{self, State, Step};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// How an arena is made.
pub struct Settings {
    /// Bytes of address space to set aside; it can never hold more.
    pub reserve: u64,
    /// Asked before memory is taken: bytes more, bytes that the arena has. An error is the reason why not.
    pub guard: Box<Guard>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("reserve", &self.reserve).finish_non_exhaustive()
    }
}

/// One memfd that blocks travel through. Cheap to clone: all clones are the same arena.
#[derive(Clone, Debug)]
pub struct Arena(Arc<Inner>);

impl Arena {
    /// A new arena.
    pub fn create(settings: Settings) -> Result<Arena, ArenaError> {
        Ok(Arena(Inner::over(Mapping::create(settings.reserve)?, settings.guard)))
    }

    /// The arena behind a descriptor from another process.
    pub fn attach(fd: OwnedFd, guard: Box<Guard>) -> Result<Arena, ArenaError> {
        Ok(Arena(Inner::over(Mapping::attach(fd)?, guard)))
    }

    /// Its descriptor: pass it to other processes, which attach.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.mapping().fd()
    }

    /// Bytes of address space that it takes in every process.
    pub fn reserve(&self) -> u64 {
        self.0.mapping().reserve()
    }

    /// A block with room for `bytes`, leased to this process.
    pub fn alloc(&self, bytes: u64) -> Result<Lease, ArenaError> {
        let made = self.0.alloc(bytes)?;
        let ticket = Ticket { offset: made.offset, generation: made.generation, length: bytes };
        Ok(Lease::new(Arc::clone(&self.0), ticket, true))
    }

    /// Takes what a ticket names.
    pub fn take(&self, ticket: Ticket) -> Result<Lease, ArenaError> {
        let slot = self.0.join()?;
        let Some(block) = self.0.mapping().true_block(ticket.offset) else { return Err(ticket.stale()) };
        let room = block.size.load(Ordering::Acquire) - BLOCK_HEADER;
        if ticket.length > room || state::take(&block.state, ticket.generation, slot) != Step::Done {
            return Err(ticket.stale());
        }
        block.since.store(report::now(), Ordering::Relaxed);
        Ok(Lease::new(Arc::clone(&self.0), ticket, false))
    }

    /// Ends a ticket that nobody will take.
    pub fn discard(&self, ticket: Ticket) {
        if self.0.mapping().true_block(ticket.offset).is_some() {
            self.0.end(ticket.offset, ticket.generation, false);
        }
    }

    /// Offset of an address in this arena; none for any other address.
    pub fn offset_of(&self, address: usize) -> Option<u64> {
        self.0.mapping().offset_of(address)
    }

    /// A ticket for the whole block whose bytes begin at `address` and were made by this process; its lease goes on.
    /// None for any other address, and where a ticket is already out or held: then the bytes must be copied.
    pub fn share_at(&self, address: usize, length: u64, channel: u16) -> Option<Ticket> {
        let (offset, block) = self.block_at(address)?;
        let owner = self.0.mapping().header().heaps.get(block.heap.load(Ordering::Relaxed) as usize)?;
        let room = block.size.load(Ordering::Acquire) - BLOCK_HEADER;
        if owner.owner.load(Ordering::Relaxed) != u32::from(self.0.member().slot()?) || length > room {
            return None;
        }
        let generation = State::of(block.state.load(Ordering::Acquire)).generation;
        let sent = state::send(&block.state, generation, channel, true) == Step::Done;
        sent.then_some(Ticket { offset, generation, length })
    }

    /// The block that holds `address` is never used again: bytes of it are moved away under views of them. False where
    /// no block holds it. Looks through the whole arena where the block does not begin there.
    pub fn retire_at(&self, address: usize) -> bool {
        let holding = || {
            let within = self.offset_of(address)?;
            let (offset, _) = crate::heap::all_blocks(self.0.mapping())
                .find(|(offset, size)| (*offset..offset + size).contains(&within))?;
            Some((offset, self.0.mapping().true_block(offset)?))
        };
        self.block_at(address).or_else(holding).is_some_and(|(_, block)| {
            let generation = State::of(block.state.load(Ordering::Acquire)).generation;
            state::retire(&block.state, generation) == Step::Done
        })
    }

    /// Address of `length` bytes in the block at `offset`, where there is one.
    pub fn address_of(&self, offset: u64, length: u64) -> Result<*mut u8, ArenaError> {
        let nowhere = ArenaError::Stale { offset, generation: 0 };
        match self.0.mapping().true_block(offset) {
            Some(block) if block.size.load(Ordering::Acquire) - BLOCK_HEADER >= length => {
                Ok(self.0.mapping().bytes(offset))
            }
            _ => Err(nowhere),
        }
    }

    fn block_at(&self, address: usize) -> Option<(u64, &BlockHeader)> {
        let offset = self.offset_of(address)?.checked_sub(BLOCK_HEADER)?;
        Some((offset, self.0.mapping().true_block(offset)?))
    }

    /// A number for a new way that tickets go.
    pub fn open_channel(&self) -> u16 {
        let header = self.0.mapping().header();
        // After 16,383 of them numbers of closed ones are used again; zero is none.
        for _ in 0..CHANNELS {
            let next = header.channels_used.fetch_add(1, Ordering::AcqRel) as usize % CHANNELS;
            if next != 0 && header.channels[next].state.load(Ordering::Acquire) != 1 {
                header.channels[next].state.store(1, Ordering::Release);
                return next as u16;
            }
        }
        0
    }

    /// Nobody will take from it any more: tickets that are still out end at the next sweep.
    pub fn close_channel(&self, channel: u16) {
        if let Some(entry) =
            self.0.mapping().header().channels.get(usize::from(channel)).filter(|_| channel != 0)
        {
            entry.state.store(2, Ordering::Release);
        }
    }

    /// Gives memory that holds no block back to the kernel, this process's and what the dead left; returns the bytes.
    pub fn trim(&self) -> u64 {
        self.0.trim()
    }

    /// Takes back what came home and what the dead held, without giving memory away.
    pub fn sweep(&self) {
        self.0.sweep();
    }

    /// Bytes of the file with memory behind them.
    pub fn committed(&self) -> u64 {
        self.0.mapping().committed()
    }

    /// Bytes of the file that were ever in use: no fewer than have memory behind them, and known without asking the kernel.
    pub fn reached(&self) -> u64 {
        self.0.mapping().header().top.load(Ordering::Relaxed)
    }

    /// Notes how bytes of a message travelled.
    pub fn travelled(&self, more: Travelled) {
        let words = &self.0.mapping().header().travelled;
        for (word, more) in words.iter().zip([more.copied, more.in_place, more.passed_by]) {
            if more > 0 {
                word.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// Who holds what.
    pub fn report(&self) -> Report {
        report::report(self.0.mapping())
    }
}
