//! Readings become one sample per tick: which processes belong to the job, what to read of them now, what that
//! may cost, and when to look again.
//!
//! Cheap files are read every tick. Counting mappings (`maps`) and reading descriptor links cost milliseconds
//! at the limits that matter, so they are read when the cheap ones say that something moved or that a limit is
//! near, out of a [`budget`]; so is a survey of pages made (`pagemap`). The surprise: whatever cannot be read becomes a
//! missing value; nothing here fails.
#![forbid(unsafe_code)]

pub mod budget;
pub mod forecast;
mod groups;
pub mod job;
pub mod learned;
mod member;
pub mod pace;
mod places;
pub mod roles;
mod sampler;
mod segments;
pub mod settings;
mod survey;

pub use sampler::{Ended, Sampler, Tick};
pub use settings::SamplerSettings;
