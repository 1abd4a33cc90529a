//! `explain_log`: on the crash that began it all, on cascades, on logs that are no logs.

use crate::explain::messages::messages;
use crate::{explain_log, LogError};
use proptest::prelude::*;
use ullage_model::Status;

const CRASH: &str = r#"Partial stacktrace

  File "/home/x/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 434, in __iter__
    self._iterator = self._get_iterator()
  File "/usr/lib/python3.11/multiprocessing/reduction.py", line 60, in dump
    ForkingPickler(file, protocol).dump(obj)
  File "/home/x/lib/python3.11/site-packages/torch/multiprocessing/reductions.py", line 557, in reduce_storage
    metadata = storage._share_filename_cpu_()
RuntimeError: unable to mmap 320 bytes from file </torch_8549_3875816624_63978>: Cannot allocate memory (12)
"#;

#[test]
fn the_bare_stack_trace_names_the_cause_with_less_certainty() {
    let verdict = explain_log(CRASH.as_bytes()).unwrap();
    let first = &verdict.findings[0];
    assert_eq!((first.cause.as_str(), first.status()), ("max-map-count-exhausted", Status::Hypothesis));
    let sentences: String = first.evidence.iter().map(|e| e.sentence.as_str()).collect();
    assert!(
        sentences.contains("number 63,978") && sentences.contains("Line 9,") && sentences.contains("250 MiB"),
        "{sentences}"
    );
    assert_eq!(verdict.first_failure().map(|found| found.line), Some(9));
    assert_eq!(verdict.settle[0], "ullage run -- python train.py");
}

#[test]
fn a_log_has_no_report_to_read_further_in() {
    for log in ["Killed\n", "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown\n"] {
        let findings = explain_log(log.as_bytes()).unwrap().findings;
        let fixes: Vec<_> = findings.iter().flat_map(|finding| &finding.fixes).collect();
        assert!(!fixes.is_empty() && fixes.iter().all(|fix| !fix.command.contains("ullage report")), "{log}");
    }
}

#[test]
fn a_huge_request_makes_the_limit_of_mappings_less_likely() {
    let of = |text: &str| {
        explain_log(text.as_bytes())
            .unwrap()
            .findings
            .iter()
            .position(|f| f.cause == "max-map-count-exhausted")
    };
    assert_eq!(of(CRASH), Some(0));
    assert_eq!(of(&CRASH.replace("_63978>", "_12>")), Some(0));
    assert!(of(&CRASH.replace(" 320 ", " 23802932552 ").replace("_63978>", "_12>")) > Some(0));
}

#[test]
fn the_first_failure_is_distinguished_from_what_follows() {
    let log = "epoch 1\nOSError: [Errno 24] Too many open files: '/data/a.jpg'\nRuntimeError: DataLoader worker (pid(s) 8024) exited unexpectedly\nKilled\n";
    let verdict = explain_log(log.as_bytes()).unwrap();
    assert_eq!(verdict.first_failure().map(|found| (found.line, found.pattern)), Some((2, "py-emfile")));
    assert!(verdict.matches.iter().filter(|found| found.line > 2).all(|found| found.follows));
    assert_ne!(verdict.findings[0].cause, "memcg-oom-kill");
    let kernel = format!("{log}Memory cgroup out of memory: Killed process 8024 (pt_data_worker) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB\n");
    assert!(explain_log(kernel.as_bytes()).unwrap().findings.iter().any(|f| f.cause == "memcg-oom-kill"));
}

#[test]
fn messages_of_several_lines_are_found_wherever_they_stand() {
    for before in 0..20 {
        let log = format!(
            "{}    self.pid = os.fork()\nOSError: [Errno 12] Cannot allocate memory\nmore\n",
            "step\n".repeat(before)
        );
        let verdict = explain_log(log.as_bytes()).unwrap();
        let found = verdict.matches.iter().find(|found| found.pattern == "py-fork-enomem-tb");
        assert_eq!(found.map(|found| found.line), Some(before as u64 + 2), "{before}");
    }
}

#[test]
fn a_plain_log_has_no_finding() {
    let verdict = explain_log("epoch 1 loss 0.3\nepoch 2 loss 0.2\n".as_bytes()).unwrap();
    assert!(verdict.findings.is_empty() && verdict.matches.is_empty());
    assert_eq!(verdict.lines, 2);
    assert_eq!(explain_log(&b""[..]).unwrap().lines, 0);
}

#[test]
fn a_program_is_not_a_log_and_foreign_bytes_are_no_harm() {
    assert!(matches!(explain_log(&b"\x7fELF\x02\x01\x01\x00\x00"[..]), Err(LogError::NotText { at: 7 })));
    let mut latin = b"caf\xe9 \xff\n".to_vec();
    latin.extend_from_slice(CRASH.as_bytes());
    assert_eq!(explain_log(&latin[..]).unwrap().findings[0].cause, "max-map-count-exhausted");
}

#[test]
fn a_line_without_end_is_cut_and_the_rest_is_read() {
    let mut log = vec![b'x'; 3 << 20];
    log.push(b'\n');
    log.extend_from_slice(CRASH.as_bytes());
    let verdict = explain_log(std::io::BufReader::with_capacity(7, &log[..])).unwrap();
    assert_eq!(verdict.findings[0].cause, "max-map-count-exhausted");
}

#[test]
fn a_log_that_repeats_itself_is_bounded() {
    let log = CRASH.repeat(500);
    let verdict = explain_log(log.as_bytes()).unwrap();
    assert!(verdict.matches.len() <= 200 && verdict.findings.len() <= 5);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000), capacity in 1usize..64) {
        let _ = explain_log(std::io::BufReader::with_capacity(capacity, &bytes[..]));
    }

    #[test]
    fn no_mixture_of_known_messages_makes_it_panic(picks in proptest::collection::vec((0usize..108, 0usize..40, any::<char>()), 0..30)) {
        let mut log = String::new();
        for (pick, cut, letter) in picks {
            let example = &messages()[pick % messages().len()].example;
            log.extend(example.chars().skip(cut));
            log.push(letter);
        }
        let _ = explain_log(log.as_bytes());
    }
}
