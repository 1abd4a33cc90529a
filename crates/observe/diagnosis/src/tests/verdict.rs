//! Ranking, outcome and health.

use super::build::*;
use crate::ranking::in_order;
use crate::Series;
use ullage_model::{Ending, EventKind, Finding, Outcome, OutcomeKind, ProcessRef, Proof, Role, Severity};

fn finding(cause: &str, severity: Severity, at: Option<f64>, proof: Proof) -> Finding {
    Finding {
        cause: cause.into(),
        title: String::new(),
        headline: String::new(),
        severity,
        proof,
        process: None,
        at: at.map(s),
        evidence: vec![],
        fixes: vec![],
        explains: vec![],
        beyond_its_process: false,
    }
}

#[test]
fn the_most_severe_then_the_earliest_then_the_best_known_comes_first() {
    use Proof::{Consistent, Estimated, KernelSaid, ReadNearLimit};
    use Severity::{Fatal, Note, Warning};
    let findings = vec![
        finding("g", Note, Some(0.1), KernelSaid),
        finding("f", Warning, Some(0.2), KernelSaid),
        finding("e", Fatal, None, KernelSaid),
        finding("d", Fatal, Some(2.0), KernelSaid),
        finding("c", Fatal, Some(1.0), Consistent),
        finding("b", Fatal, Some(1.0), Estimated),
        finding("a", Fatal, Some(1.0), ReadNearLimit),
    ];
    let findings = in_order(findings);
    let order: String = findings.iter().map(|f| f.cause.as_str()).collect();
    assert_eq!(order, "abcdefg");
}

#[test]
fn what_comes_of_a_finding_stands_right_behind_it() {
    use Severity::{Fatal, Note, Warning};
    let of = |cause: &str, severity, at, explains: &[&str]| Finding {
        explains: explains.iter().map(|cause| (*cause).to_owned()).collect(),
        ..finding(cause, severity, Some(at), Proof::Estimated)
    };
    let order = |findings: &[Finding]| -> String {
        in_order(findings.to_vec()).iter().map(|finding| finding.cause.as_str()).collect()
    };
    // It stands where the first of both would, whatever is known better or was seen before.
    let mut known = of("b", Fatal, 1.0, &[]);
    known.proof = Proof::KernelSaid;
    let other = of("c", Fatal, 1.5, &[]);
    assert_eq!(order(&[known.clone(), other.clone(), of("a", Fatal, 2.0, &["b"])]), "abc");
    assert_eq!(
        order(&[of("d", Warning, 0.0, &[]), of("a", Fatal, 2.0, &["e"]), of("e", Note, 9.0, &[])]),
        "aed"
    );
    // What is less severe comes before nothing that is more so.
    assert_eq!(order(&[known.clone(), of("a", Note, 0.1, &["b"])]), "ba");
    // Of a chain each stands behind its own, and a circle ends.
    assert_eq!(
        order(&[of("z", Fatal, 3.0, &["y"]), of("y", Fatal, 2.0, &["x"]), of("x", Fatal, 1.0, &[])]),
        "zyx"
    );
    assert_eq!(order(&[of("x", Fatal, 1.0, &["y"]), of("y", Fatal, 2.0, &["x"])]).len(), 2);
    // Another process's is not its own.
    let mine = |finding: Finding, pid| Finding {
        process: Some(ProcessRef { id: id(pid), role: Role::Other, name: String::new() }),
        ..finding
    };
    assert_eq!(order(&[mine(known.clone(), 1), mine(of("a", Fatal, 2.0, &["b"]), 1)]), "ab");
    assert_eq!(order(&[mine(known, 1), mine(of("a", Fatal, 2.0, &["b"]), 2)]), "ba");
}

#[test]
fn a_good_end_is_healthy_and_a_survived_exception_is_at_most_a_note() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("OSError", "[Errno 24] Too many open files");
    report.left = "loader-worker".into();
    report.counts.fds = Some(1023);
    report.counts.fds_torch = Some(1000);
    report.counts.nofile = Some(1024);
    run.exception(1.5, TRAINER, report).ended(2.0, TRAINER, Ending::Exited(0)).finish(2.1, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy, "{verdict:?}");
    assert_eq!(verdict.findings[0].severity, Severity::Note);
}

#[test]
fn a_plain_failure_has_an_outcome_and_no_finding() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    run.exception(1.5, MAIN, raised("ZeroDivisionError", "division by zero")).finish(2.0, Ending::Exited(1));
    let verdict = run.verdict();
    assert!(verdict.findings.is_empty() && !verdict.healthy);
    assert_eq!(verdict.outcome.code, Some(1));
}

