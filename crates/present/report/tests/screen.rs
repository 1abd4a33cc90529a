//! What stands on the screen, byte for byte. `cargo insta review` shows what a change does to it.

mod verdicts;

use ullage_model::{BudgetUse, Outcome, OutcomeKind, Severity, Undetermined, Verdict};
use ullage_report::text::{self, CheckRow, CheckState, LogView, RunRow, Style};

#[test]
fn each_verdict_at_80_columns() {
    for (name, verdict) in verdicts::all() {
        insta::assert_snapshot!(name, text::verdict(&verdict, &Style::plain(80)));
    }
}

#[test]
fn the_crash_on_a_narrow_screen() {
    insta::assert_snapshot!("crash_narrow", text::verdict(&verdicts::crash_established(), &Style::plain(44)));
}

#[test]
fn prose_stays_inside_the_screen_and_colours_do_not_count() {
    for width in [44, 60, 80, 100] {
        for (name, verdict) in verdicts::all() {
            let plain = text::verdict(&verdict, &Style::plain(width));
            let coloured = text::verdict(&verdict, &Style { color: true, width });
            assert_eq!(strip(&coloured), plain, "{name} at {width}");
            for line in plain.lines() {
                let one_word = !line.trim().trim_end_matches(" \\").contains(' ');
                assert!(one_word || line.chars().count() <= width, "{name} at {width}: {line:?}");
            }
        }
    }
}

#[test]
fn each_summary_at_80_columns() {
    for (name, verdict) in verdicts::all() {
        insta::assert_snapshot!(
            format!("short_{name}"),
            text::summary(&verdict, Some("194058"), &Style::plain(80))
        );
    }
}

#[test]
fn a_summary_takes_twelve_lines_at_most_and_colours_do_not_count() {
    for width in [60, 80, 100] {
        for (name, mut verdict) in verdicts::all() {
            // Another of each, and a remedy of many lines.
            verdict.findings.extend(verdict.findings.clone());
            if let Some(fix) = verdict.findings.first_mut().and_then(|first| first.fixes.first_mut()) {
                fix.command = [fix.command.as_str(); 4].join("\n");
            }
            let plain = text::summary(&verdict, Some("194058"), &Style::plain(width));
            let coloured = text::summary(&verdict, Some("194058"), &Style { color: true, width });
            assert_eq!(strip(&coloured), plain, "{name} at {width}");
            assert!(plain.lines().count() <= 12, "{name} at {width}:\n{plain}");
        }
    }
}

#[test]
fn a_summary_begins_with_the_headline_of_the_json() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, verdict) in verdicts::all() {
        let headline = ullage_report::json::verdict(&verdict)["headline"].as_str().unwrap().to_owned();
        let block = words(&text::summary(&verdict, None, &Style::plain(100)));
        assert!(block.starts_with(&format!("ullage: {headline}")), "{name}: {headline}\n{block}");
    }
}

#[test]
fn a_limit_that_a_reading_names_is_not_reported_twice() {
    let mut verdict = verdicts::crash_established();
    let block = |verdict: &Verdict| text::summary(verdict, None, &Style::plain(80));
    assert!(!block(&verdict).contains("Limit"), "{}", block(&verdict));
    verdict.findings[0].severity = Severity::Warning;
    assert!(block(&verdict).contains("Limit   /dev/shm bytes"), "{}", block(&verdict));
    verdict.findings[0].evidence.clear();
    assert!(block(&verdict).contains("Limit   mappings of trainer 4742: 65,530 of 65,530, met"));
    verdict.findings[0].severity = Severity::Fatal;
    assert!(!block(&verdict).contains("Limit"), "who is dead meets no limit");
}

#[test]
fn a_run_that_failed_for_no_memory_is_a_line_or_two() {
    let mut verdict = verdicts::ordinary();
    let block = |verdict: &Verdict| text::summary(verdict, Some("194058"), &Style::plain(80));
    assert_eq!(block(&verdict).lines().count(), 1, "{}", block(&verdict));
    verdict.first_failure = Some(ullage_model::FirstFailure {
        process: None,
        rank: None,
        at: ullage_model::At::from_seconds(3.0),
        exception: Some("ValueError: boom".into()),
        signal: None,
        code: None,
        sentence: String::new(),
    });
    assert!(block(&verdict).ends_with("ValueError: boom, 3.0 s after the start\n"), "{}", block(&verdict));
}

