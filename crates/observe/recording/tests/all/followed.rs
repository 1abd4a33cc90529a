//! A reader that comes again gets each sample and event once, whatever the writer did in between.

use crate::common::{self, ended, event, run, sample};
use proptest::prelude::*;
use ullage_model::Item;
use ullage_recording::{Follower, Writer};

/// Those of so many that are not there; more than once is one too many.
fn missing(items: &[Item], samples: u64) -> Vec<u64> {
    let numbers = numbers(items);
    assert!(numbers.is_sorted_by(|a, b| a < b), "out of order or twice");
    (0..samples).filter(|n| !numbers.contains(n)).collect()
}

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

fn numbers(items: &[Item]) -> Vec<u64> {
    common::samples(items).iter().map(|sample| sample.at.0 / 1_000_000_000).collect()
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

/// The worst moment to look: the part is there, the tail not yet emptied, and at the next look it has grown to more than
/// it was, with a record where the one that was read last ended.
#[test]
fn a_tail_that_began_anew_and_grew_to_the_same_length_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, seen) = (folder.path().join("run"), folder.path().join("seen"));
    let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(60_000);
    std::fs::create_dir(&seen).unwrap();
    let copy = |which: &dyn Fn(&str) -> bool| {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if which(&name) {
                std::fs::write(seen.join(&name), std::fs::read(dir.join(&name)).unwrap()).unwrap();
            }
        }
    };
    let parts = || {
        let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().is_some_and(|name| name.ends_with(".parquet"))).count()
    };
    let mut n = 0;
    while parts() == 0 {
        copy(&|_| true);
        writer.sample(&sample(n, 4));
        n += 1;
    }
    let mut follower = Follower::open(&seen).unwrap();
    let mut given = news(&mut follower);
    assert!(given.len() > 5, "{} samples before the first part", given.len());
    copy(&|name| !name.starts_with("ticks") || name.ends_with(".parquet"));
    given.extend(news(&mut follower));
    // The ticks, which moved first, fill their tail once more.
    let until = 2 * n - 1;
    while n < until {
        writer.sample(&sample(n, 4));
        n += 1;
    }
    copy(&|_| true);
    given.extend(news(&mut follower));
    assert_eq!(missing(&given, n), [0; 0]);
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
    assert_eq!(missing(&given, TICKS), [0; 0]);
}
