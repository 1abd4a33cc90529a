//! What do the figures in a line of a log say, and which lines belong together?

/// A segment's number so near the default number of mappings, as a share of it, is that limit.
pub(crate) const NEAR_DEFAULT: (f64, f64) = (0.9, 1.05);
/// A request of more is rarely refused at that limit: it lacks memory, and two other causes are likelier. Steps by which the
/// limit stands behind them.
pub(crate) const HUGE_REQUEST_BYTES: u64 = 1 << 30;
pub(crate) const HUGE_REQUEST_STEPS: usize = 5;

/// `ulimit -u` beyond this is the kernel's default of a large machine, not what refused a thread.
pub(crate) const TASKS_BY_DEFAULT: i64 = 32_768;
/// So many lines belong together: a traceback of several ranks that print at once, or a failure and what it led to.
pub(crate) const LINES_TOGETHER: u64 = 400;
/// A zero byte within so many bytes: this is no text.
pub(crate) const CHECKED_FOR_ZEROS_BYTES: u64 = 64 << 10;
/// Words of a pattern that are shorter stand in every line; beyond the longer one, more letters separate no better.
pub(crate) const SHORTEST_WORD: usize = 2;
pub(crate) const LONG_ENOUGH_WORD: usize = 12;
/// A misspelt name is that of the cause with so many pairs of letters in common, as a share.
pub(crate) const NAMES_ALIKE: f64 = 0.5;