#[test]
fn a_finding_shows_the_command_whole_and_no_escape_of_the_job() {
    let screen = text::verdict(&verdicts::crash_established(), &Style::plain(44));
    let shown: String = screen.split_whitespace().collect();
    assert!(shown.contains("DataLoader(dataset,num_workers=1,multiprocessing_context=\"fork\")"), "{screen}");
    assert!(!text::verdict(&verdicts::missing_values(), &Style::plain(80)).contains('\u{1b}'));
}

#[test]
fn a_note_gets_no_remedy_as_if_it_were_a_fault() {
    let mut verdict = verdicts::crash_established();
    verdict.findings.truncate(1);
    let shown = |verdict: &Verdict, section: &str| {
        text::verdict(verdict, &Style::plain(80)).lines().any(|line| line.starts_with(section))
    };
    assert!(shown(&verdict, "Why ") && shown(&verdict, "Do ") && !shown(&verdict, "Notes "));
    verdict.findings[0].severity = Severity::Note;
    verdict.healthy = true;
    assert!(!shown(&verdict, "Why ") && !shown(&verdict, "Do ") && shown(&verdict, "Notes "));
}

#[test]
fn what_comes_of_a_finding_stands_under_it_and_says_so() {
    let mut verdict = verdicts::crash_established();
    let shown = |verdict: &Verdict| text::verdict(verdict, &Style::plain(200));
    let json = |verdict: &Verdict| ullage_report::json::verdict(verdict)["findings"][1]["caused_by"].clone();
    assert!(!shown(&verdict).contains("Comes of") && json(&verdict) == serde_json::json!([]));
    verdict.findings[0].explains = vec!["orphan-workers".into()];
    assert!(!shown(&verdict).contains("Comes of"), "of another process");
    verdict.findings[1].process = None;
    assert!(
        shown(&verdict).contains("Comes of max-map-count-exhausted: A loader worker outlived"),
        "{}",
        shown(&verdict)
    );
    assert_eq!(json(&verdict), serde_json::json!(["max-map-count-exhausted"]));
}

#[test]
fn a_log_has_no_percentages() {
    let mut finding = verdicts::crash_established().findings.remove(0);
    finding.proof = ullage_model::Proof::MessageOnly;
    let view = LogView {
        source: "a.log",
        lines: 2,
        findings: &[finding.clone(), finding],
        gpu_out_of_memory_line: None,
        notes: &[],
    };
    let screen = text::log(&view, &Style::plain(80));
    let shown = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("max-map-count-exhausted, a hypothesis: a message") && !shown.contains('%'),
        "{screen}"
    );
}

#[test]
fn a_budget_that_the_kernel_held_is_the_kernel_s_kill() {
    let spent = BudgetUse { budget: 400 << 20, used: 400 << 20 };
    let outcome = Outcome {
        by: Some(ullage_model::EndedBy::CgroupLimit),
        budget: Some(spent),
        ..Outcome::of(OutcomeKind::Budget)
    };
    let said = text::outcome(&outcome, Some(3.0));
    assert!(said.starts_with("The kernel killed the job at the --memory-max budget of 400 MiB"), "{said}");
}

#[test]
fn causes_that_cannot_be_determined_for_one_reason_are_reported_together() {
    let open = |cause: &str, because: &str| Undetermined { cause: cause.into(), because: because.into() };
    let verdict = Verdict {
        undetermined: vec![
            open("one", "nobody looked."),
            open("other", "no log"),
            open("two", "nobody looked."),
        ],
        ..verdicts::killed()
    };
    let screen = text::verdict(&verdict, &Style::plain(200));
    assert!(screen.contains("Cannot tell whether it was one or two: nobody looked.\n"), "{screen}");
    assert!(screen.contains("Cannot tell whether it was other: no log.\n"), "{screen}");
    assert_eq!(screen.matches("nobody looked").count(), 1);
}

