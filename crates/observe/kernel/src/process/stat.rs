//! `/proc/PID/stat`: who a process is, whose child, what it does (proc_pid_stat(5)).
//!
//! ```text
//! 8372 (cat) R 8370 8370 4957 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 150946 3133440 388 18446744073709551615 …
//! pid  comm  S ppid pgrp session         minflt   majflt  utime stime      threads starttime(22) …  exit_code(52)
//! ```
//! The surprise: `comm` may hold blanks, parentheses and newlines, so the fields start after the *last* `)`.

use crate::error::{KernelError, ParseError};
use crate::root::ProcessDir;
use crate::scan::{find_last, number, signed};
use ullage_model::{ClockTicks, ProcessId, ProcessState};

/// One reading of `stat`. Borrows comm from the bytes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// Pid (field 1) and start time (field 22).
    pub id: ProcessId,
    /// comm, at most 15 bytes for user programs; any bytes.
    pub comm: &'a [u8],
    /// State letter.
    pub state: ProcessState,
    /// Parent.
    pub parent: i32,
    /// Session.
    pub session: i32,
    /// minflt.
    pub minor_faults: u64,
    /// majflt.
    pub major_faults: u64,
    /// utime + stime.
    pub cpu: ClockTicks,
    /// num_threads.
    pub threads: u32,
    /// vsize, bytes, and rss, pages (fields 23 and 24). The kernel may add rss up more coarsely than in `status`.
    pub sizes: (u64, u64),
    /// startstack (field 28): the same after fork, another after exec; zero without the right to ptrace.
    pub program: u64,
    /// exit_code as a wait status; zero where the reader may not know it (no ptrace right), or still runs.
    pub exit_code: i32,
}

/// Parses `stat`. Allocates nothing.
pub fn parse_stat(bytes: &[u8]) -> Result<Stat<'_>, ParseError> {
    let missing = |item| ParseError::at(1, item);
    let open = bytes.iter().position(|&byte| byte == b'(').ok_or(missing("("))?;
    let close = find_last(bytes, b")").filter(|&close| close > open).ok_or(missing(")"))?;
    let pid = number(crate::scan::trim(&bytes[..open])).ok_or(missing("pid"))?;
    let mut stat = Stat {
        id: ProcessId { pid: i32::try_from(pid).map_err(|_| missing("pid"))?, start: ClockTicks(0) },
        comm: &bytes[open + 1..close],
        state: ProcessState::Dead,
        parent: 0,
        session: 0,
        minor_faults: 0,
        major_faults: 0,
        cpu: ClockTicks(0),
        threads: 0,
        sizes: (0, 0),
        program: 0,
        exit_code: 0,
    };
    let mut seen = 2;
    for word in bytes[close + 1..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        seen += 1;
        let unsigned = |item| number(word).ok_or(missing(item));
        let pid_like = |item| signed(word).and_then(|n| i32::try_from(n).ok()).ok_or(missing(item));
        match seen {
            3 => stat.state = state(word[0]),
            4 => stat.parent = pid_like("ppid")?,
            6 => stat.session = pid_like("session")?,
            10 => stat.minor_faults = unsigned("minflt")?,
            12 => stat.major_faults = unsigned("majflt")?,
            14 => stat.cpu = ClockTicks(unsigned("utime")?),
            15 => stat.cpu = ClockTicks(stat.cpu.0.saturating_add(unsigned("stime")?)),
            20 => stat.threads = u32::try_from(unsigned("num_threads")?).unwrap_or(u32::MAX),
            22 => stat.id.start = ClockTicks(unsigned("starttime")?),
            23 => stat.sizes.0 = unsigned("vsize")?,
            24 => stat.sizes.1 = unsigned("rss")?,
            28 => stat.program = unsigned("startstack")?,
            52 => stat.exit_code = pid_like("exit_code")?,
            _ => {}
        }
    }
    // Kernels before 3.5 have no field 52; nothing else is optional.
    if seen < 22 {
        return Err(missing("starttime (field 22)"));
    }
    Ok(stat)
}

fn state(letter: u8) -> ProcessState {
    match letter {
        b'R' => ProcessState::Running,
        b'S' | b'I' => ProcessState::Sleeping,
        b'D' => ProcessState::DiskSleep,
        b'T' | b't' => ProcessState::Stopped,
        b'Z' => ProcessState::Zombie,
        b'X' | b'x' => ProcessState::Dead,
        other => ProcessState::Other(char::from(other)),
    }
}

impl ProcessDir {
    /// Reads `stat` into `buffer`, which the result borrows from.
    pub fn stat<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<Stat<'a>, KernelError> {
        self.record("stat", buffer)?;
        parse_stat(buffer).map_err(|source| KernelError::Parse { path: self.path_of("stat"), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/process/stat");
    const ZOMBIE: &[u8] = include_bytes!("../../fixtures/process/stat-zombie-exit-77");

    #[test]
    fn a_captured_stat_is_read() {
        let stat = parse_stat(REAL).unwrap();
        assert_eq!(stat.comm, b"python3");
        assert_eq!(stat.state, ProcessState::Sleeping);
        assert_eq!(stat.threads, 1);
        assert!(stat.id.pid > 1 && stat.id.start.0 > 0 && stat.minor_faults > 0);
        assert!(stat.sizes.0 > stat.sizes.1 * 4096 && stat.sizes.1 > 0);
        assert_eq!(stat.exit_code, 0);
    }

    #[test]
    fn a_zombie_reports_its_wait_status() {
        let stat = parse_stat(ZOMBIE).unwrap();
        assert_eq!(stat.state, ProcessState::Zombie);
        assert_eq!(stat.exit_code, 77 << 8);
    }

    #[test]
    fn a_comm_may_hold_parentheses_blanks_and_newlines() {
        let stat = parse_stat(b"7 (a) R (\n) S 1 2 -1 0 -1 0 10 0 3 0 4 5 0 0 20 0 9 0 123 0 0").unwrap();
        assert_eq!(stat.comm, b"a) R (\n");
        assert_eq!((stat.parent, stat.session, stat.cpu), (1, -1, ClockTicks(9)));
        assert_eq!((stat.threads, stat.id.start), (9, ClockTicks(123)));
    }

    #[test]
    fn a_torn_stat_is_an_error_with_its_place() {
        assert_eq!(parse_stat(b"7 (a) S 1 2").unwrap_err().item, "starttime (field 22)");
        assert_eq!(parse_stat(b"").unwrap_err().item, "(");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_stat(&bytes);
        }

        #[test]
        fn no_damage_to_a_real_one_panics(at in 0..REAL.len(), byte: u8) {
            let mut bytes = REAL.to_vec();
            bytes[at] = byte;
            let _ = parse_stat(&bytes);
        }
    }
}
