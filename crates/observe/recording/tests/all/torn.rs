//! A recording cut or damaged anywhere opens, says what is wrong, and never panics.

use crate::common::{self, image, replayed, samples, write};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use ullage_recording::{OpenError, Recording};

type Image = BTreeMap<String, Vec<u8>>;

fn recorded(ticks: u64, tail_bytes: u64, close: bool) -> Image {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    write(&dir, ticks, 2, tail_bytes, close);
    image(&dir)
}

/// The lengths of the files after each sample: where a kill between two samples would have left them.
fn growth(ticks: u64) -> Vec<Image> {
    (0..=ticks).map(|ticks| recorded(ticks, 1_000_000, false)).collect()
}

/// The files in the order in which a sample writes them.
const ORDER: [&str; 9] = [
    "events",
    "processes",
    "mappings",
    "descriptors",
    "filesystems",
    "cgroups",
    "segments",
    "pages",
    "ticks",
];

#[test]
fn a_kill_at_any_byte_of_a_sample_loses_that_sample_at_most() {
    let ticks = 2;
    let states = growth(ticks);
    let whole = samples(&replayed(&Recording::from_image(states[ticks as usize].clone()).unwrap()));
    let mut cuts = 0;
    for (done, pair) in (0..).zip(states.windows(2)) {
        let (before, after) = (&pair[0], &pair[1]);
        // Files written before the cut one are as after the sample, later ones as before it.
        for (cut, table) in ORDER.iter().enumerate() {
            let name = |table: usize| format!("{}.arrows", ORDER[table]);
            let from = before.get(&name(cut)).map_or(0, Vec::len);
            let Some(full) = after.get(&name(cut)) else { continue };
            for length in from..=full.len() {
                let mut torn = before.clone();
                for earlier in 0..cut {
                    torn.extend(after.get(&name(earlier)).map(|bytes| (name(earlier), bytes.clone())));
                }
                torn.insert(name(cut), full[..length].to_vec());
                let recording = Recording::from_image(torn).unwrap();
                let read = samples(&replayed(&recording));
                let complete = cut == ORDER.len() - 1 && length == full.len();
                let expected = done + usize::from(complete);
                assert_eq!(read, whole[..expected], "{table} cut at {length} after {done}");
                cuts += 1;
            }
        }
    }
    assert!(cuts > 6_000, "{cuts} cuts");
}

#[test]
fn a_cut_inside_a_record_is_reported_with_file_and_place() {
    let mut torn = recorded(3, 1_000_000, false);
    let ticks = torn.get_mut("ticks.arrows").unwrap();
    ticks.truncate(ticks.len() - 5);
    let recording = Recording::from_image(torn).unwrap();
    let reported: Vec<String> = recording.damage.iter().map(ToString::to_string).collect();
    assert!(
        reported[0].starts_with("ticks.arrows at byte ") && reported[0].contains("ends inside a record"),
        "{reported:?}"
    );
    assert!(reported[1].contains("sample 2 was being written"), "{reported:?}");
    assert_eq!(samples(&replayed(&recording)).len(), 2);
}

#[test]
fn a_damaged_record_in_the_middle_costs_its_own_samples_only() {
    let mut damaged = recorded(9, 1_000_000, false);
    let tail = damaged.get_mut("processes.arrows").unwrap();
    let middle = tail.len() / 2 / 8 * 8;
    tail[middle - 400..middle].fill(0xee);
    let recording = Recording::from_image(damaged).unwrap();
    let mut replay = recording.replay();
    let read = samples(&replay.by_ref().collect::<Vec<_>>());
    assert!((6..9).contains(&read.len()), "{} samples", read.len());
    assert!(!recording.damage.is_empty());
    assert!(replay.damage()[0].what.contains("incomplete"), "{:?}", replay.damage());
}

#[test]
fn a_sample_with_a_row_that_is_not_understood_is_left_out_and_reported() {
    let mut damaged = recorded(3, 1_000_000, false);
    let tail = damaged.get_mut("processes.arrows").unwrap();
    let states = tail.windows(6).enumerate().filter(|(_, bytes)| bytes == b"zombie");
    // Of sample 1: no other table has a row of that process there.
    let state = states.map(|(at, _)| at).nth(1).unwrap();
    tail[state] = b'x';
    let recording = Recording::from_image(damaged).unwrap();
    let mut replay = recording.replay();
    assert_eq!(samples(&replay.by_ref().collect::<Vec<_>>()).len(), 2);
    let reported: Vec<String> = replay.damage().iter().map(ToString::to_string).collect();
    assert!(
        reported.iter().any(|damage| damage.contains("`state` is no state of a process")),
        "{reported:?}"
    );
    assert!(reported.iter().any(|damage| damage.contains("sample 1 is incomplete")), "{reported:?}");
}

