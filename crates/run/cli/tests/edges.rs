//! What leaves ullage: nothing that steers a terminal, no secret of a command line; and what is refused before a job.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn ullage(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ullage"));
    command.args(arguments).env("ULLAGE_HOME", home).env_remove("ULLAGE_KEEP_ARGUMENTS");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Everything that a recording holds, as one text.
fn recorded(home: &Path) -> (PathBuf, String) {
    let mut runs = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.next().unwrap();
    assert_eq!(runs.next(), None);
    let export = ullage(home, &["export", run.to_str().unwrap(), "--format", "json"]);
    let facts = std::fs::read_to_string(run.join("run.json")).unwrap();
    (run, facts + &text(&export.stdout))
}

const JOB: [&str; 8] =
    ["--", "sh", "-c", "test ${#2} = 6 && test ${#4} = 14 && sleep 0.5", "sh", "--token", "s3cret", "-u"];

#[test]
fn secrets_of_the_command_are_used_and_not_stored() {
    let home = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "--no-agent", "--json", "-"];
    arguments.extend(JOB);
    arguments.push("X://u:s3cret@h");
    let output = ullage(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "the command got its own words: {}", text(&output.stderr));
    let stored = recorded(home.path()).1;
    assert!(stored.contains("[redacted]") && stored.contains("X://[redacted]@h"), "{stored}");
    for (what, text) in
        [("verdict", text(&output.stdout)), ("screen", text(&output.stderr)), ("recording", stored)]
    {
        assert!(!text.contains("s3cret"), "{what}: {text}");
    }
}

#[test]
fn secrets_are_stored_where_that_was_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let output = ullage(
        home.path(),
        &["run", "--no-agent", "-q", "--keep-arguments", "--", "true", "--token", "s3cret"],
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(recorded(home.path()).1.contains("s3cret"));
}

#[test]
fn names_that_steer_a_terminal_are_shown_and_not_obeyed() {
    let home = tempfile::tempdir().unwrap();
    let steering = "nope\u{1b}[31m\u{9b}2J\u{202e}";
    for arguments in [
        vec!["run", "--", steering],
        vec!["runs", "rm", steering],
        vec!["report", steering],
        vec!["explain", steering],
        vec!["watch", steering],
        vec![steering],
        vec!["run", "--json", steering, "--", "sh", "-c", "exit 3", steering],
    ] {
        let output = ullage(home.path(), &arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        for text in [text(&output.stdout), text(&output.stderr)] {
            let raw = text.chars().any(|c| "\u{1b}\u{9b}\u{202e}".contains(c));
            assert!(!raw, "{arguments:?}: {text:?}");
        }
    }
    let file = std::env::current_dir().unwrap().join(steering);
    let json = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let verdict: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(verdict["command"][3], steering, "the value is kept");
    assert!(!json.chars().any(|c| "\u{1b}\u{9b}\u{202e}".contains(c)), "{json:?}");
}

#[test]
fn a_verdict_that_cannot_be_written_stops_the_job_from_starting() {
    let home = tempfile::tempdir().unwrap();
    let mark = home.path().join("started");
    let output = ullage(home.path(), &["run", "--json", "/proc/x", "--", "touch", mark.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("/proc/x (--json)"), "{}", text(&output.stderr));
    assert!(!mark.exists());
}

#[test]
fn a_python_that_is_not_there_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    for command in ["check", "snapshot"] {
        let output = ullage(home.path(), &[command, "--python", "/nope"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("/nope cannot be started"), "{}", text(&output.stderr));
    }
}

#[test]
fn pages_and_the_list_of_causes_are_json_where_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&ullage(home.path(), arguments).stdout).unwrap()
    };
    let causes = json(&["explain", "--json"]);
    assert!(causes["causes"].as_array().unwrap().iter().any(|cause| cause["id"] == "shm-full-bytes"));
    for typed in ["max-map-count-exhausted", "max-map"] {
        let page = json(&["explain", typed, "--json"]);
        assert_eq!((&page["schema"], &page["cause"]), (&1.into(), &"max-map-count-exhausted".into()));
        assert!(page["page"].as_str().unwrap().contains("ullage run --fix"));
    }
}
