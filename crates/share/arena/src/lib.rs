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
#![cfg_attr(feature = "loom", allow(dead_code))]

mod returns;
mod state;
mod sync;

#[cfg(not(feature = "loom"))]
mod arena;
#[cfg(not(feature = "loom"))]
mod error;
#[cfg(not(feature = "loom"))]
pub mod fail;
#[cfg(not(feature = "loom"))]
mod forks;
#[cfg(not(feature = "loom"))]
mod free_list;
#[cfg(not(feature = "loom"))]
mod heap;
#[cfg(not(feature = "loom"))]
mod heirs;
#[cfg(not(feature = "loom"))]
mod inner;
#[cfg(not(feature = "loom"))]
mod layout;
#[cfg(not(feature = "loom"))]
mod lease;
#[cfg(not(feature = "loom"))]
mod mapping;
#[cfg(not(feature = "loom"))]
mod member;
#[cfg(not(feature = "loom"))]
mod per_process;
#[cfg(not(feature = "loom"))]
mod report;
#[cfg(not(feature = "loom"))]
mod slots;

#[cfg(not(feature = "loom"))]
pub use arena::{Arena, Settings};
#[cfg(not(feature = "loom"))]
pub use error::ArenaError;
#[cfg(not(feature = "loom"))]
pub use lease::{Lease, Ticket};
#[cfg(not(feature = "loom"))]
pub use per_process::PerProcess;
#[cfg(not(feature = "loom"))]
pub use report::{Holding, Report, Travelled};
