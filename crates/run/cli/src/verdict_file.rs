//! `verdict.json` beside the recording of a finished run: a cache for whoever reads many runs, never a fact.
//!
//! It says which ullage made it, down to the program: another one's rules may judge otherwise, so a reader computes the
//! verdict anew. `ullage report` always does.

use serde_json::{json, Value};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use ullage_fleet::{VerdictFile, VerdictView};
use ullage_model::names::{FILE_RUN, FILE_VERDICT};
use ullage_model::{RunId, Verdict};

const SCHEMA: u32 = 1;

/// Writes it; a disk without room has none.
pub fn write(directory: &Path, verdict: &Verdict) {
    let value = json!({
        "schema": SCHEMA,
        "ullage": env!("CARGO_PKG_VERSION"),
        "program": program(),
        "verdict": ullage_report::json::verdict(verdict),
    });
    let text = ullage_report::json::line(&value);
    let file = directory.join(FILE_VERDICT);
    let unfinished = PathBuf::from(format!("{}.tmp", file.display()));
    let open =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
    let written = open
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&unfinished, &file));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
}

/// The verdict as JSON; none where there is none, it is older than the run's end, or of another ullage.
pub fn read(directory: &Path) -> Option<Value> {
    let file = directory.join(FILE_VERDICT);
    let written = std::fs::metadata(&file).ok()?.modified().ok()?;
    if written < std::fs::metadata(directory.join(FILE_RUN)).ok()?.modified().ok()? {
        return None;
    }
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let is_ours = value["schema"] == SCHEMA
        && value["ullage"] == env!("CARGO_PKG_VERSION")
        && value["program"] == program();
    is_ours.then(|| value["verdict"].take())
}

/// The verdict of this run by any build of this version: what a fleet is answered from. Nodes of a fleet have copies of the
/// program, whose files differ, and a copy of the recording has no times of its own; its name tells that the verdict is of
/// this run, and a verdict is written only when a run has ended.
pub fn read_of_version(directory: &Path, run: &RunId) -> Option<VerdictView> {
    let text = std::fs::read(directory.join(FILE_VERDICT)).ok()?;
    let file: VerdictFile = serde_json::from_slice(&text).ok()?;
    let is_ours =
        file.schema == SCHEMA && file.ullage == env!("CARGO_PKG_VERSION") && file.verdict.run == run.0;
    is_ours.then_some(file.verdict)
}

/// What tells one build of this program from the next.
fn program() -> String {
    match std::fs::metadata("/proc/self/exe") {
        Ok(facts) => format!("{} bytes, {}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()),
        Err(_) => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_diagnosis::{diagnose, Timeline};

    #[test]
    fn another_version_or_an_older_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let run: ullage_model::RunFacts = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "command": ["x"], "started_unix": 0.0, "main": null, "recorder": null,
            "interval_s": 1.0, "agent": false, "node": null, "job": null, "rank": null, "environment": {},
            "machine": ullage_model::MachineFacts::default(), "outcome": null, "duration_s": null,
            "cost": null, "not_seen": [], "memory_max": null,
        }))
        .unwrap();
        std::fs::write(folder.path().join(FILE_RUN), "{}").unwrap();
        assert_eq!(read(folder.path()), None);
        let verdict = diagnose(&run, &Timeline::default());
        write(folder.path(), &verdict);
        assert_eq!(read(folder.path()), Some(ullage_report::json::verdict(&verdict)));
        let file = folder.path().join(FILE_VERDICT);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replacen("\"program\":\"", "\"program\":\"other ", 1)).unwrap();
        assert_eq!(read(folder.path()), None);
        std::fs::write(&file, &text).unwrap();
        let (ours, other) = (RunId("r".into()), RunId("s".into()));
        assert!(read_of_version(folder.path(), &ours).is_some(), "another build of this version");
        assert!(read_of_version(folder.path(), &other).is_none(), "another run");
        std::fs::write(&file, text.replacen("\"ullage\":\"", "\"ullage\":\"9.", 1)).unwrap();
        assert!(read_of_version(folder.path(), &ours).is_none(), "another version");
        std::fs::write(&file, &text).unwrap();
        let run = std::fs::File::open(folder.path().join(FILE_RUN)).unwrap();
        run.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(read(folder.path()), None, "the run ended after it");
        write(Path::new("/nowhere"), &verdict);
    }
}
