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

/// The name of the only recording, as soon as it is one that can be read.
fn recording(home: &Path) -> String {
    loop {
        let runs: Vec<_> = std::fs::read_dir(home).into_iter().flatten().flatten().collect();
        if let [run] = runs.as_slice() {
            if run.path().join("ticks.arrows").exists() {
                return run.file_name().into_string().unwrap();
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn the_pid_of_a_run_means_the_run_and_what_goes_on_comes_first() {
    let home = tempfile::tempdir().unwrap();
    let ullage = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ullage"));
        command.args(arguments).env("ULLAGE_HOME", home.path());
        command
    };
    let mut running = ullage(&["run", "-q", "--no-agent", "--", "sh", "-c", "read line"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let name = recording(home.path());
    let of_pid = watch(home.path(), &[&running.id().to_string(), "--for", "1s", "--json", "-"]);
    assert_eq!(verdict(&of_pid)["run"], *name);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "it was recorded twice");
    assert!(ullage(&["run", "-q", "--no-agent", "--", "true"]).status().unwrap().success());
    let newest = watch(home.path(), &["--for", "1s", "--json", "-"]);
    assert_eq!(verdict(&newest)["run"], *name, "a run that is over was taken");
    drop(running.stdin.take());
    running.wait().unwrap();
}
