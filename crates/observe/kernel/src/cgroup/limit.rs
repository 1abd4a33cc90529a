//! A file of one number, or of the word for no limit. In v1 a number means none.

use crate::error::ParseError;
use crate::scan::{number, trim};
use ullage_model::Limit;

/// Parses a file of one number, or `max`.
pub fn parse_limit(bytes: &[u8]) -> Result<Limit, ParseError> {
    match trim(bytes) {
        b"max" => Ok(Limit::Unlimited),
        word => number(word).map(Limit::At).ok_or(ParseError::at(1, "number or max")),
    }
}

/// v1 says "unlimited" as 2^63 rounded down to pages: 0x7FFFFFFFFFFFF000, or …F0000 with pages of 64 KiB.
pub fn parse_limit_v1(bytes: &[u8]) -> Result<Limit, ParseError> {
    parse_limit(bytes).map(|limit| match limit {
        Limit::At(bytes) if bytes >= 0x7FFF_FFFF_FFFF_0000 => Limit::Unlimited,
        limit => limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_way_to_say_unlimited_is_unlimited() {
        assert_eq!(parse_limit(b"max\n"), Ok(Limit::Unlimited));
        assert_eq!(parse_limit_v1(b"9223372036854771712\n"), Ok(Limit::Unlimited));
        assert_eq!(parse_limit_v1(b"9223372036854710272\n"), Ok(Limit::Unlimited));
        assert_eq!(parse_limit_v1(b"max\n"), Ok(Limit::Unlimited), "pids.max of v1");
    }

    #[test]
    fn a_limit_above_the_machine_stays_a_number() {
        assert_eq!(parse_limit_v1(b"1099511627776\n"), Ok(Limit::At(1 << 40)));
        assert!(parse_limit(b"-1\n").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (parse_limit(&bytes), parse_limit_v1(&bytes));
        }
    }
}
