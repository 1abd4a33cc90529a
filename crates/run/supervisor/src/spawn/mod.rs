//! How COMMAND is started: with the streams, terminal, process group, signal mask and limits that ullage
//! itself was given.
//!
//! The surprise: ullage blocks signals for its signalfd and raises its own descriptor limit for its pidfds;
//! both are inherited over exec, so the child puts them back in between. Ignored signals (nohup) pass
//! through untouched; SIGPIPE, which Rust's runtime ignores before `main`, is set back to its default by
//! `std::process`.

pub(crate) mod beside;
pub(crate) mod pidfd_info;
mod steps;

use crate::imitate::{Imitation, Step};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use steps::{Refusals, Steps};

/// What to start, and with what beside it.
#[derive(Clone, Debug, Default)]
pub struct SpawnSettings {
    /// Program and arguments; at least the program.
    pub command: Vec<OsString>,
    /// Variables set for the job, beside those of ullage.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the agent's socket is made; none without an agent.
    pub agent_socket: Option<PathBuf>,
    /// `cgroup.procs` of a group that the job is moved into before it executes.
    pub cgroup: Option<PathBuf>,
    /// Another machine's bounds, which the job alone meets.
    pub imitation: Imitation,
}

/// Why COMMAND was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Nothing to run.
    #[error("no command: write what to run after --, for example: ullage run -- python train.py")]
    Empty,
    /// ENOENT, for the program itself.
    #[error("{}: command not found; check its spelling and $PATH", command.to_string_lossy())]
    NotFound {
        /// As typed.
        command: OsString,
    },
    /// EACCES, ENOEXEC, a directory, or a script whose interpreter does not exist.
    #[error("{}: cannot be executed: {source}{hint}", command.to_string_lossy())]
    NotExecutable {
        /// As typed.
        command: OsString,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// Anything else, before the program could run: no processes or memory left.
    #[error("{}: could not be started: {source}", command.to_string_lossy())]
    Other {
        /// As typed.
        command: OsString,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Sets SIGCHLD to its default and returns what it was: with SIGCHLD ignored the kernel reaps children itself, and
/// nobody learns how they ended.
pub(crate) fn take_child_signal() -> SigHandler {
    set_child_signal(SigHandler::SigDfl)
}

fn set_child_signal(disposition: SigHandler) -> SigHandler {
    #[expect(unsafe_code, reason = "nix marks every change of a disposition unsafe")]
    // SAFETY: only SIG_DFL and SIG_IGN are ever set (no handler is installed in this program), so no code runs
    // in signal context; sigaction(2) is async-signal-safe, as the forked child needs.
    unsafe { nix::sys::signal::signal(Signal::SIGCHLD, disposition) }.unwrap_or(SigHandler::SigDfl)
}

/// Starts COMMAND, and tells which steps towards another machine's bounds were refused. `mask` is the signal mask that
/// ullage was given.
pub(crate) fn spawn(
    settings: &SpawnSettings,
    mask: SigSet,
    child_signal: SigHandler,
) -> Result<(Child, Vec<(Step, io::Error)>), StartError> {
    let Some((program, arguments)) = settings.command.split_first() else { return Err(StartError::Empty) };
    let files = getrlimit(Resource::RLIMIT_NOFILE).ok();
    // A group that cannot be entered is no reason not to start.
    let mut group = settings.cgroup.as_ref().and_then(|path| OpenOptions::new().write(true).open(path).ok());
    let mut command = Command::new(program);
    let imitation = &settings.imitation;
    let variables = imitation.environment.iter().chain(&settings.environment);
    command.args(arguments).envs(variables.map(|(name, value)| (name, value)));
    imitation.removed.iter().for_each(|name| {
        command.env_remove(name);
    });
    let mut unprepared = Vec::new();
    let steps = (*imitation != Imitation::default()).then(|| Steps::prepare(imitation));
    let (mut steps, refusals) = match steps {
        Some(Ok((steps, refusals))) => (Some(steps), Some(refusals)),
        Some(Err(error)) => {
            unprepared.push((Step::Group, error));
            (None, None)
        }
        None => (None, None),
    };
    let restore = move || {
        if let Some((soft, hard)) = files {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
        }
        if let Some(group) = &mut group {
            let _ = group.write_all(b"0");
        }
        if let Some(steps) = &mut steps {
            steps.take();
        }
        let _ = set_child_signal(child_signal);
        nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(io::Error::from)
    };
    #[expect(unsafe_code, reason = "pre_exec: what must happen between fork and exec")]
    // SAFETY: the closure runs in the forked child and calls only setrlimit(2), write(2), sigprocmask(2) and, for
    // another machine's bounds, unshare(2), mount(2), prctl(2) and sched_setaffinity(2): system calls without state in
    // the C library. It allocates nothing (all paths and options are C strings) and takes no lock.
    unsafe {
        command.pre_exec(restore);
    }
    let child = command.spawn().map_err(|source| start_error(program.clone(), source));
    // The closure holds our end of the pipe.
    drop(command);
    unprepared.extend(refusals.map(Refusals::read).unwrap_or_default());
    if let Some((_, hard)) = files {
        // For pidfds, one a process of the job; where refused, fewer endings are seen.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    Ok((child?, unprepared))
}

fn start_error(command: OsString, source: io::Error) -> StartError {
    let is_path = command.to_string_lossy().contains('/');
    match source.kind() {
        io::ErrorKind::NotFound if is_path && Path::new(&command).exists() => StartError::NotExecutable {
            command,
            source,
            hint: "; the interpreter named in its first line, or its dynamic loader, does not exist",
        },
        io::ErrorKind::NotFound => StartError::NotFound { command },
        io::ErrorKind::PermissionDenied => StartError::NotExecutable {
            command,
            source,
            hint: "; make it executable with chmod +x, or name its interpreter, for example: python train.py",
        },
        _ if source.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32) => StartError::NotExecutable {
            command,
            source,
            hint: "; it is neither a program nor a script with a #! line",
        },
        _ => StartError::Other { command, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(words: &[&str]) -> StartError {
        let command = words.iter().map(OsString::from).collect();
        spawn(&SpawnSettings { command, ..SpawnSettings::default() }, SigSet::empty(), SigHandler::SigDfl)
            .unwrap_err()
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert!(matches!(error_of(&["no-such-program-anywhere"]), StartError::NotFound { .. }));
        assert!(matches!(error_of(&["/no/such/file"]), StartError::NotFound { .. }));
        assert!(matches!(error_of(&[]), StartError::Empty));
    }

    #[test]
    fn what_cannot_be_executed_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job");
        std::fs::write(&file, "echo").unwrap();
        let path = file.to_str().unwrap();
        assert!(matches!(error_of(&[path]), StartError::NotExecutable { .. }));
        assert!(matches!(error_of(&[folder.path().to_str().unwrap()]), StartError::NotExecutable { .. }));
        // Written by another process: what other tests fork just then inherits a descriptor that is open for writing here,
        // and execve(2) refuses the file with ETXTBSY until those have executed.
        let write = "echo '#!/no/such/interpreter' >\"$0\" && chmod 755 \"$0\"";
        let written = Command::new("/bin/sh").args(["-c", write, path]).status();
        assert!(written.unwrap().success());
        let error = error_of(&[path]);
        assert!(error.to_string().contains("interpreter"), "{error}");
    }
}
