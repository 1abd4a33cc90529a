//! What a process was refused: forks, threads, locked memory, System V, /dev/shm; and SIGBUS of a mapped file. Each with
//! the look-alike that says the same words.

use super::build::*;
use ullage_model::{
    Bytes, CountsAtFailure, Creator, CreatorSource, Ending, ExceptionReport, Limit, Maker, Mappings,
    Measured, Missing, ProcessId, ResourceLimits, Segment, SegmentKind, Severity, Status, Verdict,
};

/// The trainer fails so; `set` sees its exception, and the run before it.
fn fails(type_name: &str, text: &str, set: impl FnOnce(&mut Run, &mut ExceptionReport)) -> Verdict {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised(type_name, text);
    report.stack = vec!["job.py:3 <module>".into()];
    set(&mut run, &mut report);
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run.verdict()
}

/// The same process, with other limits and other figures of its status.
fn seen(run: &mut Run, limits: ResourceLimits, uid: u32, seccomp: Measured<u64>) {
    run.process(1.1, TRAINER, MAIN, ullage_model::Role::Trainer, limits, uid);
    if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
        if let ullage_model::EventKind::ProcessSeen { facts } = &mut event.what {
            facts.seccomp = seccomp;
        }
    }
}

const FORK: &str = "[Errno 12] Cannot allocate memory";

fn fork_fails(virtual_size: u64, available: u64, overcommit: u8) -> Verdict {
    fails("OSError", FORK, |run, report| {
        run.facts.machine.overcommit_memory = Measured::Known(overcommit);
        run.tick(1.5, vec![reading(TRAINER, MAIN, "python")], |sample| {
            sample.host.memory = Measured::Known(host(available, 8 * GIB));
        });
        report.errno = Some(12);
        report.stack = vec!["…/multiprocessing/popen_fork.py:66 _launch".into()];
        report.counts = CountsAtFailure { virtual_size: Some(virtual_size), ..CountsAtFailure::default() };
    })
}

#[test]
fn a_fork_is_refused_for_a_parent_larger_than_memory_or_as_the_victim_of_a_lack_of_it() {
    let huge = fork_fails(100 * GIB, 50 * GIB, 0);
    assert_eq!(causes(&huge), ["fork-enomem-large-parent"]);
    assert_eq!(huge.findings[0].status(), Status::Supported);
    let victim = fork_fails(3 * GIB, GIB, 0);
    assert_eq!(causes(&victim), ["fork-enomem-large-parent"]);
    assert!(sentences(&victim.findings[0]).contains("when the fork was refused"));
    let neither = fork_fails(3 * GIB, 50 * GIB, 0);
    assert!(causes(&neither).is_empty());
    assert_eq!(undetermined(&neither), ["fork-enomem-large-parent"]);
}

#[test]
fn enomem_of_other_limits_is_not_a_large_parent() {
    assert!(!causes(&fork_fails(100 * GIB, 50 * GIB, 2)).contains(&"fork-enomem-large-parent"), "strict");
    let mappings = fails("OSError", FORK, |_, report| {
        report.errno = Some(12);
        report.stack = vec!["…/multiprocessing/popen_fork.py:66 _launch".into()];
        report.counts.mappings = Some(65_530);
        report.counts.max_map_count = Some(65_530);
        report.counts.virtual_size = Some(100 * GIB);
    });
    assert_eq!(causes(&mappings), ["max-map-count-exhausted"]);
    let elsewhere = fails("OSError", FORK, |_, report| {
        report.errno = Some(12);
        report.counts.virtual_size = Some(100 * GIB);
    });
    assert!(causes(&elsewhere).is_empty(), "not out of fork");
}

fn first_thread(threads: u64, seccomp: Measured<u64>, text: &str) -> Verdict {
    fails("RuntimeError", text, |run, report| {
        seen(run, ResourceLimits { processes: Limit::At(95_000), ..limits() }, 1000, seccomp);
        report.counts.threads = Some(threads);
        report.counts.nproc = Some(95_000);
    })
}

const THREAD: &str = "can't start new thread";

