//! `ullage run --fleet DIR`: a recording is copied to a shared disk while it is made, by a process of its own.
//!
//! The surprise: whatever the disk does, hang, fill up or vanish, only that process meets it. Here, DIR is never touched: lines
//! of the other process are waited for, at the end of the run and not for long.

pub mod copier;
mod place;
pub mod push;

use crate::printer;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ullage_supervisor::{start_beside, Beside};

/// The hidden command of the copier.
pub const COPIER: &str = "fleet-copier";
/// At the end of the run, for how long no file need arrive before the copier is left alone.
const WITHOUT_A_FILE: Duration = Duration::from_secs(2);
/// The same where files arrive.
const LAST_COPY_WITHIN: Duration = Duration::from_secs(30);
const STACK: usize = 256 << 10;
/// Lines that wait to be read; more tell nothing new.
const MOST_NEWS: usize = 1024;

/// What the copier said.
enum News {
    File,
    Failed(String),
    All,
}

/// A recording that is being copied.
pub struct FleetCopy {
    dir: PathBuf,
    recording: PathBuf,
    pid: i32,
    until: ChildStdin,
    news: Receiver<News>,
    ending: Arc<AtomicBool>,
}

impl FleetCopy {
    /// Starts the copier, where there is something to copy; says where not.
    pub fn begin(dir: Option<&Path>, recording: Option<&Path>) -> Option<FleetCopy> {
        let dir = dir?;
        let begun = match recording {
            Some(recording) => FleetCopy::start(dir, recording),
            None => Err(anyhow::anyhow!("nothing is recorded")),
        };
        let failed = |error| printer::remark(&not_copied(dir, &format!("{error:#}")));
        begun.map_err(failed).ok()
    }

    fn start(dir: &Path, recording: &Path) -> anyhow::Result<FleetCopy> {
        let (dir, recording) = (std::path::absolute(dir)?, std::path::absolute(recording)?);
        let words: [&OsStr; 5] =
            [COPIER.as_ref(), "--from".as_ref(), recording.as_os_str(), "--to".as_ref(), dir.as_os_str()];
        let Beside { pid, until, says } = start_beside(&program(), words)?;
        let ending = Arc::new(AtomicBool::new(false));
        let (to_read, news) = sync_channel(MOST_NEWS);
        let listen = {
            let (dir, ending) = (dir.clone(), Arc::clone(&ending));
            move || listen(says, &to_read, &dir, &ending)
        };
        std::thread::Builder::new().name("fleet".into()).stack_size(STACK).spawn(listen)?;
        Ok(FleetCopy { dir, recording, pid, until, news, ending })
    }

    /// The copier is no process of the job.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The run is over: waits for the last copy as long as files arrive, and leaves the copier alone where none does.
    pub fn finish(self) {
        let FleetCopy { dir, recording, until, news, ending, .. } = self;
        ending.store(true, Ordering::Relaxed);
        while news.try_recv().is_ok() {}
        drop(until);
        let Some(why) = last_copy(&news) else { return };
        printer::remark(&format!(
            "the last part of the recording is not on {} (--fleet){why}; it lies in {}, from where `ullage runs push` copies it",
            dir.display(),
            recording.display()
        ));
    }
}

/// Waits; why it did not come, none where it did.
fn last_copy(news: &Receiver<News>) -> Option<String> {
    let begun = Instant::now();
    loop {
        let left = LAST_COPY_WITHIN.saturating_sub(begun.elapsed());
        match news.recv_timeout(left.min(WITHOUT_A_FILE)) {
            Ok(News::All) => return None,
            Ok(News::File) if !left.is_zero() => {}
            Ok(News::File) | Err(RecvTimeoutError::Timeout) => {
                return Some(": the disk answers too slowly".into())
            }
            Ok(News::Failed(why)) => return Some(format!(": {why}")),
            Err(RecvTimeoutError::Disconnected) => return Some(": the process that copies has ended".into()),
        }
    }
}

/// Reads what the copier says to its end. The first failure of a run is said at once, and once.
fn listen(says: ChildStdout, news: &SyncSender<News>, dir: &Path, ending: &AtomicBool) {
    let mut said = false;
    for line in BufReader::new(says).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let one = match line.strip_prefix('!') {
            Some(why) => News::Failed(why.to_owned()),
            None if line == "=" => News::All,
            None => News::File,
        };
        if let (News::Failed(why), false, false) = (&one, said, ending.load(Ordering::Relaxed)) {
            said = true;
            printer::remark(&not_copied(dir, why));
        }
        // Full only while the job runs, when nobody reads them.
        match ending.load(Ordering::Relaxed) {
            true => drop(news.send(one)),
            false => drop(news.try_send(one)),
        }
    }
}

fn not_copied(dir: &Path, why: &str) -> String {
    format!("nothing is copied to {} (--fleet): {why}; the job continues", dir.display())
}

/// This program, also where its file was replaced meanwhile.
fn program() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| "/proc/self/exe".into())
}

/// The node where no launcher names it.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: Vec<News>, hang_up: bool) -> Option<String> {
        let (sender, news) = sync_channel(lines.len());
        lines.into_iter().for_each(|one| sender.try_send(one).ok().unwrap());
        let sender = (!hang_up).then_some(sender);
        let why = last_copy(&news);
        drop(sender);
        why
    }

    #[test]
    fn the_last_copy_is_waited_for_and_what_hangs_or_fails_is_not() {
        assert_eq!(after(vec![News::File, News::File, News::All], false), None);
        assert_eq!(after(vec![News::File, News::Failed("full".into())], false), Some(": full".into()));
        assert!(after(vec![News::File], true).unwrap().contains("has ended"));
        let begun = Instant::now();
        assert!(after(vec![News::File], false).unwrap().contains("too slowly"));
        assert!(begun.elapsed() >= WITHOUT_A_FILE && begun.elapsed() < LAST_COPY_WITHIN);
    }
}
