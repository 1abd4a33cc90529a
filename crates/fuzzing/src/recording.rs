//! The reader of recordings, fed from memory: a damaged run.json, a torn tail, and whole directories.

use std::collections::BTreeMap;
use ullage_diagnosis::{diagnose, Timeline};
use ullage_model::{RunFacts, Source};
use ullage_recording::Recording;

/// Names of the files that `pack` and the entries below know: the facts of the run, and each table's tail and
/// first part.
const FILES: [&str; 15] = [
    "run.json",
    "ticks.arrows",
    "processes.arrows",
    "mappings.arrows",
    "descriptors.arrows",
    "filesystems.arrows",
    "cgroups.arrows",
    "events.arrows",
    "ticks-000001.parquet",
    "processes-000001.parquet",
    "mappings-000001.parquet",
    "descriptors-000001.parquet",
    "filesystems-000001.parquet",
    "cgroups-000001.parquet",
    "events-000001.parquet",
];

pub(crate) fn run_json(bytes: &[u8]) {
    let _ = serde_json::from_slice::<RunFacts>(bytes);
    read([(FILES[0].to_owned(), bytes.to_vec())].into());
}

/// The bytes as each table's tail in turn, beside a run.json that says nothing.
pub(crate) fn tail(bytes: &[u8]) {
    for name in &FILES[1..8] {
        read([(FILES[0].to_owned(), b"{}".to_vec()), ((*name).to_owned(), bytes.to_vec())].into());
    }
}

/// A whole directory, as `pack` writes it.
pub(crate) fn image(bytes: &[u8]) {
    read(unpack(bytes));
}

/// A directory's files as one input: for each a byte with its number, four with its length, and its bytes.
/// Files of other names are left out.
pub fn pack(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, name) in FILES.iter().enumerate() {
        if let Some(bytes) = files.get(*name) {
            out.push(u8::try_from(number).unwrap_or(u8::MAX));
            out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(bytes);
        }
    }
    out
}

fn unpack(mut bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    while let [number, a, b, c, d, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let (file, after) = rest.split_at(length.min(rest.len()));
        let name = FILES[usize::from(*number) % FILES.len()];
        files.insert(name.to_owned(), file.to_vec());
        bytes = after;
    }
    files
}

/// Opens, replays, judges and shows.
fn read(files: BTreeMap<String, Vec<u8>>) {
    let Ok(recording) = Recording::from_image(files) else { return };
    let mut replay = recording.replay();
    let mut timeline = Timeline::default();
    // A source that never ended would hang the report.
    for _ in 0..100_000 {
        match replay.next_item() {
            Ok(Some(item)) => timeline.push(item),
            Ok(None) => {
                let verdict = diagnose(&recording.run, &timeline);
                let _ = ullage_report::json::verdict(&verdict);
                let style = ullage_report::text::Style::plain(80);
                let _ = ullage_report::text::verdict(&verdict, &style);
                let _ = ullage_report::text::summary(&verdict, Some("194058"), &style);
                return;
            }
            Err(_) => return,
        }
    }
    panic!("the replay does not end");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let files: BTreeMap<String, Vec<u8>> =
            [("run.json".to_owned(), b"{}".to_vec()), ("events.arrows".to_owned(), vec![1, 2, 3])].into();
        assert_eq!(unpack(&pack(&files)), files);
        assert_eq!(unpack(&[0, 255, 0, 0, 0, 7]), [("run.json".to_owned(), vec![7])].into());
    }
}
