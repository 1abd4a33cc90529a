//! Our own children: COMMAND, and orphans of the job that the kernel gave us as their subreaper.

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions};
use ullage_kernel::KernelRoot;
use ullage_model::{Ending, ProcessId, ProcessState};

/// Reaps every child that has ended: pid and how. The flag is true where there is no child at all any more.
pub(crate) fn reap() -> (Vec<(i32, Ending)>, bool) {
    let mut reaped = Vec::new();
    loop {
        let (pid, status) = match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(child)) => child,
            Ok(None) => return (reaped, false),
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return (reaped, true),
        };
        let ending = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signaled(signal),
            (None, None) => continue,
        };
        reaped.push((pid.as_raw_nonzero().get(), ending));
    }
}

/// Takes the note that COMMAND stopped or continued, so that the next one is seen. True where there was one.
pub(crate) fn stopped_or_continued(main: i32) -> bool {
    let Some(pid) = Pid::from_raw(main) else { return false };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
    let mut any = false;
    while let Ok(Some(_)) = rustix::process::waitid(WaitId::Pid(pid), options) {
        any = true;
    }
    any
}

/// The ending of a zombie: none where there is no such zombie, `Some(None)` where its status is hidden from us
/// (another user's process: the kernel shows 0).
pub(crate) fn zombie_ending(root: &KernelRoot, id: ProcessId) -> Option<Option<Ending>> {
    let mut buffer = Vec::new();
    let process = root.process(id.pid).ok()?;
    let stat = process.stat(&mut buffer).ok().filter(|stat| stat.id == id)?;
    if !matches!(stat.state, ProcessState::Zombie | ProcessState::Dead) {
        return None;
    }
    let code = stat.exit_code;
    // The same right (PTRACE_MODE_READ_FSCREDS) guards the namespace links; root may lack it in a container.
    let may = process.namespace("user").is_ok();
    // A zero could also mean "hidden"; a number other than zero could not.
    Some((may || code != 0).then(|| Ending::from_wait_status(code)))
}

/// True where a process is stopped at this moment.
pub(crate) fn is_stopped(root: &KernelRoot, id: ProcessId) -> bool {
    let mut buffer = Vec::new();
    root.process(id.pid)
        .ok()
        .and_then(|process| {
            process.stat(&mut buffer).ok().map(|stat| stat.id == id && stat.state == ProcessState::Stopped)
        })
        .unwrap_or(false)
}

/// True where this very process runs or sleeps: neither gone, nor a zombie, nor another one of the same pid.
pub fn is_running(root: &KernelRoot, id: ProcessId) -> bool {
    let mut buffer = Vec::new();
    root.process(id.pid)
        .ok()
        .and_then(|process| process.stat(&mut buffer).ok().map(|stat| (stat.id, stat.state)))
        .is_some_and(|(found, state)| {
            found == id && !matches!(state, ProcessState::Zombie | ProcessState::Dead)
        })
}
