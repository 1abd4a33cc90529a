//! Where the environment says that somebody looks: the first sentences of a verdict go there too.
//!
//! Only where a cause was found, or memory ended the job: Kubernetes shows the last lines of a log where a termination log is empty, and those say
//! more than "no cause found". Nothing that is there already is replaced, and nothing that fails here changes how a run ends.
//!
//! Sources: torchrun, `torch/distributed/elastic/multiprocessing/errors`; Kubernetes, "Determine the Reason for Pod Failure";
//! GitHub, "Workflow commands for GitHub Actions", "Adding a job summary", and `escapeData` in actions/toolkit's `command.ts`;
//! Slurm, scontrol(1) "Comment" and squeue(1) "%k".

use crate::printer;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ullage_model::{names, Finding, OutcomeKind, Severity, Verdict};
use ullage_report::format;
use ullage_report::text::{self, Style};

/// Where Kubernetes looks unless `terminationMessagePath` says otherwise.
pub const TERMINATION_LOG: &str = "/dev/termination-log";
/// What Kubernetes keeps of a container's message, bytes.
const MOST_TERMINATION: usize = 4096;
/// What GitHub takes as the summary of a step, bytes; above, all of it is dropped.
const MOST_SUMMARY: u64 = 1024 << 10;
/// Characters of an annotation, and of a comment, which is one line of a table.
const MOST_ANNOTATION: usize = 1000;
const MOST_COMMENT: usize = 200;
/// Slurm's controller may be down: nobody waits for its time-outs.
const SLURM_WITHIN: Duration = Duration::from_secs(5);

/// The surroundings that say who looks; tests make their own.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// What Kubernetes reads when a container has ended.
    pub termination_log: &'a Path,
    /// The Slurm comment was asked for.
    pub slurm_comment: bool,
}

/// The verdict into each of them; what is to be printed, a line each.
pub fn deliver(verdict: &Verdict, recording: Option<&str>, around: &Surroundings<'_>) -> Vec<String> {
    if verdict.healthy {
        return Vec::new();
    }
    let first = verdict.findings.first();
    if let Some(finding) = first {
        torchelastic(verdict, finding, around);
    }
    let cause = match (first, verdict.outcome.kind) {
        (Some(finding), _) if finding.severity > Severity::Note => &finding.cause,
        // That its memory ended the job is worth a word, whatever took it.
        (_, OutcomeKind::OomKill) => "oom-kill",
        (_, OutcomeKind::Budget) => "budget",
        _ => return Vec::new(),
    };
    let block = text::summary(verdict, recording, &Style::plain(80));
    let sentence = one_line(verdict);
    termination_log(&block, around.termination_log);
    if around.slurm_comment {
        slurm(&sentence, around);
    }
    github(verdict, cause, (&block, &sentence), around)
}

/// torchrun shows the error file of a rank as the root cause; ours is written only where the job left none.
fn torchelastic(verdict: &Verdict, finding: &Finding, around: &Surroundings<'_>) {
    let Some(path) = (around.variable)(names::ENV_TORCHELASTIC_ERROR_FILE) else { return };
    let path = Path::new(&path);
    if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
        return;
    }
    let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let sentences: Vec<&str> = finding.evidence.iter().map(|evidence| evidence.sentence.as_str()).collect();
    let body = serde_json::json!({"message": {
        "message": format!("{} ({}): {}", finding.title, finding.cause, sentences.join(" ")),
        "errorCode": verdict.outcome.code,
        "extraInfo": {"timestamp": timestamp.to_string(), "py_callstack": ""},
    }});
    if let Err(error) = std::fs::write(path, format::clean_json(&body.to_string())) {
        printer::note(&format!("{} could not be written: {error}", path.display()));
    }
}

/// `kubectl describe pod` shows it. Kubernetes makes the file; where there is none, nobody reads one.
fn termination_log(block: &str, file: &Path) {
    let Ok(mut file) = OpenOptions::new().append(true).open(file) else { return };
    if is_empty_file(&file) {
        let _ = file.write_all(cut(block, MOST_TERMINATION).as_bytes());
    }
}

