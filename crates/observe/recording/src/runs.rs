//! Which recordings are there, which one is meant, and may it go?

use crate::error::OpenError;
use crate::run_file;
use crate::store::Store;
use crate::table::ALL;
use std::io;
use std::path::{Path, PathBuf};
use ullage_model::names::{FILE_NOW, FILE_RUN, FILE_TAILS, FILE_VERDICT};
use ullage_model::{ProcessId, RunFacts};

/// One recording in a list.
#[derive(Debug)]
pub struct Run {
    /// Name of its directory.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// Facts of the run; an error where they cannot be read, or the format is newer.
    pub facts: Result<RunFacts, OpenError>,
    /// Bytes of all its files.
    pub bytes: u64,
    /// How far it is.
    pub state: RunState,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Its recorder is alive.
    Running,
    /// It ended, and how stands in its facts.
    Ended,
    /// Its recorder is gone without having said how it ended.
    Interrupted,
}

/// Why no single recording was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// There is none at all.
    #[error("no recordings in {} yet; `ullage run -- COMMAND` makes one", home.display())]
    None {
        /// Where they would be.
        home: PathBuf,
    },
    /// No name begins so, and no path leads to one.
    #[error("no recording is named `{wanted}`{}; `ullage runs` lists all recordings", meant(similar))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The newest one that may have been meant.
        similar: Option<String>,
    },
    /// Several names begin so, or are of that time.
    #[error("several recordings match `{wanted}`: {}; type more of the name", names.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Their names.
        names: Vec<String>,
    },
    /// Usually another user's directory.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn meant(similar: &Option<String>) -> String {
    similar.as_ref().map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Why a recording was not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// Its recorder is alive.
    #[error("{} is still being recorded; end the run first", path.display())]
    StillRunning {
        /// The directory.
        path: PathBuf,
    },
    /// It is not a directory that holds a recording.
    #[error("{} is not a recording, and was left alone", path.display())]
    NotARecording {
        /// The path.
        path: PathBuf,
    },
    /// There are files in it that no recording has. Nothing was removed.
    #[error("{} also holds `{file}`, which is not part of a recording; nothing was removed", path.display())]
    OtherFiles {
        /// The directory.
        path: PathBuf,
        /// One of them.
        file: String,
    },
    /// Usually no right to it.
    #[error("cannot remove {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// All recordings of `home`, newest first. `alive` says whether a process (pid and start time) still runs: this
/// crate does not look. A `home` that is not there holds none.
///
/// # Errors
/// Where `home` cannot be read.
pub fn list_runs(home: &Path, alive: impl Fn(&ProcessId) -> bool) -> Result<Vec<Run>, FindError> {
    let unreadable = |source| FindError::Unreadable { path: home.to_owned(), source };
    let entries = match std::fs::read_dir(home) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unreadable(e)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.join(FILE_RUN).is_file() {
            runs.push(run_at(path, &alive));
        }
    }
    runs.sort_by(|a, b| b.started().total_cmp(&a.started()).then_with(|| b.name.cmp(&a.name)));
    Ok(runs)
}

/// The recordings that have ended and lie beyond `most` bytes, counted from the newest; the oldest come last.
pub fn beyond(runs: &[Run], most: u64) -> Vec<&Run> {
    let mut taken = 0u64;
    let mut beyond = Vec::new();
    for run in runs {
        taken = taken.saturating_add(run.bytes);
        if taken > most && run.state == RunState::Ended {
            beyond.push(run);
        }
    }
    beyond
}

impl Run {
    /// Seconds since anything in it was written; zero where that cannot be read.
    pub fn idle_s(&self) -> f64 {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let last = entries.filter_map(|entry| entry.metadata().and_then(|file| file.modified()).ok()).max();
        last.and_then(|last| last.elapsed().ok()).map_or(0.0, |idle| idle.as_secs_f64())
    }

    fn started(&self) -> f64 {
        self.facts.as_ref().map_or(0.0, |facts| facts.started_unix)
    }
}

fn run_at(path: PathBuf, alive: &impl Fn(&ProcessId) -> bool) -> Run {
    let facts = run_file::read(&Store::Directory(path.clone()), &path).map(|(facts, _)| facts);
    let state = match &facts {
        Ok(RunFacts { outcome: None, recorder: Some(recorder), .. }) if alive(recorder) => RunState::Running,
        Ok(RunFacts { outcome: Some(_), .. }) => RunState::Ended,
        _ => RunState::Interrupted,
    };
    let size = |entry: io::Result<std::fs::DirEntry>| entry.and_then(|e| e.metadata()).map_or(0, |m| m.len());
    let bytes = std::fs::read_dir(&path).map_or(0, |entries| entries.map(size).sum());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Run { name, path, facts, bytes, state }
}