#[test]
fn a_run_that_cost_more_than_its_share_says_what_it_may_take() {
    let screen = |share| {
        let verdict = Verdict { cost_cpu_share: Some(share), ..verdicts::healthy() };
        text::verdict(&verdict, &Style::plain(200))
    };
    assert!(!screen(0.005).contains("It may take"));
    assert!(screen(0.02).contains("It may take 0.5 % of one core, and 0.3 s of CPU time more at the start."));
}

#[test]
fn a_log_with_and_without_a_finding() {
    let mut verdict = verdicts::crash_supported();
    verdict.findings[0].evidence = vec![ullage_model::Evidence {
        what: "message".into(),
        value: ullage_model::EvidenceValue::Text(
            "RuntimeError: unable to mmap 320 bytes from file </torch_4742_2903847_64976>: Cannot allocate memory (12)".into(),
        ),
        limit: None,
        source: "line 1,204".into(),
        at: None,
        sentence: "A tiny mapping was refused, and the segment's number is near 65,530.".into(),
        said: false,
    }];
    let notes = ["3 lines were not text.".to_owned()];
    let view = LogView {
        source: "train.log",
        lines: 1210,
        findings: &verdict.findings,
        gpu_out_of_memory_line: Some(1198),
        notes: &notes,
    };
    insta::assert_snapshot!("log_finding", text::log(&view, &Style::plain(80)));
    let none =
        LogView { source: "train.log", lines: 3, findings: &[], gpu_out_of_memory_line: None, notes: &[] };
    insta::assert_snapshot!("log_nothing", text::log(&none, &Style::plain(80)));
    let gpu = LogView { gpu_out_of_memory_line: Some(2), ..none };
    insta::assert_snapshot!("log_gpu", text::log(&gpu, &Style::plain(80)));
    let json = ullage_report::json::log(&view);
    assert_eq!(json["findings"][0]["cause"], "max-map-count-exhausted");
    assert_eq!(json["lines"], 1210);
}

#[test]
fn the_list_of_runs() {
    let rows = [
        RunRow {
            run: "20261121-035512-python-4711".into(),
            age_s: Some(273_600.0),
            duration_s: Some(14.8),
            outcome: "exit 1".into(),
            cause: Some("max-map-count-exhausted".into()),
            bytes: Some(84_213),
            command: ["python", "train.py", "--name", "a b"].map(String::from).to_vec(),
            damage: None,
        },
        RunRow {
            run: "20261121-04-x".into(),
            outcome: "unknown".into(),
            damage: Some("run.json cannot be read: expected value at line 1".into()),
            ..RunRow::default()
        },
    ];
    insta::assert_snapshot!("runs", text::runs(&rows, &Style::plain(80)));
    assert!(text::runs(&[], &Style::plain(80)).contains("ullage run --"));
}

#[test]
fn the_table_of_checks() {
    let row = |state, what: &str, value: &str, meaning: &str, fix: &str| CheckRow {
        state,
        what: what.into(),
        value: value.into(),
        meaning: meaning.into(),
        fix: fix.into(),
    };
    let rows = [
        row(CheckState::Fine, "/dev/shm", "11.5 GiB, 0 bytes used", "", ""),
        row(
            CheckState::Warning,
            "vm.max_map_count",
            "65,530",
            "A dataset of more small tensors than that cannot be sent to workers.",
            "sysctl -w vm.max_map_count=1048576",
        ),
        row(CheckState::Bad, "open files", "256", "Too few for a loader.", "ulimit -n 65536"),
        row(CheckState::Unknown, "kernel log", "(no permission)", "", ""),
    ];
    insta::assert_snapshot!("check", text::check(&rows, &Style::plain(80)));
}

fn strip(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        out.push_str(&rest[..start]);
        rest = rest[start..].split_once('m').map_or("", |(_, tail)| tail);
    }
    out + rest
}