fn is_empty_file(file: &File) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.len() == 0)
}

/// The beginning of a text in whole lines, so many bytes at most.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let end = text[..end].rfind('\n').map_or(end, |newline| newline + 1);
    &text[..end]
}

/// A summary on the page of the workflow's run, and one annotation.
fn github(
    verdict: &Verdict,
    cause: &str,
    (block, sentence): (&str, &str),
    around: &Surroundings<'_>,
) -> Vec<String> {
    let is_set = |name: &str| (around.variable)(name).filter(|value| !value.is_empty());
    if is_set("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return Vec::new();
    }
    if let Some(path) = is_set("GITHUB_STEP_SUMMARY") {
        step_summary(block, Path::new(&path));
    }
    let failed = verdict.outcome.kind != OutcomeKind::Exit || verdict.outcome.code != Some(0);
    let kind = if failed { "error" } else { "warning" };
    let title = escaped(&format!("ullage: {cause}")).replace(':', "%3A").replace(',', "%2C");
    let sentence: String = sentence.chars().take(MOST_ANNOTATION).collect();
    vec![format!("::{kind} title={title}::{}", escaped(&sentence))]
}

/// Behind what the step has written there.
fn step_summary(block: &str, path: &Path) {
    // Text of the job is in it: no run of backticks ends the fence.
    let longest = block.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text = format!("\n{fence}text\n{}\n{fence}\n", block.trim_end());
    let Ok(mut file) = OpenOptions::new().append(true).open(path) else { return };
    let has_room =
        file.metadata().is_ok_and(|there| there.is_file() && there.len() + text.len() as u64 <= MOST_SUMMARY);
    if has_room {
        let _ = file.write_all(text.as_bytes());
    }
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The headline, and the first sentence that proves it where that says more.
fn one_line(verdict: &Verdict) -> String {
    let headline = text::headline(verdict);
    let found = verdict.findings.first().filter(|finding| finding.severity > Severity::Note);
    let evidence = found.and_then(|finding| finding.evidence.first());
    let proof = evidence.map(|evidence| format::clean(&evidence.sentence)).unwrap_or_default();
    match proof.is_empty() || headline.contains(proof.trim_end_matches('.')) {
        true => format!("{headline}."),
        false => format!("{headline}. {proof}"),
    }
}

/// The comment of the job, which `squeue` and, where the site stores it, `sacct` show.
fn slurm(sentence: &str, around: &Surroundings<'_>) {
    let Some(job) = (around.variable)("SLURM_JOB_ID").and_then(|job| job.into_string().ok()) else { return };
    if !job.bytes().all(|digit| digit.is_ascii_digit()) || job.is_empty() {
        return;
    }
    let path = (around.variable)("PATH").unwrap_or_default();
    let before =
        said(Command::new("squeue").env("PATH", &path).args(["--noheader", "--jobs", &job, "--format=%k"]));
    // What a job without a comment has is printed so.
    if before.is_none_or(|comment| !matches!(comment.trim(), "" | "(null)")) {
        return;
    }
    let comment: String =
        sentence.chars().take(MOST_COMMENT).map(|c| if c == '"' { '\'' } else { c }).collect();
    let comment = format!("Comment=ullage: {comment}");
    let _ =
        said(Command::new("scontrol").env("PATH", &path).args(["update", &format!("JobId={job}"), &comment]));
}

/// What a command prints; none where it fails, or takes too long.
fn said(command: &mut Command) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let until = Instant::now() + SLURM_WITHIN;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Ok(Some(_)) => return None,
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    let mut text = String::new();
    // A line fits into the pipe, so that it could end before it was read.
    child.stdout.take()?.take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use ullage_diagnosis::{diagnose, Timeline};
    use ullage_model::{Outcome, Proof};

    fn verdict(headline: &str) -> Verdict {
        let run: ullage_model::RunFacts = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "command": ["x"], "started_unix": 0.0, "main": null, "recorder": null,
            "interval_s": 1.0, "agent": false, "node": null, "job": null, "rank": null, "environment": {},
            "machine": ullage_model::MachineFacts::default(), "outcome": null, "duration_s": 1.0,
            "cost": null, "not_seen": [], "memory_max": null,
        }))
        .unwrap();
        let mut verdict = diagnose(&run, &Timeline::default());
        verdict.healthy = false;
        verdict.outcome = Outcome::of(OutcomeKind::OomKill);
        verdict.findings = vec![Finding {
            cause: "cgroup-oom".into(),
            title: "The kernel killed the job at its limit".into(),
            headline: headline.into(),
            severity: Severity::Fatal,
            proof: Proof::KernelSaid,
            process: None,
            at: None,
            evidence: Vec::new(),
            fixes: Vec::new(),
            explains: Vec::new(),
            beyond_its_process: false,
        }];
        verdict
    }

    /// A folder with what the environment may have, and variables that name it.
    struct Place {
        folder: tempfile::TempDir,
        variables: Vec<(&'static str, OsString)>,
        slurm_comment: bool,
    }

    impl Place {
        fn new() -> Place {
            Place { folder: tempfile::tempdir().unwrap(), variables: Vec::new(), slurm_comment: false }
        }

        /// A file with this content.
        fn file(&self, name: &str, content: &str) -> PathBuf {
            let file = self.folder.path().join(name);
            std::fs::write(&file, content).unwrap();
            file
        }

        fn read(&self, name: &str) -> String {
            std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_else(|_| "not there".into())
        }

        fn deliver(&self, verdict: &Verdict) -> Vec<String> {
            let variable = |name: &str| {
                self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            };
            let termination_log = &self.folder.path().join("termination-log");
            let slurm_comment = self.slurm_comment;
            deliver(
                verdict,
                Some("120000"),
                &Surroundings { variable: &variable, termination_log, slurm_comment },
            )
        }

        fn on_github() -> Place {
            let mut place = Place::new();
            let summary = place.file("summary", "mine\n");
            place.variables =
                vec![("GITHUB_ACTIONS", "true".into()), ("GITHUB_STEP_SUMMARY", summary.into())];
            place
        }

        /// Commands of Slurm that write down what they are asked, of a job with this comment.
        fn under_slurm(comment: &str) -> Place {
            let mut place = Place::new();
            let asked = place.folder.path().join("asked");
            for (name, says) in [("squeue", comment), ("scontrol", "")] {
                let script = format!("#!/bin/sh\necho {name} \"$@\" >> {}\necho '{says}'\n", asked.display());
                crate::test_programs::write(&place.folder.path().join(name), &script);
            }
            let path = format!("{}:/usr/bin:/bin", place.folder.path().display());
            place.variables = vec![("SLURM_JOB_ID", "4711".into()), ("PATH", path.into())];
            place.slurm_comment = true;
            place
        }
    }

    #[test]
    fn an_empty_termination_log_gets_the_verdict() {
        let place = Place::new();
        place.deliver(&verdict("Memory is full"));
        assert_eq!(place.read("termination-log"), "not there", "nobody reads one");
        place.file("termination-log", "");
        place.deliver(&verdict("Memory is full"));
        let text = place.read("termination-log");
        assert!(text.starts_with("ullage: Memory is full") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_termination_log_of_the_job_stays_as_it_is() {
        let place = Place::new();
        place.file("termination-log", "why I ended");
        place.deliver(&verdict("Memory is full"));
        assert_eq!(place.read("termination-log"), "why I ended");
    }

    #[test]
    fn a_termination_log_is_never_too_long_and_ends_with_a_line() {
        assert_eq!(cut("one\ntwo\n", 6), "one\n");
        assert_eq!(cut("é", 1), "");
        assert_eq!(cut("short", 5), "short");
        let place = Place::new();
        place.file("termination-log", "");
        place.deliver(&verdict(&"é".repeat(9_000)));
        assert!(place.read("termination-log").len() <= MOST_TERMINATION);
    }

    #[test]
    fn a_healthy_run_and_one_without_a_finding_say_nothing() {
        let failed = Outcome { code: Some(1), ..Outcome::of(OutcomeKind::Exit) };
        for place in [Place::on_github(), Place::under_slurm("")] {
            place.file("termination-log", "");
            for without in [
                Verdict { healthy: true, ..verdict("x") },
                Verdict { findings: Vec::new(), outcome: failed.clone(), ..verdict("x") },
            ] {
                assert!(place.deliver(&without).is_empty());
            }
            assert_eq!(place.read("termination-log"), "");
            assert_eq!(place.read("asked"), "not there");
            assert!(["mine\n", "not there"].contains(&place.read("summary").as_str()));
        }
    }

    #[test]
    fn a_kill_for_memory_is_shown_without_a_cause() {
        let mut verdict = Verdict { findings: Vec::new(), ..verdict("x") };
        for (kind, cause) in [(OutcomeKind::OomKill, "oom-kill"), (OutcomeKind::Budget, "budget")] {
            verdict.outcome = Outcome::of(kind);
            let lines = Place::on_github().deliver(&verdict);
            assert!(lines[0].starts_with(&format!("::error title=ullage%3A {cause}::")), "{lines:?}");
        }
    }

    #[test]
    fn a_step_summary_is_continued_and_an_annotation_is_one_line() {
        let place = Place::on_github();
        let lines = place.deliver(&verdict("a 100 % full\n::error::forged, `````` here"));
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("::error title=ullage%3A cgroup-oom::a 100 %25 full"), "{line}");
        assert_eq!(line.lines().count(), 1);
        let summary = place.read("summary");
        assert!(summary.starts_with("mine\n\n```````text\nullage: a 100"), "{summary}");
        assert!(summary.ends_with("\n```````\n"), "{summary}");
    }

    #[test]
    fn a_step_that_passed_gets_a_warning() {
        let mut verdict = verdict("x");
        verdict.outcome = Outcome { code: Some(0), ..Outcome::of(OutcomeKind::Exit) };
        assert!(Place::on_github().deliver(&verdict)[0].starts_with("::warning title="));
    }

    #[test]
    fn a_summary_that_is_full_stays_as_it_is() {
        let place = Place::on_github();
        let full = "x".repeat(usize::try_from(MOST_SUMMARY).unwrap());
        place.file("summary", &full);
        place.deliver(&verdict("x"));
        assert_eq!(place.read("summary").len(), full.len());
    }

    #[test]
    fn elsewhere_nothing_is_printed() {
        let mut place = Place::on_github();
        place.variables[0].1 = "false".into();
        assert!(place.deliver(&verdict("x")).is_empty());
        assert_eq!(place.read("summary"), "mine\n");
    }

    #[test]
    fn a_slurm_comment_is_one_line_where_there_is_none() {
        for none in ["(null)", ""] {
            let place = Place::under_slurm(none);
            place.deliver(&verdict("say \"no\"\nnow"));
            let asked = place.read("asked");
            let wanted = "squeue --noheader --jobs 4711 --format=%k\n\
                          scontrol update JobId=4711 Comment=ullage: say 'no' now.\n";
            assert_eq!(asked, wanted);
        }
    }

    #[test]
    fn a_slurm_comment_of_somebody_stays_and_none_is_made_unasked() {
        let place = Place::under_slurm("mine");
        place.deliver(&verdict("x"));
        assert!(!place.read("asked").contains("scontrol"));
        let place = Place { slurm_comment: false, ..Place::under_slurm("") };
        place.deliver(&verdict("x"));
        assert_eq!(place.read("asked"), "not there");
    }

    #[test]
    fn an_error_file_of_a_rank_is_left_where_the_job_wrote_it() {
        let mut place = Place::new();
        let file = place.file("error.json", "mine");
        place.variables = vec![(names::ENV_TORCHELASTIC_ERROR_FILE, file.into())];
        place.deliver(&verdict("x"));
        assert_eq!(place.read("error.json"), "mine");
        place.file("error.json", "");
        place.deliver(&verdict("x"));
        let error: serde_json::Value = serde_json::from_str(&place.read("error.json")).unwrap();
        let message = error["message"]["message"].as_str().unwrap();
        assert!(message.starts_with("The kernel killed the job at its limit (cgroup-oom)"), "{message}");
    }
}
