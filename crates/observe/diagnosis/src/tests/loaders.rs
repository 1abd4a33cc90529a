//! What goes wrong around loader workers, queues, threads and copies of checkpoints, and what only looks like it.

use super::build::*;
use ullage_model::{
    AgentMessage, AskedRemedy, Backlog, Bytes, Census, Creator, CreatorSource, Ending, EventKind,
    ExceptionReport, Exclusive, Finding, Limit, LoaderSettings, Maker, Mappings, Measured, ProcessId,
    ProcessMemory, ProcessReading, RetainedByIterators, Retainer, Role, Segment, SegmentKind, Severity,
    Status, Verdict, Weight,
};

fn of<'a>(verdict: &'a Verdict, cause: &str) -> Option<&'a Finding> {
    verdict.findings.iter().find(|finding| finding.cause == cause)
}

fn sized(mut reading: ProcessReading, anonymous: u64) -> ProcessReading {
    reading.memory =
        Measured::Known(ProcessMemory { anonymous: Bytes(anonymous), ..ProcessMemory::default() });
    reading
}

fn agent(run: &mut Run, at: f64, pid: i32, message: AgentMessage) {
    run.event(at, EventKind::Agent { id: Some(id(pid)), pid, message });
}

fn loader(workers: u32, persistent: bool) -> LoaderSettings {
    LoaderSettings {
        workers,
        start_method: Some("fork".into()),
        batch_size: Some(4),
        prefetch_factor: Some(2),
        persistent_workers: persistent,
        dataset: Some("__main__.Samples".into()),
        dataset_len: Some(400),
        ..LoaderSettings::default()
    }
}

fn main_and(others: impl IntoIterator<Item = ProcessReading>) -> Vec<ProcessReading> {
    std::iter::once(reading(MAIN, 1, "python")).chain(others).collect()
}

fn worker(pid: i32, anonymous: u64) -> ProcessReading {
    sized(reading(pid, MAIN, "pt_data_worker"), anonymous)
}

