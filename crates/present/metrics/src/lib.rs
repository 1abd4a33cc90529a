//! How does a job stand, for a monitoring system? `now.json` and `verdict.json` become samples, and samples become text.
//!
//! Pure: no file, no clock, no socket. Every exporter goes through here, so that a scrape, a file and a push say the same.
#![forbid(unsafe_code)]

mod metric;
mod samples;
#[cfg(test)]
mod samples_tests;
mod text;

pub use metric::{Kind, Metric};
pub use samples::{Ended, Samples};
pub use text::{text, Format};
