//! `/proc/sys/…`: settings of one number or one line, and `fs/file-nr`.
//!
//! ```text
//! vm/max_map_count:  65530
//! fs/file-nr:        592     0       2466183       open handles, unused, limit
//! ```

use crate::error::{measured_feature, ParseError};
use crate::scan::{number, trim, words};
use crate::KernelRoot;
use ullage_model::Measured;

/// Parses a setting of one number.
pub fn parse_number(bytes: &[u8]) -> Result<u64, ParseError> {
    number(trim(bytes)).ok_or(ParseError::at(1, "number"))
}

/// Parses `fs/file-nr` into open handles and their limit.
pub fn parse_file_nr(bytes: &[u8]) -> Result<(u64, u64), ParseError> {
    let mut words = words(trim(bytes)).map(number);
    let mut next = || words.next().flatten().ok_or(ParseError::at(1, "three numbers"));
    let (open, _unused, limit) = (next()?, next()?, next()?);
    Ok((open, limit))
}

/// The word in brackets of a choice: `always [madvise] never`.
pub fn parse_choice(bytes: &[u8]) -> Result<String, ParseError> {
    let missing = ParseError::at(1, "word in [brackets]");
    let open = bytes.iter().position(|&byte| byte == b'[').ok_or(missing)?;
    let rest = &bytes[open + 1..];
    let close = rest.iter().position(|&byte| byte == b']').ok_or(missing)?;
    Ok(String::from_utf8_lossy(&rest[..close]).into_owned())
}

impl KernelRoot {
    /// A setting of one number, `vm/max_map_count`.
    pub fn sysctl(&self, name: &str, buffer: &mut Vec<u8>) -> Measured<u64> {
        measured_feature(self.parsed(format!("/proc/sys/{name}"), buffer, parse_number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_are_read() {
        assert_eq!(parse_number(b"65530\n"), Ok(65530));
        assert_eq!(parse_file_nr(b"592\t0\t2466183\n"), Ok((592, 2466183)));
        assert_eq!(parse_choice(b"always [madvise] never\n").as_deref(), Ok("madvise"));
        assert!(parse_number(b"-1\n").is_err());
        assert!(parse_file_nr(b"1 2\n").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (parse_number(&bytes), parse_file_nr(&bytes), parse_choice(&bytes));
        }
    }
}
