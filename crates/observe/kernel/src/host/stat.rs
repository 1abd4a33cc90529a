//! `/proc/stat`: how many processes and threads were created since boot; `/proc/loadavg`: which pid was given last.
//!
//! ```text
//! processes 8383
//! 0.20 0.18 0.12 1/80 11206            the last one is the pid, or that of a thread, in the reader's pid namespace
//! ```
//! The surprise: `/proc/stat` takes a millisecond where there are many processors, `/proc/loadavg` none.

use crate::error::ParseError;
use crate::scan::{number, trim, value_of, words};

/// Parses the `processes` line.
pub fn parse_forks(bytes: &[u8]) -> Result<u64, ParseError> {
    value_of(bytes, b"processes").ok_or(ParseError::at(0, "processes"))
}

/// Parses the last word of `loadavg`.
pub fn parse_newest_pid(bytes: &[u8]) -> Result<u64, ParseError> {
    let missing = ParseError::at(1, "five words");
    words(trim(bytes)).nth(4).and_then(number).ok_or(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pid_is_the_fifth_word() {
        assert_eq!(parse_newest_pid(b"0.20 0.18 0.12 1/80 11206\n"), Ok(11206));
        assert!(parse_newest_pid(b"0.20 0.18 0.12 1/80").is_err());
    }

    #[test]
    fn the_line_is_found() {
        assert_eq!(parse_forks(b"cpu 1 2\nctxt 5\nprocesses 8383\nprocs_running 1\n"), Ok(8383));
        assert!(parse_forks(b"").is_err());
    }
}
