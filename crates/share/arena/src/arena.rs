//! The arena as its users see it: make or attach, allocate, take, trim, report.
//!
//! What this process keeps for itself (its slot, its heap, ended leases that wait for heirs) is made anew by a
//! forked child at its first use: see `per_process`.

use crate::error::ArenaError;
use crate::forks::{self, Waiting};
use crate::heap::{Guard, Heap};
use crate::layout::{BlockHeader, BLOCK_HEADER, CHANNELS};
use crate::lease::{Lease, Ticket};
use crate::mapping::Mapping;
use crate::per_process::PerProcess;
use crate::report::{Report, Travelled};
use crate::state::{self, State, Step};
use crate::sync::AtomicU64;
use crate::{report, returns, slots};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Heirs are looked for at most this often: it reads their `/proc/PID/maps`.
const HEIRS_EVERY: Duration = Duration::from_millis(200);

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

pub(crate) struct Inner {
    mapping: Mapping,
    guard: Box<Guard>,
    process: PerProcess<Process>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

/// What one process keeps for itself.
struct Process {
    slot: u16,
    leases: AtomicU64,
    heap: Mutex<Option<Heap>>,
    waiting: Mutex<Waits>,
}

/// Leases that ended, and when their heirs were looked for last.
struct Waits {
    list: Vec<Waiting>,
    looked: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic between two of our own statements leaves lists that are still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arena {
    /// A new arena.
    pub fn create(settings: Settings) -> Result<Arena, ArenaError> {
        Ok(Arena::over(Mapping::create(settings.reserve)?, settings.guard))
    }

    /// The arena behind a descriptor from another process.
    pub fn attach(fd: OwnedFd, guard: Box<Guard>) -> Result<Arena, ArenaError> {
        Ok(Arena::over(Mapping::attach(fd)?, guard))
    }

    fn over(mapping: Mapping, guard: Box<Guard>) -> Arena {
        let inner = Arc::new(Inner { mapping, guard, process: PerProcess::new() });
        forks::register(&inner);
        Arena(inner)
    }

    /// Its descriptor: pass it to other processes, which attach.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.mapping.fd()
    }

    /// Bytes of address space that it takes in every process.
    pub fn reserve(&self) -> u64 {
        self.0.mapping.reserve()
    }

    /// A block with room for `bytes`, leased to this process.
    pub fn alloc(&self, bytes: u64) -> Result<Lease, ArenaError> {
        let process = self.0.process()?;
        self.0.settle_waiting(process);
        let mut heap = lock(&process.heap);
        if heap.is_none() {
            *heap = Some(Heap::claim(&self.0.mapping, process.slot)?);
        }
        let Some(heap) = heap.as_mut() else {
            return Err(ArenaError::TableFull { what: "heap", most: crate::layout::HEAPS });
        };
        let made = heap.alloc(&self.0.mapping, &*self.0.guard, bytes)?;
        let ticket = Ticket { offset: made.offset, generation: made.generation, length: bytes };
        Ok(Lease::new(Arc::clone(&self.0), ticket, true))
    }

    /// Takes what a ticket names.
    pub fn take(&self, ticket: Ticket) -> Result<Lease, ArenaError> {
        let process = self.0.process()?;
        let Some(block) = self.0.mapping.true_block(ticket.offset) else { return Err(Inner::stale(ticket)) };
        let room = block.size.load(Ordering::Acquire) - BLOCK_HEADER;
        if ticket.length > room || state::take(&block.state, ticket.generation, process.slot) != Step::Done {
            return Err(Inner::stale(ticket));
        }
        block.since.store(report::now(), Ordering::Relaxed);
        Ok(Lease::new(Arc::clone(&self.0), ticket, false))
    }

    /// Ends a ticket that nobody will take.
    pub fn discard(&self, ticket: Ticket) {
        if self.0.mapping.true_block(ticket.offset).is_some() {
            self.0.end(ticket.offset, ticket.generation, false);
        }
    }

    /// Offset of an address in this arena; none for any other address.
    pub fn offset_of(&self, address: usize) -> Option<u64> {
        self.0.mapping.offset_of(address)
    }

    /// A ticket for the whole block whose bytes begin at `address` and were made by this process; its lease goes on.
    /// None for any other address, and where a ticket is already out or held: then the bytes must be copied.
    pub fn share_at(&self, address: usize, length: u64, channel: u16) -> Option<Ticket> {
        let (offset, block) = self.block_at(address)?;
        let owner = self.0.mapping.header().heaps.get(block.heap.load(Ordering::Relaxed) as usize)?;
        let room = block.size.load(Ordering::Acquire) - BLOCK_HEADER;
        if owner.owner.load(Ordering::Relaxed) != u32::from(self.0.slot()?) || length > room {
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
            let (offset, _) = crate::heap::all_blocks(&self.0.mapping)
                .find(|(offset, size)| (*offset..offset + size).contains(&within))?;
            Some((offset, self.0.mapping.true_block(offset)?))
        };
        self.block_at(address).or_else(holding).is_some_and(|(_, block)| {
            let generation = State::of(block.state.load(Ordering::Acquire)).generation;
            state::retire(&block.state, generation) == Step::Done
        })
    }

