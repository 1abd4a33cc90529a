//! Exit statuses of ullage itself. The job's own status passes through everywhere else.

/// ullage ended the job at a budget that the user set.
pub const BUDGET: u8 = 53;
/// Usage: a flag or argument that does not exist or does not parse.
pub const USAGE: u8 = 2;
/// ullage itself failed.
pub const FAILED: u8 = 125;
/// COMMAND was found, and could not be run.
pub const NOT_EXECUTABLE: u8 = 126;
/// COMMAND was not found.
pub const NOT_FOUND: u8 = 127;
