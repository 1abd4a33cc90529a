//! A writer killed at random moments, again and again: the recording opens and misses at most the last sample.

use crate::common::{ended, event, replayed, run, sample, samples};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ullage_recording::{repair, Recording, Writer};

const DIRECTORY: &str = "ULLAGE_TEST_WRITE_TO";
const KILLS: u64 = 40;
const KILLS_AT_CLOSING: u64 = 20;
const CLOSES_AFTER: u64 = 80;

/// Not a test of its own: what the test below starts, and kills. Says each tick before and after writing it.
#[test]
fn writer_that_is_killed() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let mut writer = Writer::create(dir, &run()).unwrap().with_tail_bytes(40_000);
    let mut out = std::io::stdout().lock();
    for n in 0.. {
        writer.event(&event(n));
        writer.sample(&sample(n, 8));
        assert!(writer.lost().is_empty());
        writeln!(out, "\nwrote {n}").unwrap();
    }
}

/// Not a test of its own, either: this one is killed while it closes the recording.
#[test]
fn writer_that_is_killed_as_it_closes() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let mut writer = Writer::create(dir, &run()).unwrap().with_tail_bytes(20_000);
    for n in 0..CLOSES_AFTER {
        writer.sample(&sample(n, 8));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nclosing").unwrap();
    writer.close(&ended(&run())).unwrap();
    writeln!(out, "\nclosed").unwrap();
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
fn a_writer_killed_as_it_closes_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let whole: Vec<_> = (0..CLOSES_AFTER).map(|n| sample(n, 8)).collect();
    let (mut unclosed, mut merging) = (0, 0);
    // Through how many states the directory goes, the first one says.
    let mut states = 0;
    for kill in 0..=KILLS_AT_CLOSING {
        let dir = home.path().join(kill.to_string());
        let mut child = start("writer_that_is_killed_as_it_closes", &dir);
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "closing"));
        let closed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| closed.store(said.any(|line| line == "closed"), Ordering::SeqCst));
            let (mut seen, mut last) = (0, listing(&dir));
            while (kill == 0 || seen < states * kill / KILLS_AT_CLOSING) && !closed.load(Ordering::SeqCst) {
                let now = listing(&dir);
                seen += u64::from(now != last);
                last = now;
            }
            if kill == 0 {
                states = seen;
            }
            child.kill().unwrap();
        });
        child.wait().unwrap();
        for repaired in [false, true] {
            if repaired {
                repair(&dir, |_| false).unwrap();
            }
            let recording = Recording::open(&dir).unwrap();
            unclosed += u32::from(!recording.is_closed());
            merging += u32::from(!recording.is_closed() && dir.join("mappings-000002.parquet").exists());
            assert_eq!(samples(&replayed(&recording)), whole, "kill {kill}");
        }
        assert!(!dir.join("mappings-000002.parquet").exists());
    }
    println!(
        "{KILLS_AT_CLOSING} kills, {unclosed} before it was closed, {merging} before all parts were merged"
    );
    assert!(merging > 0);
}

/// The files of a directory that is written to meanwhile, and their lengths.
fn listing(dir: &Path) -> Vec<(OsString, u64)> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .flatten()
        .filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.len())))
        .collect();
    found.sort();
    found
}

fn start(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("killed::{test}"), "--nocapture"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_loses_at_most_one_sample() {
    let home = tempfile::tempdir().unwrap();
    let mut unclosed = 0;
    for kill in 0..KILLS {
        let dir = home.path().join(kill.to_string());
        let mut child = start("writer_that_is_killed", &dir);
        // Killed after so many samples, at whatever it does then: sampling, or making a part.
        let stop_after = 1 + kill * kill % 97;
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let written = |line: &String| line.strip_prefix("wrote ").and_then(|n| n.parse::<u64>().ok());
        let mut last = said.by_ref().filter_map(|line| written(&line)).find(|n| *n >= stop_after).unwrap();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        // What it had said by then, the pipe still holds.
        last = said.filter_map(|line| written(&line)).last().unwrap_or(last).max(last);

        for repaired in [false, true] {
            if repaired {
                repair(&dir, |_| false).unwrap();
            }
            let recording = Recording::open(&dir).unwrap();
            unclosed += u32::from(!recording.is_closed());
            let read = samples(&replayed(&recording));
            // Told as written: must be there. One more may be: written, and not told yet.
            let whole = (0..read.len() as u64).map(|n| sample(n, 8)).collect::<Vec<_>>();
            assert_eq!(read, whole, "kill {kill}");
            let extra = read.len() as u64 - (last + 1);
            assert!(extra <= 1, "kill {kill}: {} samples, told {last}", read.len());
        }
    }
    assert_eq!(u64::from(unclosed), KILLS);
}
