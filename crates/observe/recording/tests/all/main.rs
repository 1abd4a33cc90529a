//! The recording from outside, as one program: each that stands alone links all of Parquet again.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
mod copied;
mod disk_full;
mod exported;
mod fixture;
mod followed;
mod killed;
mod merged;
mod round_trip;
mod runs;
mod torn;
