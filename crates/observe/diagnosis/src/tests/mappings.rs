//! max-map-count-exhausted, rlimit-as-virtual-memory and strict-overcommit: four ways to ENOMEM with memory free.

use super::build::*;
use ullage_model::{At, Ending, Limit, Measured, Role, Severity, Status, Verdict};

const MMAP: &str =
    "unable to mmap 320 bytes from file </torch_8549_3875816624_63978>: Cannot allocate memory (12)";

fn crash() -> Run {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("RuntimeError", MMAP);
    report.counts.mappings = Some(65_530);
    report.counts.mappings_torch = Some(64_977);
    report.counts.max_map_count = Some(65_530);
    report.counts.shm_used = Some(64_977 * 4096);
    report.counts.shm_size = Some(12 * GIB);
    run.exception(9.0, TRAINER, report).ended(9.1, TRAINER, Ending::Exited(1)).finish(9.3, Ending::Exited(1));
    run
}

#[test]
fn the_crash_is_counted_in_the_trainer_and_reported_in_full() {
    let verdict = crash().verdict();
    let first = &verdict.findings[0];
    assert_eq!(
        (first.cause.as_str(), first.status(), first.severity),
        ("max-map-count-exhausted", Status::Established, Severity::Fatal)
    );
    assert_eq!(first.process.as_ref().map(|p| (p.id, p.role.clone())), Some((id(TRAINER), Role::Trainer)));
    let text = sentences(first);
    for part in [
        "65,530 of 65,530 mappings (vm.max_map_count)",
        "64,977 of these mappings are torch's",
        "320 bytes",
        "4 KiB",
        "/dev/shm was not full: 254 MiB of 12 GiB in use",
        "starts its workers by forkserver, this process's own start method",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(first.fixes[0].automatic.as_deref(), Some("arena"));
    assert!(first.fixes[0].command.starts_with("ullage run --fix -- "));
    assert!(first.fixes[2].command.contains("multiprocessing_context=\"fork\""));
    assert!(!first.fixes.iter().any(|fix| fix.command.contains("sysctl")), "not root");
    assert!(!verdict.healthy && verdict.undetermined.is_empty());
}

#[test]
fn fork_is_not_offered_beside_cuda_and_sysctl_is_to_root() {
    let mut run = crash();
    for item in &mut run.items {
        if let ullage_model::Item::Event(ullage_model::Event {
            what:
                ullage_model::EventKind::Agent { message: ullage_model::AgentMessage::Exception(report), .. },
            ..
        }) = item
        {
            report.cuda_initialized = Some(true);
        }
        if let ullage_model::Item::Event(ullage_model::Event {
            what: ullage_model::EventKind::ProcessSeen { facts },
            ..
        }) = item
        {
            facts.uid = Measured::Known(0);
        }
    }
    let fixes = run.verdict().findings[0].fixes.clone();
    assert!(!fixes.iter().any(|fix| fix.command.contains("\"fork\"")));
    assert!(fixes.iter().any(|fix| fix.command == "sysctl -w vm.max_map_count=1048576"));
}

/// Without the agent: readings of the trainer until it ends with 1.
fn unspoken(readings: &[(f64, u64)], ended: f64) -> Run {
    let mut run = Run::with_trainer();
    for (at, maps) in readings {
        let trainer = with_maps(reading(TRAINER, MAIN, "python"), *maps, maps.saturating_sub(700));
        run.tick(*at, vec![reading(MAIN, 1, "python"), trainer], |_| {});
    }
    run.ended(ended, TRAINER, Ending::Exited(1)).finish(ended + 0.2, Ending::Exited(1));
    run
}

#[test]
fn without_the_agent_the_last_reading_and_its_age_suffice() {
    let verdict = unspoken(&[(1.0, 700), (4.0, 30_000), (8.0, 65_100)], 8.4).verdict();
    let first = &verdict.findings[0];
    assert_eq!((first.cause.as_str(), first.status()), ("max-map-count-exhausted", Status::Supported));
    assert!(sentences(first).contains("0.4 s before it ended"), "{}", sentences(first));
    assert_eq!(first.process.as_ref().map(|p| p.id), Some(id(TRAINER)));
}

#[test]
fn without_the_agent_growth_up_to_the_end_suffices_too() {
    let verdict = unspoken(&[(1.0, 700), (4.0, 25_000), (6.0, 41_000), (8.0, 57_000)], 9.0).verdict();
    assert_eq!(causes(&verdict), ["max-map-count-exhausted"]);
    assert!(sentences(&verdict.findings[0]).contains("growing by 8"), "{}", sentences(&verdict.findings[0]));
}

#[test]
fn what_is_given_back_at_the_end_was_held_before() {
    let verdict = unspoken(&[(1.0, 700), (4.0, 30_000), (8.0, 65_520), (9.0, 20_000)], 9.4).verdict();
    assert_eq!(causes(&verdict), ["max-map-count-exhausted"]);
    assert!(sentences(&verdict.findings[0]).contains("65,520 of 65,530"));
}

#[test]
fn growth_that_stopped_far_below_is_not_it() {
    let verdict = unspoken(&[(1.0, 700), (4.0, 39_000), (5.0, 39_000), (8.0, 39_000)], 8.4).verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
}

#[test]
fn a_last_reading_long_before_the_end_proves_nothing() {
    let verdict = unspoken(&[(1.0, 700)], 20.0).verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert!(undetermined(&verdict).contains(&"max-map-count-exhausted"), "{verdict:?}");
}

#[test]
fn an_ordinary_exception_with_many_mappings_is_not_it() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("ValueError", "bad label 7");
    report.counts.mappings = Some(65_500);
    report.counts.max_map_count = Some(65_530);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    let verdict = run.verdict();
    assert!(verdict.findings.is_empty() && verdict.undetermined.is_empty(), "{verdict:?}");
}

