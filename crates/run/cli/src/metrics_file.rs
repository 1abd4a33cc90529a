//! `ullage run --metrics-file FILE`: how the job stands, for node_exporter's textfile collector.
//!
//! The file is replaced as a whole, by a rename in its folder. When the run ends, what it held of the job's memory goes; how
//! and why the run ended stays, so that an alert can ask for it. Where ullage fails, the file goes: no dead job looks alive.
//!
//! The surprise: the folder may be full, gone or on a disk that hangs. A thread of its own writes, says once that it
//! cannot, and tries again at each reading.

use crate::printer;
use anyhow::{bail, Context};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::time::Duration;
use ullage_metrics::{text, Ended, Format, Samples};

/// How long the end of a run waits for the file: a disk that hangs keeps nobody longer.
const WRITTEN_WITHIN: Duration = Duration::from_millis(500);
const STACK: usize = 256 << 10;

/// What the thread is handed.
enum News {
    /// A `now.json`.
    Now(String),
    /// The verdict and the run's facts, and when it ended: what stands at the end.
    End(Box<(Value, Value, f64)>),
}

/// Keeps a file of metrics.
pub struct MetricsFile {
    /// None where there is no thread: then nothing is written.
    news: Option<SyncSender<News>>,
    finished: Receiver<()>,
}

impl MetricsFile {
    /// At this path; what stands there is replaced at the first reading.
    pub fn begin(file: &Path) -> MetricsFile {
        let (news, to_write) = sync_channel(2);
        let (done, finished) = sync_channel(1);
        let file = file.to_owned();
        let write = move || {
            Replaced::new(file).write_each(&to_write);
            let _ = done.send(());
        };
        let thread = std::thread::Builder::new().name("metrics".into()).stack_size(STACK).spawn(write);
        if let Err(error) = &thread {
            printer::remark(&format!("no metrics are written: {error}"));
        }
        MetricsFile { news: thread.is_ok().then_some(news), finished }
    }

    /// How the job stands now.
    pub fn now(&self, now: &str) {
        if let Some(news) = &self.news {
            // Full where the disk is slow: the next reading says it better.
            let _ = news.try_send(News::Now(now.to_owned()));
        }
    }

    /// The run is over.
    pub fn end(mut self, verdict: Value, run: Value, at_unix: f64) {
        let Some(news) = self.news.take() else { return };
        let _ = news.try_send(News::End(Box::new((verdict, run, at_unix))));
        drop(news);
        let _ = self.finished.recv_timeout(WRITTEN_WITHIN);
    }
}

/// A file that is replaced again and again.
struct Replaced {
    file: PathBuf,
    /// In the same folder, and with an ending that node_exporter does not read.
    unfinished: PathBuf,
    said: bool,
    written: bool,
}

impl Replaced {
    fn new(file: PathBuf) -> Replaced {
        let mut unfinished = OsString::from(&file);
        unfinished.push(format!(".{}.tmp", std::process::id()));
        Replaced { file, unfinished: unfinished.into(), said: false, written: false }
    }

    fn write_each(&mut self, news: &Receiver<News>) {
        let mut ended = false;
        while let Ok(news) = news.recv() {
            let samples = match news {
                News::Now(now) => Samples::live(&serde_json::from_str(&now).unwrap_or(Value::Null)),
                News::End(end) => {
                    ended = true;
                    let (verdict, run, at_unix) = *end;
                    Samples::ended(&Ended { verdict: &verdict, run: &run, at_unix })
                }
            };
            if let Err(error) = self.replace(&text(&samples, Format::Classic)) {
                let _ = std::fs::remove_file(&self.unfinished);
                // What could not be replaced by the end would show a job that is over.
                ended = false;
                if !std::mem::replace(&mut self.said, true) {
                    printer::remark(&format!(
                        "no metrics in {} (--metrics-file): {error:#}; the job continues",
                        self.file.display()
                    ));
                }
            }
        }
        if !ended && self.written {
            let _ = std::fs::remove_file(&self.file);
        }
    }

    fn replace(&mut self, text: &str) -> anyhow::Result<()> {
        // A rename would put a file in the place of a device, a pipe or a link.
        match std::fs::symlink_metadata(&self.file) {
            Ok(there) if !there.is_file() => bail!("it is not a regular file"),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        // Of a run that was killed, whose pid is used again.
        let _ = std::fs::remove_file(&self.unfinished);
        // New, so that no link leads it elsewhere; node_exporter is another user.
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&self.unfinished)?;
        open.write_all(text.as_bytes()).context("it cannot be written")?;
        std::fs::rename(&self.unfinished, &self.file)?;
        self.written = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = r#"{"run": "r", "oom_kills": 2}"#;

    fn files(folder: &Path) -> Vec<String> {
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        std::fs::read_dir(folder).unwrap().map(name).collect()
    }

    fn written(file: &Path, news: Vec<News>) -> Replaced {
        let (sender, to_write) = sync_channel(news.len());
        news.into_iter().for_each(|one| sender.try_send(one).ok().unwrap());
        drop(sender);
        let mut replaced = Replaced::new(file.to_owned());
        replaced.write_each(&to_write);
        replaced
    }

    fn end() -> News {
        let run = serde_json::json!({"run": "r", "outcome": {"kind": "exit"}});
        News::End(Box::new((serde_json::json!({"outcome": {"kind": "exit"}}), run, 9.0)))
    }

    #[test]
    fn at_the_end_only_how_it_ended_stands() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("u.prom");
        let mut live = Replaced::new(file.clone());
        live.replace(&text(&Samples::live(&serde_json::from_str(NOW).unwrap()), Format::Classic)).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("ullage_oom_kills_total{run=\"r\"} 2\n"));
        written(&file, vec![News::Now(NOW.into()), end()]);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("ullage_run_ended{run=\"r\",outcome=\"exit\"} 1\n"), "{text}");
        assert!(!text.contains("ullage_oom_kills_total"), "{text}");
        assert_eq!(files(folder.path()), ["u.prom"]);
    }

    #[test]
    fn without_an_end_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        written(&folder.path().join("u.prom"), vec![News::Now(NOW.into())]);
        assert_eq!(files(folder.path()), [""; 0]);
    }

    #[test]
    fn what_is_no_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("target", &link).unwrap();
        for bad in [link.as_path(), folder.path(), Path::new("/dev/null"), Path::new("/nowhere/x.prom")] {
            let replaced = written(bad, vec![News::Now(NOW.into()), News::Now(NOW.into()), end()]);
            assert!(replaced.said && !replaced.written, "{}", bad.display());
        }
        assert_eq!(files(folder.path()), ["link"]);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_link_in_the_way_of_the_unfinished_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, file) = (folder.path().join("victim"), folder.path().join("u.prom"));
        std::fs::write(&victim, "before").unwrap();
        let mut replaced = Replaced::new(file.clone());
        std::os::unix::fs::symlink(&victim, &replaced.unfinished).unwrap();
        replaced.replace("after\n").unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "before");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after\n");
    }

    #[test]
    fn a_disk_that_hangs_holds_nothing_up() {
        let (news, to_write) = sync_channel(1);
        let (_done, finished) = sync_channel::<()>(1);
        let file = MetricsFile { news: Some(news), finished };
        (0..3).for_each(|_| file.now(NOW));
        assert!(to_write.try_recv().is_ok() && to_write.try_recv().is_err());
        file.end(Value::Null, Value::Null, 0.0);
    }
}
