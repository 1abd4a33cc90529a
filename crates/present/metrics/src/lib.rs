//! How does a job stand, for a monitoring system? `now.json` and `verdict.json` become samples, and samples become text
//! or messages of OTLP.
//!
//! Pure: no file, no clock, no socket. Every exporter goes through here, so that a scrape, a file and a push say the same.
#![forbid(unsafe_code)]

mod metric;
mod otlp;
mod samples;
#[cfg(test)]
mod samples_tests;
mod text;

pub use metric::{Kind, Metric};
pub use otlp::otlp;
pub use samples::{Ended, Samples};
pub use text::{text, Format};
