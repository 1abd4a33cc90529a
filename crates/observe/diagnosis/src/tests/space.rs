//! shm-full-bytes, tmpfs-inodes and disk-full-tmp.

use super::build::*;
use ullage_model::{CountsAtFailure, Ending, FilesystemReading, FilesystemUse, Status};

fn enospc(text: &str, set: impl FnOnce(&mut CountsAtFailure)) -> Run {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("RuntimeError", text);
    set(&mut report.counts);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run
}

const SHM: &str =
    "unable to allocate shared memory(shm) for file </torch_7636_358177654_8>: No space left on device (28)";

#[test]
fn a_full_shm_is_established_by_the_counts() {
    let verdict = enospc(SHM, |counts| {
        counts.shm_used = Some(63 * MIB);
        counts.shm_size = Some(64 * MIB);
        counts.shm_inodes_used = Some(40);
        counts.shm_inodes = Some(1 << 20);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["shm-full-bytes"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    assert!(verdict.findings[0].fixes.iter().any(|fix| fix.command.contains("--shm-size=8g")));
    assert!(!verdict.findings[0].fixes.iter().any(|fix| fix.command.contains("mount")), "not root");
}

#[test]
fn no_inode_left_is_distinguished_from_no_byte_left() {
    let text =
        "unable to open shared memory object </torch_1_2_3> in read-write mode: No space left on device (28)";
    let verdict = enospc(text, |counts| {
        counts.shm_used = Some(MIB);
        counts.shm_size = Some(GIB);
        counts.shm_inodes_used = Some(50);
        counts.shm_inodes = Some(50);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["tmpfs-inodes"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
}

#[test]
fn a_write_that_names_no_path_met_the_filesystem_that_was_full() {
    let of = |shm_used: u64, tmp_free: u64| {
        let verdict = enospc("[Errno 28] No space left on device", |counts| {
            (counts.shm_used, counts.shm_size) = (Some(shm_used), Some(64 * MIB));
            (counts.shm_inodes_used, counts.shm_inodes) = (Some(4), Some(1 << 20));
            counts.tmp_free = Some(tmp_free);
        })
        .verdict();
        (causes(&verdict)[0].to_owned(), verdict.findings[0].status())
    };
    let shm = ("shm-full-bytes".to_owned(), Status::Supported);
    assert_eq!(of(64 * MIB - 4096, GIB), shm);
    assert_eq!(of(20 * MIB, 0).0, "disk-full-tmp");
    assert_eq!(of(64 * MIB, 0).0, "disk-full-tmp", "both are: it is not known which");
}

#[test]
fn a_full_disk_is_recognised_by_its_path() {
    let verdict = enospc("[Errno 28] No space left on device: '/tmp/x.bin'", |counts| {
        counts.path = Some("/tmp/x.bin".into());
        counts.path_free = Some(0);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["disk-full-tmp"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    let inotify = enospc("[Errno 28] inotify watch limit reached: No space left on device", |_| {}).verdict();
    assert!(causes(&inotify).is_empty());
}

/// Without the agent: a worker ends so while a filesystem is this full.
fn ends(ending: Ending, filesystem: FilesystemReading) -> ullage_model::Verdict {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    run.tick(2.0, vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")], |sample| {
        sample.filesystems = vec![filesystem]
    });
    run.ended(2.3, TRAINER, ending).finish(2.4, Ending::Exited(1));
    run.verdict()
}

fn tmp(used: u64, size: u64) -> FilesystemReading {
    FilesystemReading {
        used_for: FilesystemUse::Temporary,
        path: "/tmp".into(),
        ..shm(used, size, 1, 1 << 20)
    }
}

#[test]
fn a_write_that_names_no_path_met_what_was_read_as_full_before_it_was_removed() {
    let of = |shm_used: u64, tmp_used: u64| {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        run.tick(2.0, vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")], |sample| {
            sample.filesystems =
                vec![shm(shm_used * MIB, 64 * MIB, 9, 1 << 20), tmp(tmp_used * MIB, 64 * MIB)];
        });
        let mut report = raised("OSError", "[Errno 28] No space left on device");
        (report.counts.shm_used, report.counts.shm_size) = (Some(0), Some(64 * MIB));
        report.counts.tmp_free = Some(GIB);
        run.exception(2.3, TRAINER, report).ended(2.4, TRAINER, Ending::Exited(1));
        let verdict = run.finish(2.5, Ending::Exited(1)).verdict();
        (causes(&verdict)[0].to_owned(), sentences(&verdict.findings[0]))
    };
    let (cause, said) = of(62, 1);
    assert_eq!(cause, "shm-full-bytes");
    assert!(said.contains("62 MiB of 64 MiB"), "{said}");
    assert_eq!(of(20, 1).0, "disk-full-tmp");
    assert_eq!(of(62, 62).0, "disk-full-tmp", "which of them is not known");
}

#[test]
fn sigbus_goes_with_a_full_shm_and_is_not_reported_with_an_empty_one() {
    let verdict = ends(Ending::Signaled(7), shm(64 * MIB, 64 * MIB, 9, 1000));
    assert_eq!(causes(&verdict), ["shm-full-bytes"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    let verdict = ends(Ending::Signaled(7), shm(MIB, 64 * MIB, 9, 1000));
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    // 63 MiB can be filled in 0.3 s: neither told nor ruled out.
    assert_eq!(undetermined(&verdict), ["shm-full-bytes", "sigbus-file-truncated-or-netfs"]);
}

#[test]
fn without_the_agent_a_full_filesystem_beside_the_end_supports() {
    assert_eq!(causes(&ends(Ending::Exited(1), shm(64 * MIB, 64 * MIB, 9, 1000))), ["shm-full-bytes"]);
    assert_eq!(causes(&ends(Ending::Exited(1), shm(MIB, GIB, 1000, 1000))), ["tmpfs-inodes"]);
    assert!(causes(&ends(Ending::Exited(1), shm(38 * MIB, 64 * MIB, 600, 1000))).is_empty(), "60 %");
}

#[test]
fn a_disk_that_filled_during_the_run_supports_and_one_full_from_the_start_does_not() {
    for (before, found) in [(10 * MIB, true), (32 * MIB, false)] {
        let mut run = Run::with_trainer();
        for (at, used) in [(1.0, before), (2.0, 32 * MIB)] {
            run.tick(at, vec![reading(TRAINER, MAIN, "python")], |sample| {
                sample.filesystems = vec![tmp(used, 32 * MIB)]
            });
        }
        run.ended(2.3, TRAINER, Ending::Signaled(7)).finish(2.4, Ending::Exited(1));
        assert_eq!(causes(&run.verdict()).contains(&"disk-full-tmp"), found);
    }
}

#[test]
fn an_object_that_cannot_be_made_while_bytes_are_free_lacks_an_inode() {
    // The frames of the exception gave their segments back before they were counted.
    let texts = [
        "unable to open shared memory object </torch_1_2_49> in read-write mode: No space left on device (28)",
        "[Errno 28] No space left on device: '/psm_84329816'",
    ];
    for text in texts {
        let verdict = enospc(text, |counts| {
            counts.shm_used = Some(0);
            counts.shm_size = Some(GIB);
            counts.shm_inodes_used = Some(1);
            counts.shm_inodes = Some(50);
        })
        .verdict();
        assert_eq!(causes(&verdict), ["tmpfs-inodes"], "{text}");
        assert_eq!(verdict.findings[0].status(), Status::Supported);
    }
}

#[test]
fn pages_that_are_refused_lack_bytes_even_where_some_are_free() {
    let verdict = enospc(SHM, |counts| {
        counts.shm_used = Some(30 * MIB);
        counts.shm_size = Some(64 * MIB);
        counts.shm_inodes_used = Some(4);
        counts.shm_inodes = Some(1000);
    })
    .verdict();
    assert_eq!(causes(&verdict), ["shm-full-bytes"]);
}

#[test]
fn a_small_filesystem_can_fill_after_the_last_reading() {
    // Read empty 0.3 s before the end: 64 MiB can be filled in that time, 8 GiB cannot.
    let small = ends(Ending::Exited(1), shm(0, 64 * MIB, 1, 1 << 20));
    assert_eq!((causes(&small).len(), undetermined(&small).contains(&"shm-full-bytes")), (0, true));
    let large = ends(Ending::Exited(1), shm(0, 8 * GIB, 1, 1 << 20));
    assert!(!undetermined(&large).contains(&"shm-full-bytes"));
    let few = ends(Ending::Exited(1), shm(0, 8 * GIB, 1, 50));
    assert!(undetermined(&few).contains(&"tmpfs-inodes"));
    assert!(undetermined(&ends(Ending::Exited(1), tmp(0, 16 * MIB))).contains(&"disk-full-tmp"));
}