/// Iterators of two workers that begin at these times; those but the last `retained` end when the next one begins.
fn iterators(times: &[f64], retained: usize, reported: bool, end: f64) -> Verdict {
    let mut run = Run::new();
    let pids = |n: usize| [1000 + 100 * n as i32, 1001 + 100 * n as i32];
    let mut tick = 0;
    for second in 0..=end as usize {
        while tick < times.len() && times[tick] <= second as f64 {
            if reported {
                agent(&mut run, times[tick], MAIN, AgentMessage::Loader(Box::new(loader(2, false))));
            }
            for pid in pids(tick) {
                run.process(times[tick], pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
            }
            tick += 1;
        }
        let alive = tick.saturating_sub(retained)..tick;
        let workers = alive.flat_map(pids).map(|pid| worker(pid, 50 * MIB));
        run.tick(second as f64 + 0.5, main_and(workers), |_| {});
    }
    run.finish(end + 1.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn workers_of_iterators_that_are_retained_pile_up() {
    let times: Vec<f64> = (1..10).map(|n| n as f64 * 2.0).collect();
    for (reported, status) in [(true, Status::Established), (false, Status::Supported)] {
        let verdict = iterators(&times, 99, reported, 20.0);
        assert_eq!(causes(&verdict), ["worker-processes-accumulate"]);
        let finding = &verdict.findings[0];
        assert_eq!((finding.status(), finding.severity), (status, Severity::Warning));
        let text = sentences(finding);
        assert!(text.contains("had 18 loader workers at once, from 9 rounds"), "{text}");
        assert_eq!(
            text.contains("made 9 iterators of one loader (__main__.Samples, num_workers=2)"),
            reported
        );
        assert!(text.contains("Together they held 900 MiB"), "{text}");
    }
}

#[test]
fn workers_that_end_and_loaders_that_are_made_once_do_not_pile_up() {
    let times: Vec<f64> = (1..10).map(|n| n as f64 * 2.0).collect();
    for (what, verdict) in [
        ("one epoch after the other", iterators(&times, 1, true, 20.0)),
        ("training and validation overlap", iterators(&times, 2, true, 20.0)),
        ("four loaders that are kept", iterators(&times[..4], 99, true, 9.0)),
        ("six that were made at the start", iterators(&[1.0, 1.5, 2.0, 2.5, 3.0, 3.5], 99, false, 60.0)),
    ] {
        assert_eq!(of(&verdict, "worker-processes-accumulate"), None, "{what}");
    }
}

#[test]
fn several_loaders_of_different_datasets_are_no_pile() {
    let mut run = Run::new();
    for n in 0..7 {
        let settings = LoaderSettings { dataset_len: Some(100 + n as u64), ..loader(2, true) };
        agent(&mut run, n as f64 * 3.0, MAIN, AgentMessage::Loader(Box::new(settings)));
        for pid in [1000 + 10 * n, 1001 + 10 * n] {
            run.process(n as f64 * 3.0, pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
        }
        let alive = (0..=n).flat_map(|n| [1000 + 10 * n, 1001 + 10 * n]).map(|pid| worker(pid, 50 * MIB));
        run.tick(n as f64 * 3.0 + 1.0, main_and(alive), |_| {});
    }
    run.finish(22.0, Ending::Exited(0));
    assert!(causes(&run.verdict()).is_empty());
}

/// Two workers with so much memory at each second.
fn grow(persistent: Option<bool>, seconds: usize, anonymous: impl Fn(usize) -> u64) -> Run {
    let mut run = Run::new();
    if let Some(persistent) = persistent {
        agent(&mut run, 0.9, MAIN, AgentMessage::Loader(Box::new(loader(2, persistent))));
    }
    for pid in [300, 301] {
        run.process(1.0, pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
    }
    for second in 1..=seconds {
        let workers = [300, 301].map(|pid| worker(pid, anonymous(second)));
        run.tick(second as f64, main_and(workers), |_| {});
    }
    run.finish(seconds as f64 + 1.0, Ending::Exited(0));
    run
}

/// A container of the dataset that became longer.
fn retained_container(type_name: &str) -> Retainer {
    Retainer {
        name: "dataset.kept".into(),
        place: "_worker_loop(), worker.py:349".into(),
        type_name: type_name.into(),
        element: "bytes".into(),
        length: 200,
        before: Some(20),
        more_bytes: 180 * MIB,
        of_bytes: 200 * MIB,
        ..Retainer::default()
    }
}

/// So do their censuses.
fn retains(run: &mut Run, at: f64, type_name: &str) -> Verdict {
    for pid in [300, 301] {
        let census =
            Census { number: 2, retainers: vec![retained_container(type_name)], ..Census::default() };
        agent(run, at, pid, AgentMessage::Census(Box::new(census)));
    }
    run.verdict()
}

#[test]
fn what_a_worker_retains_is_one_finding_and_no_output() {
    let leak = |second: usize| (200 + 8 * second as u64) * MIB;
    let cache = retains(&mut grow(Some(false), 40, leak), 30.0, "list");
    assert_eq!(causes(&cache), ["unbounded-caches"]);
    assert!(
        sentences(&cache.findings[0]).contains("180 MiB more are held in the same way in 1 other process.")
    );
    // Ending the workers is the first answer, where nothing else says that it is a cache.
    let persistent = retains(&mut grow(Some(true), 40, leak), 30.0, "list");
    let reported: Vec<_> =
        persistent.findings.iter().map(|found| (found.cause.as_str(), found.severity)).collect();
    assert_eq!(
        reported,
        [("persistent-workers-growth", Severity::Warning), ("unbounded-caches", Severity::Note)]
    );
    let why = sentences(&persistent.findings[0]);
    assert!(why.contains("The list `dataset.kept` in _worker_loop() (worker.py:349) grew by"), "{why}");
    // Neither does the way by which the agent came to it: in one worker along a module's variable.
    let mut run = grow(Some(true), 40, leak);
    let along = |name: &str, place: &str| Retainer {
        name: name.into(),
        place: place.into(),
        owner: "__main__.Samples".into(),
        line: "leak.py:19".into(),
        ..retained_container("list")
    };
    let ways = [("__main__.loader.dataset.kept", ""), ("self.kept", "__getitem__(), leak.py:22")];
    for (pid, (name, place)) in [300, 301].into_iter().zip(ways) {
        let census = Census { number: 2, retainers: vec![along(name, place)], ..Census::default() };
        agent(&mut run, 30.0, pid, AgentMessage::Census(Box::new(census)));
    }
    let reported = run.verdict();
    assert_eq!((causes(&reported), reported.findings.len()), (vec!["persistent-workers-growth"], 2));
    let by_key = retains(&mut grow(Some(true), 40, leak), 30.0, "dict");
    assert_eq!(causes(&by_key)[0], "unbounded-caches");
}

#[test]
fn what_workers_take_in_each_epoch_and_give_back_is_no_growth() {
    let leak = |second: usize| (200 + 8 * second as u64) * MIB;
    let mut run = Run::new();
    agent(&mut run, 0.9, MAIN, AgentMessage::Loader(Box::new(loader(1, false))));
    for (epoch, pid) in [200, 300].into_iter().enumerate() {
        let begins = 1 + 40 * epoch;
        run.process(begins as f64, pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
        for second in 0..38 {
            run.tick((begins + second) as f64, main_and([worker(pid, leak(second))]), |_| {});
        }
    }
    run.finish(79.0, Ending::Exited(0));
    assert_eq!(causes(&retains(&mut run, 70.0, "dict")), Vec::<&str>::new());
}

#[test]
fn persistent_workers_that_grow_to_the_end_are_reported_and_those_that_rest_are_not() {
    let leak = |second: usize| (200 + 8 * second as u64) * MIB;
    let verdict = grow(Some(true), 40, leak).verdict();
    assert_eq!(causes(&verdict), ["persistent-workers-growth"]);
    let text = sentences(&verdict.findings[0]);
    assert!(text.contains("2 loader workers of 2 grew by") && text.contains("(16 MiB a second)"), "{text}");
    assert!(text.contains("__main__.Samples has persistent_workers=True"), "{text}");
    let slow = grow(Some(true), 40, |second| (200 * MIB) + second as u64 * MIB).verdict();
    assert_eq!(of(&slow, "persistent-workers-growth").map(|found| found.severity), Some(Severity::Note));
    for (what, verdict) in [
        ("ended at each epoch", grow(Some(false), 40, leak).verdict()),
        ("a cache that is full", grow(Some(true), 60, |second| leak(second.min(20))).verdict()),
        ("flat", grow(Some(true), 40, |_| 200 * MIB).verdict()),
        ("the first seconds", grow(Some(true), 8, leak).verdict()),
    ] {
        assert_eq!(of(&verdict, "persistent-workers-growth"), None, "{what}");
    }
    let unheard = grow(None, 40, leak).verdict();
    assert!(undetermined(&unheard).contains(&"persistent-workers-growth"));
    assert_eq!(causes(&unheard), ["unnamed-growth"]);
}

fn threads(run: &mut Run, at: f64, trainer: u32) {
    let mut process = reading(TRAINER, MAIN, "python");
    process.threads = trainer;
    run.tick(at, main_and([process]), |_| {});
}

#[test]
fn threads_that_become_more_and_more_are_reported_and_a_full_pool_is_not() {
    for (what, found, count) in [
        ("more each second", true, (|t| 4 + 5 * t) as fn(u32) -> u32),
        ("a pool that fills", false, |t| 4 + 40 * t.min(4)),
        ("a pool that filled slowly", false, |t| 4 + 6 * t.min(20)),
        ("threads that come and go", false, |t| 4 + 60 * (t % 2)),
        ("a few more", false, |t| 4 + t),
    ] {
        let mut run = Run::with_trainer();
        (1..60).for_each(|second| threads(&mut run, f64::from(second), count(second)));
        run.finish(60.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert_eq!(causes(&verdict) == ["threads-per-task"], found, "{what}");
        if found {
            assert!(
                sentences(&verdict.findings[0]).contains("The trainer (pid 200) has 299 threads"),
                "{}",
                sentences(&verdict.findings[0])
            );
        }
    }
}

#[test]
fn a_refused_thread_is_blamed_on_the_process_that_started_many() {
    for (first, between, last, found) in [
        (4, &[][..], 300, true),
        (4, &[], 12, false),
        (200, &[], 210, false),
        (1, &[], 38, false),
        (1, &[20], 38, false),
        (1, &[17, 17, 17, 18], 55, false),
        (1, &[10, 15, 20, 25], 38, true),
    ] {
        let mut run = Run::with_trainer();
        threads(&mut run, 1.0, first);
        between
            .iter()
            .zip(1..)
            .for_each(|(count, step)| threads(&mut run, 1.0 + f64::from(step) / 2.0, *count));
        threads(&mut run, 4.0, last);
        let mut report = raised("RuntimeError", "can't start new thread");
        report.counts.threads = Some(u64::from(last));
        run.exception(4.1, TRAINER, report)
            .ended(4.2, TRAINER, Ending::Exited(1))
            .finish(4.3, Ending::Exited(1));
        let found_here = of(&run.verdict(), "threads-per-task").is_some();
        assert_eq!(found_here, found, "{first} {last}");
    }
}

/// A child forked at 1 s with 500 MiB; then (parent's memory, parent's faults, child's memory, what it alone maps, its faults).
fn forked(readings: &[(u64, u64, u64, u64, u64)]) -> Run {
    let mut run = Run::new();
    run.process(1.0, 300, MAIN, Role::LoaderWorker(None), limits(), 1000);
    if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
        if let EventKind::ProcessSeen { facts } = &mut event.what {
            facts.forked_from = Some(id(MAIN));
        }
    }
    for (second, &(parent, faults, child, own, childs)) in readings.iter().enumerate() {
        let mut main = sized(reading(MAIN, 1, "python"), parent * MIB);
        main.minor_faults = faults;
        let mut worker = worker(300, child * MIB);
        worker.minor_faults = childs;
        worker.exclusive = Measured::Known(Exclusive { bytes: Bytes(own * MIB), error: Bytes(4 * MIB) });
        run.tick(second as f64 + 1.0, vec![main, worker], |_| {});
    }
    run
}

#[test]
fn what_a_forked_child_retains_of_its_parents_old_pages_is_reported() {
    let pages = |mib: u64| mib * 256;
    for (what, readings, retained) in [
        ("freed", vec![(500, 1000, 500, 5, 100), (150, 1100, 500, 350, 120)], Some("at least 350 MiB")),
        (
            "rewritten",
            vec![(500, 1000, 500, 5, 100), (500, 1000 + pages(300), 500, 310, 120)],
            Some("has rewritten since"),
        ),
        ("nothing", vec![(500, 1000, 500, 5, 100), (500, 1200, 500, 6, 120)], None),
        ("the child copies", vec![(500, 1000, 500, 5, 100), (500, 1200, 500, 300, pages(310))], None),
        ("the child frees too", vec![(500, 1000, 500, 5, 100), (150, 1100, 160, 5, 120)], None),
        ("the child has memory of its own", vec![(500, 1000, 500, 5, 100), (500, 1200, 900, 405, 300)], None),
        (
            "what came after the fork is freed",
            vec![(500, 1000, 500, 5, 100), (900, 1100, 500, 5, 100), (500, 1200, 500, 5, 100)],
            None,
        ),
    ] {
        let mut run = forked(&readings);
        run.finish(9.0, Ending::Exited(0));
        let verdict = run.verdict();
        let found = of(&verdict, "fork-parent-rewrites");
        assert_eq!(found.is_some(), retained.is_some(), "{what}: {found:?}");
        if let (Some(found), Some(words)) = (found, retained) {
            assert_eq!(found.severity, Severity::Note, "{what}: steady, however large");
            assert!(sentences(found).contains(words), "{what}: {}", sentences(found));
        }
    }
    let mut run = forked(&[(500, 1000, 500, 5, 100), (150, 1100, 500, 350, 120)]);
    run.exception(3.0, MAIN, raised("MemoryError", "")).finish(4.0, Ending::Exited(1));
    assert_eq!(
        of(&run.verdict(), "fork-parent-rewrites").map(|found| found.severity),
        Some(Severity::Warning)
    );
}

fn segment(maker: i32, mib: u64, mappers: &[i32]) -> Segment {
    Segment {
        kind: SegmentKind::Torch,
        name: format!("torch_{maker}_1_{mib}"),
        count: 1,
        device: shm(0, 0, 0, 0).device,
        inode: mib,
        size: Bytes(mib * MIB),
        allocated: Measured::Known(Bytes(mib * MIB)),
        at_least: false,
        deleted: true,
        before: false,
        creator: Measured::Known(Creator { maker: Maker::Process(id(maker)), by: CreatorSource::Name }),
        mappers: mappers.iter().map(|pid| id(*pid)).collect::<Vec<ProcessId>>(),
        openers: vec![],
        outsiders: Measured::default(),
    }
}

/// A loader whose worker has made segments, some of which the trainer maps.
fn in_flight(waiting: u64, received: u64) -> Run {
    in_flight_at(8.0, waiting, received, 0)
}

/// So at this reading, beside so many MiB of others.
fn in_flight_at(at: f64, waiting: u64, received: u64, others: u64) -> Run {
    let mut run = Run::new();
    agent(&mut run, 0.5, MAIN, AgentMessage::Loader(Box::new(loader(2, false))));
    run.process(1.0, 300, MAIN, Role::LoaderWorker(Some(0)), limits(), 1000);
    let segments = vec![segment(300, waiting, &[300]), segment(300, received, &[300, MAIN])];
    let used = waiting + received + others;
    run.tick(at, main_and([worker(300, 50 * MIB)]), |sample| {
        sample.segments = Measured::Known(segments);
        sample.filesystems = vec![shm(used * MIB, (used + 4) * MIB, 20, 1 << 20)];
    });
    run
}

fn no_room() -> ExceptionReport {
    let mut report = raised(
        "RuntimeError",
        "unable to allocate shared memory(shm) for file </torch_300_1_8>: No space left on device (28)",
    );
    report.left = "loader-worker".into();
    report.counts.shm_used = Some(60 * MIB);
    report.counts.shm_size = Some(64 * MIB);
    report
}

#[test]
fn batches_that_wait_fill_shm_and_batches_that_were_retained_are_another_cause() {
    for (waiting, received, found) in [(56, 4, true), (4, 56, false)] {
        let mut run = in_flight(waiting, received);
        run.exception(8.5, 300, no_room()).finish(9.0, Ending::Exited(1));
        let verdict = run.verdict();
        assert_eq!(causes(&verdict)[0], "shm-full-bytes");
        assert_eq!(of(&verdict, "prefetch-times-workers").is_some(), found, "{waiting} {received}");
    }
    let mut run = in_flight(56, 4);
    run.exception(8.5, 300, no_room()).finish(9.0, Ending::Exited(1));
    let verdict = run.verdict();
    let text = sentences(of(&verdict, "prefetch-times-workers").unwrap());
    assert!(text.contains("2 workers x prefetch_factor 2 = 4 batches of 4 samples"), "{text}");
    assert!(text.contains("56 MiB of the workers' 60 MiB in shared memory waited"), "{text}");
}

#[test]
fn a_reading_before_the_batches_came_says_nothing_of_them() {
    for (used_by_others, found) in [(0, true), (52, false)] {
        let mut run = in_flight_at(1.5, 1, 3, used_by_others);
        run.exception(2.0, 300, no_room()).finish(3.0, Ending::Exited(1));
        let verdict = run.verdict();
        assert_eq!(of(&verdict, "prefetch-times-workers").is_some(), found, "{used_by_others}");
    }
}

#[test]
fn many_batches_in_flight_are_a_note_at_most_while_they_fit() {
    for (waiting, note) in [(2000, true), (56, false)] {
        let mut run = in_flight(waiting, 4);
        run.finish(9.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert!(verdict.healthy);
        assert_eq!(
            of(&verdict, "prefetch-times-workers").map(|found| found.severity),
            note.then_some(Severity::Note)
        );
    }
}

fn failed_with(type_name: &str, text: &str, stack: &[&str]) -> Verdict {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised(type_name, text);
    report.stack = stack.iter().map(|frame| frame.to_string()).collect();
    run.exception(2.0, TRAINER, report).ended(2.1, TRAINER, Ending::Exited(1)).finish(2.2, Ending::Exited(1));
    run.verdict()
}

#[test]
fn trouble_with_the_shm_manager_is_named() {
    let text = "error executing torch_shm_manager at \"/x/torch/bin/torch_shm_manager\" at /pytorch/torch/lib/libshm/core.cpp:99";
    let verdict = failed_with("RuntimeError", text, &["…/torch/storage.py:1 _share_filename_"]);
    assert_eq!(causes(&verdict), ["file-system-strategy-shm-manager"]);
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
    assert!(sentences(&verdict.findings[0]).contains("Its sharing strategy is file_system"));
    let other =
        failed_with("RuntimeError", "unable to mmap 320 bytes", &["…/torch/storage.py:1 _share_filename_"]);
    assert_eq!(of(&other, "file-system-strategy-shm-manager"), None);
}

#[test]
fn work_that_ran_out_of_memory_is_named_by_its_stack() {
    let text = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes. Error code 12 (Cannot allocate memory)";
    for (stack, cause) in [
        (
            vec![
                "/job/train.py:9 resume",
                "…/torch/serialization.py:1529 load",
                "…/torch/serialization.py:2170 load_tensor",
            ],
            Some("checkpoint-load-copies"),
        ),
        (
            vec!["/job/train.py:9 <module>", "…/safetensors/torch.py:300 load_file"],
            Some("checkpoint-load-copies"),
        ),
        (vec!["/job/train.py:9 epoch", "…/torch/serialization.py:960 save"], Some("checkpoint-save-staging")),
        (
            vec!["/job/train.py:9 epoch", "…/copy.py:146 deepcopy", "…/torch/_tensor.py:90 __deepcopy__"],
            Some("model-copies-on-cpu"),
        ),
        (vec!["/job/train.py:9 step", "…/torch/nn/modules/linear.py:125 forward"], None),
        (vec!["/job/mine/serialization.py:9 load"], None),
    ] {
        let verdict = failed_with("RuntimeError", text, &stack);
        let of_work = ["checkpoint-load-copies", "checkpoint-save-staging", "model-copies-on-cpu"];
        let reported: Vec<_> = causes(&verdict).into_iter().filter(|cause| of_work.contains(cause)).collect();
        assert_eq!(reported, Vec::from_iter(cause), "{stack:?}");
        assert!(cause.is_none_or(|cause| of(&verdict, cause).unwrap().severity == Severity::Warning));
    }
    let other = failed_with("RuntimeError", "size mismatch", &["…/torch/serialization.py:1529 load"]);
    assert_eq!(of(&other, "checkpoint-load-copies"), None, "not for lack of memory");
}

#[test]
fn a_large_process_that_says_nothing_leaves_its_work_open() {
    for (mib, open) in [(900, true), (40, false)] {
        let mut run = Run::with_trainer();
        run.tick(1.0, main_and([sized(reading(TRAINER, MAIN, "python"), mib * MIB)]), |_| {});
        run.ended(2.0, TRAINER, Ending::Exited(1)).finish(2.1, Ending::Exited(1));
        assert_eq!(undetermined(&run.verdict()).contains(&"checkpoint-load-copies"), open);
    }
}

#[test]
fn messages_of_libraries_name_their_cause() {
    for (type_name, text, cause) in [
        ("DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:94, unhandled system error, NCCL version 2.21.5\nLast error:\nError while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: No space left on device (28)", Some("nccl-shm-segments")),
        ("DistBackendError", "NCCL error: remote process exited or there was a network error\nLast error:\nsocketStartConnect: Connect to 10.0.0.1 failed : Connection refused", None),
        ("ObjectStoreFullError", "Failed to put object in object store because it is full.", Some("ray-object-store")),
        ("OutOfMemoryError", "Task was killed due to the node running low on memory.", None),
        ("OSError", "[Errno 28] No space left on device: '/dev/shm/joblib_memmapping_folder_7_a/b.pkl'", Some("joblib-loky-memmap")),
        ("OSError", "/usr/lib/libgomp.so.1: cannot allocate memory in static TLS block", Some("preload-allocator-mismatch")),
        ("OSError", "/usr/lib/libgomp.so.1: cannot open shared object file: No such file or directory", None),
    ] {
        let verdict = failed_with(type_name, text, &["/job/train.py:3 <module>"]);
        let of_library = ["nccl-shm-segments", "ray-object-store", "joblib-loky-memmap", "preload-allocator-mismatch"];
        let reported: Vec<_> = causes(&verdict).into_iter().filter(|cause| of_library.contains(cause)).collect();
        assert_eq!(reported, Vec::from_iter(cause), "{text}");
        assert!(cause.is_none_or(|cause| causes(&verdict)[0] == cause), "{text}: {:?}", causes(&verdict));
        if cause == Some("preload-allocator-mismatch") {
            assert_eq!(verdict.findings[0].fixes[0].command, "export LD_PRELOAD=/usr/lib/libgomp.so.1");
        }
    }
}

#[test]
fn joblib_hides_the_error_in_a_chain() {
    for (place, found) in [("joblib/_memmapping_reducer.py", true), ("job/mine.py", false)] {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        let mut report = raised("PicklingError", "Could not pickle the task to send it to the workers.");
        report.chain = vec![format!(
            "_RemoteTraceback: \n\"\"\"\nFile \"/x/{place}\", line 497\nOSError: [Errno 28] No space left on device\n\"\"\""
        )];
        run.exception(2.0, TRAINER, report)
            .ended(2.1, TRAINER, Ending::Exited(1))
            .finish(2.2, Ending::Exited(1));
        assert_eq!(of(&run.verdict(), "joblib-loky-memmap").is_some(), found, "{place}");
    }
}

#[test]
fn a_killed_owner_explains_the_trackers_warning() {
    for (ending, reported) in [(Ending::Signaled(9), true), (Ending::Exited(0), false)] {
        let mut run = Run::with_trainer();
        run.process(0.5, 300, TRAINER, Role::ResourceTracker, limits(), 1000);
        let tracker = || reading(300, TRAINER, "python");
        run.tick(1.0, main_and([reading(TRAINER, MAIN, "python"), tracker()]), |_| {});
        run.ended(1.5, TRAINER, ending).tick(2.0, main_and([tracker()]), |_| {});
        run.finish(3.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert_eq!(
            of(&verdict, "leaked-semaphore-warning").map(|found| found.severity),
            reported.then_some(Severity::Note)
        );
    }
}

fn ranks(weight: u64, lengths: [u64; 2], anonymous: u64, ran_out: bool) -> Verdict {
    let mut run = Run::new();
    for (n, length) in lengths.into_iter().enumerate() {
        let pid = 300 + n as i32;
        run.process(0.5, pid, MAIN, Role::Rank(n as u32), limits(), 1000);
        let settings = LoaderSettings {
            dataset_len: Some(length),
            weight: Some(Weight { objects: weight, ..Weight::default() }),
            ..loader(0, false)
        };
        agent(&mut run, 1.0, pid, AgentMessage::Loader(Box::new(settings)));
    }
    for at in [1.0, 2.0] {
        run.tick(at, main_and([300, 301].map(|pid| sized(reading(pid, MAIN, "python"), anonymous))), |_| {});
    }
    if ran_out {
        run.exception(2.5, 300, raised("MemoryError", ""));
    }
    run.finish(3.0, Ending::Exited(i32::from(ran_out)));
    run.verdict()
}

#[test]
fn ranks_that_each_hold_the_dataset_are_a_note_until_memory_runs_out() {
    let severity = |verdict: &Verdict| of(verdict, "per-rank-copies").map(|found| found.severity);
    assert_eq!(severity(&ranks(400 * MIB, [1000, 1000], 600 * MIB, false)), Some(Severity::Note));
    let verdict = ranks(400 * MIB, [1000, 1000], 600 * MIB, true);
    assert_eq!(severity(&verdict), Some(Severity::Warning));
    let text = sentences(of(&verdict, "per-rank-copies").unwrap());
    assert!(
        text.contains(
            "2 processes each hold the dataset __main__.Samples (1,000 items, about 400 MiB): 800 MiB in all"
        ),
        "{text}"
    );
    assert_eq!(severity(&ranks(400 * MIB, [1000, 900], 600 * MIB, true)), None, "shards");
    assert_eq!(severity(&ranks(400 * MIB, [1000, 1000], 60 * MIB, true)), None, "no private memory for it");
    assert_eq!(severity(&ranks(4 * MIB, [1000, 1000], 600 * MIB, true)), None, "small");
}

#[test]
fn programs_of_workers_are_a_note_and_a_refused_one_a_warning() {
    for (number, parent, reported) in [
        (12, Role::LoaderWorker(None), true),
        (3, Role::LoaderWorker(None), false),
        (12, Role::Trainer, false),
    ] {
        let mut run = Run::new();
        run.process(1.0, 300, MAIN, parent, limits(), 1000);
        for n in 0..number {
            run.process(2.0 + f64::from(n), 400 + n, 300, Role::Helper, limits(), 1000);
            run.tick(
                2.5 + f64::from(n),
                main_and([worker(300, MIB), sized(reading(400 + n, 300, "ffmpeg"), 80 * MIB)]),
                |_| {},
            );
        }
        run.finish(20.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert_eq!(
            of(&verdict, "subprocess-in-workers").map(|found| found.severity),
            reported.then_some(Severity::Note)
        );
    }
    for (stack, reported) in
        [("/usr/lib/python3.11/subprocess.py:1901 _execute_child", true), ("/job/x.py:3 load", false)]
    {
        let mut run = Run::new();
        run.process(1.0, 300, MAIN, Role::LoaderWorker(None), limits(), 1000);
        run.tick(1.5, main_and([worker(300, MIB)]), |_| {});
        let mut report = raised("OSError", "[Errno 12] Cannot allocate memory");
        (report.errno, report.left) = (Some(12), "loader-worker".into());
        report.stack = vec!["/job/data.py:8 __getitem__".into(), stack.into()];
        run.exception(2.0, 300, report).finish(3.0, Ending::Exited(1));
        let severity = of(&run.verdict(), "subprocess-in-workers").map(|found| found.severity);
        assert_eq!(severity, reported.then_some(Severity::Warning), "{stack}");
    }
}

#[test]
fn compile_workers_are_known_by_their_command_line() {
    for (word, ran_out, severity) in [
        ("/x/torch/_inductor/compile_worker/__main__.py", false, Some(Severity::Note)),
        ("/x/torch/_inductor/compile_worker/__main__.py", true, Some(Severity::Warning)),
        ("TORCH_INDUCTOR_CPP_WRAPPER", false, Some(Severity::Note)),
        ("/job/train.py", true, None),
    ] {
        let mut run = Run::new();
        for pid in 300..308 {
            run.process(1.0, pid, MAIN, Role::Helper, limits(), 1000);
            if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
                if let EventKind::ProcessSeen { facts } = &mut event.what {
                    facts.command_line.push(word.into());
                }
            }
        }
        run.tick(2.0, main_and((300..308).map(|pid| sized(reading(pid, MAIN, "python"), 90 * MIB))), |_| {});
        if ran_out {
            run.exception(2.5, MAIN, raised("MemoryError", ""));
        }
        run.finish(3.0, Ending::Exited(i32::from(ran_out)));
        let found = run.verdict();
        assert_eq!(of(&found, "inductor-compile-workers").map(|found| found.severity), severity, "{word}");
    }
}

/// A producer that tells of its queue at these times, and grows to so much.
fn producer(
    reported: &[(f64, u64)],
    maxsize: Option<u64>,
    item: u64,
    anonymous: impl Fn(f64) -> u64,
    end: f64,
) -> Verdict {
    producer_into("multiprocessing.Queue", reported, maxsize, item, anonymous, end)
}

fn producer_into(
    queue: &str,
    reported: &[(f64, u64)],
    maxsize: Option<u64>,
    item: u64,
    anonymous: impl Fn(f64) -> u64,
    end: f64,
) -> Verdict {
    let mut run = Run::with_trainer();
    let mut reported = reported.iter().peekable();
    for second in 1..=end as u32 {
        let at = f64::from(second);
        while let Some((when, items)) = reported.next_if(|(when, _)| *when <= at) {
            let backlog = Backlog {
                number: 1,
                of: queue.into(),
                items: *items,
                maxsize,
                item: Some(Weight { arrays: item, ..Weight::default() }),
                age_s: when - 1.0,
            };
            agent(&mut run, *when, TRAINER, AgentMessage::Backlog(backlog));
        }
        run.tick(at, main_and([sized(reading(TRAINER, MAIN, "python"), anonymous(at))]), |_| {});
    }
    run.finish(end + 1.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn a_queue_that_fills_faster_than_it_is_emptied_is_reported() {
    let doubles = [(3.0, 16), (6.0, 32), (12.0, 64), (24.0, 128)];
    let filling = |at: f64| (100 + 6 * at as u64) * MIB;
    let verdict = producer(&doubles, None, MIB, filling, 40.0);
    assert_eq!(causes(&verdict), ["queue-backlog-unbounded"]);
    let text = sentences(&verdict.findings[0]);
    assert!(text.contains("A multiprocessing.Queue in the trainer (pid 200) holds 128 items"), "{text}");
    assert!(text.contains("no maxsize") && text.contains("about 128 MiB"), "{text}");
}

#[test]
fn a_queue_is_bounded_by_the_name_of_its_own_class() {
    let doubles = [(3.0, 16), (6.0, 32), (12.0, 64), (24.0, 128)];
    let filling = |at: f64| (100 + 6 * at as u64) * MIB;
    let verdict = producer_into("asyncio.Queue", &doubles, None, MIB, filling, 40.0);
    let text = sentences(&verdict.findings[0]);
    assert!(text.contains("An asyncio.Queue in the trainer (pid 200)"), "{text}");
    assert_eq!(verdict.findings[0].fixes[0].command, "queue = asyncio.Queue(maxsize=16)");
}

#[test]
fn bounded_drained_and_small_queues_and_other_growth_are_not_reported() {
    let doubles = [(3.0, 16), (6.0, 32), (12.0, 64), (24.0, 128)];
    let filling = |at: f64| (100 + 6 * at as u64) * MIB;
    for (what, verdict) in [
        ("bounded", producer(&doubles, Some(200), MIB, filling, 40.0)),
        (
            "a burst that was worked off",
            producer(
                &[(1.2, 16), (1.4, 64), (2.0, 256)],
                None,
                MIB,
                |at| if at < 9.0 { 400 * MIB } else { 100 * MIB },
                60.0,
            ),
        ),
        ("small items", producer(&doubles, None, 1000, filling, 40.0)),
        ("what it holds is not in this process", producer(&doubles, None, 64 * MIB, filling, 40.0)),
        ("a leak without a queue", producer(&[], None, MIB, filling, 40.0)),
    ] {
        assert_eq!(of(&verdict, "queue-backlog-unbounded"), None, "{what}");
    }
    let unheard = producer(&[], None, MIB, filling, 40.0);
    assert!(undetermined(&unheard).contains(&"queue-backlog-unbounded"), "the agent did not speak");
}

fn retained(cycle: u64, tensors: u64) -> Option<RetainedByIterators> {
    Some(RetainedByIterators { cycle, tee: 0, weight: Weight { tensors, ..Weight::default() } })
}

#[test]
fn what_cycle_retains_is_a_note_and_where_it_ran_short_a_warning() {
    for (retained, failed, severity) in [
        (retained(100, 100 * MIB), false, Some(Severity::Note)),
        (retained(100, MIB), false, None),
        (None, true, None),
        (retained(250, 250 * MIB), true, Some(Severity::Warning)),
    ] {
        let mut run = Run::new();
        agent(&mut run, 0.5, MAIN, AgentMessage::Loader(Box::new(loader(1, false))));
        run.tick(1.0, main_and([]), |_| {});
        if failed {
            let mut report = raised(
                "RuntimeError",
                "Too many open files. Communication with the workers is no longer possible.",
            );
            report.counts.retained_by_iterators = retained;
            run.exception(2.0, MAIN, report);
        } else {
            let figures = Default::default();
            agent(&mut run, 2.0, MAIN, AgentMessage::Bye { figures, retained_by_iterators: retained });
        }
        run.finish(3.0, Ending::Exited(i32::from(failed)));
        let verdict = run.verdict();
        let found = of(&verdict, "itertools-cycle-caches");
        assert_eq!(found.map(|found| found.severity), severity);
        if let Some(found) = found {
            assert!(
                sentences(found).contains("One epoch of its loader over __main__.Samples has 100 batches"),
                "{}",
                sentences(found)
            );
        }
    }
}

fn generated(code: impl Fn(u64) -> u64, anonymous: impl Fn(u64) -> u64, end: u64) -> Verdict {
    let mut run = Run::with_trainer();
    for second in 1..=end {
        let mut trainer = sized(reading(TRAINER, MAIN, "python"), anonymous(second) * MIB);
        let executable_bytes = Measured::Known(Bytes(code(second) * MIB));
        trainer.mappings = Measured::Known(Mappings { count: 700, executable_bytes, ..Mappings::default() });
        run.tick(second as f64, main_and([trainer]), |_| {});
    }
    run.finish(end as f64 + 1.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn code_that_is_generated_all_along_is_reported_and_that_of_a_model_is_not() {
    let severity =
        |verdict: &Verdict| of(verdict, "onednn-primitive-cache-shapes").map(|found| found.severity);
    assert_eq!(severity(&generated(|t| 6 * t, |t| 200 + 2 * t, 40)), Some(Severity::Note));
    assert_eq!(severity(&generated(|t| 20 * t, |t| 200 + 9 * t, 40)), Some(Severity::Warning));
    for (what, verdict) in [
        ("at the start only", generated(|t| 60 * t.min(4), |t| 200 + 9 * t, 40)),
        ("a leak without code", generated(|_| 4, |t| 200 + 9 * t, 40)),
        ("code without memory", generated(|t| 20 * t, |_| 200, 40)),
    ] {
        assert_eq!(severity(&verdict), None, "{what}");
    }
}

#[test]
fn code_that_was_read_long_before_the_end_goes_on_where_its_memory_does() {
    let read_until_17 = |anonymous: fn(u64) -> u64| {
        let mut run = Run::with_trainer();
        for second in 1..=40u64 {
            let mut trainer = sized(reading(TRAINER, MAIN, "python"), anonymous(second) * MIB);
            if [2, 7, 17].contains(&second) {
                let executable_bytes = Measured::Known(Bytes(14 * second * MIB));
                trainer.mappings =
                    Measured::Known(Mappings { count: 700, executable_bytes, ..Mappings::default() });
            }
            run.tick(second as f64, main_and([trainer]), |_| {});
        }
        run.finish(41.0, Ending::Exited(0));
        let verdict = run.verdict();
        of(&verdict, "onednn-primitive-cache-shapes").map(|found| found.severity)
    };
    assert_eq!(read_until_17(|t| 100 + 20 * t), Some(Severity::Warning));
    assert_eq!(read_until_17(|t| 100 + 20 * t.min(18)), Some(Severity::Note), "it came to rest");
}

#[test]
fn versions_with_a_late_collector_are_a_hypothesis() {
    for (python, grown, reported) in
        [("3.14.2", 900, true), ("3.14.5", 900, false), ("3.13.1", 900, false), ("3.14.2", 90, false)]
    {
        let mut run = Run::with_trainer();
        agent(
            &mut run,
            0.2,
            TRAINER,
            AgentMessage::Hello { python: python.into(), forked: false, native: Some(true), attempt: None },
        );
        for (at, more) in [(1.0, 0), (2.0, grown)] {
            run.tick(at, main_and([sized(reading(TRAINER, MAIN, "python"), (200 + more) * MIB)]), |_| {});
        }
        run.finish(3.0, Ending::Exited(0));
        let verdict = run.verdict();
        let found = of(&verdict, "python-314-incremental-gc");
        assert_eq!(found.is_some(), reported, "{python}");
        assert!(found
            .is_none_or(|found| found.status() == Status::Hypothesis && found.severity == Severity::Note));
    }
}

#[test]
fn a_large_address_space_is_a_note_unless_it_is_limited() {
    for (gib, limit, reserved, reported) in [
        (1024, Limit::Unlimited, 0, true),
        (1024, Limit::At(2048 * GIB), 0, false),
        (20, Limit::Unlimited, 0, false),
        (140, Limit::Unlimited, 128, false),
        (1024, Limit::Unlimited, 128, true),
    ] {
        let mut run = Run::new();
        let mut own = limits();
        own.address_space = limit;
        run.process(0.1, TRAINER, MAIN, Role::Trainer, own, 1000);
        let mut trainer = reading(TRAINER, MAIN, "python");
        trainer.memory = Measured::Known(ProcessMemory {
            virtual_size: Bytes(gib * GIB),
            anonymous: Bytes(GIB),
            ..ProcessMemory::default()
        });
        run.tick(1.0, main_and([trainer]), |_| {});
        bye(&mut run, &[("arena_reserved", (reserved * GIB) as f64)]);
        run.finish(2.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert_eq!(
            of(&verdict, "uva-vsz-illusion").map(|found| found.severity),
            reported.then_some(Severity::Note),
            "{gib} GiB, of which the arena reserved {reserved}"
        );
    }
}

fn bye(run: &mut Run, figures: &[(&str, f64)]) {
    let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    agent(run, 1.5, MAIN, AgentMessage::Bye { figures, retained_by_iterators: Default::default() });
}

#[test]
fn an_arena_that_nothing_travelled_through_is_reported_where_it_was_asked_for() {
    let none: &[_] = &[("arena_copied", 0.0), ("arena_in_place", 0.0), ("arena_passed_by", 0.0)];
    for (name, applied, figures, last) in [
        ("arena", true, none, "arena: nothing travelled"),
        ("zygote", true, none, "arena: nothing travelled"),
        ("arena", true, &[("arena_copied", 1e6), ("arena_passed_by", 0.0)], "100 % of the"),
        ("arena", true, &[("gc_collected_0", 1.0)], "arena: a sentence"),
        ("arena", false, none, "arena: a sentence"),
        ("nofile", true, none, "nofile: a sentence"),
    ] {
        let mut run = Run::new();
        run.facts.remedies = vec![AskedRemedy { name: name.into(), applied, sentence: "a sentence".into() }];
        run.tick(1.0, main_and([]), |_| {});
        bye(&mut run, figures);
        run.finish(2.0, Ending::Exited(0));
        let reported = run.verdict().fixes;
        assert!(reported.last().unwrap().starts_with(last), "{reported:?}");
    }
}

#[test]
fn a_long_list_of_indices_is_a_note_and_where_memory_ran_out_a_warning() {
    for (length, rise, ran_out, severity) in [
        (10_000_000, 400, false, Some(Severity::Note)),
        (10_000_000, 400, true, Some(Severity::Warning)),
        (10_000_000, 40, true, None),
        (100_000, 400, true, None),
    ] {
        let mut run = Run::new();
        let at_rest = || sized(reading(MAIN, 1, "python"), 200 * MIB);
        run.tick(0.4, vec![at_rest()], |_| {});
        let settings = LoaderSettings { index_list: Some(length), ..loader(2, false) };
        agent(&mut run, 0.5, MAIN, AgentMessage::Loader(Box::new(settings)));
        run.tick(1.0, vec![sized(reading(MAIN, 1, "python"), (200 + rise) * MIB)], |_| {});
        if ran_out {
            run.exception(1.5, MAIN, raised("MemoryError", ""));
        }
        run.finish(2.0, Ending::Exited(i32::from(ran_out)));
        let verdict = run.verdict();
        assert_eq!(
            of(&verdict, "sampler-index-lists").map(|found| found.severity),
            severity,
            "{length} {rise}"
        );
    }
}

#[test]
fn the_queue_of_a_loader_that_pins_memory_is_no_backlog() {
    for (workers, found) in [(16, false), (2, true)] {
        let mut run = Run::with_trainer();
        let settings = LoaderSettings { pin_memory: true, ..loader(workers, false) };
        agent(&mut run, 0.5, TRAINER, AgentMessage::Loader(Box::new(settings)));
        for second in 1u32..20 {
            let anonymous = (100 + 20 * u64::from(second)) * MIB;
            run.tick(
                f64::from(second),
                main_and([sized(reading(TRAINER, MAIN, "python"), anonymous)]),
                |_| {},
            );
            if second == 12 {
                let item = Some(Weight { tensors: 4 * MIB, ..Weight::default() });
                let (of, age_s) = ("queue.Queue".into(), 11.0);
                let backlog = Backlog { number: 1, of, items: 32, maxsize: None, item, age_s };
                agent(&mut run, 12.0, TRAINER, AgentMessage::Backlog(backlog));
            }
        }
        run.finish(20.0, Ending::Exited(0));
        assert_eq!(of(&run.verdict(), "queue-backlog-unbounded").is_some(), found, "{workers}");
    }
}
