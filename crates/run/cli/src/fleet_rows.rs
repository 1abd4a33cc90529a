//! From a folder of recordings to rows: which recordings are there, and what does each say?
//!
//! A `verdict.json` of the same version is taken as it is; any other recording is judged anew, as `ullage report` does, but
//! read-only: nothing is repaired, and nothing is asked of this machine, whose processes and kernel log are not that node's.
//! The surprise: `ullage report` also compares the file of the program that wrote a verdict, which differs from node to node.

use crate::{machine, verdict_file};
use anyhow::Context;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use ullage_diagnosis::Timeline;
use ullage_fleet::{Fleet, VerdictView};
use ullage_model::names::FILE_RUN;
use ullage_model::{Facts, FleetRow, Outcome, OutcomeKind, RunFacts};
use ullage_recording::Recording;

/// Folders between the given one and a recording: more than any layout has.
const MOST_DEPTH: usize = 8;
/// Rows that wait for the thread that takes them.
const MOST_WAITING: usize = 64;
/// Threads that read; a shared disk serves no more at once.
const MOST_THREADS: usize = 8;

/// Folders of all recordings in `directory`, or itself where it is one; by name. Links are not followed.
///
/// # Errors
/// Where `directory` itself cannot be read.
pub fn folders(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![(directory.to_owned(), 0)];
    while let Some((folder, depth)) = left.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if depth == 0 => {
                return Err(error).with_context(|| format!("{} cannot be read", folder.display()));
            }
            // Removed meanwhile, or somebody else's.
            Err(_) => continue,
            Ok(entries) => entries,
        };
        let mut below = Vec::new();
        let mut is_recording = false;
        for entry in entries.flatten() {
            is_recording |= entry.file_name() == FILE_RUN;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push((entry.path(), depth + 1));
            }
        }
        if is_recording {
            found.push(folder);
        } else if depth < MOST_DEPTH {
            left.append(&mut below);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads all of them, several at once; one recording a thread is in memory.
pub fn read(folders: &[PathBuf]) -> Fleet {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(MOST_THREADS);
    let (sender, receiver) = sync_channel::<(FleetRow, Facts)>(MOST_WAITING);
    let next = AtomicUsize::new(0);
    let mut fleet = Fleet::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(folders.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(guarded(folder)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (row, facts) in receiver {
            fleet.push(row, &facts);
        }
    });
    fleet
}

/// One recording, whatever is in it: damaged files make parsers panic.
fn guarded(folder: &Path) -> (FleetRow, Facts) {
    let path = folder.display().to_string();
    let read = std::panic::catch_unwind(AssertUnwindSafe(|| one(folder, &path)));
    match read {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => (ullage_fleet::unreadable(&path, format!("{error:#}")), Facts::new()),
        Err(panic) => {
            let problem = format!("a fault in ullage: {}", crate::live::panic_text(panic.as_ref()));
            (ullage_fleet::unreadable(&path, problem), Facts::new())
        }
    }
}

fn one(folder: &Path, path: &str) -> anyhow::Result<(FleetRow, Facts)> {
    let run = ullage_recording::run_facts(folder)?;
    if let Some(verdict) = verdict_file::read_of_version(folder, &run.run) {
        return Ok((ullage_fleet::row(path, &run, &verdict, None), ullage_fleet::facts(&run)));
    }
    let (run, verdict, last_s) = judged(folder)?;
    Ok((ullage_fleet::row(path, &run, &verdict, last_s), ullage_fleet::facts(&run)))
}

/// The run, its verdict, and where it has no end, the seconds from its start to the last thing that was recorded.
fn judged(folder: &Path) -> anyhow::Result<(RunFacts, VerdictView, Option<f64>)> {
    let recording = Recording::open(folder)?;
    let mut replay = recording.replay();
    let timeline = Timeline::read(&mut replay).map_err(|error| anyhow::anyhow!("{error}"))?;
    let run = recording.run;
    let outcome = run.outcome.clone().unwrap_or_else(|| outcome_without_end(&run));
    let judged = RunFacts { outcome: Some(outcome), ..run.clone() };
    let verdict = ullage_diagnosis::diagnose(&judged, &timeline);
    let view = serde_json::from_value(ullage_report::json::verdict(&verdict))?;
    let last_s = run.outcome.is_none().then(|| timeline.end().seconds());
    Ok((run, view, last_s))
}

/// A process of this machine with the same pid and start is the run's own; of other machines nothing is asked.
fn outcome_without_end(run: &RunFacts) -> Outcome {
    Outcome::of(match run.main {
        Some(main) if machine::is_alive(main) => OutcomeKind::StillRunning,
        _ => OutcomeKind::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_found_at_any_depth_and_behind_no_link() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["job=1/node=a/rank=0/attempt=0", "b", "b/inside"] {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
            std::fs::write(folder.path().join(path).join(FILE_RUN), "{}").unwrap();
        }
        std::os::unix::fs::symlink(folder.path().join("b"), folder.path().join("c")).unwrap();
        let found = folders(folder.path()).unwrap();
        let expected = ["b", "job=1/node=a/rank=0/attempt=0"].map(|path| folder.path().join(path));
        assert_eq!(found, expected);
        assert_eq!(folders(&expected[0]).unwrap(), expected[..1]);
        assert!(folders(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn a_damaged_recording_is_a_row_with_its_problem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job=1/node=a/rank=3/attempt=0");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(FILE_RUN), "{\"format\":").unwrap();
        let answer = read(&folders(folder.path()).unwrap()).answer(None);
        assert_eq!((answer.states.unreadable, answer.rows[0].rank), (1, Some(3)));
        assert!(answer.rows[0].problem.is_some());
    }
}
