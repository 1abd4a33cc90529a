//! Which signals came, and from whom? Read from a signalfd, so that no handler is ever installed.
//!
//! Signals of the terminal (Ctrl-C, hang-up) go to the whole process group, COMMAND included: nothing is to be
//! done. A signal that some process sent to ullage alone is meant for the job: it is passed on. The surprise:
//! `kill` of a whole group looks the same to each receiver, so COMMAND gets such a signal twice.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

/// Signals that are passed on when a process sent them to ullage.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// si_code of a signal that the kernel raised, the terminal's among them (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// Sent by the terminal to the whole group. Another that the kernel raised is ullage's own: an alarm set before exec.
const FROM_TERMINAL: [Signal; 3] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP];

/// What a signal means for the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A child changed its state.
    Child,
    /// Pass this on to COMMAND.
    PassOn(Signal),
    /// COMMAND has it already, or it is ullage's own.
    Nothing,
}

/// The signals of this process, as a descriptor to poll.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    interrupted: bool,
}

impl Signals {
    /// Blocks the signals and opens the descriptor; returns the mask as it was.
    pub(crate) fn open() -> nix::Result<(Signals, SigSet)> {
        let mut wanted = SigSet::empty();
        wanted.add(Signal::SIGCHLD);
        for signal in PASSED_ON {
            wanted.add(signal);
        }
        let before = SigSet::thread_get_mask()?;
        wanted.thread_block()?;
        let descriptor = SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok((Signals { descriptor, interrupted: false }, before))
    }

    /// The next signal; none when all are read. `of_job` says whether a sender belongs to the job.
    pub(crate) fn next(&mut self, of_job: impl Fn(i32) -> bool) -> Option<Arrived> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        self.interrupted |= info.ssi_signo == Signal::SIGINT as u32 && info.ssi_code == SI_KERNEL;
        // The job signals its own group (torchrun ends its ranks so); COMMAND has got that one.
        let own = nix::unistd::getpid().as_raw();
        let inside = i32::try_from(info.ssi_pid).is_ok_and(|sender| sender == own || of_job(sender));
        Some(meaning(info.ssi_signo, info.ssi_code, inside))
    }
}

impl Signals {
    /// Ctrl-C was pressed: the terminal sent SIGINT to the whole group.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn meaning(number: u32, code: i32, from_inside: bool) -> Arrived {
    let signal = i32::try_from(number).ok().and_then(|number| Signal::try_from(number).ok());
    match signal {
        Some(Signal::SIGCHLD) => Arrived::Child,
        None => Arrived::Nothing,
        Some(signal) if code > 0 && FROM_TERMINAL.contains(&signal) || from_inside => Arrived::Nothing,
        Some(signal) => Arrived::PassOn(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_terminal_sends_is_not_passed_on() {
        assert_eq!(meaning(2, SI_KERNEL, false), Arrived::Nothing);
        assert_eq!(meaning(14, SI_KERNEL, false), Arrived::PassOn(Signal::SIGALRM), "an alarm outlives exec");
    }

    #[test]
    fn what_a_process_sends_is_passed_on_once() {
        for code in [0, -1, -6] {
            assert_eq!(meaning(15, code, false), Arrived::PassOn(Signal::SIGTERM), "si_code {code}");
        }
        assert_eq!(meaning(15, 0, true), Arrived::Nothing);
        assert_eq!(meaning(17, 1, false), Arrived::Child);
    }
}
