//! `/proc/PID/status`: sizes of a process's memory and its user (proc_pid_status(5)).
//!
//! ```text
//! Name:   python3
//! Uid:    0       0       0       0            real, effective, saved, filesystem
//! VmPeak:     3060 kB
//! RssShmem:      0 kB
//! ```
//! The surprise: a zombie and a kernel thread have no Vm lines at all; that is "gone", not zero.

use crate::error::{KernelError, ParseError};
use crate::host::machine::parse_core_list;
use crate::root::ProcessDir;
use crate::scan::{lines, number, words};
use ullage_model::{Bytes, ProcessMemory};

/// One reading of `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Real user id.
    pub uid: Option<u32>,
    /// Mode of seccomp (Seccomp); none before 3.8.
    pub seccomp: Option<u64>,
    /// Cores that it may run on (Cpus_allowed_list).
    pub cores_allowed: Option<u32>,
    /// Sizes; none for a zombie or kernel thread.
    pub memory: Option<ProcessMemory>,
}

/// Parses `status`. Allocates nothing.
pub fn parse_status(bytes: &[u8]) -> Result<Status, ParseError> {
    let mut status = Status::default();
    let mut memory = ProcessMemory::default();
    let mut seen_memory = false;
    for (index, line) in lines(bytes).enumerate() {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let (key, rest) = (&line[..colon], &line[colon + 1..]);
        if key == b"Uid" {
            status.uid = words(rest).next().and_then(number).and_then(|uid| u32::try_from(uid).ok());
            continue;
        }
        if key == b"Seccomp" {
            status.seccomp = words(rest).next().and_then(number);
            continue;
        }
        if key == b"Cpus_allowed_list" {
            let list = words(rest).next().and_then(|list| std::str::from_utf8(list).ok());
            status.cores_allowed = list.and_then(parse_core_list);
            continue;
        }
        let (field, name) = match key {
            b"VmPeak" => (&mut memory.peak_virtual, "VmPeak in kB"),
            b"VmSize" => (&mut memory.virtual_size, "VmSize in kB"),
            b"VmLck" => (&mut memory.locked, "VmLck in kB"),
            b"VmHWM" => (&mut memory.peak_resident, "VmHWM in kB"),
            b"RssAnon" => (&mut memory.anonymous, "RssAnon in kB"),
            b"RssFile" => (&mut memory.file, "RssFile in kB"),
            b"RssShmem" => (&mut memory.shared, "RssShmem in kB"),
            b"VmPTE" => (&mut memory.page_tables, "VmPTE in kB"),
            b"VmSwap" => (&mut memory.swap, "VmSwap in kB"),
            _ => continue,
        };
        let mut words = words(rest);
        let value = words.next().and_then(number);
        let kib =
            value.filter(|_| words.next() == Some(b"kB")).ok_or(ParseError::at(index as u32 + 1, name))?;
        *field = Bytes::from_kib(kib);
        seen_memory = true;
    }
    status.memory = seen_memory.then_some(memory);
    Ok(status)
}

/// The pid in the innermost pid namespace: the last of `NSpid:\t4711\t7`. None before kernel 4.1.
pub fn parse_innermost_pid(bytes: &[u8]) -> Option<i32> {
    let line = lines(bytes).find_map(|line| line.strip_prefix(b"NSpid:"))?;
    words(line).last().and_then(number).and_then(|pid| i32::try_from(pid).ok())
}

/// How many seccomp filters the process is behind (`Seccomp_filters`, Linux 5.9 up); before, whether it is behind any.
pub fn parse_filters(bytes: &[u8]) -> Option<u64> {
    let of =
        |name: &[u8]| lines(bytes).find_map(|line| words(line.strip_prefix(name)?).next().and_then(number));
    of(b"Seccomp_filters:").or_else(|| of(b"Seccomp:"))
}

impl ProcessDir {
    /// The pid that this process has in its own pid namespace.
    pub fn innermost_pid(&self, buffer: &mut Vec<u8>) -> Result<Option<i32>, KernelError> {
        self.read("status", buffer)?;
        Ok(parse_innermost_pid(buffer))
    }

    /// See [`parse_filters`].
    pub fn filters(&self, buffer: &mut Vec<u8>) -> Result<Option<u64>, KernelError> {
        self.read("status", buffer)?;
        Ok(parse_filters(buffer))
    }

    /// Reads `status`.
    pub fn status(&self, buffer: &mut Vec<u8>) -> Result<Status, KernelError> {
        self.parsed("status", buffer, parse_status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/process/status");
    const ZOMBIE: &[u8] = include_bytes!("../../fixtures/process/status-zombie");

    #[test]
    fn a_captured_status_is_read_in_bytes() {
        let status = parse_status(REAL).unwrap();
        let memory = status.memory.unwrap();
        assert_eq!(status.uid, Some(0));
        assert!(status.seccomp.is_some() && status.cores_allowed.is_some_and(|cores| cores > 0));
        assert!(memory.virtual_size > memory.resident() && memory.resident() > Bytes(1 << 20));
        assert_eq!(memory.virtual_size.0 % 1024, 0);
    }

    #[test]
    fn a_zombie_has_no_memory_which_is_not_zero() {
        assert_eq!(parse_status(ZOMBIE).unwrap().memory, None);
    }

    #[test]
    fn the_innermost_pid_is_the_last() {
        assert_eq!(parse_innermost_pid(b"Pid:\t1\nNSpid:\t4711\t12\t7\nNSpgid:\t1\n"), Some(7));
        assert_eq!(parse_innermost_pid(b"Pid:\t1\nNSpid:\t\n"), None);
        assert!(parse_innermost_pid(REAL).is_some());
    }

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        assert_eq!(parse_filters(b"Seccomp:\t2\nSeccomp_filters:\t3\nThreads:\t1\n"), Some(3));
        assert_eq!(parse_filters(b"NoNewPrivs:\t0\nSeccomp:\t2\n"), Some(2));
        assert_eq!(parse_filters(b"Name:\tx\n"), None);
    }

    #[test]
    fn a_number_without_kb_is_refused_with_its_line() {
        let error = parse_status(b"Name:\tx\nVmSize:\t 12 MB\n").unwrap_err();
        assert_eq!((error.line, error.item), (2, "VmSize in kB"));
    }

    #[test]
    fn a_name_cannot_fake_a_field() {
        // The kernel escapes newlines in Name; a colon stays.
        let status = parse_status(b"Name:\tVmSize: 1 kB\nUid:\t5\t5\t5\t5\n").unwrap();
        assert_eq!((status.uid, status.memory), (Some(5), None));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_status(&bytes);
        }

        #[test]
        fn no_damage_to_a_real_one_panics(at in 0..REAL.len(), byte: u8) {
            let mut bytes = REAL.to_vec();
            bytes[at] = byte;
            let _ = parse_status(&bytes);
        }
    }
}
