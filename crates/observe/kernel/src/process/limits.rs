//! `/proc/PID/limits`: soft and hard resource limits (proc_pid_limits(5)).
//!
//! ```text
//! Limit                     Soft Limit           Hard Limit           Units
//! Max open files            20000                1048576              files
//! Max address space         unlimited            unlimited            bytes
//! ```

use crate::error::{KernelError, ParseError};
use crate::root::ProcessDir;
use crate::scan::{lines, number, words};
use ullage_model::{Limit, ResourceLimits};

/// Parses `limits`. Every line that ullage needs has been there since Linux 2.6.24.
pub fn parse_limits(bytes: &[u8]) -> Result<ResourceLimits, ParseError> {
    let (open_files, open_files_hard) = pair(bytes, "Max open files")?;
    Ok(ResourceLimits {
        open_files,
        open_files_hard,
        address_space: pair(bytes, "Max address space")?.0,
        processes: pair(bytes, "Max processes")?.0,
        locked_memory: pair(bytes, "Max locked memory")?.0,
        stack: pair(bytes, "Max stack size")?.0,
        file_size: pair(bytes, "Max file size")?.0,
    })
}

/// Every limit by its short name, soft and hard. A line that is not of the format is left out.
pub fn parse_all_limits(bytes: &[u8]) -> Result<Vec<(&'static str, Limit, Limit)>, ParseError> {
    let found: Vec<_> = SHORT_NAMES
        .iter()
        .filter_map(|(name, short)| pair(bytes, name).ok().map(|(soft, hard)| (*short, soft, hard)))
        .collect();
    if found.is_empty() {
        return Err(ParseError::at(0, "limits"));
    }
    Ok(found)
}

/// As the kernel prints them, and as setrlimit(2) names them.
const SHORT_NAMES: [(&str, &str); 15] = [
    ("Max cpu time", "cpu"),
    ("Max file size", "fsize"),
    ("Max data size", "data"),
    ("Max stack size", "stack"),
    ("Max core file size", "core"),
    ("Max resident set", "rss"),
    ("Max processes", "nproc"),
    ("Max open files", "nofile"),
    ("Max locked memory", "memlock"),
    ("Max address space", "as"),
    ("Max file locks", "locks"),
    ("Max pending signals", "sigpending"),
    ("Max msgqueue size", "msgqueue"),
    ("Max nice priority", "nice"),
    ("Max realtime priority", "rtprio"),
];

fn pair(bytes: &[u8], name: &'static str) -> Result<(Limit, Limit), ParseError> {
    for (index, line) in lines(bytes).enumerate() {
        if let Some(rest) = line.strip_prefix(name.as_bytes()) {
            let mut words = words(rest);
            let mut next = || words.next().and_then(limit).ok_or(ParseError::at(index as u32 + 1, name));
            return Ok((next()?, next()?));
        }
    }
    Err(ParseError::at(0, name))
}

fn limit(word: &[u8]) -> Option<Limit> {
    match word {
        b"unlimited" => Some(Limit::Unlimited),
        word => number(word).map(Limit::At),
    }
}

impl ProcessDir {
    /// Reads `limits`; needs the same user.
    pub fn limits(&self, buffer: &mut Vec<u8>) -> Result<ResourceLimits, KernelError> {
        self.parsed("limits", buffer, parse_limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/process/limits");

    #[test]
    fn a_captured_file_is_read() {
        let limits = parse_limits(REAL).unwrap();
        assert_eq!((limits.open_files, limits.open_files_hard), (Limit::At(512), Limit::At(20000)));
        assert_eq!(limits.address_space, Limit::Unlimited);
        assert_eq!(limits.stack, Limit::At(8 << 20));
    }

    #[test]
    fn every_limit_has_its_short_name() {
        let limits = parse_all_limits(REAL).unwrap();
        assert_eq!(limits.len(), 15);
        assert!(limits.contains(&("nofile", Limit::At(512), Limit::At(20000))));
        assert!(parse_all_limits(b"").is_err());
    }

    #[test]
    fn a_missing_line_names_itself() {
        assert_eq!(parse_limits(b"Max open files 1 2 files\n").unwrap_err().item, "Max address space");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_limits(&bytes);
        }

        #[test]
        fn no_damage_to_a_real_one_panics(at in 0..REAL.len(), byte: u8) {
            let mut bytes = REAL.to_vec();
            bytes[at] = byte;
            let _ = parse_limits(&bytes);
        }
    }
}
