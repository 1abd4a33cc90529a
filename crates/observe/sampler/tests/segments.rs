//! Shared segments on a machine that a test writes: whose they are, who made them, what is left, and when they are read.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::MetadataExt;
use ullage_model::{
    At, Bytes, ClockTicks, Creator, CreatorSource, Maker, Measured, Missing, ProcessId, Sample, Segment,
    SegmentKind,
};
use ullage_sampler::{Sampler, SamplerSettings};
use ullage_testing::fake_root::anonymous_maps;
use ullage_testing::FakeRoot;

const MAIN: ProcessId = ProcessId { pid: 10, start: ClockTicks(100) };
const WORKER: ProcessId = ProcessId { pid: 11, start: ClockTicks(200) };

fn sampler(fake: &FakeRoot, settings: SamplerSettings) -> Sampler {
    // What is read must not depend on how fast the machine of the test is.
    Sampler::new(
        fake.root(),
        SamplerSettings { reaper: Some(5), cpu_share: 0.2, whole_process: false, ..settings },
        MAIN,
    )
}

fn segments(sample: &Sample) -> &Vec<Segment> {
    sample.segments.as_known().expect("segments were read")
}

fn named<'a>(segments: &'a [Segment], name: &str) -> &'a Segment {
    segments.iter().find(|segment| segment.name == name).unwrap_or_else(|| panic!("{name} in {segments:?}"))
}

/// A file in the /dev/shm of main, and the line by which `maps` shows a mapping of it.
fn file(fake: &FakeRoot, name: &str, pages: usize) -> String {
    let path = format!("proc/10/root/dev/shm/{name}");
    fake.file(&path, vec![1; pages * 4096]);
    let stat = std::fs::metadata(fake.path(&path)).unwrap();
    let (major, minor) = (rustix::fs::major(stat.dev()), rustix::fs::minor(stat.dev()));
    let start = stat.ino() << 24;
    let end = start + pages as u64 * 4096;
    format!("{start:x}-{end:x} rw-s 00000000 {major:02x}:{minor:02x} {}    /dev/shm/{name}\n", stat.ino())
}

fn known(maker: Maker, by: CreatorSource) -> Measured<Creator> {
    Measured::Known(Creator { maker, by })
}

#[test]
fn their_maker_their_mappers_and_what_is_left() {
    let fake = FakeRoot::on_tmpfs();
    let main = || fake.process(10).start(100);
    let worker = || fake.process(11).parent(10).start(200);
    main().write();
    worker().write();
    let mut sampler = sampler(&fake, SamplerSettings::default());
    let first = sampler.tick(At::from_seconds(0.0)).sample;
    assert_eq!(first.segments, Measured::Missing(Missing::NotAsked), "nothing has moved yet");

    let tensor = file(&fake, "torch_11_1_0", 300);
    let python = file(&fake, "psm_ab", 2);
    let memfd = "7f0000000000-7f0000003000 rw-s 00000000 00:01 77    /memfd:mine (deleted)\n";
    file(&fake, "torch_4000000_1_0", 300);
    main().memory(10_000, 1200, 200_000).maps(anonymous_maps(9) + &tensor + memfd).write();
    worker().memory(10_000, 1200, 200_000).maps(anonymous_maps(9) + &tensor + &python).write();
    let read = sampler.tick(At::from_seconds(1.0)).sample;
    let found = segments(&read);
    let tensor = named(found, "torch_11_1_0");
    assert_eq!((tensor.kind, tensor.allocated), (SegmentKind::Torch, Measured::Known(Bytes(300 * 4096))));
    assert_eq!(tensor.creator, known(Maker::Process(WORKER), CreatorSource::Name));
    assert_eq!(tensor.mappers, [MAIN, WORKER]);
    assert!(!tensor.deleted && !tensor.before);
    let python = named(found, "psm_ab");
    assert_eq!(python.creator, known(Maker::Process(WORKER), CreatorSource::OnlyUser));
    let memfd = named(found, "memfd:mine");
    assert_eq!(memfd.creator, known(Maker::Process(MAIN), CreatorSource::OnlyUser));
    assert_eq!(memfd.allocated, Measured::Missing(Missing::NoPermission), "no descriptor, no pagemap here");
    let stranger = named(found, "torch_4000000_1_0");
    assert_eq!(stranger.creator, known(Maker::Gone(4_000_000), CreatorSource::Name));
    assert!(stranger.unused());

    // The worker is gone; what it made is still there, and who made it is still known.
    fake.remove(11);
    main().memory(10_000, 0, 200_000).write();
    let last = sampler.last_sample(At::from_seconds(1.2)).sample;
    let left = segments(&last);
    assert!(left.iter().all(Segment::unused), "{left:?}");
    assert_eq!(named(left, "psm_ab").creator, known(Maker::Process(WORKER), CreatorSource::OnlyUser));
    assert_eq!(named(left, "torch_11_1_0").creator, known(Maker::Process(WORKER), CreatorSource::Name));
    assert!(!left.iter().any(|segment| segment.kind == SegmentKind::Memfd), "it went with its last user");
}

#[test]
fn what_was_there_before_the_run_is_reported_so() {
    let fake = FakeRoot::on_tmpfs();
    fake.process(10).start(100).write();
    file(&fake, "psm_old", 300);
    let later = SamplerSettings::default().started_unix + 3600.0;
    let mut sampler = sampler(&fake, SamplerSettings { started_unix: later, ..SamplerSettings::default() });
    sampler.tick(At::from_seconds(0.0));
    let last = sampler.last_sample(At::from_seconds(1.0)).sample;
    assert!(named(segments(&last), "psm_old").before);
}

#[test]
fn an_hour_in_which_nothing_moves_costs_no_reading() {
    let fake = FakeRoot::new();
    fake.process(10).start(100).memory(10_000, 50_000, 200_000).write();
    let mut sampler = sampler(&fake, SamplerSettings::default());
    let read = (0..600).filter(|at| {
        let tick = sampler.tick(At::from_seconds(f64::from(*at)));
        tick.sample.segments.as_known().is_some()
    });
    assert_eq!(read.count(), 0);
    // A look in between, at a process that failed, reads none either.
    assert_eq!(sampler.final_sample(At::from_seconds(601.0)).sample.segments, Measured::default());
}
