//! Whose segments are, which are orphans, and what a run leaves behind.

use super::build::*;
use ullage_model::{
    Bytes, Creator, CreatorSource, Ending, Maker, Measured, Missing, ProcessId, ProcessReading, ProcessState,
    Role, Segment, SegmentCreator, SegmentKind, SegmentSummary,
};

fn segment(name: &str, mib: u64, creator: Measured<Creator>, mappers: &[ProcessId]) -> Segment {
    Segment {
        kind: if name.starts_with("torch") { SegmentKind::Torch } else { SegmentKind::PosixShm },
        name: name.into(),
        count: 1,
        device: shm(0, 0, 0, 0).device,
        inode: mib,
        size: Bytes(mib * MIB),
        allocated: Measured::Known(Bytes(mib * MIB)),
        at_least: false,
        deleted: false,
        before: false,
        creator,
        mappers: mappers.to_vec(),
        openers: vec![],
        outsiders: Measured::default(),
    }
}

fn by(pid: i32) -> Measured<Creator> {
    Measured::Known(Creator { maker: Maker::Process(id(pid)), by: CreatorSource::Name })
}

fn gone(pid: i32) -> Measured<Creator> {
    Measured::Known(Creator { maker: Maker::Gone(pid), by: CreatorSource::Name })
}

const NOBODY: Measured<Creator> = Measured::Missing(Missing::Vanished);

fn run(readings: &[(f64, Vec<Segment>)], end: bool) -> Option<SegmentSummary> {
    let mut run = Run::new();
    run.quiet(0.0);
    for (at, segments) in readings {
        let processes = vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")];
        run.tick(*at, processes, |sample| sample.segments = Measured::Known(segments.clone()));
    }
    if end {
        run.ended(9.0, TRAINER, Ending::Exited(0)).finish(10.0, Ending::Exited(0));
        let left = readings.last().map(|(_, segments)| segments.clone()).unwrap_or_default();
        let left = left.into_iter().map(|segment| Segment { mappers: vec![], ..segment }).collect();
        run.tick(10.5, vec![], |sample| sample.segments = Measured::Known(left));
    }
    run.verdict().segments
}

#[test]
fn a_run_without_readings_of_segments_says_nothing_of_them() {
    assert_eq!(run(&[], false), None);
}

#[test]
fn the_reading_with_most_of_the_jobs_own_bytes_is_reported() {
    let stranger = Segment { before: true, ..segment("psm_old", 900, NOBODY, &[]) };
    let other = Segment { before: true, ..segment("torch_7_1_0", 50, by(7), &[]) };
    let summary = run(
        &[
            (1.0, vec![segment("torch_200_1_0", 10, by(TRAINER), &[id(MAIN)]), stranger.clone()]),
            (2.0, vec![segment("torch_200_1_*", 30, by(TRAINER), &[id(MAIN), id(TRAINER)]), other]),
            (3.0, vec![segment("torch_200_1_0", 5, by(TRAINER), &[]), stranger]),
        ],
        false,
    )
    .unwrap();
    assert_eq!((summary.at, summary.total.bytes, summary.others.bytes), (s(2.0), 30 * MIB, 50 * MIB));
    assert_eq!(summary.orphans.count, 0);
    assert_eq!(summary.places[0].attributed, 80 * MIB, "whoever made them");
    assert_eq!(summary.left_behind, None, "the end was not seen");
    let SegmentCreator::Job { process, ended, by } = &summary.by_creator[0].0 else {
        panic!("{:?}", summary.by_creator)
    };
    assert_eq!((process.id, *ended, *by), (id(TRAINER), false, CreatorSource::Name));
}

#[test]
fn every_byte_has_a_maker_or_is_an_orphan() {
    let segments = vec![
        segment("torch_200_1_0", 1, by(TRAINER), &[id(MAIN)]),
        segment("torch_9_1_0", 2, gone(9), &[]),
        segment("psm_a", 4, NOBODY, &[]),
        segment("psm_b", 8, NOBODY, &[id(MAIN)]),
        // Another job's, which lives: neither ours nor an orphan.
        segment("torch_77_1_0", 16, by(77), &[]),
    ];
    let summary = run(&[(1.0, segments)], false).unwrap();
    assert_eq!((summary.total.bytes, summary.others.bytes), (15 * MIB, 16 * MIB));
    assert_eq!((summary.orphans.count, summary.orphans.bytes), (2, 6 * MIB));
    assert_eq!(summary.by_kind[&SegmentKind::Torch].bytes, 3 * MIB);
    let sum: u64 = summary.by_creator.iter().map(|(_, total)| total.bytes).sum();
    assert_eq!(sum, summary.total.bytes);
}

#[test]
fn what_is_left_is_what_the_run_made_and_nobody_uses() {
    let segments = vec![
        segment("torch_200_1_0", 1, by(TRAINER), &[id(TRAINER)]),
        segment("torch_200_2_0", 2, gone(TRAINER), &[]),
        // Other jobs' that appeared meanwhile: nobody knows whose, and by a pid that was never in this job.
        segment("psm_a", 4, NOBODY, &[]),
        segment("torch_6712_1_0", 64, gone(6712), &[]),
        Segment { before: true, ..segment("psm_old", 8, NOBODY, &[]) },
        segment("torch_77_1_0", 16, by(77), &[]),
        Segment { outsiders: Measured::Known(true), ..segment("shmid 5", 32, gone(9), &[]) },
    ];
    let left = run(&[(1.0, segments)], true).unwrap().left_behind.unwrap();
    let names: Vec<&str> = left.largest.iter().map(|seen| seen.segment.name.as_str()).collect();
    assert_eq!((names, left.total.bytes), (vec!["torch_200_2_0", "torch_200_1_0"], 3 * MIB));
}

#[test]
fn pages_that_could_not_be_read_are_counted_and_not_zero() {
    let closed = Segment {
        allocated: Measured::Missing(Missing::NoPermission),
        ..segment("psm_a", 4, NOBODY, &[id(MAIN)])
    };
    let summary = run(&[(1.0, vec![closed])], false).unwrap();
    assert_eq!((summary.total.count, summary.total.bytes, summary.total.unmeasured), (1, 0, 1));
}

#[test]
fn what_a_living_manager_of_torch_removes_is_not_left_behind() {
    const MANAGER: i32 = 300;
    let left = |state: ProcessState| {
        let mut run = Run::new();
        run.quiet(0.0);
        run.process(0.5, MANAGER, TRAINER, Role::ShmManager, limits(), 1000);
        run.ended(9.0, TRAINER, Ending::Exited(0)).finish(10.0, Ending::Exited(0));
        let segments = vec![segment("torch_200_1_0", 4, by(TRAINER), &[]), segment("psm_a", 2, NOBODY, &[])];
        let manager = ProcessReading { state, ..reading(MANAGER, 1, "torch_shm_manag") };
        run.tick(10.5, vec![manager], |sample| sample.segments = Measured::Known(segments));
        let summary = run.verdict().segments.unwrap();
        (summary.orphans.count, summary.left_behind.unwrap())
    };
    let (orphans, alive) = left(ProcessState::Sleeping);
    assert_eq!((alive.total.bytes, alive.managed.bytes), (0, 4 * MIB), "and psm_a is nobody's that is known");
    assert_eq!((orphans, alive.managers[0].id), (1, id(MANAGER)));
    let (orphans, dead) = left(ProcessState::Zombie);
    assert_eq!((orphans, dead.total.bytes, dead.managed.count), (2, 4 * MIB, 0));
    assert!(dead.managers.is_empty());
}
