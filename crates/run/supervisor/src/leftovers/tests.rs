//! Real files and real System V segments; the folder stands for /dev/shm.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use std::fs;

/// A pid that no process has: above the largest that the kernel gives.
const NOBODY: i32 = 0x7fff_fff0;

fn path(survey: &Survey) -> Vec<String> {
    let name = |place: &Place| match place {
        Place::File { path, .. } => path.file_name().unwrap().to_string_lossy().into_owned(),
        Place::Sysv { id, .. } => format!("shmid {id}"),
    };
    survey
        .orphans
        .iter()
        .map(|orphan| name(&orphan.place))
        .filter(|name| !name.starts_with("shmid"))
        .collect()
}

/// A test beside this one may have forked meanwhile: until its child executes, that has all files open too.
fn until_closed(path: &Path) {
    let end = Instant::now() + Duration::from_secs(10);
    let free = || Lease::take(fs::OpenOptions::new().write(true).open(path).unwrap().into()).is_ok();
    while !free() && Instant::now() < end {
        std::thread::yield_now();
    }
}

#[test]
fn only_unused_files_of_dead_makers_are_orphans() {
    let folder = tempfile::tempdir().unwrap();
    let shm = folder.path();
    let root = KernelRoot::live();
    let own = std::process::id();
    let write = |name: &str| {
        fs::write(shm.join(name), [1; 4096]).unwrap();
        until_closed(&shm.join(name));
    };
    let (left, held, mine) =
        (format!("torch_{NOBODY}_1_0"), format!("torch_{NOBODY}_1_1"), format!("torch_{own}_1_0"));
    for name in [&left, &held, &mine, &"dataset.bin".to_owned()] {
        write(name);
    }
    let user = fs::File::open(shm.join(&held)).unwrap();
    let first = survey(&root, shm);
    assert_eq!(path(&first), std::slice::from_ref(&left));
    assert_eq!((first.in_use.count >= 1, first.unknown.count), (true, 1), "{first:?}");
    assert!(first.retained.iter().any(|retained| retained.because.contains(&own.to_string())));

    // It is opened between the survey and the removal.
    let orphan =
        first.orphans.iter().find(|orphan| matches!(orphan.place, Place::File { .. })).unwrap().clone();
    let late = fs::File::open(shm.join(&left)).unwrap();
    assert!(matches!(Remover::new(&root, shm).remove(&orphan), Err(Refusal::InUse)));
    drop(late);
    until_closed(&shm.join(&left));
    // Another file takes its name.
    fs::rename(shm.join(&left), shm.join("aside")).unwrap();
    write(&left);
    assert!(matches!(Remover::new(&root, shm).remove(&orphan), Err(Refusal::Changed)));
    fs::rename(shm.join("aside"), shm.join(&left)).unwrap();

    Remover::new(&root, shm).remove(&orphan).unwrap();
    assert!(!shm.join(&left).exists() && shm.join(&held).exists());
    assert!(matches!(Remover::new(&root, shm).remove(&orphan), Err(Refusal::Gone)));
    drop(user);
    until_closed(&shm.join(&held));
    assert_eq!(path(&survey(&root, shm)), [held]);
}

#[test]
fn links_are_neither_followed_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("precious");
    fs::write(&target, "x").unwrap();
    let shm = folder.path().join("shm");
    fs::create_dir(&shm).unwrap();
    let name = format!("torch_{NOBODY}_1_0");
    std::os::unix::fs::symlink(&target, shm.join(&name)).unwrap();
    let root = KernelRoot::live();
    let found = survey(&root, &shm);
    assert_eq!((path(&found).len(), found.unknown.count), (0, 1));
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(shm.join(&name)).unwrap());
    let forged = Leftover {
        place: Place::File { path: shm.join(&name), inode },
        bytes: 0,
        age_s: 0.0,
        maker: None,
        because: String::new(),
    };
    assert!(Remover::new(&root, &shm).remove(&forged).is_err());
    assert!(target.exists() && shm.join(&name).is_symlink());
}