fn enomem(text: &str, set: impl FnOnce(&mut ullage_model::CountsAtFailure)) -> Run {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("RuntimeError", text);
    report.counts.mappings = Some(800);
    report.counts.max_map_count = Some(65_530);
    set(&mut report.counts);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run
}

#[test]
fn an_address_space_at_its_limit_is_distinguished_from_the_mapping_count() {
    let verdict = enomem("DefaultCPUAllocator: can't allocate memory: you tried to allocate 209715200 bytes. Error code 12 (Cannot allocate memory)", |counts| {
        counts.address_space_limit = Some(4 * GIB);
        counts.virtual_size = Some(4 * GIB - 100 * MIB);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["rlimit-as-virtual-memory"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
}

/// `mmap.mmap` of a data base's largest size: the message has no size, and far less than the limit is in use.
fn refused_far_from_the_limit(limit: Option<u64>, frame: &str) -> Verdict {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("OSError", "[Errno 12] Cannot allocate memory");
    report.errno = Some(12);
    report.stack = vec![frame.into()];
    report.counts.address_space_limit = limit;
    report.counts.virtual_size = Some(2 * GIB);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run.verdict()
}

#[test]
fn a_mapping_of_unknown_size_points_at_the_only_limit_there_is() {
    let verdict = refused_far_from_the_limit(Some(16 * GIB), "/job/database.py:15 __init__");
    assert_eq!(causes(&verdict), ["rlimit-as-virtual-memory"]);
    assert_eq!(verdict.findings[0].status(), Status::Hypothesis);
    let without = refused_far_from_the_limit(None, "/job/database.py:15 __init__");
    assert!(!causes(&without).contains(&"rlimit-as-virtual-memory"));
    let fork = refused_far_from_the_limit(Some(16 * GIB), "/lib/subprocess.py:1900 _execute_child");
    assert!(!causes(&fork).contains(&"rlimit-as-virtual-memory"), "a fork is refused for other reasons");
}

#[test]
fn a_checkpoint_written_into_memory_fails_for_want_of_address_space_and_not_of_disk() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised(
        "RuntimeError",
        "[enforce fail at inline_container.cc:672] . unexpected pos 262145536 vs 262145488",
    );
    report.stack = vec!["/lib/torch/serialization.py:1002 save".into()];
    report.chain = vec!["MemoryError: ".into()];
    report.counts.address_space_limit = Some(4 * GIB);
    report.counts.virtual_size = Some(4 * GIB - 100 * MIB);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    assert_eq!(causes(&run.verdict())[0], "rlimit-as-virtual-memory");
}

#[test]
fn a_limit_explains_the_work_that_it_refused() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("RuntimeError", "can't allocate memory: you tried to allocate 9000000 bytes");
    report.stack = vec!["/job/train.py:9 resume".into(), "…/torch/serialization.py:1529 load".into()];
    report.counts.address_space_limit = Some(4 * GIB);
    report.counts.virtual_size = Some(4 * GIB - MIB);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["rlimit-as-virtual-memory", "checkpoint-load-copies"]);
    assert!(verdict.findings[0].is_cause_of(&verdict.findings[1]), "{verdict:?}");
}

