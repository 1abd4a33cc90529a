//! `/proc/meminfo`: memory of the machine (proc_meminfo(5)).
//!
//! ```text
//! MemTotal:       24684096 kB
//! CommitLimit:    12342048 kB
//! ```

use crate::error::ParseError;
use crate::scan::{lines, number, words};
use ullage_model::host::HostMemory;
use ullage_model::Bytes;

/// Parses `meminfo`; MemTotal must be there, MemAvailable falls back to MemFree on kernels before 3.14.
pub fn parse_meminfo(bytes: &[u8]) -> Result<HostMemory, ParseError> {
    let mut memory = HostMemory::default();
    let mut available = None;
    for line in lines(bytes) {
        let mut words = words(line);
        let (Some(key), Some(kib)) = (words.next(), words.next().and_then(number)) else { continue };
        let value = Bytes::from_kib(kib);
        match key {
            b"MemTotal:" => memory.total = value,
            b"MemFree:" => memory.free = value,
            b"MemAvailable:" => available = Some(value),
            b"SwapTotal:" => memory.swap_total = value,
            b"SwapFree:" => memory.swap_free = value,
            b"Shmem:" => memory.shared = value,
            b"Cached:" => memory.cached = value,
            b"AnonPages:" => memory.anonymous = value,
            b"CommitLimit:" => memory.commit_limit = value,
            b"Committed_AS:" => memory.committed = value,
            _ => {}
        }
    }
    if memory.total == Bytes(0) {
        return Err(ParseError::at(0, "MemTotal in kB"));
    }
    memory.available = available.unwrap_or(memory.free);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/host/meminfo");

    #[test]
    fn a_captured_file_is_read_in_bytes() {
        let memory = parse_meminfo(REAL).unwrap();
        assert_eq!(memory.total, Bytes(24684096 * 1024));
        assert!(memory.available > Bytes(0) && memory.commit_limit > memory.committed);
    }

    #[test]
    fn a_file_without_total_is_refused() {
        assert!(parse_meminfo(b"MemFree: 12 kB\n").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_meminfo(&bytes);
        }
    }
}