#[test]
fn a_budget_has_its_own_outcome_and_is_no_oom() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    for (at, action, used) in [(1.1, "warn", 950), (1.2, "terminate", 1300), (1.8, "kill", 1200)] {
        run.event(at, EventKind::Budget { action: action.into(), used, budget: 1000 });
    }
    run.finish(2.0, Ending::Signaled(9));
    run.facts.outcome = Some(Outcome {
        code: Some(53),
        signal: Some(9),
        by: Some(ullage_model::EndedBy::Budget),
        ..Outcome::of(OutcomeKind::Budget)
    });
    let verdict = run.verdict();
    assert_eq!(verdict.outcome.kind, OutcomeKind::Budget);
    let spent = verdict.outcome.budget.unwrap();
    assert_eq!((spent.budget, spent.used, spent.overshoot()), (1000, 1300, 300));
    assert!(verdict.findings.is_empty() && verdict.undetermined.is_empty(), "{verdict:?}");
}

#[test]
fn nothing_read_and_nothing_started_are_answers_too() {
    let mut run = Run::new();
    run.items.clear();
    assert_eq!(run.verdict().outcome.kind, OutcomeKind::StillRunning);
    run.facts.main = None;
    assert_eq!(run.verdict().outcome.kind, OutcomeKind::NotStarted);
}

#[test]
fn the_peak_of_the_tree_counts_shared_memory_once() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let memory = run.verdict().memory;
    assert_eq!(memory.categories["anonymous"], 400 * MIB);
    assert_eq!(memory.categories["shared"], MIB, "what /dev/shm held before is not the job's");
    assert_eq!(memory.peak_bytes, 400 * MIB + 100 * MIB + MIB);
}

#[test]
fn many_short_processes_are_forgotten_and_failures_are_not() {
    let mut run = Run::with_trainer();
    run.ended(0.5, TRAINER, Ending::Exited(1));
    for pid in 1000..9000 {
        run.ended(1.0, pid, Ending::Exited(0));
    }
    let timeline = run.timeline();
    assert!(timeline.processes().count() <= 2049);
    assert!(timeline.process(id(TRAINER)).is_some() && timeline.process(id(MAIN)).is_some());
    assert_eq!(Series::default().peak(), None);
}

mod damaged {
    use super::super::build::*;
    use proptest::prelude::*;
    use ullage_model::{CountsAtFailure, Ending, Limit, Measured};

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..200_000u64, any::<u64>()]
    }

    const TEXTS: [&str; 6] = [
        "unable to mmap 18446744073709551615 bytes from file </torch_1_2_3>: Cannot allocate memory (12)",
        "Too many open files",
        "can't start new thread",
        "No space left on device",
        "too many fds",
        "Unable to allocate -1.0 EiB for an array",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_figures_of_a_damaged_recording_make_it_panic(n in proptest::collection::vec(number(), 12), text in 0..6usize, signal in 0..70i32, spoken: bool) {
            let mut run = Run::with_trainer();
            run.facts.machine.max_map_count = Measured::Known(n[0]);
            run.facts.machine.overcommit_memory = Measured::Known((n[1] % 3) as u8);
            let mut of = limits();
            of.open_files = Limit::At(n[2]);
            of.processes = Limit::At(n[3]);
            of.address_space = Limit::At(n[4]);
            run.process(0.2, TRAINER, MAIN, ullage_model::Role::Trainer, of, 1000);
            for at in [1.0, 2.0] {
                let trainer = with_maps(with_fds(reading(TRAINER, MAIN, "x"), n[5], n[5] / 2), n[6], n[6]);
                run.tick(at, vec![reading(MAIN, 1, "x"), trainer], |sample| {
                    sample.cgroups = vec![group("/job", n[7], n[8], at as u64 * (n[9] / 2), n[10]), pids("/job", n[7], n[8], at as u64 * (n[9] / 2))];
                    sample.filesystems = vec![shm(n[7], n[8], n[9], n[10])];
                });
            }
            if spoken {
                let mut report = raised("RuntimeError", TEXTS[text]);
                report.counts = CountsAtFailure {
                    mappings: Some(n[6]), mappings_torch: Some(n[11]), max_map_count: Some(n[0]), fds: Some(n[5]), fds_torch: Some(n[11]),
                    nofile: Some(n[2]), address_space_limit: Some(n[4]), virtual_size: Some(n[8]), nproc: Some(n[3]), threads: Some(n[9]),
                    shm_used: Some(n[7]), shm_size: Some(n[8]), shm_inodes_used: Some(n[9]), shm_inodes: Some(n[10]), path_free: Some(n[1]),
                    committed: Some(n[7]), commit_limit: Some(n[8]), ..CountsAtFailure::default()
                };
                run.exception(2.1, TRAINER, report);
            }
            run.ended(2.2, TRAINER, if signal < 35 { Ending::Signaled(signal) } else { Ending::Exited(signal) });
            run.finish(2.4, Ending::Exited(1));
            let verdict = run.verdict_of_any_figures();
            for finding in &verdict.findings {
                prop_assert!(!finding.evidence.is_empty() && !finding.fixes.is_empty());
                prop_assert!(finding.evidence.iter().all(|evidence| evidence.sentence.ends_with('.')), "{:?}", finding.evidence);
            }
        }
    }
}
