//! What was written comes back the same: open, killed, closed, repaired, rolled often or never.

use crate::common::{self, ended, image, replayed, run, write, Tape};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use ullage_model::Item;
use ullage_recording::{repair, Recording, Writer};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]
    #[test]
    fn every_item_comes_back_as_it_went_in(
        tape in prop::collection::vec(any::<u64>(), 0..1200),
        tail_bytes in prop::sample::select(vec![0u64, 4000, 1_000_000]),
    ) {
        let items = Tape(tape.into()).items();
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("run");
        let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(tail_bytes);
        for item in &items {
            match item {
                Item::Sample(sample) => writer.sample(sample),
                Item::Event(event) => writer.event(event),
            }
        }
        prop_assert!(writer.lost().is_empty());
        // As a reader sees it meanwhile, or after a kill.
        let open = Recording::open(&dir).unwrap();
        prop_assert_eq!(&open.damage, &vec![]);
        prop_assert_eq!(replayed(&open), items.clone());
        writer.close(&ended(&run())).unwrap();
        let closed = Recording::open(&dir).unwrap();
        prop_assert!(closed.is_closed());
        prop_assert_eq!(&closed.damage, &vec![]);
        prop_assert_eq!(&closed.run, &ended(&run()));
        let mut replay = closed.replay();
        prop_assert_eq!(replay.by_ref().collect::<Vec<_>>(), items);
        prop_assert_eq!(replay.damage(), &[]);
    }
}

#[test]
fn a_recording_of_many_parts_is_whole_and_private() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("a/run");
    let items = write(&dir, 40, 5, 20_000, false);
    let open = Recording::open(&dir).unwrap();
    assert_eq!(replayed(&open), items);
    assert!(!open.is_closed());
    assert!(image(&dir).keys().any(|name| name == "processes-000002.parquet"), "{:?}", image(&dir).keys());
    for path in [home.path().join("a"), dir.clone()] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    for entry in std::fs::read_dir(&dir).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn repair_closes_what_was_never_closed_and_can_be_repeated() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let items = write(&dir, 10, 3, 20_000, false);
    let before = image(&dir);
    assert!(repair(&dir, |_| true).unwrap_err().to_string().contains("still being recorded"));
    assert_eq!(image(&dir), before);
    assert_eq!(repair(&dir, |_| false).unwrap(), vec![]);
    let closed = Recording::open(&dir).unwrap();
    assert!(closed.is_closed());
    assert_eq!(replayed(&closed), items);
    let after = image(&dir);
    repair(&dir, |_| false).unwrap();
    assert_eq!(image(&dir), after);
}

#[test]
fn rows_that_are_in_a_part_and_still_in_the_tail_count_once() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let items = write(&dir, 10, 3, 1_000_000, false);
    let torn = image(&dir);
    repair(&dir, |_| false).unwrap();
    // As after a kill between the appearance of the parts and the emptying of the tails.
    for (name, bytes) in torn.iter().filter(|(name, _)| name.ends_with(".arrows")) {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    assert_eq!(replayed(&Recording::open(&dir).unwrap()), items);
    repair(&dir, |_| false).unwrap();
    assert_eq!(replayed(&Recording::open(&dir).unwrap()), items);
}

#[test]
fn a_directory_that_holds_something_is_not_recorded_into() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("thesis.tex"), "").unwrap();
    let error = Writer::create(home.path(), &run()).err().unwrap().to_string();
    assert!(error.contains("not empty"), "{error}");
    assert_eq!(image(home.path()).len(), 1);
}

#[test]
fn an_event_that_was_noticed_late_comes_at_its_time() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let mut writer = Writer::create(&dir, &run()).unwrap();
    writer.sample(&common::sample(1, 1));
    writer.sample(&common::sample(3, 1));
    writer.event(&common::event(2));
    let times: Vec<u64> = replayed(&Recording::open(&dir).unwrap())
        .iter()
        .map(|item| match item {
            Item::Sample(sample) => sample.at.0 / 1_000_000_000,
            Item::Event(event) => event.at.0 / 1_000_000_000,
        })
        .collect();
    assert_eq!(times, [1, 2, 3]);
}
