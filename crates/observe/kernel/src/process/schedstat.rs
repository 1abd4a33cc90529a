//! `/proc/PID/schedstat`: how long a process's first thread ran, and waited for a core (Documentation/scheduler/sched-stats).
//!
//! ```text
//! 55933176976 34386143647 9455
//! run_time    run_delay   timeslices      the first two in nanoseconds
//! ```
//! The surprise: it is of the first thread, not of the process; and a kernel that does not count prints three zeros.

use crate::error::ParseError;
use crate::root::ProcessDir;
use crate::scan::{number, trim, words};

/// Parses `schedstat` to run_delay, nanoseconds; none where the kernel does not count.
pub fn parse_schedstat(bytes: &[u8]) -> Result<Option<u64>, ParseError> {
    let mut numbers = words(trim(bytes)).map(number);
    let mut next = |item| numbers.next().flatten().ok_or(ParseError::at(1, item));
    let (_, delay, slices) = (next("run_time")?, next("run_delay")?, next("timeslices")?);
    // A thread that made a system call ran once at least.
    Ok((slices > 0).then_some(delay))
}

impl ProcessDir {
    /// Reads run_delay of its first thread, nanoseconds, into `buffer`; none where that is not known.
    pub fn run_delay(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        self.parsed("schedstat", buffer, parse_schedstat).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse_schedstat(b"55933176976 34386143647 9455\n"), Ok(Some(34_386_143_647)));
        assert_eq!(parse_schedstat(b"0 0 7\n"), Ok(Some(0)));
    }

    #[test]
    fn a_kernel_that_does_not_count_says_nothing() {
        assert_eq!(parse_schedstat(b"0 0 0\n"), Ok(None));
        for torn in [&b""[..], b"1 2", b"1 x 3", b"\n"] {
            assert!(parse_schedstat(torn).is_err(), "{torn:?}");
        }
    }
}
