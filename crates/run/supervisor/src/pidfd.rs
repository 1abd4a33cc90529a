//! How did a process end that is not our child? `PIDFD_GET_INFO` tells from kernel 6.15 on
//! (include/uapi/linux/pidfd.h); before, the zombie's `/proc/PID/stat` does, while there is one.
//!
//! The surprise: a pidfd becomes readable when the process is a zombie, but its exit information is there only
//! once somebody has reaped it, which the poll tells as a hang-up.

use crate::children::zombie_ending;
use crate::spawn::pidfd_info::exit_info;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags};
use ullage_kernel::KernelRoot;
use ullage_model::{Ending, EndingSource, Missing, ProcessId};

/// One watched descendant.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Who.
    pub(crate) id: ProcessId,
    descriptor: OwnedFd,
    /// It is a zombie whose status could not be read: only a hang-up is waited for.
    zombie: bool,
}

impl Watched {
    /// Opens a pidfd, then makes sure that the pid had not been given to another process meanwhile.
    pub(crate) fn open(root: &KernelRoot, id: ProcessId) -> Option<Watched> {
        let descriptor = rustix::process::pidfd_open(Pid::from_raw(id.pid)?, PidfdFlags::empty()).ok()?;
        let mut buffer = Vec::new();
        let same = root.process(id.pid).ok()?.stat(&mut buffer).is_ok_and(|stat| stat.id == id);
        same.then_some(Watched { id, descriptor, zombie: false })
    }

    /// What to poll for: a zombie would be readable for ever.
    pub(crate) fn interest(&self) -> PollFlags {
        if self.zombie {
            PollFlags::empty()
        } else {
            PollFlags::IN
        }
    }

    /// True where the kernel may never report the reaping of this zombie (before 6.9 there is no hang-up).
    pub(crate) fn is_zombie(&self) -> bool {
        self.zombie
    }

    /// How it ended; none while that is not known yet.
    pub(crate) fn ending(&mut self, root: &KernelRoot) -> Option<(Ending, EndingSource)> {
        if let Ok(Some(ending)) = exit_info(self.descriptor.as_fd()) {
            return Some((ending, EndingSource::Pidfd));
        }
        match zombie_ending(root, self.id) {
            Some(Some(ending)) => Some((ending, EndingSource::ZombieStat)),
            // A zombie whose status we may not read.
            Some(None) => {
                self.zombie = true;
                None
            }
            // Reaped. Between the two looks above its information may have come.
            None => Some(match exit_info(self.descriptor.as_fd()) {
                Ok(Some(ending)) => (ending, EndingSource::Pidfd),
                _ => (Ending::NotSeen(Missing::KernelTooOld), EndingSource::NotSeen),
            }),
        }
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
