//! How sure is a cause of which nothing but a line of a log is known?

/// The only cause of a message.
pub(crate) const ONE_CAUSE: f64 = 0.75;
/// The first of several causes, and each next one this much of the one before.
pub(crate) const FIRST_OF_SEVERAL: f64 = 0.6;
pub(crate) const NEXT_OF_SEVERAL: f64 = 0.65;
/// The others where the message's own words single one out.
pub(crate) const NOT_SINGLED_OUT: f64 = 0.6;
/// A notice says what is so, not what failed.
pub(crate) const NOTICE: f64 = 0.4;
/// An echo says that something failed, somewhere else.
pub(crate) const ECHO: f64 = 0.55;
/// A line that comes of an earlier one.
pub(crate) const FOLLOWING: f64 = 0.8;
/// Nothing but a line of a log is surer.
pub(crate) const MOST_SURE: f64 = 0.92;

/// A segment's number so near the default number of mappings, as a share of it, is that limit,
pub(crate) const NEAR_DEFAULT: (f64, f64) = (0.9, 1.05);
pub(crate) const NEAR_DEFAULT_MORE: f64 = 0.25;
/// and one so far below is not.
pub(crate) const FAR_FROM_DEFAULT: f64 = 0.5;
pub(crate) const FAR_FROM_DEFAULT_LEAVES: f64 = 0.7;
/// A small request that fails lacks a mapping; a large one lacks memory.
pub(crate) const SMALL_REQUEST_BYTES: u64 = 1 << 20;
pub(crate) const SMALL_REQUEST_MORE: f64 = 0.05;
pub(crate) const LARGE_REQUEST_BYTES: u64 = 1 << 30;
pub(crate) const LARGE_REQUEST_LEAVES: f64 = 0.4;

/// `ulimit -u` beyond this is the kernel's default of a large machine, not what refused a thread.
pub(crate) const TASKS_BY_DEFAULT: i64 = 32_768;
/// So many lines belong together: a traceback of several ranks that print at once, or a failure and what it led to.
pub(crate) const LINES_TOGETHER: u64 = 400;
/// A zero byte within so many bytes: this is no text.
pub(crate) const LOOKED_AT_FOR_ZEROS_BYTES: u64 = 64 << 10;
/// Words of a pattern that are shorter stand in every line; beyond the longer one, more letters separate no better.
pub(crate) const SHORTEST_WORD: usize = 2;
pub(crate) const LONG_ENOUGH_WORD: usize = 12;
/// A misspelt name is that of the cause with so many pairs of letters in common, as a share.
pub(crate) const NAMES_ALIKE: f64 = 0.5;
