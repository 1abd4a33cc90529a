//! `/proc/stat`: how many processes and threads were created since boot.
//!
//! ```text
//! processes 8383
//! ```

use crate::error::ParseError;
use crate::scan::value_of;

/// Parses the `processes` line.
pub fn parse_forks(bytes: &[u8]) -> Result<u64, ParseError> {
    value_of(bytes, b"processes").ok_or(ParseError::at(0, "processes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        assert_eq!(parse_forks(b"cpu 1 2\nctxt 5\nprocesses 8383\nprocs_running 1\n"), Ok(8383));
        assert!(parse_forks(b"").is_err());
    }
}
