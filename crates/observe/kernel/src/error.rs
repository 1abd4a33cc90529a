//! Why a kernel file could not be read or understood, and what that usually means.

use std::io;
use std::path::PathBuf;
use ullage_model::{Measured, Missing};

/// A file below the kernel root could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file could not be opened or read. ENOENT and ESRCH usually mean that the process or cgroup ended;
    /// EACCES and EPERM that it belongs to another user, or hidepid.
    #[error("{path}: {source} ({})", usual(.source))]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file was read and not understood. Usually a kernel with a format that this version does not know,
    /// or a torn read of a process that was ending.
    #[error("{path}: {source}")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Where and what.
        source: ParseError,
    },
}

/// Where a parser stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: no {item} where one belongs (a format this version does not know, or a torn read)")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// What was looked for.
    pub item: &'static str,
}

impl ParseError {
    pub(crate) const fn at(line: u32, item: &'static str) -> ParseError {
        ParseError { line, item }
    }
}

impl KernelError {
    pub(crate) fn read(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> KernelError {
        KernelError::Read { path: path.into(), source: source.into() }
    }

    /// The reason as it stands in a sample. ENOENT counts as "ended": right below `/proc/PID` and in
    /// cgroups; for files that a kernel may lack altogether, see [`KernelError::missing_feature`].
    pub fn missing(&self) -> Missing {
        match self {
            KernelError::Parse { .. } => Missing::Unreadable,
            KernelError::Read { source, .. } => missing_of(source),
        }
    }

    /// The same for files of the machine, where ENOENT means that this kernel does not offer it.
    pub fn missing_feature(&self) -> Missing {
        match self.missing() {
            Missing::Vanished => Missing::KernelTooOld,
            other => other,
        }
    }
}

fn missing_of(error: &io::Error) -> Missing {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH | rustix::io::Errno::NODEV) => {
            Missing::Vanished
        }
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => Missing::NoPermission,
        // PSI files of a kernel booted with psi=0 open, and then refuse.
        Some(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Missing::KernelTooOld,
        _ => Missing::Unreadable,
    }
}

fn usual(error: &io::Error) -> &'static str {
    match missing_of(error) {
        Missing::Vanished => "usually: it ended, or this kernel does not have the file",
        Missing::NoPermission => "usually: another user's, hidepid, or a restricted container",
        Missing::KernelTooOld => "usually: switched off in this kernel",
        _ => "not an error that this file usually gives",
    }
}

/// A result as a measured value, where ENOENT means "ended".
pub(crate) fn measured<T>(result: Result<T, KernelError>) -> Measured<T> {
    result.map_or_else(|error| Measured::Missing(error.missing()), Measured::Known)
}

/// A result as a measured value, where ENOENT means "not offered by this kernel".
pub(crate) fn measured_feature<T>(result: Result<T, KernelError>) -> Measured<T> {
    result.map_or_else(|error| Measured::Missing(error.missing_feature()), Measured::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_they_usually_mean_and_become_reasons() {
        let gone = KernelError::read("/proc/1/stat", rustix::io::Errno::SRCH);
        assert_eq!(gone.missing(), Missing::Vanished);
        assert!(gone.to_string().contains("usually: it ended"), "{gone}");
        assert_eq!(gone.missing_feature(), Missing::KernelTooOld);
        let denied = KernelError::read("/proc/1/fd", rustix::io::Errno::ACCESS);
        assert_eq!(denied.missing(), Missing::NoPermission);
        assert_eq!(denied.missing_feature(), Missing::NoPermission);
        let odd = KernelError::Parse { path: "/proc/1/stat".into(), source: ParseError::at(1, "pid") };
        assert_eq!(odd.missing(), Missing::Unreadable);
    }
}