#[test]
fn the_first_thread_refused_under_a_filter_is_the_filters() {
    let verdict = first_thread(1, Measured::Known(2), THREAD);
    assert_eq!(causes(&verdict), ["clone3-seccomp-eperm"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    let said = first_thread(1, Measured::Known(2), "pthread_create failed: Operation not permitted");
    assert_eq!(said.findings[0].status(), Status::Established);
}

#[test]
fn a_later_thread_no_filter_or_a_refusal_that_was_counted_is_another_cause() {
    assert!(!causes(&first_thread(30, Measured::Known(2), THREAD)).contains(&"clone3-seccomp-eperm"));
    assert!(!causes(&first_thread(1, Measured::Known(0), THREAD)).contains(&"clone3-seccomp-eperm"));
    let unread = first_thread(1, Measured::Missing(Missing::NoPermission), THREAD);
    assert!(!causes(&unread).contains(&"clone3-seccomp-eperm"));
    let counted = fails("RuntimeError", THREAD, |run, report| {
        seen(run, limits(), 1000, Measured::Known(2));
        for (at, refused) in [(1.2, 0), (1.4, 5)] {
            run.tick(at, vec![reading(TRAINER, MAIN, "python")], |sample| {
                sample.cgroups = vec![pids("/job", 40, 40, refused)];
            });
        }
        report.counts.threads = Some(1);
    });
    assert_eq!(causes(&counted), ["pids-limit-cgroup"]);
}

fn locks(limit: Limit, uid: u32, text: &str, stack: &str) -> Verdict {
    fails("OSError", text, |run, report| {
        seen(run, ResourceLimits { locked_memory: limit, ..limits() }, uid, Measured::Known(0));
        report.errno = Some(12);
        report.stack = vec![stack.into()];
    })
}

#[test]
fn locked_memory_is_recognised_by_the_call_and_the_limit() {
    let small = Limit::At(64 << 10);
    let mlock = "[Errno 12] mlock: Cannot allocate memory";
    assert_eq!(causes(&locks(small, 1000, mlock, "job.py:9 pin")), ["memlock-rdma-registration"]);
    let verbs = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory";
    assert_eq!(causes(&locks(small, 0, verbs, "job.py:9 init")), ["memlock-rdma-registration"]);
    assert!(causes(&locks(Limit::Unlimited, 1000, mlock, "job.py:9 pin")).is_empty());
    assert!(causes(&locks(small, 0, mlock, "job.py:9 pin")).is_empty(), "root is not limited");
    assert!(causes(&locks(small, 1000, FORK, "job.py:9 pin")).is_empty(), "another call");
}

fn stacks(stack: Limit, threads: u64, used: u64, limit: u64) -> Verdict {
    fails("RuntimeError", THREAD, |run, report| {
        let own = ResourceLimits { stack, address_space: Limit::At(limit), ..limits() };
        seen(run, own, 0, Measured::Known(0));
        report.counts.threads = Some(threads);
        report.counts.virtual_size = Some(used);
        report.counts.address_space_limit = Some(limit);
        report.counts.resident = Some(40 * MIB);
    })
}

#[test]
fn large_stacks_are_reported_where_a_usual_one_would_have_fitted() {
    let verdict = stacks(Limit::At(GIB), 19, 19 * GIB + GIB / 2, 20 * GIB);
    assert_eq!(causes(&verdict), ["stack-ulimit-thread-stacks", "rlimit-as-virtual-memory"]);
    let full = stacks(Limit::At(GIB), 19, 20 * GIB - MIB, 20 * GIB);
    assert_eq!(causes(&full), ["rlimit-as-virtual-memory"], "no stack fits any more");
    assert_eq!(
        causes(&stacks(Limit::At(8 * MIB), 2400, 20 * GIB - MIB, 20 * GIB)),
        ["rlimit-as-virtual-memory", "threads-per-task"]
    );
    assert_eq!(
        causes(&stacks(Limit::Unlimited, 2400, 20 * GIB - MIB, 20 * GIB)),
        ["rlimit-as-virtual-memory", "threads-per-task"]
    );
}

#[test]
fn system_v_says_which_call_and_the_limit_is_beside_it() {
    let shmget = |largest: u64, code: i32, words: &str| {
        fails("OSError", &format!("[Errno {code}] shmget: {words}"), |run, report| {
            run.facts.machine.sysv_limits = Measured::Known((largest, 4096));
            report.errno = Some(code);
        })
    };
    let verdict = shmget(32 * MIB, 22, "Invalid argument");
    assert_eq!(causes(&verdict), ["sysv-shm-msg-limits"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    assert!(sentences(&verdict.findings[0]).contains("kernel.shmmax is 32 MiB"));
    assert_eq!(shmget(u64::MAX, 22, "Invalid argument").findings[0].status(), Status::Supported);
    assert_eq!(causes(&shmget(u64::MAX, 28, "No space left on device")), ["sysv-shm-msg-limits"]);
    assert!(causes(&fails("OSError", "[Errno 22] Invalid argument", |_, report| report.errno = Some(22)))
        .is_empty());
}

#[test]
fn a_closed_shm_is_recognised_by_the_error_of_the_first_object() {
    let torch = |words: &str| {
        fails(
            "RuntimeError",
            &format!("unable to open shared memory object </torch_1_2_3> in read-write mode: {words}"),
            |_, _| {},
        )
    };
    assert_eq!(causes(&torch("Permission denied (13)")), ["shm-no-access"]);
    assert_eq!(causes(&torch("Read-only file system (30)")), ["shm-no-access"]);
    assert!(causes(&torch("No such file or directory (2)")).is_empty(), "its sender ended");
    assert!(!causes(&torch("Too many open files (24)")).contains(&"shm-no-access"));
    let semaphore = fails("OSError", "[Errno 38] Function not implemented", |_, report| {
        report.errno = Some(38);
        report.stack = vec!["…/multiprocessing/synchronize.py:57 __init__".into()];
    });
    assert_eq!(causes(&semaphore), ["shm-no-access"]);
    let file = fails("PermissionError", "[Errno 13] Permission denied: '/data/x'", |_, report| {
        report.errno = Some(13)
    });
    assert!(causes(&file).is_empty(), "a file of the user's");
}

/// A file of so many MiB in /dev/shm from before the job.
fn from_before(name: &str, mib: u64, creator: Measured<Creator>) -> Segment {
    Segment {
        kind: if name.starts_with("torch") { SegmentKind::Torch } else { SegmentKind::PosixShm },
        name: name.into(),
        count: 1,
        device: 5,
        inode: 9,
        size: Bytes(mib * MIB),
        allocated: Measured::Known(Bytes(mib * MIB)),
        at_least: false,
        deleted: false,
        before: true,
        creator,
        mappers: vec![],
        openers: vec![],
        outsiders: Measured::Missing(Missing::NotAsked),
    }
}

fn gone() -> Measured<Creator> {
    Measured::Known(Creator { maker: Maker::Gone(77), by: CreatorSource::Name })
}

const FULL: &str =
    "unable to allocate shared memory(shm) for file </torch_7_8_9>: No space left on device (28)";

fn full_beside(segments: Vec<Segment>) -> Verdict {
    fails("RuntimeError", FULL, |run, report| {
        run.tick(1.5, vec![reading(TRAINER, MAIN, "python")], |sample| {
            sample.filesystems = vec![shm(60 * MIB, 64 * MIB, 9, 1 << 20)];
            sample.segments = Measured::Known(segments);
        });
        report.counts.shm_used = Some(60 * MIB);
        report.counts.shm_size = Some(64 * MIB);
    })
}

#[test]
fn files_of_dead_runs_that_fill_shm_come_before_the_lack_of_room() {
    let verdict = full_beside(vec![from_before("torch_77_1_0", 48, gone())]);
    assert_eq!(causes(&verdict), ["shm-stale-files", "shm-full-bytes"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    let unknown = full_beside(vec![from_before("psm_1a2b", 48, Measured::Missing(Missing::Vanished))]);
    assert_eq!(causes(&unknown)[0], "shm-stale-files");
    assert_eq!(unknown.findings[0].status(), Status::Supported);
}

#[test]
fn files_that_killed_processes_of_the_run_left_come_before_the_lack_of_room() {
    let full = || {
        let mut report = raised("RuntimeError", FULL);
        report.counts.shm_used = Some(60 * MIB);
        report
    };
    let of = |ending: Ending, at: f64, mut report: ExceptionReport| {
        let (mut run, maker) = (Run::with_trainer(), 300);
        run.process(0.1, maker, MAIN, ullage_model::Role::Other, limits(), 1000);
        run.tick(0.2, vec![reading(TRAINER, MAIN, "python"), reading(maker, MAIN, "python")], |_| {});
        run.ended(at, maker, ending);
        let made = Measured::Known(Creator { maker: Maker::Process(id(maker)), by: CreatorSource::OnlyUser });
        let left = Segment { before: false, ..from_before("psm_1a2b", 48, made) };
        run.tick(5.9, vec![reading(TRAINER, MAIN, "python")], |sample| {
            sample.filesystems = vec![shm(60 * MIB, 64 * MIB, 9, 1 << 20)];
            sample.segments = Measured::Known(vec![left]);
        });
        report.counts.shm_size = Some(64 * MIB);
        run.exception(6.0, TRAINER, report)
            .ended(6.1, TRAINER, Ending::Exited(1))
            .finish(6.2, Ending::Exited(1));
        causes(&run.verdict()).contains(&"shm-stale-files")
    };
    assert!(of(Ending::Signaled(9), 1.0, full()), "killed 5 s before");
    assert!(!of(Ending::Signaled(9), 5.8, full()), "killed with the one that failed");
    assert!(
        !of(Ending::Exited(0), 1.0, full()),
        "it ended in order: somebody may still open what it handed over"
    );
    let refused = |used: u64| {
        let mut report = raised("OSError", "[Errno 14] Bad address");
        (report.errno, report.counts.shm_used) = (Some(14), Some(used * MIB));
        of(Ending::Signaled(6), 1.0, report)
    };
    assert!(refused(64), "MADV_POPULATE_WRITE found no room");
    assert!(!refused(20), "there was room: it is another address");
}

#[test]
fn files_in_use_small_ones_and_the_jobs_own_are_not_left_over() {
    let own = ProcessId { pid: TRAINER, ..id(TRAINER) };
    let living = Measured::Known(Creator { maker: Maker::Process(own), by: CreatorSource::Name });
    let mapped = Segment { mappers: vec![own], ..from_before("torch_77_1_0", 48, gone()) };
    let fresh = Segment { before: false, ..from_before("torch_77_1_0", 48, gone()) };
    for segment in
        [from_before("torch_77_1_0", 4, gone()), from_before("torch_200_1_0", 48, living), mapped, fresh]
    {
        assert_eq!(causes(&full_beside(vec![segment])), ["shm-full-bytes"]);
    }
}

#[test]
fn what_was_in_use_before_the_job_is_reported_where_no_file_was_listed() {
    for (at, before, expected) in [
        (0.004, 40, vec!["shm-stale-files", "shm-full-bytes"]),
        (0.004, 4, vec!["shm-full-bytes"]),
        (1.0, 40, vec!["shm-full-bytes"]),
    ] {
        let mut run = Run::with_trainer();
        for (at, used) in [(at, before), (1.5, 64)] {
            run.tick(at, vec![reading(TRAINER, MAIN, "python")], |sample| {
                sample.filesystems = vec![shm(used * MIB, 64 * MIB, 9, 1 << 20)];
            });
        }
        run.ended(1.6, TRAINER, Ending::Signaled(7)).finish(1.7, Ending::Exited(1));
        assert_eq!(causes(&run.verdict()), expected, "{before} MiB at {at}");
    }
}

#[test]
fn left_over_files_are_at_most_a_note_in_a_run_that_was_well() {
    let mut run = Run::with_trainer();
    run.tick(1.0, vec![reading(TRAINER, MAIN, "python")], |sample| {
        sample.segments = Measured::Known(vec![from_before("torch_77_1_0", 400, gone())]);
    });
    run.finish(2.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy);
    assert_eq!(verdict.findings[0].cause, "shm-stale-files");
}

/// The trainer is ended by SIGBUS with so much of a /dev/shm of 8 GiB in use, and so much of data files mapped.
fn bus(used: u64, mapped: u64) -> Verdict {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut trainer = reading(TRAINER, MAIN, "python");
    trainer.mappings =
        Measured::Known(Mappings { count: 700, data_file_bytes: Bytes(mapped), ..Mappings::default() });
    run.tick(2.0, vec![reading(MAIN, 1, "python"), trainer], |sample| {
        sample.filesystems = vec![shm(used, 8 * GIB, 9, 1 << 20)];
    });
    run.ended(2.3, TRAINER, Ending::Signaled(7)).finish(2.4, Ending::Exited(1));
    run.verdict()
}

#[test]
fn sigbus_of_a_mapped_file_is_distinguished_from_a_full_shm() {
    let verdict = bus(10 * MIB, 8 * MIB);
    assert_eq!(causes(&verdict), ["sigbus-file-truncated-or-netfs"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    assert_eq!(causes(&bus(8 * GIB, 8 * MIB)), ["shm-full-bytes"]);
    let nothing_mapped = bus(10 * MIB, 0);
    assert!(causes(&nothing_mapped).is_empty());
    assert!(undetermined(&nothing_mapped).contains(&"sigbus-file-truncated-or-netfs"));
}

#[test]
fn a_file_shorter_than_its_mapping_establishes_it() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let what = ullage_model::EventKind::MappedFileShort {
        id: id(TRAINER),
        path: "/data/x.npy".into(),
        mapped: 64 * MIB,
        length: 4 * MIB,
    };
    run.event(2.2, what).ended(2.1, TRAINER, Ending::Signaled(7)).finish(2.4, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["sigbus-file-truncated-or-netfs"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    assert!(sentences(&verdict.findings[0]).contains("/data/x.npy, which now ends at 4 MiB"));
}

#[test]
fn what_the_job_leaves_in_system_v_is_reported_and_what_is_small_is_a_note() {
    for (mib, severity) in [(200, Severity::Warning), (2, Severity::Note)] {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        let maker =
            Measured::Known(Creator { maker: Maker::Process(id(TRAINER)), by: CreatorSource::Kernel });
        let segment = Segment {
            kind: SegmentKind::Sysv,
            before: false,
            outsiders: Measured::Known(false),
            ..from_before("shmid 5 key 0x0", mib, maker)
        };
        run.ended(2.0, TRAINER, Ending::Exited(0)).finish(2.1, Ending::Exited(0));
        run.tick(2.2, vec![], |sample| sample.segments = Measured::Known(vec![segment]));
        let verdict = run.verdict();
        assert_eq!(verdict.findings[0].cause, "sysv-shm-msg-limits");
        assert_eq!(verdict.findings[0].severity, severity);
    }
}

/// OpenBLAS raises it where it cannot start a thread.
#[test]
fn sigint_where_one_stack_is_all_of_the_address_space_is_of_its_threads() {
    let of = |stack: u64, threads: u32, code: i32| {
        let mut run = Run::new();
        let limits = ResourceLimits { address_space: Limit::At(GIB), stack: Limit::At(stack), ..limits() };
        run.process(0.5, 300, MAIN, ullage_model::Role::Other, limits, 1000);
        for second in 1..4 {
            let mut child = reading(300, MAIN, "python");
            child.threads = threads;
            run.tick(f64::from(second), vec![reading(MAIN, 1, "python"), child], |_| {});
        }
        run.ended(3.5, 300, Ending::Signaled(2));
        run.tick(4.0, vec![reading(MAIN, 1, "python")], |_| {});
        run.finish(4.5, Ending::Exited(code));
        let verdict = run.verdict();
        causes(&verdict).contains(&"stack-ulimit-thread-stacks")
    };
    assert!(of(GIB, 1, 1));
    for (stack, threads, code, what) in [
        (8 * MIB, 1, 1, "the usual size"),
        (512 * MIB, 1, 1, "one fits"),
        (GIB, 4, 1, "some had started, with stacks of their own size"),
        (GIB, 1, 130, "somebody interrupted it"),
    ] {
        assert!(!of(stack, threads, code), "{what}");
    }
}
