//! Small parts become large ones, and at no moment of that is a row lost or read twice.

use crate::common::{ended, image, replayed, run, sample, samples, write};
use std::collections::BTreeMap;
use std::path::Path;
use ullage_recording::{repair, Recording, Writer};

type Image = BTreeMap<String, Vec<u8>>;

fn parts(image: &Image, table: &str) -> Vec<String> {
    image.keys().filter(|name| name.starts_with(table) && name.ends_with(".parquet")).cloned().collect()
}

fn put(dir: &Path, image: &Image) {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir(dir).unwrap();
    image.iter().for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes).unwrap());
}

#[test]
fn a_closed_and_a_repaired_recording_have_one_part_a_table() {
    let home = tempfile::tempdir().unwrap();
    let (closed, torn) = (home.path().join("closed"), home.path().join("torn"));
    let items = write(&closed, 40, 5, 20_000, true);
    write(&torn, 40, 5, 20_000, false);
    assert!(parts(&image(&torn), "processes").len() > 5);
    repair(&torn, |_| false).unwrap();
    for dir in [closed, torn] {
        let image = image(&dir);
        for table in ["ticks", "processes", "mappings", "descriptors", "filesystems", "cgroups", "events"] {
            assert_eq!(parts(&image, table), [format!("{table}-000001.parquet")]);
        }
        assert_eq!(image.len(), 8, "{:?}", image.keys());
        assert_eq!(replayed(&Recording::open(&dir).unwrap()), items);
    }
}

/// As after a kill at each place of the merging: the large part is there, and some of the small ones.
#[test]
fn a_kill_while_parts_are_merged_loses_nothing_and_doubles_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let items = write(&dir, 40, 5, 20_000, false);
    let before = image(&dir);
    repair(&dir, |_| false).unwrap();
    let merged = image(&dir);
    let small = parts(&before, "processes");
    for gone in 1..=small.len() {
        let mut between = before.clone();
        between.insert("processes-000001.parquet".into(), merged["processes-000001.parquet"].clone());
        small[1..gone].iter().for_each(|name| drop(between.remove(name)));
        between.insert("processes-000001.parquet.tmp".into(), vec![1; 100]);
        put(&dir, &between);
        let recording = Recording::open(&dir).unwrap();
        assert_eq!(recording.damage, []);
        assert_eq!(replayed(&recording), items, "{gone} parts are gone");
        repair(&dir, |_| false).unwrap();
        assert_eq!(image(&dir).keys().collect::<Vec<_>>(), merged.keys().collect::<Vec<_>>());
        assert_eq!(replayed(&Recording::open(&dir).unwrap()), items, "{gone} parts were gone");
    }
}

#[test]
fn a_reader_that_opened_a_recording_before_its_parts_were_merged_still_reads_all() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let items = write(&dir, 40, 5, 20_000, false);
    let opened = Recording::open(&dir).unwrap();
    let mut begun = opened.replay();
    let first = begun.by_ref().take(3).collect::<Vec<_>>();
    repair(&dir, |_| false).unwrap();
    let mut replay = opened.replay();
    assert_eq!(replay.by_ref().collect::<Vec<_>>(), items);
    assert_eq!(replay.damage(), []);
    assert_eq!(first.into_iter().chain(begun.by_ref()).collect::<Vec<_>>(), items);
    assert_eq!(begun.damage(), []);
}

#[test]
fn a_part_that_cannot_be_read_is_left_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, 40, 5, 20_000, false);
    let mut damaged = image(&dir);
    damaged.get_mut("processes-000003.parquet").unwrap().truncate(100);
    put(&dir, &damaged);
    let before = samples(&replayed(&Recording::open(&dir).unwrap()));
    assert!(before.len() > 10);
    repair(&dir, |_| false).unwrap();
    assert_eq!(image(&dir)["processes-000003.parquet"].len(), 100);
    assert_eq!(samples(&replayed(&Recording::open(&dir).unwrap())), before);
}

/// 1,600 samples of 70 processes are 112,000 rows, and parts are merged into ones of a little more than 40,000.
#[test]
fn a_long_recording_is_merged_while_it_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let mut writer = Writer::create(&dir, &run()).unwrap().with_tail_bytes(1_000_000);
    for n in 0..1600 {
        writer.sample(&sample(n, 70));
    }
    let open = parts(&image(&dir), "processes");
    assert!(open.last().unwrap().as_str() > "processes-000060" && open.len() < 35, "{open:?}");
    writer.close(&ended(&run())).unwrap();
    let closed = parts(&image(&dir), "processes");
    assert_eq!(closed.len(), 3, "{closed:?}");
    let recording = Recording::open(&dir).unwrap();
    let mut expected = 0;
    for read in samples(&replayed(&recording)) {
        assert_eq!(read, sample(expected, 70));
        expected += 1;
    }
    assert_eq!(expected, 1600);
}
