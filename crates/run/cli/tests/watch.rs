//! `ullage watch` on real processes: to their end, for a time, again from the recording; and what cannot be watched.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn watch(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ullage"));
    command.arg("watch").args(arguments).env("ULLAGE_HOME", home).output().unwrap()
}

fn verdict(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Two processes that end with status 3 when their input does.
fn job() -> Child {
    let script = "cat >/dev/null & cat >/dev/null; exit 3";
    Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_job_is_watched_for_a_time_and_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let mut job = job();
    let pid = job.id().to_string();
    let output = watch(
        home.path(),
        &[&pid, "--for", "600ms", "--every", "200ms", "--interval", "100ms", "--json", "-"],
    );
    assert!(output.status.success());
    let verdict = verdict(&output);
    assert_eq!(verdict["outcome"]["kind"], "still-running");
    assert!(verdict["memory"]["peak_bytes"].as_u64().unwrap() > 0);
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(lines.lines().count() >= 2 && lines.contains("processes, "), "{lines}");
    assert!(job.try_wait().unwrap().is_none(), "watching has ended the job");
    drop(job.stdin.take());
    assert_eq!(job.wait().unwrap().code(), Some(3));
}

#[test]
fn a_job_is_watched_to_its_end_and_seen_again() {
    let home = tempfile::tempdir().unwrap();
    let mut job = job();
    let pid = job.id().to_string();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_ullage"));
    watching.args(["watch", &pid, "--json", "-"]).env("ULLAGE_HOME", home.path());
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let recorded = || std::fs::read_dir(home.path()).unwrap().next().is_some();
    while !recorded() {
        std::thread::yield_now();
    }
    drop(job.stdin.take());
    job.wait().unwrap();
    let first = verdict(&watching.wait_with_output().unwrap());
    assert_eq!(first["outcome"]["kind"], if first["outcome"]["code"] == 3 { "exit" } else { "unknown" });
    let again = verdict(&watch(home.path(), &["--json", "-"]));
    assert_eq!(first["outcome"], again["outcome"]);
    assert_eq!(first["memory"]["peak_bytes"], again["memory"]["peak_bytes"]);
}

#[test]
fn what_is_not_there_is_said() {
    let home = tempfile::tempdir().unwrap();
    let output = watch(home.path(), &["2147483647"]);
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no process has the pid 2147483647"), "{said}");
}
