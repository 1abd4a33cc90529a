//! One memfd that tensors travel through: mapped once, grown in place, nothing named, nothing left after a kill.
//!
//! A process that attaches has a *slot*. Where it allocates it owns a *heap*: regions of the memfd that only it
//! carves up, with all free lists in its own memory. A block is handed over by a [`Ticket`]; whoever takes the
//! ticket holds a [`Lease`], and the end of the last lease is one lock-free push onto the heap's return stack.
//! No lock lies in shared memory, so that nobody can die holding one: what a dead process held is found by its
//! slot, before the heap would grow.
//!
//! The surprise: after a fork the child sees the parent's leased blocks through the same mapping. Such a block is
//! not used again before every heir of that moment is gone ([`heirs`]).
#![allow(unsafe_code)]
#![cfg_attr(loom, allow(dead_code))]

mod returns;
mod state;
mod sync;

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod fail;
#[cfg(not(loom))]
mod forks;
#[cfg(not(loom))]
mod free_list;
#[cfg(not(loom))]
mod heap;
#[cfg(not(loom))]
mod heirs;
#[cfg(not(loom))]
mod inner;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod lease;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod member;
#[cfg(not(loom))]
mod per_process;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
mod slots;

#[cfg(not(loom))]
pub use arena::{Arena, Settings};
#[cfg(not(loom))]
pub use error::ArenaError;
#[cfg(not(loom))]
pub use lease::{Lease, Ticket};
#[cfg(not(loom))]
pub use per_process::PerProcess;
#[cfg(not(loom))]
pub use report::{Holding, Report, Travelled};