/// The directory of the recording that is meant: the newest one for `None`; else a path with a `run.json`, the name
/// of a run in `home`, the unambiguous beginning of one, or the time in it.
///
/// # Errors
/// Where there is none or more than one.
pub fn find(home: &Path, wanted: Option<&str>) -> Result<PathBuf, FindError> {
    let mut runs = list_runs(home, |_| false)?;
    let Some(wanted) = wanted else {
        let none = || FindError::None { home: home.to_owned() };
        return runs.drain(..).next().map(|run| run.path).ok_or_else(none);
    };
    if let Some(run) = runs.iter().find(|run| run.name == wanted) {
        return Ok(run.path.clone());
    }
    // `.` and `a/b` are paths; a bare word is one too where such a recording lies here.
    if !wanted.is_empty() && Path::new(wanted).join(FILE_RUN).is_file() {
        return Ok(PathBuf::from(wanted));
    }
    let similar = similar(&runs, wanted);
    let begins = |run: &Run| !wanted.is_empty() && run.name.starts_with(wanted);
    let of_time = |run: &Run| time_of(&run.name).is_some_and(|time| time == wanted);
    let by_name = runs.iter().any(begins);
    let mut meant = runs.into_iter().filter(|run| if by_name { begins(run) } else { of_time(run) });
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one.path),
        (Some(one), Some(other)) => {
            let names = [one.name, other.name].into_iter().chain(meant.map(|run| run.name)).collect();
            Err(FindError::Ambiguous { wanted: wanted.to_owned(), names })
        }
        (None, _) => Err(FindError::NotFound { wanted: wanted.to_owned(), similar }),
    }
}

/// Letters that a mistyped name must have in common with the beginning of a run's: its day.
const LEAST_IN_COMMON: usize = 8;

/// The newest run whose name holds what was typed (`train` for 20261121-035512-train-4711), else the one that begins most like it.
fn similar(runs: &[Run], typed: &str) -> Option<String> {
    let holds = runs.iter().find(|run| !typed.is_empty() && run.name.contains(typed));
    let common = |run: &&Run| run.name.bytes().zip(typed.bytes()).take_while(|(a, b)| a == b).count();
    // The newest come first, and `max_by_key` takes the last of several.
    let alike = || runs.iter().rev().max_by_key(common).filter(|run| common(run) >= LEAST_IN_COMMON);
    holds.or_else(alike).map(|run| run.name.clone())
}

/// The time of day in the name of a recording: `194058` of `20261124-194058-train-4711`.
pub fn time_of(name: &str) -> Option<&str> {
    let mut parts = name.split('-');
    let (date, time) = (parts.next()?, parts.next()?);
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    (digits(date, 8) && digits(time, 6)).then_some(time)
}

/// Removes a recording: its files by name, then the directory. Anything else is left alone.
///
/// # Errors
/// Where it still runs, is no recording or holds other files; then nothing is removed.
pub fn remove(path: &Path, alive: impl Fn(&ProcessId) -> bool) -> Result<(), RemoveError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| RemoveError::Io { path, source }
    };
    let is_directory = std::fs::symlink_metadata(path).map_err(io(path))?.is_dir();
    if !is_directory || !path.join(FILE_RUN).is_file() {
        return Err(RemoveError::NotARecording { path: path.to_owned() });
    }
    if run_at(path.to_owned(), &alive).state == RunState::Running {
        return Err(RemoveError::StillRunning { path: path.to_owned() });
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io(path))? {
        let file = entry.map_err(io(path))?.file_name().to_string_lossy().into_owned();
        if !is_ours(&file) {
            return Err(RemoveError::OtherFiles { path: path.to_owned(), file });
        }
        files.push(file);
    }
    // run.json last: without it, what is left would not be known as a recording.
    files.sort_by_key(|file| file == FILE_RUN);
    for file in files {
        let file = path.join(file);
        std::fs::remove_file(&file).map_err(io(&file))?;
    }
    std::fs::remove_dir(path).map_err(io(path))
}

/// Whether a recording can have a file of this name, finished or not.
fn is_ours(file: &str) -> bool {
    let finished = file.strip_suffix(".tmp").unwrap_or(file);
    [FILE_RUN, FILE_NOW, FILE_VERDICT, FILE_TAILS].contains(&finished)
        || ALL.iter().any(|table| file == table.tail_name() || table.part_number(finished).is_some())
}
