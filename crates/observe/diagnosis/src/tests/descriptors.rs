//! nofile-exhausted-shared-tensors, fd-leak-files-sockets and forkserver-too-many-fds.

use super::build::*;
use crate::policy::given::SHARED_A_SECOND;
use crate::Series;
use ullage_model::{
    Descriptors, Ending, ExceptionReport, Limit, Measured, Missing, ResourceLimits, Role, Severity, Status,
    Verdict,
};

fn failing(report: ExceptionReport) -> Run {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run
}

fn emfile(text: &str, fds: u64, torch: u64, nofile: u64) -> Run {
    let mut report = raised("RuntimeError", text);
    report.counts.fds = Some(fds);
    report.counts.fds_torch = Some(torch);
    report.counts.nofile = Some(nofile);
    report.counts.mappings = Some(fds + 700);
    report.counts.max_map_count = Some(65_530);
    failing(report)
}

const OPEN: &str = "unable to open shared memory object </torch_7762_29220981_251> in read-write mode: Too many open files (24)";

#[test]
fn torch_descriptors_at_the_limit_are_established() {
    for nofile in [1024, 20_000] {
        let verdict = emfile(OPEN, nofile - 3, nofile - 20, nofile).verdict();
        assert_eq!(causes(&verdict), ["nofile-exhausted-shared-tensors"]);
        assert_eq!(verdict.findings[0].status(), Status::Established);
    }
}

#[test]
fn files_at_the_limit_are_a_leak() {
    let verdict = emfile("[Errno 24] Too many open files: '/data/img_123.jpg'", 1021, 4, 1024).verdict();
    assert_eq!(causes(&verdict), ["fd-leak-files-sockets"]);
}

#[test]
fn what_the_descriptors_lead_to_is_reported_by_folder() {
    let mut report = raised("OSError", "[Errno 24] Too many open files: '/data/shard_9.npz'");
    report.counts.fds = Some(1024);
    report.counts.fds_torch = Some(0);
    report.counts.nofile = Some(1024);
    report.counts.fd_places = vec![("/data/shards/".into(), 1000), ("socket".into(), 20), ("pipe".into(), 1)];
    let text = sentences(&failing(report).verdict().findings[0]);
    assert!(text.contains("Of these, 1,000 lead to files in /data/shards/, 20 lead to sockets."), "{text}");
    assert!(!text.contains("torch's shared segments"), "{text}");
}