    /// Address of `length` bytes in the block at `offset`, where there is one.
    pub fn address_of(&self, offset: u64, length: u64) -> Result<*mut u8, ArenaError> {
        let nowhere = ArenaError::Stale { offset, generation: 0 };
        match self.0.mapping.true_block(offset) {
            Some(block) if block.size.load(Ordering::Acquire) - BLOCK_HEADER >= length => {
                Ok(self.0.mapping.bytes(offset))
            }
            _ => Err(nowhere),
        }
    }

    fn block_at(&self, address: usize) -> Option<(u64, &BlockHeader)> {
        let offset = self.offset_of(address)?.checked_sub(BLOCK_HEADER)?;
        Some((offset, self.0.mapping.true_block(offset)?))
    }

    /// A number for a new way that tickets go.
    pub fn open_channel(&self) -> u16 {
        let header = self.0.mapping.header();
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
            self.0.mapping.header().channels.get(usize::from(channel)).filter(|_| channel != 0)
        {
            entry.state.store(2, Ordering::Release);
        }
    }

    /// Gives memory that holds no block back to the kernel, this process's and what the dead left; returns the bytes.
    pub fn trim(&self) -> u64 {
        let Ok(process) = self.0.process() else { return 0 };
        self.0.settle_waiting(process);
        let own = lock(&process.heap).as_mut().map_or(0, |heap| {
            heap.sweep(&self.0.mapping);
            heap.trim(&self.0.mapping)
        });
        own + Heap::trim_left(&self.0.mapping, process.slot)
    }

    /// Takes back what came home and what the dead held, without giving memory away.
    pub fn sweep(&self) {
        if let Ok(process) = self.0.process() {
            self.0.settle_waiting(process);
            if let Some(heap) = lock(&process.heap).as_mut() {
                heap.sweep(&self.0.mapping);
            }
        }
    }

    /// Bytes of the file with memory behind them.
    pub fn committed(&self) -> u64 {
        self.0.mapping.committed()
    }

    /// Bytes of the file that were ever in use: no fewer than have memory behind them, and known without asking the kernel.
    pub fn reached(&self) -> u64 {
        self.0.mapping.header().top.load(Ordering::Relaxed)
    }

    /// Notes how bytes of a message travelled.
    pub fn travelled(&self, more: Travelled) {
        let words = &self.0.mapping.header().travelled;
        for (word, more) in words.iter().zip([more.copied, more.in_place, more.passed_by]) {
            if more > 0 {
                word.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// Who holds what.
    pub fn report(&self) -> Report {
        report::report(&self.0.mapping)
    }
}

impl Inner {
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn lease_began(&self) {
        if let Some(own) = self.process.get() {
            own.leases.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn lease_ended(&self) {
        if let Some(own) = self.process.get() {
            own.leases.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Slot of this process, where it has one.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.process.get().map(|own| own.slot)
    }

    /// In the child of a fork, before it counts as another process: the parent's slot, where leases were alive.
    pub(crate) fn slot_with_leases(&self) -> Option<u16> {
        self.process.get().filter(|own| own.leases.load(Ordering::Relaxed) > 0).map(|own| own.slot)
    }

    fn process(&self) -> Result<&Process, ArenaError> {
        loop {
            if let Some(own) = self.process.get() {
                return Ok(own);
            }
            let waiting = Mutex::new(Waits { list: Vec::new(), looked: Instant::now() });
            let slot = slots::claim(self.mapping.header())?;
            let leases = AtomicU64::new(0);
            match self.process.offer(Process { slot, leases, heap: Mutex::new(None), waiting }) {
                Ok(own) => return Ok(own),
                Err(late) => self.give_back(late.slot),
            }
        }
    }

    fn give_back(&self, slot: u16) {
        self.mapping.header().slots[usize::from(slot)].pid.store(0, Ordering::Release);
    }

    pub(crate) fn with_state(&self, offset: u64, step: impl FnOnce(&AtomicU64) -> Step) -> Step {
        self.mapping.true_block(offset).map_or(Step::Refused, |block| step(&block.state))
    }

    pub(crate) fn push_back(&self, offset: u64) {
        let Some(block) = self.mapping.block(offset) else { return };
        let heap = block.heap.load(Ordering::Relaxed) as usize;
        if let Some(entry) = self.mapping.header().heaps.get(heap) {
            returns::push(&entry.returned, &block.next, offset);
        }
    }

    pub(crate) fn wait_for_heirs(&self, waiting: Waiting) {
        if let Some(own) = self.process.get() {
            lock(&own.waiting).list.push(waiting);
        }
    }

    /// Ends the parts that waited for heirs which are gone by now.
    fn settle_waiting(&self, process: &Process) {
        let mut list = {
            let mut waiting = lock(&process.waiting);
            if waiting.list.is_empty() || waiting.looked.elapsed() < HEIRS_EVERY {
                return;
            }
            waiting.looked = Instant::now();
            std::mem::take(&mut waiting.list)
        };
        // Without the lock: this reads files of other processes, and a lease may end on any thread meanwhile.
        let header = self.mapping.header();
        list.retain(|one| {
            let over = one.is_over(header, process.slot);
            if over {
                self.end(one.offset, one.generation, one.producer);
            }
            !over
        });
        lock(&process.waiting).list.append(&mut list);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        forks::forget(self);
        if let Some(slot) = self.slot() {
            // Slot and heap are for others now; a heap's owner of zero would make it look never used.
            self.give_back(slot);
        }
    }
}
