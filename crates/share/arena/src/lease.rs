//! The right to a block's bytes: ends when it is dropped, on whichever thread, without a lock shared by processes.

use crate::error::ArenaError;
use crate::forks;
use crate::heirs::Waiting;
use crate::inner::Inner;
use crate::state::{self, Step};
use std::sync::Arc;

/// Names a block on its way to whoever takes it. Plain data: 24 bytes in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Where the block begins.
    pub offset: u64,
    /// Which use of that place.
    pub generation: u32,
    /// Bytes in use.
    pub length: u64,
}

impl Ticket {
    pub(crate) fn stale(self) -> ArenaError {
        ArenaError::Stale { offset: self.offset, generation: self.generation }
    }
}

/// The right to read and write a block's bytes, until dropped.
#[derive(Debug)]
pub struct Lease {
    arena: Arc<Inner>,
    ticket: Ticket,
    producer: bool,
    process: u64,
    forks: u64,
    given: bool,
}

impl Lease {
    pub(crate) fn new(arena: Arc<Inner>, ticket: Ticket, producer: bool) -> Lease {
        arena.member().lease_began();
        Lease { arena, ticket, producer, process: forks::process(), forks: forks::forks(), given: false }
    }

    /// Where it is, as others name it.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// First of its bytes, aligned to 64; as many are valid as the ticket's length says, as long as this lease lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.arena.mapping().bytes(self.ticket.offset)
    }

    /// Bytes in use.
    pub fn len(&self) -> usize {
        self.ticket.length as usize
    }

    /// True for a block without bytes.
    pub fn is_empty(&self) -> bool {
        self.ticket.length == 0
    }

    /// Its bytes.
    ///
    /// # Safety
    /// Nobody writes them meanwhile, in any process.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the lease keeps the block, and the caller keeps writers away.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// Its bytes, for writing.
    ///
    /// # Safety
    /// Nobody else reads or writes them meanwhile, in any process.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the lease is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len()) }
    }

    /// Hands the block over to whoever takes the ticket from `channel`; this lease ends with it.
    pub fn send(mut self, channel: u16) -> Result<Ticket, Lease> {
        if !self.producer || self.is_inherited() || self.step_send(channel, false) != Step::Done {
            return Err(self);
        }
        self.given = true;
        Ok(self.ticket)
    }

    /// As [`Lease::send`], and this lease goes on: both sides see the same bytes. None where a ticket is already out
    /// or held: then the bytes must be copied.
    pub fn send_shared(&self, channel: u16) -> Option<Ticket> {
        let sent = self.producer && !self.is_inherited() && self.step_send(channel, true) == Step::Done;
        sent.then_some(self.ticket)
    }

    fn step_send(&self, channel: u16, keep: bool) -> Step {
        self.arena
            .with_state(self.ticket.offset, |word| state::send(word, self.ticket.generation, channel, keep))
    }

    /// The block is never used again: its bytes were moved away under views that may still look at them.
    pub fn retire(&self) {
        self.arena.with_state(self.ticket.offset, |word| state::retire(word, self.ticket.generation));
    }

    /// True in a child that was forked while its parent held this lease: it may read, and ends nothing.
    pub fn is_inherited(&self) -> bool {
        self.process != forks::process()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        self.arena.member().lease_ended();
        if self.given {
            return;
        }
        let forks = forks::forks();
        if forks == self.forks {
            self.arena.end(self.ticket.offset, self.ticket.generation, self.producer);
        } else {
            self.arena.wait_for_heirs(Waiting {
                offset: self.ticket.offset,
                generation: self.ticket.generation,
                producer: self.producer,
                after: self.forks,
                until: forks,
            });
        }
    }
}
