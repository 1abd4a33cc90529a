//! A full or read-only disk: the writer says so once, stays silent, and leaves what it wrote readable.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{ended, image, replayed, run, sample, samples};
use std::path::Path;
use std::process::Command;
use ullage_recording::{repair, Recording, Writer};

const DIRECTORY: &str = "ULLAGE_TEST_FULL_DISK";

/// Not a test of its own: runs inside a mount namespace where the directory is a tmpfs of 1 MB.
#[test]
fn inside_a_small_disk() {
    let Some(disk) = std::env::var_os(DIRECTORY) else { return };
    let dir = Path::new(&disk).join("run");
    let mut writer = Writer::create(&dir, &run()).unwrap();
    let mut written = 0;
    while writer.trouble().is_none() {
        writer.sample(&sample(written, 50));
        written += 1;
        assert!(written < 10_000, "the disk does not get full");
    }
    let trouble = writer.trouble().unwrap().to_owned();
    assert!(trouble.contains("No space left"), "{trouble}");
    let held = image(&dir);
    writer.sample(&sample(written, 50));
    writer.event(&common::event(1));
    assert_eq!(writer.trouble(), Some(&*trouble));
    assert_eq!(image(&dir), held, "silent after the first error");
    let error = writer.close(&ended(&run())).unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");

    let check = || {
        let recording = Recording::open(&dir).unwrap();
        let torn = recording.damage.iter().find(|damage| damage.what.contains("inside a record"));
        assert_eq!(torn, None, "the failed write was taken back");
        let read = samples(&replayed(&recording));
        assert_eq!(read.len() as u64, written - 1);
        assert!(read.iter().zip(0..).all(|(read, n)| *read == sample(n, 50)));
    };
    check();
    // No room for parts; with room it is repaired.
    assert!(repair(&dir, |_| false).is_err());
    check();
    let larger = Command::new("mount").args(["-o", "remount,size=8m"]).arg(&disk).status().unwrap();
    assert!(larger.success());
    repair(&dir, |_| false).unwrap();
    check();
    assert!(Recording::open(&dir).unwrap().is_closed());

    let read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().unwrap();
    assert!(read_only.success());
    let error = Writer::create(Path::new(&disk).join("other"), &run()).err().unwrap().to_string();
    assert!(error.contains("Read-only file system") && error.contains("ULLAGE_HOME"), "{error}");
    println!("went through");
}

#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let script =
        r#"mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" --exact inside_a_small_disk --nocapture"#;
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
