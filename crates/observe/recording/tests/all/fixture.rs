//! Format 1 stays readable: a recording made by its first version reads as it did then.

use crate::common::{ended, event, image, replayed, run, sample};
use std::path::{Path, PathBuf};
use ullage_model::{Item, RunFacts};
use ullage_recording::{Recording, Writer};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/recordings").join(name)
}

fn items() -> Vec<Item> {
    let one = |n| [Item::Event(event(n)), Item::Sample(Box::new(sample(n, 3)))];
    (0..12).flat_map(one).collect()
}

fn make(dir: &Path, close: bool) {
    let mut writer = Writer::create(dir, &run()).unwrap().with_tail_bytes(12_000);
    for item in items() {
        match item {
            Item::Sample(sample) => writer.sample(&sample),
            Item::Event(event) => writer.event(&event),
        }
    }
    if close {
        writer.close(&ended(&run())).unwrap();
    }
}

/// `cargo test -p ullage-recording --test fixture -- --ignored` makes them anew; see the README beside them.
#[test]
#[ignore = "overwrites the fixtures"]
fn make_the_fixtures() {
    for (name, close) in [("1-small", true), ("1-killed", false)] {
        let _ = std::fs::remove_dir_all(fixture(name));
        make(&fixture(name), close);
    }
}

#[test]
fn recordings_of_format_1_are_read() {
    for (name, facts) in [("1-small", ended(&run())), ("1-killed", run())] {
        let recording = Recording::open(fixture(name)).unwrap();
        assert_eq!(recording.damage, [], "{name}");
        assert_eq!(recording.run, RunFacts { format: 1, ..facts }, "{name}");
        assert_eq!(recording.is_closed(), name == "1-small");
        assert_eq!(replayed(&recording), items(), "{name}");
        assert_eq!(image(&fixture(name)).contains_key("ticks.arrows"), name == "1-killed");
    }
}
