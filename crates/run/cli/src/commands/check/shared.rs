//! Is there room for what processes share, and who left what there? /dev/shm with its inodes, segments that dead
//! processes left, and the folder of temporary files.

use super::checked::Check;
use std::path::Path;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{FilesystemReading, FilesystemUse, Limit};
use ullage_report::format;
use ullage_report::text::CheckState;
use ullage_supervisor::leftovers::{survey, Survey};

const SHM: &str = "/dev/shm";
/// Room for some batches of some workers; below a page or two for each worker nothing goes at all.
const ROOM: u64 = 1 << 30;
const NO_ROOM: u64 = 1 << 20;
/// As many as there may be mappings.
const INODES: u64 = 65_536;
const NO_INODES: u64 = 16;
/// Files of unknown origin are worth a line from here on: people keep small ones there on purpose.
const UNKNOWN: u64 = 512 << 20;

pub(super) fn checks(root: &KernelRoot, own: &ProcessDir) -> Vec<Check> {
    if let Err(errno) = rustix::fs::access(SHM, rustix::fs::Access::WRITE_OK) {
        let meaning = "torch and multiprocessing cannot share anything without it.";
        let fix = match errno {
            rustix::io::Errno::NOENT => "mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm",
            _ => "mount -o remount,rw,mode=1777 /dev/shm",
        };
        return vec![Check::fine(SHM, format!("not writable: {errno}")).judged(
            CheckState::Bad,
            meaning,
            fix,
        )];
    }
    let shm = match own.filesystem(SHM, FilesystemUse::Shm) {
        Ok(shm) => shm,
        Err(error) => return vec![Check::unknown(SHM, error.to_string())],
    };
    let found = survey(root, Path::new(SHM));
    let mut checks = vec![bytes(&shm), inodes(&shm)];
    checks.extend(left_behind(&found));
    checks
}

fn bytes(shm: &FilesystemReading) -> Check {
    let value = format!("{} used of {}", format::bytes(shm.used.0), format::limit(shm.size, "bytes"));
    let check = Check::fine(SHM, value).figures(Some(shm.used.0), shm.size, "bytes");
    if !shm.tmpfs {
        return check.careful(
            "It is not a tmpfs: shared data is written to a disk.",
            "mount -t tmpfs tmpfs /dev/shm",
        );
    }
    let meaning = "Batches of DataLoader workers travel through it. Docker: --shm-size=16g; Kubernetes: an emptyDir with medium Memory mounted there.";
    let wanted = shm.size.at().map_or(16, |size| (size >> 29).max(16));
    let fix = format!("mount -o remount,size={wanted}G /dev/shm");
    match shm.size.headroom(shm.used.0) {
        Some(left) if left < NO_ROOM => check.judged(CheckState::Bad, meaning, fix),
        Some(left) if left < ROOM => check.careful(meaning, fix),
        _ => check,
    }
}

fn inodes(shm: &FilesystemReading) -> Check {
    let value = format!("{} used of {}", format::count(shm.inodes_used), format::limit(shm.inodes, ""));
    let check = Check::fine("/dev/shm inodes", value).figures(Some(shm.inodes_used), shm.inodes, "inodes");
    let (meaning, fix) = ("Each shared tensor is a file.", "mount -o remount,nr_inodes=0 /dev/shm");
    match shm.inodes.headroom(shm.inodes_used) {
        Some(left) if left < NO_INODES => check.judged(CheckState::Bad, meaning, fix),
        Some(left) if left < INODES => check.careful(meaning, fix),
        _ => check,
    }
}

fn left_behind(found: &Survey) -> Vec<Check> {
    let segments = |bytes: u64, count: u64| {
        format!(
            "{} in {} {}",
            format::bytes(bytes),
            format::count(count),
            if count == 1 { "segment" } else { "segments" }
        )
    };
    let bytes: u64 = found.orphans.iter().map(|orphan| orphan.bytes).sum();
    let count = found.orphans.len() as u64;
    let check = Check::fine(
        "orphaned shared memory",
        if count == 0 { "none".into() } else { segments(bytes, count) },
    );
    let check = check.figures(Some(bytes), Limit::Unlimited, "bytes");
    let mut checks = vec![match found.orphans.first() {
        None if found.cannot_know.is_empty() => check,
        None => Check::unknown("orphaned shared memory", found.cannot_know.join(" ")),
        Some(largest) => check.careful(
            format!(
                "Your dead processes left it. It takes memory until it is removed. The largest: {}, {}; {}.",
                super::super::clean::what(&largest.place),
                format::bytes(largest.bytes),
                largest.because
            ),
            "ullage check --clean",
        ),
    }];
    if found.unknown.bytes >= UNKNOWN {
        let value = segments(found.unknown.bytes, found.unknown.count);
        let check = Check::fine("unused files in /dev/shm", value);
        checks.push(check.figures(Some(found.unknown.bytes), Limit::Unlimited, "bytes").careful(
            "No process has them open, and their names do not identify the creator. They take memory: remove the ones that you do not need.",
            "ls -lS /dev/shm | head",
        ));
    }
    checks
}

pub(super) fn temporary(own: &ProcessDir) -> Check {
    const NAME: &str = "temporary files";
    let folder =
        std::env::var("TMPDIR").ok().filter(|path| path.starts_with('/')).unwrap_or_else(|| "/tmp".into());
    if let Err(errno) = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        let meaning = "torch_shm_manager, compilers and joblib keep files there.";
        let check = Check::fine(NAME, format!("{folder} cannot be written: {errno}"));
        return check.judged(CheckState::Bad, meaning, "export TMPDIR=/tmp");
    }
    let read = match own.filesystem(&folder, FilesystemUse::Temporary) {
        Ok(read) => read,
        Err(error) => return Check::unknown(NAME, error.to_string()),
    };
    let value =
        format!("{} used of {} in {folder}", format::bytes(read.used.0), format::limit(read.size, "bytes"));
    let check = Check::fine(NAME, value).figures(Some(read.used.0), read.size, "bytes");
    match read.size.headroom(read.used.0) {
        Some(left) if left < ROOM => check.careful(
            "When it is full, the error often mentions memory: joblib, torch.compile and spilled data use it.",
            "export TMPDIR=/a/folder/with/room",
        ),
        _ => check,
    }
}
