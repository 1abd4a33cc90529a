//! Which numbers decide a verdict? Every threshold, by subject: its name says what it decides, its line why it is so.
//!
//! `_S` is seconds, `_BYTES` bytes, `_PART` the n in "one n-th of"; a share lies between 0 and 1, all else is a number of
//! things. A line that names a measurement, a test or a source got its value from there; the others were set by hand to
//! separate what they name, and the scenarios with their healthy twins hold them. A line that begins with "and" or "or" goes
//! on with the one before it, and a constant without a line shares that of the one before.
//!
//! The surprise: runs last 30 s or three days. Seconds are "of the run" (or of a life) where a share stands beside them and
//! the larger or smaller of both counts, and "in any run" where something sets them that a longer run does not stretch: a
//! tick (1 s), a timeout. A share of three days is hours: where nothing takes hours, a third constant ends it.
//! tests/replays.rs asks the same of runs of 30 s, an hour and three days.

pub(crate) mod counts;
pub(crate) mod given;
pub(crate) mod growth;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod sizes;
pub(crate) mod trends;
