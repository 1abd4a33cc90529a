//! Verdicts, limits and tables as people ([`text`]) and programs ([`json`]) read them.
//!
//! Pure functions of the model's values: no file, no clock and no terminal is touched here, so the same
//! verdict always gives the same bytes.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod fleet;
pub mod format;
pub mod json;
pub mod redact;
pub mod schema;
pub mod secrets;
mod segments;
pub mod text;