#[test]
fn uncounted_descriptors_are_recognised_by_the_message_or_not_at_all() {
    let mut report = raised("RuntimeError", "received 0 items of ancdata");
    report.counts.nofile = Some(1024);
    let verdict = failing(report).verdict();
    assert_eq!(causes(&verdict), ["nofile-exhausted-shared-tensors"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    let verdict = failing(raised("OSError", "[Errno 24] Too many open files")).verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert_eq!(undetermined(&verdict), ["nofile-exhausted-shared-tensors", "fd-leak-files-sockets"]);
}

/// Without the agent.
fn unspoken(nofile: u64, torch: bool, readings: &[(f64, u64)], ended: f64) -> Run {
    let mut run = Run::with_trainer();
    let mut of = limits();
    of.open_files = Limit::At(nofile);
    run.process(0.2, TRAINER, MAIN, Role::Trainer, of, 1000);
    for (at, fds) in readings {
        let fewer = fds.saturating_sub(12);
        let trainer = with_fds(reading(TRAINER, MAIN, "python"), *fds, if torch { fewer } else { 0 });
        let trainer = with_maps(trainer, 700 + if torch { fewer } else { 0 }, fewer);
        run.tick(*at, vec![reading(MAIN, 1, "python"), trainer], |_| {});
    }
    run.ended(ended, TRAINER, Ending::Exited(1)).finish(ended + 0.2, Ending::Exited(1));
    run
}

#[test]
fn without_the_agent_count_growth_and_kinds_suffice() {
    let verdict = unspoken(20_000, true, &[(1.0, 12), (2.0, 8_000), (3.0, 16_000)], 3.5).verdict();
    assert_eq!(causes(&verdict), ["nofile-exhausted-shared-tensors"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    let verdict = unspoken(1024, false, &[(1.0, 12), (5.0, 500), (9.0, 1018)], 9.2).verdict();
    assert_eq!(causes(&verdict), ["fd-leak-files-sockets"]);
    let said: Vec<_> = verdict.findings[0].evidence.iter().map(|one| one.sentence.as_str()).collect();
    assert!(said.concat().contains("1,018 of the files are in /w/runs/, such as run-1018.log"), "{said:?}");
}

#[test]
fn a_server_that_fills_its_table_and_catches_the_errors_is_found() {
    let filling = |most: u64| {
        let mut run = Run::with_trainer();
        let of = ResourceLimits { open_files: Limit::At(224), ..limits() };
        run.process(0.2, TRAINER, MAIN, Role::Trainer, of, 1000);
        for second in 0..20 {
            let trainer = with_fds(reading(TRAINER, MAIN, "python"), 12 + second * most / 20, 0);
            run.tick(1.0 + second as f64, vec![reading(MAIN, 1, "python"), trainer], |_| {});
        }
        run.ended(20.5, TRAINER, Ending::Signaled(15)).finish(20.7, Ending::Exited(1));
        run.verdict()
    };
    let verdict = filling(218);
    assert_eq!(causes(&verdict), ["fd-leak-files-sockets"]);
    assert_eq!(verdict.findings[0].severity, Severity::Warning);
    assert_eq!(causes(&filling(150)), Vec::<&str>::new(), "it was not full");
}

/// Links cost more to read than mappings, so that a fast job may end with the latter only.
fn without_links(torch_maps: u64) -> Verdict {
    let mut run = Run::with_trainer();
    let of = ResourceLimits { open_files: Limit::At(20_000), ..limits() };
    run.process(0.2, TRAINER, MAIN, Role::Trainer, of, 1000);
    for (at, fds) in [(1.0, 12), (5.0, 7_756), (5.9, 19_990)] {
        let mut trainer = with_maps(reading(TRAINER, MAIN, "python"), 800 + torch_maps, torch_maps);
        trainer.descriptors =
            Measured::Known(Descriptors { count: fds, kinds: Measured::Missing(Missing::NotAsked) });
        run.tick(at, vec![reading(MAIN, 1, "python"), trainer], |_| {});
    }
    run.ended(6.9, TRAINER, Ending::Exited(1)).finish(8.3, Ending::Exited(1));
    run.verdict()
}

#[test]
fn as_many_torch_mappings_as_descriptors_show_the_owner() {
    assert_eq!(causes(&without_links(19_700)), ["nofile-exhausted-shared-tensors"]);
    for others in [3, 5_000, 40_000] {
        let verdict = without_links(others);
        assert_eq!(causes(&verdict), Vec::<&str>::new(), "{others}");
        assert!(undetermined(&verdict).contains(&"fd-leak-files-sockets"), "{others}");
    }
}

#[test]
fn where_the_limit_is_large_the_mappings_come_first() {
    let verdict = unspoken(1_048_576, true, &[(1.0, 12), (4.0, 24_000), (8.0, 64_600)], 8.2).verdict();
    assert_eq!(causes(&verdict), ["max-map-count-exhausted"]);
}

#[test]
fn a_small_limit_that_is_met_between_two_readings_cannot_be_determined() {
    let verdict = unspoken(1024, true, &[(1.0, 12)], 1.4).verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert!(undetermined(&verdict).contains(&"nofile-exhausted-shared-tensors"));
}

#[test]
fn sixty_percent_and_a_good_end_are_nothing() {
    let mut run = Run::with_trainer();
    run.tick(1.0, vec![with_fds(reading(TRAINER, MAIN, "python"), 614, 600)], |_| {});
    run.ended(2.0, TRAINER, Ending::Exited(0)).finish(2.1, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy && verdict.findings.is_empty() && verdict.undetermined.is_empty());
}

#[test]
fn forkserver_refuses_what_is_far_below_every_limit() {
    let mut report = raised("ValueError", "too many fds");
    report.stack.push("…/multiprocessing/forkserver.py:97 connect_to_new_process".into());
    report.counts.fds_torch = Some(300);
    report.counts.nofile = Some(1024);
    let verdict = failing(report).verdict();
    assert_eq!(causes(&verdict), ["forkserver-too-many-fds"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    assert!(sentences(&verdict.findings[0]).contains("300 torch descriptors to send"));
}

/// 300 tensors, no agent, a forkserver beside the trainer.
fn forkserver(nofile: u64, torch: u64, age: f64) -> Run {
    let mut run = Run::with_trainer();
    let mut of = limits();
    of.open_files = Limit::At(nofile);
    run.process(0.2, TRAINER, MAIN, Role::Trainer, of, 1000);
    run.process(0.3, 300, TRAINER, Role::Forkserver, of, 1000);
    let trainer =
        with_maps(with_fds(reading(TRAINER, MAIN, "python"), torch + 15, torch), torch + 700, torch);
    run.tick(1.0, vec![reading(MAIN, 1, "python"), trainer, reading(300, TRAINER, "python")], |_| {});
    run.ended(1.0 + age, TRAINER, Ending::Exited(1)).finish(1.2 + age, Ending::Exited(1));
    run
}

#[test]
fn without_the_agent_forkserver_is_a_hypothesis_only_where_nothing_else_was_in_reach() {
    let verdict = forkserver(1_048_576, 300, 0.3).verdict();
    assert_eq!(
        verdict.findings.iter().map(|f| (f.cause.as_str(), f.status())).collect::<Vec<_>>(),
        [("forkserver-too-many-fds", Status::Hypothesis)]
    );
    for (nofile, torch, age) in [(1024, 300, 0.3), (1_048_576, 300, 9.0), (1024, 3, 0.3)] {
        let verdict = forkserver(nofile, torch, age).verdict();
        assert_eq!(causes(&verdict), Vec::<&str>::new(), "{nofile} {torch} {age}");
        assert!(undetermined(&verdict).contains(&"forkserver-too-many-fds"));
    }
}

#[test]
fn descriptors_given_back_before_the_end_do_not_hide_the_limit_they_were_close_to() {
    let mut run = Run::with_trainer();
    let mut of = limits();
    of.open_files = Limit::At(20_000);
    run.process(0.2, TRAINER, MAIN, Role::Trainer, of, 1000);
    run.process(0.3, 300, TRAINER, Role::Forkserver, of, 1000);
    // As read beside a real trainer: its frames let go of the tensors while the exception leaves.
    for (at, fds) in [(9.63, 16_919), (9.89, 19_582), (10.13, 18_030), (10.34, 3_652)] {
        let trainer =
            with_maps(with_fds(reading(TRAINER, MAIN, "python"), fds, fds - 15), fds + 700, fds - 15);
        run.tick(at, vec![reading(MAIN, 1, "python"), trainer, reading(300, TRAINER, "python")], |_| {});
    }
    run.ended(10.5, TRAINER, Ending::Exited(1)).finish(10.6, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert!(undetermined(&verdict).contains(&"nofile-exhausted-shared-tensors"));
    assert!(undetermined(&verdict).contains(&"forkserver-too-many-fds"));
}

#[test]
fn a_trainer_that_a_forkserver_started_uses_the_same_one() {
    let mut run = Run::new();
    run.process(0.1, 300, MAIN, Role::Forkserver, limits(), 1000);
    run.process(0.2, TRAINER, 300, Role::Trainer, limits(), 1000);
    run.tick(1.0, vec![reading(MAIN, 1, "python"), with_fds(reading(TRAINER, 300, "python"), 8, 0)], |_| {});
    run.ended(1.3, TRAINER, Ending::Exited(1)).finish(1.5, Ending::Exited(1));
    assert!(undetermined(&run.verdict()).contains(&"forkserver-too-many-fds"));
}

#[test]
fn a_limit_met_and_left_between_two_readings_is_not_ruled_out() {
    use crate::trend::{reach, Reach};
    let mut series = Series::default();
    // Many close looks, and one gap of half a second: a failed start gives everything back before the next.
    for at in [1.0, 1.05, 1.1, 1.6, 1.65] {
        series.push(s(at), 7.0);
    }
    assert_eq!(reach(&series, 1024, s(1.68), SHARED_A_SECOND), Reach::Possible);
    assert_eq!(reach(&series, 20_000, s(1.68), SHARED_A_SECOND), Reach::Excluded);
}
