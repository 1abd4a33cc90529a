//! A worker's end with its trainer: a thread that waits on a pidfd.
//!
//! Not PR_SET_PDEATHSIG, which fires when the *thread* that forked ends, and which a fork server's children would
//! get from the fork server.

use pyo3::prelude::*;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{kill_process, Pid, PidfdFlags, Signal};
use std::os::fd::IntoRawFd;
use std::time::Duration;
use ullage_kernel::KernelRoot;

/// Time for a worker to notice by itself and to end in order.
const GRACE: Duration = Duration::from_millis(1000);

/// This process ends at most a second after the process `pid` that began at `start` (clock ticks since boot, zero for
/// not known). False where that one is gone already. Where it cannot be watched, this process goes on without.
#[pyfunction]
pub(crate) fn end_with(pid: i32, start: u64) -> bool {
    let Some(other) = Pid::from_raw(pid) else { return false };
    let pidfd = match rustix::process::pidfd_open(other, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // Anything else is a sandbox's word, or that no descriptor is free.
        Err(error) => return error != Errno::SRCH,
    };
    // The pidfd holds the pid: what is read now is the process that it was opened for.
    if start != 0 && start_of(pid).is_some_and(|found| found != start) {
        return false;
    }
    let thread = std::thread::Builder::new().name("ullage-watch".into()).stack_size(64 << 10);
    let _ = thread.spawn(move || loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {
                std::thread::sleep(GRACE);
                let _ = kill_process(rustix::process::getpid(), Signal::KILL);
                return;
            }
        }
    });
    true
}

/// As `os.pidfd_open`, which Pythons lack that were built on older systems: conda's, for one.
#[pyfunction]
pub(crate) fn pidfd_open(pid: i32) -> PyResult<i32> {
    let opened = Pid::from_raw(pid).ok_or(Errno::INVAL);
    let opened = opened.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
    Ok(opened.map_err(std::io::Error::from)?.into_raw_fd())
}

fn start_of(pid: i32) -> Option<u64> {
    let mut buffer = Vec::new();
    let stat = KernelRoot::live().process(pid).ok()?.stat(&mut buffer).ok()?;
    Some(stat.id.start.0)
}
