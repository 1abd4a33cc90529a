//! The process that copies a recording to a shared disk. It is the same program, started by `ullage run`, which never waits for
//! the disk itself.
//!
//! Standard input says when to stop: its end, by whatever, means that ullage is done or dead, and that one more copy is to be made.
//! Standard output gets a line for each file: `.`; `!` and a reason where a copy failed; `=` when all is there.
//!
//! The surprise: a disk that hangs holds a thread where no signal reaches it. So a thread of its own waits for the end, and
//! ends the process when the last copy takes too long.

use super::place;
use crate::arguments::CopierArguments;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use ullage_recording::{CopyPace, RecordingCopy};

/// How long the last copy is tried for.
const LAST_COPY_WITHIN: Duration = Duration::from_secs(600);
/// Before a last copy that failed is tried again; doubled each time, up to `LONGEST_RETRY`.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
const STACK: usize = 64 << 10;

/// Copies until its standard input ends, and once more.
pub fn run(arguments: &CopierArguments) -> anyhow::Result<u8> {
    let over = wait_for_the_end()?;
    let interval = Duration::from_secs_f64(arguments.every);
    let mut copier = Copier::new(&arguments.from, &arguments.to);
    let mut pace = CopyPace::new(interval);
    // A thousand nodes that start together do not write in the same second from then on.
    let mut wait = first_wait(interval, &arguments.from);
    let _ = copier.copy();
    while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(wait) {
        wait = pace.wait_after(copier.copy().unwrap_or(0), Instant::now());
    }
    let mut retry = FIRST_RETRY;
    while copier.copy().is_none() {
        // Where nothing was ever copied, nothing will be.
        if copier.copy.is_none() {
            return Ok(crate::exit::FAILED);
        }
        std::thread::sleep(retry);
        retry = (retry * 2).min(LONGEST_RETRY);
    }
    say("=");
    Ok(0)
}

/// One recording and its place, which is taken when it can be.
struct Copier<'a> {
    from: &'a Path,
    dir: &'a Path,
    copy: Option<RecordingCopy>,
}

impl<'a> Copier<'a> {
    fn new(from: &'a Path, dir: &'a Path) -> Copier<'a> {
        Copier { from, dir, copy: None }
    }

    /// Bytes that were written; none where it failed, which is said.
    fn copy(&mut self) -> Option<u64> {
        match self.try_copy() {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                say(&format!("!{}", format!("{error:#}").replace('\n', " ")));
                None
            }
        }
    }

    fn try_copy(&mut self) -> anyhow::Result<u64> {
        let copy = match &mut self.copy {
            Some(copy) => copy,
            None => {
                let place = place::claim(self.dir, self.from, &super::host())?;
                self.copy.insert(RecordingCopy::new(self.from, &place))
            }
        };
        Ok(copy.update(&mut || say("."))?.bytes)
    }
}

/// Half an interval to a whole one, by the name of the run and of the machine.
fn first_wait(interval: Duration, from: &Path) -> Duration {
    let mut hash = DefaultHasher::new();
    hash.write(from.as_os_str().as_encoded_bytes());
    hash.write(super::host().as_bytes());
    interval / 2 + interval.mul_f64((hash.finish() % 1000) as f64 / 2000.0)
}

/// The end of standard input; the process is ended when its last copy takes too long.
fn wait_for_the_end() -> anyhow::Result<Receiver<()>> {
    let (ended, over) = sync_channel(1);
    let wait = move || {
        let mut bytes = [0; 64];
        while std::io::stdin().read(&mut bytes).is_ok_and(|read| read > 0) {}
        let _ = ended.send(());
        std::thread::sleep(LAST_COPY_WITHIN);
        std::process::exit(1);
    };
    std::thread::Builder::new().name("end".into()).stack_size(STACK).spawn(wait)?;
    Ok(over)
}

/// Where ullage is dead, nobody listens.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_copies_are_spread_over_half_an_interval() {
        let minute = Duration::from_secs(60);
        let waits: Vec<Duration> =
            (0..100).map(|n| first_wait(minute, Path::new(&format!("/r/{n}")))).collect();
        assert!(waits.iter().all(|wait| (minute / 2..=minute).contains(wait)), "{waits:?}");
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*most - *least > minute / 4, "{least:?} {most:?}");
    }
}
