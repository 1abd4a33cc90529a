//! Which signals reach a program that has taken a terminal? Read from a descriptor, so that it can give the terminal
//! back before it ends.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalSignal {
    /// The terminal has another size.
    Resized,
    /// To end, for the signal of this number.
    End(i32),
}

/// Signals of this process, blocked and read one by one. The mask is as it was when this is dropped.
#[derive(Debug)]
pub struct TerminalSignals {
    descriptor: SignalFd,
    before: SigSet,
}

impl TerminalSignals {
    /// Blocks them in this thread, and in those that it starts from now on.
    ///
    /// # Errors
    /// Where the kernel has no descriptor left.
    pub fn open() -> std::io::Result<TerminalSignals> {
        let mut wanted = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGWINCH] {
            wanted.add(signal);
        }
        let before = SigSet::thread_get_mask()?;
        wanted.thread_block()?;
        match SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC) {
            Ok(descriptor) => Ok(TerminalSignals { descriptor, before }),
            Err(error) => {
                let _ = before.thread_set_mask();
                Err(error.into())
            }
        }
    }

    /// The next one; none when all are read.
    pub fn next_signal(&mut self) -> Option<TerminalSignal> {
        let number = i32::try_from(self.descriptor.read_signal().ok().flatten()?.ssi_signo).ok()?;
        Some(match number {
            number if number == Signal::SIGWINCH as i32 => TerminalSignal::Resized,
            number => TerminalSignal::End(number),
        })
    }
}

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

impl AsFd for TerminalSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
