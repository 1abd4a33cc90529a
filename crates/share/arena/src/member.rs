//! Does this process take part in an arena: with which slot, and with how many leases?
//!
//! A forked child takes part with a slot of its own, from its first use of the arena on.

use crate::error::ArenaError;
use crate::mapping::Mapping;
use crate::per_process::PerProcess;
use crate::slots;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part that a process has in an arena.
pub(crate) struct Member {
    mapping: Mapping,
    own: PerProcess<Own>,
}

/// What one process has.
struct Own {
    slot: u16,
    leases: AtomicU64,
}

impl Member {
    pub(crate) fn new(mapping: Mapping) -> Member {
        Member { mapping, own: PerProcess::new() }
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Slot of this process, where it has one.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.own.get().map(|own| own.slot)
    }

    /// Slot of this process, claimed where it has none yet.
    pub(crate) fn join(&self) -> Result<u16, ArenaError> {
        loop {
            if let Some(slot) = self.slot() {
                return Ok(slot);
            }
            let slot = slots::claim(self.mapping.header())?;
            match self.own.offer(Own { slot, leases: AtomicU64::new(0) }) {
                Ok(own) => return Ok(own.slot),
                Err(late) => self.give_back(late.slot),
            }
        }
    }

    /// In the child of a fork: the slot of its parent, a process with this number, where leases of it were alive.
    pub(crate) fn slot_with_leases(&self, parent: u64) -> Option<u16> {
        self.own.of(parent).filter(|own| own.leases.load(Ordering::Relaxed) > 0).map(|own| own.slot)
    }

    pub(crate) fn lease_began(&self) {
        if let Some(own) = self.own.get() {
            own.leases.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn lease_ended(&self) {
        if let Some(own) = self.own.get() {
            own.leases.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn give_back(&self, slot: u16) {
        self.mapping.header().slots[usize::from(slot)].pid.store(0, Ordering::Release);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(slot) = self.slot() {
            // Slot and heap are for others now; a heap's owner of zero would make it look never used.
            self.give_back(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forks;

    /// What a handler sees in the child of a fork that comes after the one that counts forks.
    #[test]
    fn a_child_finds_its_parents_slot_after_it_has_a_number_of_its_own() {
        let member = Member::new(Mapping::create(0).unwrap());
        let slot = member.join().unwrap();
        assert_eq!(member.slot_with_leases(forks::process()), None, "nothing is leased");
        member.lease_began();
        // SAFETY: the child looks at atomics and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let found = member.slot().is_none() && member.slot_with_leases(forks::parent()) == Some(slot);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!found)) };
        }
        let mut status = 0;
        // SAFETY: our own child, waited for once.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(member.slot(), Some(slot));
    }
}