#[test]
fn a_failed_import_under_a_limit_is_the_limit() {
    let verdict = enomem("libtorch_python.so: failed to map segment from shared object", |counts| {
        counts.address_space_limit = Some(700 * MIB);
        counts.virtual_size = Some(300 * MIB);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["rlimit-as-virtual-memory"]);
}

#[test]
fn without_the_agent_vmpeak_at_the_limit_suffices() {
    let mut run = Run::with_trainer();
    let mut tight = limits();
    tight.address_space = Limit::At(3 * GIB + MIB);
    run.process(0.2, TRAINER, MAIN, Role::Trainer, tight, 1000);
    run.quiet(1.0).ended(1.1, TRAINER, Ending::Exited(1)).finish(1.3, Ending::Exited(1));
    assert_eq!(causes(&run.verdict()), ["rlimit-as-virtual-memory"]);
    let mut roomy = Run::with_trainer();
    tight.address_space = Limit::At(90 * GIB);
    roomy.process(0.2, TRAINER, MAIN, Role::Trainer, tight, 1000);
    roomy.quiet(1.0).ended(1.1, TRAINER, Ending::Exited(1)).finish(1.3, Ending::Exited(1));
    assert_eq!(causes(&roomy.verdict()), Vec::<&str>::new());
}

#[test]
fn strict_overcommit_needs_mode_2_and_a_full_promise() {
    let text = "[Errno 12] Cannot allocate memory";
    let mut run = enomem(text, |counts| {
        counts.committed = Some(31 * GIB);
        counts.commit_limit = Some(32 * GIB);
    });
    assert_eq!(causes(&run.verdict()), Vec::<&str>::new(), "mode 0");
    run.facts.machine.overcommit_memory = Measured::Known(2);
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["strict-overcommit"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
}

#[test]
fn strict_overcommit_without_the_agent() {
    for (committed, found) in [(31 * GIB + 900 * MIB, true), (10 * GIB, false)] {
        let mut run = Run::with_trainer();
        run.facts.machine.overcommit_memory = Measured::Known(2);
        run.tick(1.0, vec![reading(TRAINER, MAIN, "python")], |sample| {
            sample.host.memory = Measured::Known(host(30 * GIB, committed))
        });
        run.ended(1.1, TRAINER, Ending::Exited(1)).finish(1.3, Ending::Exited(1));
        let verdict = run.verdict();
        assert_eq!(causes(&verdict).contains(&"strict-overcommit"), found);
        assert_eq!(undetermined(&verdict).contains(&"strict-overcommit"), !found);
    }
}

#[test]
fn one_request_larger_than_the_machine_is_named_as_such() {
    let verdict = enomem(
        "Unable to allocate 32.0 TiB for an array with shape (4398046511104,) and data type float64",
        |_| {},
    )
    .verdict();
    assert_eq!(causes(&verdict), ["strict-overcommit"]);
    assert!(sentences(&verdict.findings[0]).contains("32 TiB"));
    assert!(verdict.findings[0].title.contains("more memory than the machine has"));
}

#[test]
fn memory_free_everywhere_and_no_limit_near_is_no_finding() {
    let verdict =
        enomem("[Errno 12] Cannot allocate memory", |counts| counts.virtual_size = Some(GIB)).verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert_eq!(verdict.findings.first().and_then(|finding| finding.at), None::<At>);
}
