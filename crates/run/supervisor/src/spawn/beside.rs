//! How is a process of ullage's own started beside the job, so that nothing of the job, its terminal or its end reaches it?
//!
//! It has a session of its own and no descriptor but two pipes: one whose end says that ullage is done or dead, one on which it
//! speaks. Signals that end a job are blocked in it: it ends by itself. A child of ullage, it is reaped with the
//! job's orphans, and the sampler must be handed its pid.

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// What a terminal, a launcher or a scheduler sends to all processes of a job.
const BLOCKED: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// A process of ullage's own.
#[derive(Debug)]
pub struct Beside {
    /// Its pid.
    pub pid: i32,
    /// Closed, by whatever: ullage is done.
    pub until: ChildStdin,
    /// What it says.
    pub says: ChildStdout,
}

/// Starts it.
///
/// # Errors
/// Where there is no room for a process.
pub fn start_beside<'a>(
    program: &Path,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> io::Result<Beside> {
    let blocked: SigSet = BLOCKED.into_iter().collect();
    let apart = move || {
        nix::unistd::setsid()?;
        nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&blocked), None)?;
        close_inherited_on_exec();
        Ok(())
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/");
    #[expect(unsafe_code, reason = "pre_exec: what must happen between fork and exec")]
    // SAFETY: the closure runs in the forked child and calls only setsid(2), sigprocmask(2) and close_range(2): system
    // calls without state in the C library. It allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(apart);
    }
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    match (child.stdin.take(), child.stdout.take()) {
        // `Child` is dropped, not waited for: the supervisor waits for all children alike.
        (Some(until), Some(says)) => Ok(Beside { pid, until, says }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// A descriptor that whoever started ullage left open, a pipe or a lock, would stay open for as long as this process runs.
/// Kernels before 5.11 refuse, and it stays.
fn close_inherited_on_exec() {
    /// `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
    const CLOEXEC: libc::c_uint = 1 << 2;
    #[expect(unsafe_code, reason = "nix and rustix have no close_range")]
    // SAFETY: with this flag close_range(2) only marks descriptors to be closed by exec; it uses no pointer.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, CLOEXEC) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn it_has_a_session_of_its_own_blocks_signals_and_ends_with_its_pipe() {
        let script = "echo $$ $(cut -d ' ' -f 6 /proc/$$/stat); kill -TERM $$; read end; echo over";
        let words = ["-c", script].map(OsStr::new);
        let Beside { pid, until, mut says } = start_beside(Path::new("/bin/sh"), words).unwrap();
        drop(until);
        let mut text = String::new();
        says.read_to_string(&mut text).unwrap();
        let mut lines = text.lines();
        let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(first[0], pid.to_string());
        assert_eq!(first.last(), Some(&pid.to_string().as_str()));
        assert_eq!(lines.next(), Some("over"), "{text}");
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(start_beside(Path::new("/no/such/program"), []).is_err());
    }
}
