//! Which format does a recording have? Written into `run.json` and into every part.

/// The format that this version writes, and the newest it reads.
pub const FORMAT: u32 = 1;
