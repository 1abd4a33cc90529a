//! `/proc/pressure/memory`: time in which tasks waited for memory (Documentation/accounting/psi.rst).
//!
//! ```text
//! some avg10=0.00 avg60=0.00 avg300=0.00 total=0
//! full avg10=0.00 avg60=0.00 avg300=0.00 total=0
//! ```

use crate::error::ParseError;
use crate::scan::{lines, number, words};

/// Totals in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some tasks waited.
    pub some_us: u64,
    /// All tasks waited.
    pub full_us: u64,
}

/// Parses a PSI file.
pub fn parse_pressure(bytes: &[u8]) -> Result<Pressure, ParseError> {
    let total = |kind: &'static str| {
        lines(bytes)
            .filter(|line| line.starts_with(kind.as_bytes()))
            .find_map(|line| words(line).find_map(|word| number(word.strip_prefix(b"total=")?)))
            .ok_or(ParseError::at(0, kind))
    };
    Ok(Pressure { some_us: total("some")?, full_us: total("full")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_are_read() {
        let bytes = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=2.10 total=7\n";
        assert_eq!(parse_pressure(bytes), Ok(Pressure { some_us: 12, full_us: 7 }));
        assert_eq!(parse_pressure(b"some total=1\n").unwrap_err().item, "full");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_pressure(&bytes);
        }
    }
}
