//! What can go wrong with a recording as a whole, and what is wrong inside one that still opens?

use crate::format::FORMAT;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why no recording could be begun. The job can go on without one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The directory holds something already.
    #[error("{} is not empty; give --record a directory that is new or empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Usually a full disk, a read-only file system or a directory of another user.
    #[error("cannot {doing} {}: {source}; set ULLAGE_HOME or --record to a directory with room that you may write to", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why something was not recorded, or a recording could not be closed. What was written before stays readable.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {why}", path.display())]
pub struct WriteError {
    /// What was tried.
    pub doing: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the system, or a format library, said.
    pub why: String,
}

impl WriteError {
    pub(crate) fn new(doing: &'static str, path: &Path, why: impl fmt::Display) -> WriteError {
        WriteError { doing, path: path.to_owned(), why: why.to_string() }
    }
}

/// Why a directory could not be opened as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such directory.
    #[error("no recording at {}; `ullage runs` lists all recordings", path.display())]
    NotFound {
        /// Where one was looked for.
        path: PathBuf,
    },
    /// No `run.json`, so not (or not yet) a recording.
    #[error("{} is not a recording: it has no run.json; `ullage runs` lists all recordings", path.display())]
    NotARecording {
        /// The directory.
        path: PathBuf,
    },
    /// Usually another user's, or a broken disk.
    #[error("cannot read {}: {source}; only the user who made a recording can read it", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Written by a later version of ullage.
    #[error("{} is a recording of format {format}, but this ullage reads formats up to {}; install a newer ullage", path.display(), FORMAT)]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
}

/// Something in a recording that could not be read, or is known to be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file inside the recording.
    pub file: String,
    /// Where in the file the trouble begins, bytes; none where it is the file as a whole.
    pub offset: Option<u64>,
    /// What is wrong and what was lost, in a sentence without the file's name.
    pub what: String,
}

impl Damage {
    pub(crate) fn new(file: impl Into<String>, offset: Option<u64>, what: impl Into<String>) -> Damage {
        Damage { file: file.into(), offset, what: what.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at byte {offset}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}
