//! Listing, finding and removing recordings.

use crate::common::{ended, run, write};
use std::path::Path;
use ullage_model::{RunFacts, RunId};
use ullage_recording::{beyond, find, list_runs, remove, FindError, RemoveError, RunState, Writer};

fn record(home: &Path, name: &str, started: f64, close: bool) {
    let facts = RunFacts { run: RunId(name.into()), started_unix: started, ..run() };
    let writer = Writer::create(home.join(name), &facts).unwrap();
    if close {
        writer.close(&ended(&facts)).unwrap();
    }
}

fn three() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    record(home.path(), "20261121-100000-eval-3", 300.0, true);
    record(home.path(), "20261121-110000-train-4", 400.0, false);
    record(home.path(), "20261121-090000-train-2", 200.0, true);
    std::fs::create_dir(home.path().join("notes")).unwrap();
    home
}

#[test]
fn runs_are_listed_newest_first_with_their_state() {
    let home = three();
    let states = |alive: bool| {
        let runs = list_runs(home.path(), |id| alive && id.pid == 4711).unwrap();
        runs.into_iter().map(|run| (run.facts.unwrap().started_unix, run.state)).collect::<Vec<_>>()
    };
    use RunState::*;
    assert_eq!(states(true), [(400.0, Running), (300.0, Ended), (200.0, Ended)]);
    assert_eq!(states(false), [(400.0, Interrupted), (300.0, Ended), (200.0, Ended)]);
    assert!(list_runs(&home.path().join("none"), |_| true).unwrap().is_empty());
    let bytes = list_runs(home.path(), |_| false).unwrap()[0].bytes;
    let of = |name: &str| home.path().join("20261121-110000-train-4").join(name).metadata().unwrap().len();
    assert_eq!(bytes, of("run.json") + of("run.json.tmp"));
}

#[test]
fn a_run_is_found_by_name_beginning_path_or_as_the_newest() {
    let home = three();
    let found = |wanted| find(home.path(), wanted).map(|path| path.file_name().unwrap().to_owned());
    assert_eq!(found(None).unwrap(), "20261121-110000-train-4");
    assert_eq!(found(Some("20261121-10")).unwrap(), "20261121-100000-eval-3");
    assert_eq!(found(Some("20261121-090000-train-2")).unwrap(), "20261121-090000-train-2");
    assert_eq!(found(Some("100000")).unwrap(), "20261121-100000-eval-3", "its time of day");
    assert!(matches!(found(Some("1000")), Err(FindError::NotFound { .. })), "the whole of it");
    let path = home.path().join("20261121-090000-train-2");
    assert_eq!(find(Path::new("/nowhere"), path.to_str()).unwrap(), path);
    let Err(FindError::Ambiguous { names, .. }) = found(Some("2026")) else { panic!() };
    assert_eq!(names.len(), 3);
    for nothing in ["notes", "", "..", "/"] {
        assert!(matches!(found(Some(nothing)), Err(FindError::NotFound { .. })), "{nothing:?}");
    }
    let said = |typed| found(Some(typed)).unwrap_err().to_string();
    for (typed, meant) in [
        ("train", "20261121-110000-train-4"),
        ("eval", "20261121-100000-eval-3"),
        ("20261121-100000-evil-3", "20261121-100000-eval-3"),
    ] {
        assert!(said(typed).contains(&format!("did you mean `{meant}`?")), "{}", said(typed));
    }
    assert!(!said("zzz").contains("did you mean"));
    let empty = find(&home.path().join("none"), None).unwrap_err().to_string();
    assert!(empty.contains("ullage run -- COMMAND"), "{empty}");
}

#[test]
fn only_recordings_that_ended_are_removed() {
    let home = three();
    let dir = home.path().join("20261121-110000-train-4");
    assert!(matches!(remove(&dir, |_| true), Err(RemoveError::StillRunning { .. })));
    assert!(matches!(remove(home.path(), |_| false), Err(RemoveError::NotARecording { .. })));
    assert!(matches!(remove(&home.path().join("notes"), |_| false), Err(RemoveError::NotARecording { .. })));
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    assert!(matches!(remove(&link, |_| false), Err(RemoveError::NotARecording { .. })));

    std::fs::write(dir.join("model.pt"), "weights").unwrap();
    let error = remove(&dir, |_| false).unwrap_err().to_string();
    assert!(error.contains("model.pt"), "{error}");
    assert!(dir.join("run.json").exists(), "nothing was removed");
    std::fs::remove_file(dir.join("model.pt")).unwrap();
    remove(&dir, |_| false).unwrap();
    assert!(!dir.exists());
}

#[test]
fn a_recording_of_every_kind_of_file_is_removed_whole() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, 20, 3, 20_000, false);
    std::fs::write(dir.join("ticks-000009.parquet.tmp"), "half").unwrap();
    remove(&dir, |_| false).unwrap();
    assert!(!dir.exists());
}

#[test]
fn the_oldest_that_ended_lie_beyond_a_bound() {
    let home = three();
    let runs = list_runs(home.path(), |_| false).unwrap();
    let names = |most| beyond(&runs, most).into_iter().map(|run| run.name.as_str()).collect::<Vec<_>>();
    let newest_two = runs[0].bytes + runs[1].bytes;
    assert_eq!(names(u64::MAX), [""; 0]);
    assert_eq!(names(newest_two), ["20261121-090000-train-2"]);
    // The newest has no end: another machine may be writing it.
    assert_eq!(names(0), ["20261121-100000-eval-3", "20261121-090000-train-2"]);
    assert!(runs[0].idle_s() < 3600.0 && runs[0].idle_s() >= 0.0);
}
