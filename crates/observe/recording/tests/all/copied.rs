//! The copy of a recording says at every moment what the recording said when it was last brought up to date.

use crate::common::{ended, event, replayed, run, sample, samples, write};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use ullage_model::Item;
use ullage_recording::{repair, Copied, Recording, RecordingCopy, Writer};

/// Names, and lengths.
fn files(dir: &Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len())).collect()
}

fn update(copy: &mut RecordingCopy) -> Copied {
    let mut reported = 0;
    let copied = copy.update(&mut || reported += 1).unwrap();
    assert_eq!(copied.writes, reported);
    copied
}

fn items(dir: &Path) -> Vec<Item> {
    let recording = Recording::open(dir).unwrap();
    assert_eq!(recording.damage, vec![], "{}", dir.display());
    replayed(&recording)
}

#[test]
fn a_copy_holds_all_that_was_written_whatever_became_a_part_meanwhile() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("run"), home.path().join("copy"));
    std::fs::create_dir(&to).unwrap();
    let mut writer = Writer::create(&from, &run()).unwrap().with_tail_bytes(400_000);
    let mut copy = RecordingCopy::new(&from, &to);
    let (mut merged, mut parts, mut most_archive) = (false, 0, 0);
    for round in 0..60u64 {
        for n in round * 20..(round + 1) * 20 {
            writer.event(&event(n));
            writer.sample(&sample(n, 60));
        }
        update(&mut copy);
        let there = files(&to);
        let now = there.keys().filter(|name| name.ends_with(".parquet")).count();
        (merged, parts) = (merged || now < parts, now);
        most_archive = most_archive.max(there["tails.zst"]);
        let own = files(&from).into_keys().filter(|name| name.ends_with(".parquet"));
        assert!(there.keys().filter(|name| name.ends_with(".parquet")).cloned().eq(own), "{there:?}");
        if round % 6 == 0 {
            assert_eq!(items(&to), items(&from), "round {round}");
            assert!(!Recording::open(&to).unwrap().is_closed());
        }
        assert_eq!(update(&mut copy), Copied::default(), "nothing is new");
    }
    assert!(merged && parts > 3, "the test should see parts merged: {parts}");
    assert!(most_archive < 600_000, "{most_archive}");
    writer.close(&ended(&run())).unwrap();
    std::fs::write(from.join("verdict.json"), "{}").unwrap();
    update(&mut copy);
    assert_eq!(files(&to), files(&from));
    assert_eq!(items(&to), items(&from));
    assert!(Recording::open(&to).unwrap().is_closed());
    let time = |dir: &Path, name: &str| std::fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    for name in files(&to).keys() {
        assert_eq!(time(&to, name), time(&from, name), "{name}");
    }
}

#[test]
fn what_a_killed_recorder_left_is_copied_and_taken_up_again() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("run"), home.path().join("copy"));
    std::fs::create_dir(&to).unwrap();
    write(&from, 30, 4, 1_000_000, false);
    let whole = items(&from);
    update(&mut RecordingCopy::new(&from, &to));
    assert_eq!(items(&to), whole);
    // Torn, as by a kill in the middle of a write; and copied by another process into the same place.
    let tail = from.join("ticks.arrows");
    let file = File::options().write(true).open(&tail).unwrap();
    file.set_len(std::fs::metadata(&tail).unwrap().len() - 5).unwrap();
    std::fs::write(to.join("run.json.7.tmp"), "half").unwrap();
    assert_eq!(update(&mut RecordingCopy::new(&from, &to)).writes, 1, "only the tails changed");
    let torn = replayed(&Recording::open(&to).unwrap());
    assert_eq!(torn, replayed(&Recording::open(&from).unwrap()));
    assert_eq!(samples(&torn), samples(&whole)[..29]);
    assert!(files(&to).keys().all(|name| !name.ends_with(".tmp")));
    // A copy is left as it is; the recording is repaired, and its copy follows.
    let before = files(&to);
    repair(&to, |_| false).unwrap();
    assert_eq!(files(&to), before);
    repair(&from, |_| false).unwrap();
    update(&mut RecordingCopy::new(&from, &to));
    assert_eq!(files(&to), files(&from));
}

#[test]
fn a_verdict_is_never_beside_an_older_run_json() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("run"), home.path().join("copy"));
    std::fs::create_dir(&to).unwrap();
    write(&from, 3, 2, 1_000_000, true);
    std::fs::write(from.join("verdict.json"), "{}").unwrap();
    // Where run.json cannot be put in place, no verdict appears.
    std::fs::create_dir_all(to.join("run.json/in the way")).unwrap();
    let mut copy = RecordingCopy::new(&from, &to);
    assert!(copy.update(&mut || ()).unwrap_err().to_string().contains("run.json"));
    assert!(!to.join("verdict.json").exists());
    std::fs::remove_dir_all(to.join("run.json")).unwrap();
    update(&mut copy);
    assert_eq!(files(&to), files(&from));
}

#[test]
fn another_archive_in_its_place_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("run"), home.path().join("copy"));
    std::fs::create_dir(&to).unwrap();
    let mut writer = Writer::create(&from, &run()).unwrap();
    let mut copy = RecordingCopy::new(&from, &to);
    for n in 0..4 {
        writer.sample(&sample(n, 3));
        update(&mut copy);
        match n {
            1 => File::options().write(true).open(to.join("tails.zst")).unwrap().set_len(9).unwrap(),
            2 => std::fs::remove_file(to.join("tails.zst")).unwrap(),
            _ => assert_eq!(items(&to), items(&from)),
        }
    }
}

#[test]
fn a_place_or_a_recording_that_is_not_there_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("run");
    write(&from, 3, 2, 1_000_000, true);
    let nowhere = home.path().join("nowhere");
    let error = RecordingCopy::new(&from, &nowhere).update(&mut || ()).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let error = RecordingCopy::new(&nowhere, &from).update(&mut || ()).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}
