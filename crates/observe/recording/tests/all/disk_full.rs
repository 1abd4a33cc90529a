//! A full or read-only disk: what does not fit is left out and told, what comes when there is room again is recorded.

use crate::common::{ended, image, replayed, run, sample, samples};
use std::path::Path;
use std::process::Command;
use ullage_model::{Event, EventKind, Item};
use ullage_recording::{Recording, Writer};

const DIRECTORY: &str = "ULLAGE_TEST_FULL_DISK";

/// Not a test of its own: runs inside a mount namespace where the directory is a tmpfs of 1 MB.
#[test]
fn inside_a_small_disk() {
    let Some(disk) = std::env::var_os(DIRECTORY) else { return };
    let dir = Path::new(&disk).join("run");
    let mut writer = Writer::create(&dir, &run()).unwrap();
    let mut n = 0;
    while writer.lost().is_empty() {
        writer.sample(&sample(n, 50));
        n += 1;
        assert!(n < 10_000, "the disk does not get full");
    }
    n -= 1;
    let held = image(&dir);
    for _ in 0..3 {
        writer.sample(&sample(n, 50));
    }
    let after = image(&dir);
    assert!(
        held.iter().all(|(name, bytes)| after[name].len() == bytes.len()),
        "what is lost leaves no trace"
    );
    let lost = writer.lost();
    assert!(lost.len() == 1 && lost[0].contains("4 samples and 0 events"), "{lost:?}");
    assert!(lost[0].contains("No space left"), "{lost:?}");
    let read = |dir: &Path| {
        let recording = Recording::open(dir).unwrap();
        assert_eq!(recording.damage, []);
        samples(&replayed(&recording))
    };
    assert_eq!(read(&dir), (0..n).map(|n| sample(n, 50)).collect::<Vec<_>>());

    let resize = |options: &str| {
        let done = Command::new("mount").args(["-o", options]).arg(&disk).status().unwrap();
        assert!(done.success(), "{options}");
    };
    resize("remount,size=2m");
    for _ in 0..2 {
        writer.sample(&sample(n, 50));
        n += 1;
    }
    let all: Vec<_> = (0..n).map(|n| sample(n, 50)).collect();
    assert_eq!(read(&dir), all, "it goes on when there is room");
    let reported = replayed(&Recording::open(&dir).unwrap()).iter().any(|item| {
        matches!(item, Item::Event(Event { what: EventKind::NotSeen { text }, .. }) if text.contains("4 samples"))
    });
    assert!(reported, "a recording that is never closed says so too");
    let lost = writer.lost();
    assert!(lost.len() == 1 && lost[0].contains(" to "), "{lost:?}");

    // Full again, now to the end.
    while writer.lost().len() == 1 {
        writer.sample(&sample(n, 50));
        n += 1;
        assert!(n < 100_000, "the disk does not get full");
    }
    // To the last byte.
    let mut filler = std::fs::File::create(Path::new(&disk).join("filler")).unwrap();
    while std::io::Write::write(&mut filler, &[1; 4096]).is_ok_and(|written| written > 0) {}
    drop(filler);
    // What was set aside lets the facts be replaced, which makes room for the first part, and that for the next.
    writer.close(&ended(&run())).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.run.outcome, ended(&run()).outcome, "how it ended is told on a full disk");
    assert!(recording.is_closed());
    assert_eq!(read(&dir).len() as u64, n - 1);

    let read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().unwrap();
    assert!(read_only.success());
    let error = Writer::create(Path::new(&disk).join("other"), &run()).err().unwrap().to_string();
    assert!(error.contains("Read-only file system") && error.contains("ULLAGE_HOME"), "{error}");
    println!("went through");
}

#[test]
fn a_full_disk_costs_the_samples_that_find_no_room_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" --exact disk_full::inside_a_small_disk --nocapture"#;
    let output = Command::new("unshare")
        .args(["--mount", "--", "sh", "-c", script, "sh"])
        .arg(home.path())
        .arg(std::env::current_exe().unwrap())
        .env(DIRECTORY, home.path())
        .output();
    let Ok(output) = output else { return eprintln!("skipped: there is no unshare(1)") };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("Operation not permitted") || errors.contains("must be superuser") {
        return eprintln!("skipped: no right to mount here ({})", errors.trim());
    }
    assert!(output.status.success() && said.contains("went through"), "{said}\n{errors}");
}
