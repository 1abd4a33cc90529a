//! All live runs of this user, from their `now.json`, and those that ended a short while ago.
//!
//! The surprise: a recorder that was killed leaves its `now.json` behind, and a home on a shared disk has those of other
//! machines. So each is asked for its recorder, by pid and start time, on this machine.

use crate::{machine, verdict_file};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use ullage_metrics::{Ended, Samples};
use ullage_model::names::{FILE_NOW, FILE_RUN, FILE_VERDICT};
use ullage_model::ProcessId;

/// How long it is told that a run has ended: longer than Prometheus looks back for a value, by three times.
const ENDED_STAYS: Duration = Duration::from_secs(15 * 60);
/// A `now.json` is smaller.
const MOST_BYTES: u64 = 64 << 10;

/// The runs below a home.
pub struct LiveRuns {
    home: PathBuf,
    /// What was said of runs that have ended, and of which files.
    ended: HashMap<OsString, (Written, Samples)>,
}

/// When the files of a run that has ended were written.
type Written = (SystemTime, Option<SystemTime>);

impl LiveRuns {
    /// Of this home, which may not be there yet.
    pub fn below(home: PathBuf) -> LiveRuns {
        LiveRuns { home, ended: HashMap::new() }
    }

    /// How they stand now.
    pub fn samples(&mut self) -> Samples {
        let mut samples = Samples::default();
        let mut ended = HashMap::new();
        let since = SystemTime::now().checked_sub(ENDED_STAYS);
        for entry in std::fs::read_dir(&self.home).into_iter().flatten().flatten() {
            let folder = entry.path();
            if let Some(now) = now(&folder) {
                samples.extend(Samples::live(&now));
                continue;
            }
            let Some(written) = written(&folder.join(FILE_RUN)).filter(|time| Some(*time) >= since) else {
                continue;
            };
            let written = (written, self::written(&folder.join(FILE_VERDICT)));
            let before = self.ended.remove(&entry.file_name()).filter(|(then, _)| *then == written);
            let Some(of_run) = before.map(|(_, of_run)| of_run).or_else(|| self::ended(&folder)) else {
                continue;
            };
            samples.extend(of_run.clone());
            ended.insert(entry.file_name(), (written, of_run));
        }
        self.ended = ended;
        samples
    }
}

/// The `now.json` of a run whose recorder runs.
fn now(folder: &Path) -> Option<Value> {
    let mut text = Vec::new();
    File::open(folder.join(FILE_NOW)).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    let now: Value = serde_json::from_slice(&text).ok()?;
    let recorder: ProcessId = serde_json::from_value(now["recorder"].clone()).ok()?;
    machine::is_alive(recorder).then_some(now)
}

/// What is told of a run that has ended; none of one that was cut off, of which nobody knows how it goes on.
fn ended(folder: &Path) -> Option<Samples> {
    let run: Value = serde_json::from_slice(&std::fs::read(folder.join(FILE_RUN)).ok()?).ok()?;
    if run["outcome"].is_null() {
        return None;
    }
    let verdict = verdict_file::read(folder).unwrap_or_default();
    let at_unix = run["started_unix"].as_f64()? + run["duration_s"].as_f64().unwrap_or(0.0);
    Some(Samples::ended(&Ended { verdict: &verdict, run: &run, at_unix }))
}

fn written(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use ullage_kernel::KernelRoot;
    use ullage_metrics::{text, Format};

    fn said(runs: &mut LiveRuns) -> String {
        text(&runs.samples(), Format::Classic)
    }

    #[test]
    fn only_runs_with_a_recorder_here_are_live() {
        let home = tempfile::tempdir().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let here = machine::identity(&KernelRoot::live(), own).unwrap();
        let other = json!({"pid": own, "start": 1});
        for (name, recorder) in [("live", json!(here)), ("killed", other), ("old", Value::Null)] {
            std::fs::create_dir(home.path().join(name)).unwrap();
            let now = json!({"run": name, "recorder": recorder, "oom_kills": 0});
            std::fs::write(home.path().join(name).join(FILE_NOW), now.to_string()).unwrap();
        }
        std::fs::create_dir(home.path().join("torn")).unwrap();
        std::fs::write(home.path().join("torn").join(FILE_NOW), "{").unwrap();
        let text = said(&mut LiveRuns::below(home.path().to_owned()));
        assert!(text.contains("ullage_oom_kills_total{run=\"live\"} 0\n"), "{text}");
        assert!(!["killed", "old", "torn"].iter().any(|name| text.contains(name)), "{text}");
        assert!(LiveRuns::below("/nowhere".into()).samples().is_empty());
    }

    #[test]
    fn how_a_run_ended_stays_for_a_while() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("r");
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join(FILE_RUN);
        let run =
            |outcome: Value| json!({"run": "r", "started_unix": 5.0, "duration_s": 2.0, "outcome": outcome});
        std::fs::write(&file, run(Value::Null).to_string()).unwrap();
        let mut runs = LiveRuns::below(home.path().to_owned());
        assert!(runs.samples().is_empty(), "cut off");
        std::fs::write(&file, run(json!({"kind": "signal"})).to_string()).unwrap();
        for _ in 0..2 {
            let text = said(&mut runs);
            assert!(text.contains("ullage_run_ended{run=\"r\",outcome=\"signal\"} 1\n"), "{text}");
            assert!(text.contains("ullage_run_ended_timestamp_seconds{run=\"r\"} 7\n"), "{text}");
        }
        let long_ago = SystemTime::now() - 2 * ENDED_STAYS;
        File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        assert!(runs.samples().is_empty() && runs.ended.is_empty());
    }
}
