//! `now.json` of a live run: derived at each tick, written by a thread of its own.
//!
//! The surprise: a disk may hang, so the loop that watches never waits for it. What the thread has not taken yet is
//! replaced by what is newer; where it does not answer at the end, it is left alone. And ext4 writes a file out at once that
//! a rename puts in another's place, which was half of what a tick cost: so the two change places, and the old one goes.

use crate::metrics_file::MetricsFile;
use crate::paced::Paced;
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::time::Duration;
use ullage_diagnosis::Timeline;
use ullage_job_state::{now_json, Derivation, Judged};
use ullage_model::names::FILE_NOW;
use ullage_model::{Event, LimitState, RunFacts, Sample};

/// The kind of growth asks every rule: of the time of ullage's one part of so many.
const GROWTH_ONE_OF: u32 = 20_000;
/// How long the end of a run waits for the file to be gone.
const GONE_WITHIN: Duration = Duration::from_millis(200);
/// What the thread needs of stack: a path and a few calls.
const STACK: usize = 128 << 10;

/// Keeps `now.json` beside a recording.
pub struct NowFile {
    run: RunFacts,
    derivation: Derivation,
    growth: Paced,
    /// None where there is no thread, or nothing is recorded: then it is not written.
    texts: Option<SyncSender<String>>,
    gone: Option<Receiver<()>>,
    metrics: Option<MetricsFile>,
}

impl NowFile {
    /// Of the run that is recorded in `directory`, where it is.
    pub fn begin(directory: Option<&Path>, run: &RunFacts) -> NowFile {
        let mut now = NowFile {
            run: run.clone(),
            derivation: Derivation::new(run),
            growth: Paced::one_of(GROWTH_ONE_OF),
            texts: None,
            gone: None,
            metrics: None,
        };
        if let Some(directory) = directory {
            let (texts, to_write) = sync_channel(1);
            let (finished, gone) = sync_channel(1);
            let file = directory.join(FILE_NOW);
            let write = move || {
                write_each(&file, &to_write);
                let _ = finished.send(());
            };
            let thread = std::thread::Builder::new().name("now".into()).stack_size(STACK).spawn(write);
            (now.texts, now.gone) = (thread.is_ok().then_some(texts), Some(gone));
        }
        now
    }

    /// Says the same to this one.
    pub fn with_metrics(&mut self, metrics: MetricsFile) {
        self.metrics = Some(metrics);
    }

    /// Takes in an event.
    pub fn event(&mut self, event: &Event, timeline: &Timeline) {
        self.derivation.event(event, timeline);
    }

    /// The limits, as they were just judged.
    pub fn limits(&mut self, limits: Vec<LimitState>) {
        self.derivation.limits(limits);
    }

    /// Says how the job stands at this sample, which the timeline has.
    pub fn sample(&mut self, sample: &Sample, timeline: &Timeline) {
        if sample.processes.is_empty() {
            return;
        }
        if self.texts.is_none() && self.metrics.is_none() {
            return;
        }
        if let Some(verdict) = self.growth.run(|| ullage_diagnosis::diagnose(&self.run, timeline)) {
            let judged =
                |finding: ullage_model::Finding| Judged { cause: finding.cause, severity: finding.severity };
            self.derivation.growth(verdict.growth);
            self.derivation.findings(verdict.findings.into_iter().map(judged).collect());
        }
        let state = self.derivation.sample(sample, timeline);
        let text = now_json(&self.run, &state);
        if let Some(metrics) = &self.metrics {
            metrics.now(&text);
        }
        if let Some(texts) = &self.texts {
            // Full where the disk is slow: the next tick says it better.
            let _ = texts.try_send(text);
        }
    }

    /// The run is over, and so is what is said of it; its file of metrics waits for the verdict.
    pub fn end(mut self) -> Option<MetricsFile> {
        drop(self.texts.take());
        if let Some(gone) = self.gone.take() {
            let _ = gone.recv_timeout(GONE_WITHIN);
        }
        self.metrics.take()
    }
}

/// Writes each text whole, then removes the file.
fn write_each(file: &Path, texts: &Receiver<String>) {
    let unfinished = PathBuf::from(format!("{}.tmp", file.display()));
    while let Ok(text) = texts.recv() {
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut open| open.write_all(text.as_bytes()))
            .and_then(|()| put_in_place(&unfinished, file));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
    }
    let _ = std::fs::remove_file(file);
}

/// Puts a file in the place of another, which readers find whole at any time.
fn put_in_place(new: &Path, file: &Path) -> std::io::Result<()> {
    // There may be none yet, and not every file system can exchange two.
    match renameat_with(CWD, new, CWD, file, RenameFlags::EXCHANGE) {
        Ok(()) => std::fs::remove_file(new),
        Err(_) => std::fs::rename(new, file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_stands_whole_and_goes_with_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NOW);
        let (texts, to_write) = sync_channel(1);
        let path = file.clone();
        let thread = std::thread::spawn(move || write_each(&path, &to_write));
        for n in 0..50 {
            texts.send(format!("{{\"n\": {n}}}\n")).unwrap();
        }
        // The channel holds one and the thread has one more: the others are written, each in the place of the one before.
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap()["n"].as_u64() >= Some(46),
            "{text}"
        );
        drop(texts);
        thread.join().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_error() {
        let (texts, to_write) = sync_channel(2);
        texts.send("{}".into()).unwrap();
        drop(texts);
        write_each(Path::new("/nowhere/now.json"), &to_write);
    }

    #[test]
    fn a_disk_that_hangs_holds_nothing_up() {
        let (texts, to_write) = sync_channel(1);
        let (_finished, gone) = sync_channel::<()>(1);
        let run: RunFacts = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "command": ["x"], "started_unix": 0.0, "main": null, "recorder": null,
            "interval_s": 1.0, "agent": false, "node": null, "job": null, "rank": null, "environment": {},
            "machine": ullage_model::MachineFacts::default(), "outcome": null, "duration_s": null,
            "cost": null, "not_seen": [], "memory_max": null,
        }))
        .unwrap();
        let mut now = NowFile {
            derivation: Derivation::new(&run),
            run,
            growth: Paced::one_of(GROWTH_ONE_OF),
            texts: Some(texts),
            gone: Some(gone),
            metrics: None,
        };
        let timeline = Timeline::default();
        let sample: Sample = serde_json::from_value(serde_json::json!({
            "at": 0, "processes": [{
                "id": {"pid": 7, "start": 1}, "parent": 1, "state": "running", "comm": "x", "threads": 1, "cpu": 0,
                "minor_faults": 0, "major_faults": 0, "memory": {"missing": "not-asked"},
                "descriptors": {"missing": "not-asked"}, "mappings": {"missing": "not-asked"},
                "exclusive": {"missing": "not-asked"},
            }],
            "host": ullage_model::HostReading::default(), "filesystems": [], "cgroups": [],
            "forks_since_last": 0, "cost": {"cpu_ns": 0, "peak_rss": 0},
        }))
        .unwrap();
        // Nobody takes them: the first waits in the channel, the others are dropped.
        (0..3).for_each(|_| now.sample(&sample, &timeline));
        assert!(to_write.try_recv().is_ok() && to_write.try_recv().is_err());
        now.end();
    }
}
