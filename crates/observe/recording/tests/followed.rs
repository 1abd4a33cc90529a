//! A reader that comes again gets each sample and event once, whatever the writer did in between.
#![allow(clippy::unwrap_used)]

mod common;

use common::{ended, event, run, sample};
use proptest::prelude::*;
use ullage_model::Item;
use ullage_recording::{Follower, Writer};

fn news(follower: &mut Follower) -> Vec<Item> {
    let mut items = Vec::new();
    follower
        .news(|item| {
            items.push(item);
            true
        })
        .unwrap();
    items
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn each_item_once_and_in_order(
        steps in prop::collection::vec((0_u64..40, any::<bool>()), 1..14),
        tail_bytes in prop::sample::select(vec![2_000_u64, 20_000, 400_000]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(tail_bytes);
        let mut follower = Follower::open(&dir).unwrap();
        let (mut written, mut given, mut n) = (Vec::new(), Vec::new(), 0);
        for (ticks, with_event) in steps {
            for _ in 0..ticks {
                if with_event {
                    writer.event(&event(n));
                    written.push(Item::Event(event(n)));
                }
                writer.sample(&sample(n, 5));
                written.push(Item::Sample(Box::new(sample(n, 5))));
                n += 1;
            }
            given.extend(news(&mut follower));
            prop_assert_eq!(given.len(), written.len());
        }
        prop_assert!(follower.is_live() || n == 0);
        writer.close(&ended(&run())).unwrap();
        given.extend(news(&mut follower));
        prop_assert_eq!(&given, &written);
        prop_assert!(!follower.is_live() && follower.run.outcome.is_some());
        prop_assert!(news(&mut follower).is_empty());
    }
}

#[test]
fn what_was_not_taken_comes_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(20_000);
    let mut follower = Follower::open(&dir).unwrap();
    (0..50).for_each(|n| writer.sample(&sample(n, 3)));
    let mut given = Vec::new();
    while given.len() < 50 {
        let mut left = 7;
        follower
            .news(|item| {
                given.push(item);
                left -= 1;
                left > 0
            })
            .unwrap();
    }
    assert_eq!(common::samples(&given), (0..50).map(|n| sample(n, 3)).collect::<Vec<_>>());
}

#[test]
fn a_reader_beside_the_writer_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    const TICKS: u64 = 400;
    let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(60_000);
    let mut follower = Follower::open(&dir).unwrap();
    let writing = std::thread::spawn(move || {
        (0..TICKS).for_each(|n| writer.sample(&sample(n, 4)));
        writer.close(&ended(&run())).unwrap();
    });
    let mut given = Vec::new();
    while follower.is_live() || given.is_empty() {
        given.extend(news(&mut follower));
    }
    writing.join().unwrap();
    given.extend(news(&mut follower));
    let times: Vec<u64> = common::samples(&given).iter().map(|sample| sample.at.0 / 1_000_000_000).collect();
    assert_eq!(times, (0..TICKS).collect::<Vec<_>>());
}
