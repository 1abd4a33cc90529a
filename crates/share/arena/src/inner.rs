//! What all handles and leases of an arena share: its mapping, and what this process keeps for itself.
//!
//! Slot, heap, and ended leases that wait for heirs are made anew by a forked child at its first use: see `per_process`.

use crate::error::ArenaError;
use crate::fail::{self, FailPoint};
use crate::heap::{Guard, Heap, Made};
use crate::heirs::{self, Waiting};
use crate::mapping::Mapping;
use crate::member::Member;
use crate::per_process::PerProcess;
use crate::state::{self, Step};
use crate::sync::AtomicU64;
use crate::{layout, returns};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Heirs are looked for at most this often: it reads their `/proc/PID/maps`.
const HEIRS_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Inner {
    member: Member,
    guard: Box<Guard>,
    own: PerProcess<Own>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("mapping", self.mapping()).finish_non_exhaustive()
    }
}

/// What one process keeps for itself.
struct Own {
    heap: Mutex<Option<Heap>>,
    waiting: Mutex<Waits>,
}

/// Leases that ended, and when their heirs were looked for last.
struct Waits {
    list: Vec<Waiting>,
    checked: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic between two of our own statements leaves lists that are still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn over(mapping: Mapping, guard: Box<Guard>) -> Arc<Inner> {
        let inner = Arc::new(Inner { member: Member::new(mapping), guard, own: PerProcess::new() });
        heirs::register(&inner.member);
        inner
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        self.member.mapping()
    }

    /// The part that this process has in it.
    pub(crate) fn member(&self) -> &Member {
        &self.member
    }

    /// Slot of this process, claimed where it has none yet.
    pub(crate) fn join(&self) -> Result<u16, ArenaError> {
        self.process().map(|(slot, _)| slot)
    }

    /// A block of this process's heap.
    pub(crate) fn alloc(&self, bytes: u64) -> Result<Made, ArenaError> {
        let (slot, own) = self.settled()?;
        let mut heap = lock(&own.heap);
        if heap.is_none() {
            *heap = Some(Heap::claim(self.mapping(), slot)?);
        }
        let Some(heap) = heap.as_mut() else {
            return Err(ArenaError::TableFull { what: "heap", most: layout::HEAPS });
        };
        heap.alloc(self.mapping(), &*self.guard, bytes)
    }

    /// Gives memory that holds no block back to the kernel, this process's and what the dead left; returns the bytes.
    pub(crate) fn trim(&self) -> u64 {
        let Ok((slot, own)) = self.settled() else { return 0 };
        let given = lock(&own.heap).as_mut().map_or(0, |heap| {
            heap.sweep(self.mapping());
            heap.trim(self.mapping())
        });
        given + Heap::trim_left(self.mapping(), slot)
    }

    /// Takes back what came home and what the dead held.
    pub(crate) fn sweep(&self) {
        if let Ok((_, own)) = self.settled() {
            if let Some(heap) = lock(&own.heap).as_mut() {
                heap.sweep(self.mapping());
            }
        }
    }

    pub(crate) fn with_state(&self, offset: u64, step: impl FnOnce(&AtomicU64) -> Step) -> Step {
        self.mapping().true_block(offset).map_or(Step::Refused, |block| step(&block.state))
    }

    /// Ends a part in a block; the last one pushes it onto its heap's return stack.
    pub(crate) fn end(&self, offset: u64, generation: u32, producer: bool) {
        let Some(block) = self.mapping().block(offset) else { return };
        let slot = self.member.slot().unwrap_or(0);
        let step = if producer {
            state::end_producer(&block.state, generation, slot)
        } else {
            state::end_consumer(&block.state, generation, slot)
        };
        if step == Step::Last {
            fail::at(FailPoint::Ended);
            self.push_back(offset);
            fail::at(FailPoint::Returned);
        }
    }

    fn push_back(&self, offset: u64) {
        let Some(block) = self.mapping().block(offset) else { return };
        let heap = block.heap.load(Ordering::Relaxed) as usize;
        if let Some(entry) = self.mapping().header().heaps.get(heap) {
            returns::push(&entry.returned, &block.next, offset);
        }
    }

    /// Ends a lease of this process once its heirs are gone.
    pub(crate) fn wait_for_heirs(&self, waiting: Waiting) {
        if let Some(own) = self.own.get() {
            lock(&own.waiting).list.push(waiting);
        }
    }

    fn process(&self) -> Result<(u16, &Own), ArenaError> {
        let slot = self.member.join()?;
        let own = self.own.get_or_make(|| {
            let waiting = Mutex::new(Waits { list: Vec::new(), checked: Instant::now() });
            Own { heap: Mutex::new(None), waiting }
        });
        Ok((slot, own))
    }

    /// What this process has, without the leases that waited for heirs which are gone by now.
    fn settled(&self) -> Result<(u16, &Own), ArenaError> {
        let (slot, own) = self.process()?;
        self.settle_waiting(slot, own);
        Ok((slot, own))
    }

    fn settle_waiting(&self, slot: u16, own: &Own) {
        let mut list = {
            let mut waiting = lock(&own.waiting);
            if waiting.list.is_empty() || waiting.checked.elapsed() < HEIRS_EVERY {
                return;
            }
            waiting.checked = Instant::now();
            std::mem::take(&mut waiting.list)
        };
        // Without the lock: this reads files of other processes, and a lease may end on any thread meanwhile.
        let header = self.mapping().header();
        list.retain(|one| {
            let over = one.is_over(header, slot);
            if over {
                self.end(one.offset, one.generation, one.producer);
            }
            !over
        });
        lock(&own.waiting).list.append(&mut list);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        heirs::forget(&self.member);
    }
}