#[test]
fn a_part_that_is_gone_or_cut_costs_its_own_samples_only() {
    let whole = recorded(40, 20_000, false);
    let part = "processes-000002.parquet";
    assert!(whole.contains_key(part));
    let mut gone = whole.clone();
    gone.remove(part);
    let mut cut = whole.clone();
    cut.get_mut(part).unwrap().truncate(300);
    for (image, reported_at_opening) in [(gone, 0), (cut, 1)] {
        let recording = Recording::from_image(image).unwrap();
        assert_eq!(recording.damage.len(), reported_at_opening, "{:?}", recording.damage);
        let mut replay = recording.replay();
        let read = samples(&replay.by_ref().collect::<Vec<_>>()).len();
        assert!((20..40).contains(&read), "{read} samples");
        assert!(replay.damage()[0].what.starts_with("samples "), "{:?}", replay.damage());
    }
}

#[test]
fn what_is_no_recording_is_refused_with_what_to_do() {
    let error = |image: Image| Recording::from_image(image).err().unwrap();
    assert!(matches!(error(Image::new()), OpenError::NotARecording { .. }));
    let newer = error(Image::from([("run.json".into(), br#"{"format":2,"new":true}"#.to_vec())]));
    assert!(newer.to_string().contains("install a newer ullage"), "{newer}");
    let other = error(Image::from([("run.json".into(), br#"{"scripts":{}}"#.to_vec())]));
    assert!(matches!(other, OpenError::NotARecording { .. }));
    assert!(matches!(Recording::open("/nonexistent/x"), Err(OpenError::NotFound { .. })));
    assert!(matches!(Recording::open("/dev/null"), Err(OpenError::NotARecording { .. })));
}

#[test]
fn samples_are_readable_where_run_json_is_damaged() {
    let mut damaged = recorded(3, 1_000_000, true);
    damaged.get_mut("run.json").unwrap().truncate(40);
    let recording = Recording::from_image(damaged).unwrap();
    assert!(recording.damage[0].to_string().starts_with("run.json: "), "{:?}", recording.damage);
    assert_eq!(samples(&replayed(&recording)).len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn damaged_bytes_never_panic(
        closed in any::<bool>(),
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static OPEN: LazyLock<Image> = LazyLock::new(|| recorded(4, 10_000, false));
        static CLOSED: LazyLock<Image> = LazyLock::new(|| recorded(4, 10_000, true));
        let mut image = if closed { CLOSED.clone() } else { OPEN.clone() };
        let name = file.get(&image.keys().cloned().collect::<Vec<_>>()).clone();
        let bytes = image.get_mut(&name).unwrap();
        for (place, value) in changes {
            *place.get_mut(bytes) = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(recording) = Recording::from_image(image) {
            let _ = replayed(&recording).len();
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut image = recorded(1, 1_000_000, false);
        for name in ["ticks.arrows", "processes.arrows", "events-000001.parquet"] {
            image.insert(name.into(), bytes.clone());
            let recording = Recording::from_image(image.clone()).unwrap();
            let _ = replayed(&recording).len();
        }
    }
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let writer = ullage_recording::Writer::create(&dir, &common::run()).unwrap();
    drop(writer);
    for (name, node) in [("ticks.arrows", "p"), ("events.arrows", "p")] {
        assert!(std::process::Command::new("mknod")
            .arg(dir.join(name))
            .arg(node)
            .status()
            .unwrap()
            .success());
    }
    std::os::unix::fs::symlink("/dev/zero", dir.join("processes.arrows")).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let refused = recording.damage.iter().filter(|damage| damage.what.contains("not a regular file"));
    assert_eq!(refused.count(), 3, "{:?}", recording.damage);

    std::fs::remove_file(dir.join("run.json")).unwrap();
    assert!(std::process::Command::new("mknod")
        .arg(dir.join("run.json"))
        .arg("p")
        .status()
        .unwrap()
        .success());
    assert!(Recording::open(&dir).unwrap_err().to_string().contains("not a regular file"));
}
