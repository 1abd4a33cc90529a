//! Logs as jobs leave them, each in the folder of its cause: is it the first that is told, and is none told for crashes
//! that have nothing to do with memory? Counts are printed (`--nocapture`).

use crate::causes::cause;
use crate::explain::messages::{messages, Kind, Message};
use crate::{explain_log, LogVerdict};
use std::fs;
use std::path::Path;

/// Messages whose own example tells another cause first than the one in whose folder they stand, and why.
const OTHER_FIRST: [(&str, &str, &str); 4] = [
    (
        "jemalloc-conf",
        "max-map-count-exhausted",
        "the example is of munmap, which is refused at that limit only",
    ),
    ("openblas-nproc", "nproc-rlimit", "as in its folder: the limit in the example is small"),
    ("torch-resize-file", "disk-full-tmp", "the file in the example lies in /tmp"),
    ("dmesg-oom-policy", "numa-membind-oom", "as in its folder"),
];

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Cause and name of every log that a cause has, with what is told of it.
fn verdicts() -> Vec<(String, String, LogVerdict)> {
    let mut all = Vec::new();
    for cause in fs::read_dir(crate_folder().join("causes")).unwrap().map(Result::unwrap) {
        for log in fs::read_dir(cause.path().join("logs")).into_iter().flatten().map(Result::unwrap) {
            let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let text = fs::read(log.path()).unwrap();
            all.push((name(&cause), name(&log), explain_log(&text[..]).unwrap()));
        }
    }
    all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    all
}

fn first(verdict: &LogVerdict) -> &str {
    verdict.findings.first().map_or("nothing", |finding| finding.cause.as_str())
}

#[test]
fn the_first_cause_of_a_log_is_the_right_one() {
    let logs = verdicts();
    let wrong: Vec<String> = logs
        .iter()
        .filter(|(cause, _, verdict)| first(verdict) != cause)
        .map(|(cause, name, verdict)| format!("{cause}/{name}: {}", first(verdict)))
        .collect();
    println!("logs: of {} the first cause is right in {}", logs.len(), logs.len() - wrong.len());
    wrong.iter().for_each(|line| println!("  {line}"));
    assert!(logs.len() >= 60 && logs.iter().all(|(id, ..)| cause(id).is_some()));
    assert!(wrong.len() * 20 <= logs.len(), "{wrong:#?}");
}

#[test]
fn crashes_of_other_kinds_get_no_answer() {
    let (mut logs, mut all, mut answered) = (0, 0, Vec::new());
    for log in fs::read_dir(crate_folder().join("unrelated/logs")).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(log.path()).unwrap();
        logs += 1;
        let dressed = dressed(&text).into_iter().filter(|(how, _)| PREFIXES.contains(how));
        for (how, text) in dressed.chain([("nothing", text.clone())]) {
            all += 1;
            let verdict = explain_log(text.as_bytes()).unwrap();
            let of_the_gpu = log.path().ends_with("gpu-out-of-memory.log");
            assert_eq!(verdict.gpu_out_of_memory_line.is_some(), of_the_gpu, "{:?}", log.path());
            if !verdict.findings.is_empty() {
                let name = log.file_name();
                answered.push(format!("{name:?} with {how}: {}, {:?}", first(&verdict), verdict.matches));
            }
        }
    }
    println!("{logs} logs of other crashes, in {all} dresses: {} got an answer", answered.len());
    assert!(logs >= 20 && answered.is_empty(), "{answered:#?}");
}

#[test]
fn the_example_of_a_message_names_its_first_cause() {
    let mut wrong = Vec::new();
    for message in messages().iter().filter(|message| !message.causes.is_empty()) {
        let verdict = explain_log(message.example.as_bytes()).unwrap();
        let other = OTHER_FIRST.iter().find(|(id, ..)| *id == message.id).map(|(_, cause, _)| *cause);
        let right = other.unwrap_or(&message.causes[0]);
        if first(&verdict) != right {
            wrong.push(format!("{}: {}, not {right}", message.id, first(&verdict)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Dresses that add no message.
const PREFIXES: [&str; 5] = ["a rank", "a time", "a container", "a colour", "ends as in Windows"];
const BAR: &str = "Epoch 3:  41%|████▏     | 410/1000 [00:35<00:51, 11.42it/s]";
const BEFORE: &str = "UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max number of worker \
    in current system is 8, which is smaller than what this DataLoader is going to create.\n\
    tcmalloc: large alloc 1073741824 bytes == 0x5581e6a2a000 @ 0x7f\n";
const BEHIND: &str =
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    for batch in loader:\n\
    RuntimeError: DataLoader worker (pid(s) 8024, 8025) exited unexpectedly\n\
    UserWarning: resource_tracker: There appear to be 38 leaked semaphore objects to clean up at shutdown\n\
    traceback : Signal 9 (SIGKILL) received by PID 3281\nKilled\n";
const PEER: &str = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 9, in step\n[rank0]: RuntimeError: \
    [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.0.7]:41522\n";

/// A message as it stands in a log, each way under a name.
fn dressed(message: &str) -> Vec<(&'static str, String)> {
    let each = |before: &str, behind: &str| -> String {
        message.lines().map(|line| format!("{before}{line}{behind}\n")).collect()
    };
    vec![
        ("a rank", each("[rank3]: ", "")),
        ("a time", each("2025-03-04 14:03:01,560 ", "")),
        ("a container", each("trainer-1  | ", "")),
        ("a colour", each("\u{1b}[1;31m", "\u{1b}[0m")),
        ("ends as in Windows", each("", "\r")),
        ("a progress bar", format!("{BAR}\r{BAR}\r{message}\n{BAR}\r{BAR}\n")),
        ("notices before it", format!("{BEFORE}{message}\n")),
        ("echoes behind it", format!("{message}\n{BEHIND}")),
        ("a peer that lost it before", format!("{PEER}{message}\n")),
        ("all of that", format!("{BEFORE}{BAR}\r{BAR}\n{PEER}{}{BEHIND}", each("[rank3]: ", "\u{1b}[0m"))),
    ]
}

#[test]
fn a_message_means_the_same_however_it_is_dressed() {
    let (mut all, mut wrong) = (0, Vec::new());
    let themselves =
        |one: &&Message| one.kind == Kind::Failure && !one.id.starts_with("shell-") && !one.causes.is_empty();
    for message in messages().iter().filter(themselves) {
        let bare = explain_log(message.example.as_bytes()).unwrap();
        for (how, log) in dressed(&message.example) {
            all += 1;
            let verdict = explain_log(log.as_bytes()).unwrap();
            if first(&verdict) != first(&bare) {
                wrong.push(format!("{} with {how}: {}, not {}", message.id, first(&verdict), first(&bare)));
            }
        }
    }
    println!("messages in {} dresses: the same cause is the first of {}", all, all - wrong.len());
    wrong.iter().for_each(|line| println!("  {line}"));
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}
