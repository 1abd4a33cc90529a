//! For tests of the other rooms only: a fake kernel root in a temporary folder, and builders of samples.
//!
//! Everything panics where it cannot do its work: a test that goes on would test nothing.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "dev only: a panic is how a test fails")]

pub mod fake_root;
pub mod samples;

pub use fake_root::{FakeProcess, FakeRoot};
pub use samples::{process, ReadingBuilder, SampleBuilder};
