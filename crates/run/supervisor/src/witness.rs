//! Did the others of our process group get this signal too?
//!
//! `kill` of a whole group, `timeout`, `srun` and `systemctl stop` send COMMAND what they send ullage, and nothing in the
//! signal says so: passed on, COMMAND would get it twice, and the second may arrive as Python ends, where no handler
//! stands any more. So a small process of ullage's own sits in the group, in the session and in the cgroup, and is asked:
//! what it got as well, COMMAND got as well. Without it, or without its answer, everything is passed on.
//!
//! Asked over two pipes: a signal's number, with [`WAIT`] added where the signal may still be on its way; answered by one
//! byte. It ends when ullage does, whatever ended ullage, because its standard input ends then.

use crate::signals;
use nix::sys::signal::{kill, Signal};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The argument that makes `ullage` be one.
pub const ARGUMENT: &str = "__witness";
/// Added to the number of a signal that may still be on its way.
const WAIT: u8 = 0x80;
/// Who signals all processes of a job one by one is done by then (Slurm, systemd).
const ON_ITS_WAY: Duration = Duration::from_millis(50);
/// For an answer: a witness that is stopped gives none.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ours.
#[derive(Debug)]
pub(crate) struct Witness {
    child: Child,
    questions: ChildStdin,
    answers: ChildStdout,
    /// Its pid may be another's now.
    reaped: bool,
}

impl Witness {
    /// Starts one. None where there is no room for it.
    pub(crate) fn start() -> Option<Witness> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (questions, answers) = (child.stdin.take()?, child.stdout.take()?);
        Some(Witness { child, questions, answers, reaped: false })
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        i32::try_from(self.child.id()).ok()
    }

    /// It ended, and somebody waited for it.
    pub(crate) fn reaped(&mut self) {
        self.reaped = true;
    }

    /// Whether it got this signal since it was last asked for it. `wait`: it may be on its way. None where there is no
    /// answer: then it is of no more use.
    pub(crate) fn saw(&mut self, signal: Signal, wait: bool) -> Option<bool> {
        let number = u8::try_from(signal as i32).ok()?;
        self.questions.write_all(&[if wait { number | WAIT } else { number }]).ok()?;
        if !readable(&self.answers, PATIENCE) {
            return None;
        }
        let mut answer = [0];
        self.answers.read_exact(&mut answer).ok()?;
        Some(answer[0] != 0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if let (Some(pid), false) = (self.pid(), self.reaped) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// True for the arguments of a process that is to be a witness.
pub fn is_meant(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    arguments.nth(1).is_some_and(|argument| argument.as_ref() == ARGUMENT)
}

/// Is one, until standard input ends.
pub fn serve() {
    let Ok((descriptor, _)) = signals::descriptor() else { return };
    let (mut questions, mut answers) = (std::io::stdin(), std::io::stdout());
    let mut seen = Seen::default();
    let mut question = [0];
    while questions.read(&mut question).is_ok_and(|read| read == 1) {
        let until = Instant::now() + if question[0] & WAIT == 0 { Duration::ZERO } else { ON_ITS_WAY };
        let saw = loop {
            seen.read(&descriptor);
            let left = until.saturating_duration_since(Instant::now());
            if seen.take(question[0] & !WAIT) {
                break true;
            }
            if left.is_zero() || !readable(&descriptor, left) {
                break false;
            }
        };
        if answers.write_all(&[u8::from(saw)]).and_then(|()| answers.flush()).is_err() {
            return;
        }
    }
}

/// Signals that came and were not asked for, a bit each. As the kernel has it, of those that wait one of a kind is kept.
#[derive(Debug, Default)]
struct Seen(u64);

impl Seen {
    fn read(&mut self, descriptor: &SignalFd) {
        while let Ok(Some(info)) = descriptor.read_signal() {
            self.0 |= bit(info.ssi_signo);
        }
    }

    fn take(&mut self, number: u8) -> bool {
        let asked = bit(number.into());
        let there = self.0 & asked != 0;
        self.0 &= !asked;
        there
    }
}

fn bit(number: u32) -> u64 {
    1u64.checked_shl(number).unwrap_or(0)
}

fn readable(descriptor: &impl AsFd, within: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(within.subsec_nanos()),
    };
    let mut fds = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_seen_until_it_was_asked_for() {
        let mut seen = Seen(bit(15) | bit(2));
        assert!(!seen.take(1));
        assert!(seen.take(15));
        assert!(!seen.take(15));
        assert!(seen.take(2));
        assert_eq!(bit(200), 0);
    }

    #[test]
    fn only_the_hidden_argument_makes_one() {
        assert!(is_meant(["ullage", ARGUMENT].iter()));
        assert!(!is_meant(["ullage", "run", ARGUMENT].iter()));
        assert!(!is_meant(["ullage"].iter()));
    }
}
