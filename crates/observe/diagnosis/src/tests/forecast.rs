//! The limits: what is nearest, and when it is met.

use super::build::*;
use crate::limits;
use ullage_model::{Limit, LimitKind, LimitState, Measured, Role, Scope};

fn grown(step: impl Fn(usize) -> u64, ticks: usize) -> Vec<LimitState> {
    let mut run = Run::with_trainer();
    for tick in 0..ticks {
        let trainer = with_fds(reading(TRAINER, MAIN, "python"), step(tick), 0);
        run.tick(tick as f64, vec![reading(MAIN, 1, "python"), trainer], |_| {});
    }
    limits(&run.facts, &run.timeline())
}

#[test]
fn a_linear_leak_is_met_first_and_at_the_right_time() {
    let states = grown(|tick| 12 + 10 * tick as u64, 51);
    let first = &states[0];
    assert_eq!(first.kind, LimitKind::Descriptors);
    assert_eq!(first.scope.to_string(), "process 200 (trainer)");
    assert_eq!(first.used, Measured::Known(512));
    let left = first.time_left_s.unwrap();
    assert!((left - 51.2).abs() < 51.2 * 0.05, "{left}");
}

#[test]
fn what_is_counted_is_refused_one_beyond_its_limit() {
    // One every ten seconds: the last that is allowed comes after 240 s, the next one is refused.
    let states = grown(|tick| 900 + tick as u64 / 10, 1001);
    assert_eq!(states[0].used, Measured::Known(1000));
    let left = states[0].time_left_s.unwrap();
    assert!((left - 250.0).abs() < 5.0, "{left}");
}

#[test]
fn a_plateau_and_a_flat_line_do_not_grow() {
    for step in [|tick: usize| 12 + 30 * tick.min(20) as u64, |_: usize| 600] {
        let states = grown(step, 60);
        let descriptors = states.iter().find(|state| state.kind == LimitKind::Descriptors).unwrap();
        assert_eq!((descriptors.time_left_s, descriptors.slope_per_s), (None, Some(0.0)));
    }
}

#[test]
fn each_limit_is_there_once_and_unlimited_ones_come_last() {
    let mut run = Run::with_trainer();
    let mut of = limits_of(64);
    of.processes = Limit::At(4096);
    run.process(0.3, TRAINER, MAIN, Role::Trainer, of, 1000);
    run.tick(1.0, vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")], |sample| {
        sample.cgroups =
            vec![group("/job", 900 * MIB, GIB, 0, 0), group("/", 9 * GIB, 0, 0, 0), pids("/job", 10, 100, 0)];
    });
    let states = limits(&run.facts, &run.timeline());
    let names: Vec<_> = states.iter().map(|state| state.kind.name()).collect();
    for name in [
        "mappings",
        "descriptors",
        "address space",
        "locked memory",
        "processes",
        "cgroup tasks",
        "memory and swap",
        "commit limit",
        "/dev/shm bytes",
        "/dev/shm inodes",
    ] {
        assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name} in {names:?}");
    }
    assert_eq!(names.iter().filter(|name| **name == "cgroup memory").count(), 2);
    assert_eq!(states[0].kind, LimitKind::CgroupMemory);
    let finite =
        states.iter().rposition(|state| state.limit.as_known().is_some_and(|limit| limit.at().is_some()));
    let unlimited = states.iter().position(|state| state.limit == Measured::Known(Limit::Unlimited));
    assert!(finite < unlimited, "{names:?}");
}

fn limits_of(open_files: u64) -> ullage_model::ResourceLimits {
    ullage_model::ResourceLimits { open_files: Limit::At(open_files), ..super::build::limits() }
}

#[test]
fn the_commit_limit_binds_in_mode_2_only() {
    for (mode, limit) in [(0, Limit::Unlimited), (2, Limit::At(32 * GIB))] {
        let mut run = Run::with_trainer();
        run.facts.machine.overcommit_memory = Measured::Known(mode);
        run.quiet(1.0);
        let states = limits(&run.facts, &run.timeline());
        assert_eq!(
            states.iter().find(|state| state.kind == LimitKind::Committed).unwrap().limit,
            Measured::Known(limit)
        );
    }
}

#[test]
fn what_was_given_back_since_leads_to_no_limit() {
    let mut series = crate::history::Series::default();
    for second in 0..60u32 {
        series.push(ullage_model::At::from_seconds(second.into()), f64::from(second) * 10.0);
    }
    let left = |used| {
        let seen = series.last().map(|(at, _)| (&series, at));
        let limit = Measured::Known(Limit::At(1000));
        crate::trend::forecast::Figure { kind: LimitKind::CgroupMemory, scope: Scope::Job, used, limit, seen }
            .state()
            .time_left_s
    };
    assert!(left(Some(590)).is_some_and(|left| (left - 41.0).abs() < 3.0), "{:?}", left(Some(590)));
    assert_eq!(left(Some(0)), None, "the job has ended");
}
