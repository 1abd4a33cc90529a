//! What does `run.json` say, and how is it replaced so that it is always whole?

use crate::error::{Damage, OpenError};
use crate::format::FORMAT;
use crate::store::Store;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use ullage_model::names::{FILE_NOW, FILE_RUN};
use ullage_model::{MachineFacts, RunFacts, RunId};

/// No `run.json` of ours comes near this, bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Room set aside beyond what the facts take now, for how the run ends; bytes.
const RESERVE: usize = 16 << 10;
const UNFINISHED: &str = "run.json.tmp";

/// Writes the facts under a name of their own and renames it: a reader sees the old ones or the new ones. Takes the
/// room that was [set aside](reserve).
pub(crate) fn write(dir: &Path, run: &RunFacts) -> io::Result<()> {
    let run = RunFacts { format: FORMAT, ..run.clone() };
    let mut text = serde_json::to_vec_pretty(&run).map_err(io::Error::other)?;
    text.push(b'\n');
    let unfinished = dir.join(UNFINISHED);
    let mut file = open_unfinished(&unfinished)?;
    let written = file
        .write_all(&text)
        .and_then(|()| file.set_len(text.len() as u64))
        .and_then(|()| std::fs::rename(&unfinished, dir.join(FILE_RUN)));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// Sets room aside for the facts that the end of the run adds, so that a disk that is full by then does not keep from being
/// told how it ended. Best effort: file systems that never write in place need room all the same.
pub(crate) fn reserve(dir: &Path) {
    let now = std::fs::metadata(dir.join(FILE_RUN)).map_or(0, |facts| facts.len() as usize);
    let unfinished = dir.join(UNFINISHED);
    let filled = open_unfinished(&unfinished).and_then(|mut file| file.write_all(&vec![b' '; now + RESERVE]));
    if filled.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
}

/// Gives back the room that a killed ullage had set aside, and removes what it said of a job that is over.
pub(crate) fn give_back(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(UNFINISHED));
    let _ = std::fs::remove_file(dir.join(FILE_NOW));
}

fn open_unfinished(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The facts, and whether they are damaged. `path` is the directory's, for errors and for the run's name.
pub(crate) fn read(store: &Store, path: &Path) -> Result<(RunFacts, Option<Damage>), OpenError> {
    let text = match store.read(FILE_RUN, MOST_BYTES) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::NotARecording { path: path.to_owned() });
        }
        Err(source) => return Err(OpenError::Unreadable { path: path.join(FILE_RUN), source }),
    };
    // The format first: what else a newer run.json holds is not ours to judge.
    #[derive(serde::Deserialize)]
    struct Format {
        format: u64,
    }
    if let Ok(Format { format }) = serde_json::from_slice(&text) {
        if format > FORMAT.into() {
            return Err(OpenError::Newer { path: path.to_owned(), format });
        }
    }
    match serde_json::from_slice(&text) {
        Ok(run) => Ok((run, None)),
        Err(e) => {
            let what =
                format!("the facts of the run cannot be read ({e}); the samples and events may still be");
            Ok((unknown(path), Some(Damage::new(FILE_RUN, None, what))))
        }
    }
}

/// The facts of the recording in `dir`, and nothing else of it; where they are damaged, its name.
///
/// # Errors
/// Where there is no recording, it may not be read, or it is of a newer format.
pub fn run_facts(dir: impl AsRef<Path>) -> Result<RunFacts, OpenError> {
    let dir = dir.as_ref();
    read(&Store::Directory(dir.to_owned()), dir).map(|(run, _)| run)
}

/// What is left to say of a run whose facts are damaged: its name.
fn unknown(path: &Path) -> RunFacts {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    RunFacts {
        format: FORMAT,
        run: RunId(name.unwrap_or_default()),
        command: Vec::new(),
        started_unix: 0.0,
        main: None,
        recorder: None,
        interval_s: 0.0,
        agent: false,
        node: None,
        job: None,
        rank: None,
        environment: BTreeMap::new(),
        machine: MachineFacts::default(),
        outcome: None,
        duration_s: None,
        cost: None,
        not_seen: vec!["run.json is damaged: the command and the outcome are not known".to_owned()],
        memory_max: None,
        node_rank: None,
        attempt: None,
        launcher: None,
        remedies: Vec::new(),
    }
}

/// The directory that an image of a recording stands for in errors.
pub(crate) fn image_path() -> PathBuf {
    PathBuf::from("(image)")
}
