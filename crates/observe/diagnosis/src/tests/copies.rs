//! refcount-cow-fork-workers, spawn-forkserver-full-copy and worker-import-overhead.

use super::build::*;
use ullage_model::{
    AgentMessage, Bytes, Ending, EventKind, Exclusive, Finding, Held, LoaderSettings, Measured, Missing,
    ProcessMemory, ProcessReading, Role, Severity, Status, Verdict, Weight,
};

const WORKERS: [i32; 4] = [300, 301, 302, 303];
const PAGE: u64 = 4096;

fn sized(mut reading: ProcessReading, anonymous: u64, faults: u64) -> ProcessReading {
    reading.memory =
        Measured::Known(ProcessMemory { anonymous: Bytes(anonymous), ..ProcessMemory::default() });
    reading.minor_faults = faults;
    reading
}

fn probed(reading: ProcessReading, exclusive: u64) -> ProcessReading {
    roughly(reading, exclusive, 4 * MIB)
}

fn roughly(mut reading: ProcessReading, exclusive: u64, error: u64) -> ProcessReading {
    reading.exclusive = Measured::Known(Exclusive { bytes: Bytes(exclusive), error: Bytes(error) });
    reading
}

fn agent(run: &mut Run, at: f64, pid: i32, message: AgentMessage) {
    run.event(at, EventKind::Agent { id: Some(id(pid)), pid, message });
}

fn loader(method: &str, weight: Option<Weight>) -> AgentMessage {
    AgentMessage::Loader(Box::new(LoaderSettings {
        workers: 4,
        start_method: Some(method.into()),
        dataset: Some("__main__.Names".into()),
        dataset_len: Some(1_000_000),
        weight,
        ..LoaderSettings::default()
    }))
}

fn objects(bytes: u64) -> Option<Weight> {
    Some(Weight { objects: bytes, ..Weight::default() })
}

fn begins(target: &str, method: &str, anonymous: Option<u64>, dataset: Option<Weight>) -> AgentMessage {
    AgentMessage::Process {
        name: "Process-1".into(),
        target: target.into(),
        worker: None,
        start_method: Some(method.into()),
        anonymous,
        dataset,
        arguments: None,
    }
}

/// What a forked worker looks like: resident bytes, of them its own, and its faults.
type Reading = (u64, u64, u64);

/// Four workers, forked from main with 500 MiB at 1 s, that look so at 2 s, 3 s, ….
struct Forked {
    weight: Option<Option<Weight>>,
    role: Role,
    readings: Vec<Reading>,
    parent: u64,
    parent_faults: u64,
}

impl Forked {
    fn looking(readings: &[Reading]) -> Forked {
        Forked {
            weight: Some(objects(100 * MIB)),
            role: Role::LoaderWorker(Some(0)),
            readings: readings.to_vec(),
            parent: 500 * MIB,
            parent_faults: 100,
        }
    }

    fn run(&self) -> Run {
        let mut run = Run::new();
        if let Some(weight) = self.weight {
            agent(&mut run, 1.0, MAIN, loader("fork", weight));
        }
        for pid in WORKERS {
            run.process(1.0, pid, MAIN, self.role.clone(), limits(), 1000);
        }
        for (second, &(resident, own, faults)) in self.readings.iter().enumerate() {
            let main = sized(reading(MAIN, 1, "python"), self.parent, 90_000 + self.parent_faults);
            let worker =
                |&pid: &i32| probed(sized(reading(pid, MAIN, "pt_data_worker"), resident, faults), own);
            let processes = std::iter::once(main).chain(WORKERS.iter().map(worker)).collect();
            run.tick(second as f64 + 2.0, processes, |_| {});
        }
        run
    }

    fn verdict(&self, ending: Ending) -> Verdict {
        let mut run = self.run();
        for pid in WORKERS {
            run.ended(19.0, pid, Ending::Exited(0));
        }
        run.finish(20.0, ending);
        run.verdict()
    }

    fn finding(&self) -> Option<Finding> {
        self.verdict(Ending::Exited(0)).findings.into_iter().next()
    }
}

/// Four workers that seem to have copied so much each, of which so much may be chance, in a cgroup that met its limit or did not.
fn seeming(own: u64, error: u64, out_of_memory: bool) -> Verdict {
    let mut run = Run::new();
    agent(&mut run, 1.0, MAIN, loader("fork", objects(100 * MIB)));
    for pid in WORKERS {
        run.process(1.0, pid, MAIN, Role::LoaderWorker(Some(0)), limits(), 1000);
    }
    let looking = || {
        let main = sized(reading(MAIN, 1, "python"), 500 * MIB, 90_100);
        let worker = |&pid: &i32| {
            roughly(sized(reading(pid, MAIN, "pt_data_worker"), 500 * MIB, faults(own)), own, error)
        };
        std::iter::once(main).chain(WORKERS.iter().map(worker)).collect()
    };
    for (at, kills) in [(2.0, 0), (3.0, u64::from(out_of_memory))] {
        run.tick(at, looking(), |sample| sample.cgroups = vec![group("/job", GIB, GIB, kills, kills)]);
    }
    if out_of_memory {
        run.ended(3.0, 300, Ending::Signaled(9));
    }
    run.finish(20.0, Ending::Exited(i32::from(out_of_memory)));
    run.verdict()
}

#[test]
fn where_memory_ran_out_what_was_likely_copied_counts_and_what_could_not_be_read_does_not() {
    let named = |verdict: Verdict| {
        verdict.findings.iter().any(|finding| finding.cause == "refcount-cow-fork-workers")
    };
    assert!(named(seeming(45 * MIB, 23 * MIB, true)));
    assert!(!named(seeming(45 * MIB, 23 * MIB, false)), "not yet known");
    assert!(!named(seeming(25 * MIB, 23 * MIB, true)), "what any interpreter copies");
    assert!(!named(seeming(90 * MIB, 90 * MIB, true)), "nothing of it was read");
}

fn faults(bytes: u64) -> u64 {
    bytes / PAGE + 900
}

/// It copies 90 MiB, and its resident size stays.
fn copying() -> Vec<Reading> {
    [10, 40, 70, 90].map(|mib| (500 * MIB, mib * MIB, faults(mib * MIB))).to_vec()
}

#[test]
fn copied_pages_at_a_steady_resident_size_are_reported_with_what_sharing_would_save() {
    let finding = Forked::looking(&copying()).finding().unwrap();
    assert_eq!(finding.cause, "refcount-cow-fork-workers");
    assert_eq!((finding.status(), finding.severity), (Status::Established, Severity::Warning));
    assert_eq!(finding.process.as_ref().map(|process| process.id), Some(id(MAIN)));
    let text = sentences(&finding);
    assert!(text.contains("4 forked workers copied 360 MiB"), "{text}");
    assert!(text.contains("grew by at most 0 bytes"), "{text}");
    assert!(text.contains("__main__.Names holds 100 MiB of them for 1,000,000 items"), "{text}");
    assert!(
        text.contains("Reading all copies 400 MiB; ullage.share(dataset) would have saved 360 MiB so far")
    );
    assert!(finding.fixes.iter().any(|fix| fix.command.contains("ullage.freeze")), "the Python is not known");
}

#[test]
fn copies_of_what_are_mostly_objects_are_supported_without_a_loader() {
    let of = |blocks: f64| {
        let looking = Forked { weight: None, role: Role::Other, ..Forked::looking(&copying()) };
        let mut run = looking.run();
        let all = [("anonymous", 500.0 * MIB as f64), ("blocks", blocks)];
        let figures = all.map(|(name, figure)| (name.to_owned(), figure)).into();
        agent(&mut run, 1.5, MAIN, AgentMessage::Memory { figures });
        run.finish(20.0, Ending::Exited(0));
        let verdict = run.verdict();
        let found = verdict.findings.iter().find(|finding| finding.cause == "refcount-cow-fork-workers");
        found.map(|finding| finding.status())
    };
    assert_eq!(of(5e6), Some(Status::Supported));
    assert_eq!(of(1e5), Some(Status::Hypothesis), "arrays are copied by writing them");
}

#[test]
fn freezing_is_offered_where_it_works() {
    for (python, offered) in [("3.11.7", false), ("3.12.1", true), ("nonsense", true)] {
        let mut run = Forked::looking(&copying()).run();
        agent(
            &mut run,
            0.5,
            MAIN,
            AgentMessage::Hello { python: python.into(), forked: false, native: Some(true), attempt: None },
        );
        run.finish(20.0, Ending::Exited(0));
        let finding = run.verdict().findings.remove(0);
        let freezes = finding.fixes.iter().any(|fix| fix.command.contains("ullage.freeze"));
        assert_eq!(freezes, offered, "{python}");
        assert!(finding.fixes[0].command.contains("ullage.share"));
    }
}

#[test]
fn what_the_agent_said_decides_how_sure_it_is() {
    let few = Some(Weight { objects: MIB, arrays: 900 * MIB, tensors: 0 });
    let loader = Role::LoaderWorker(None);
    for (weight, role, expected) in [
        (None, loader.clone(), (Status::Supported, Severity::Warning)),
        (Some(None), loader.clone(), (Status::Supported, Severity::Warning)),
        (None, Role::Other, (Status::Hypothesis, Severity::Note)),
        (Some(few), loader, (Status::Hypothesis, Severity::Note)),
    ] {
        let finding = Forked { weight, role, ..Forked::looking(&copying()) }.finding().unwrap();
        assert_eq!((finding.status(), finding.severity), expected, "{weight:?}");
    }
}

/// A Python with torch that collects its garbage copies some 50 MiB of what it inherited, whatever the dataset is.
#[test]
fn what_the_dataset_does_not_explain_is_reported_from_64_mib_a_worker_on() {
    let few = Some(Weight { objects: MIB, arrays: 900 * MIB, tensors: 0 });
    let is_reported = |weight, mib: u64| {
        let readings = [(500 * MIB, mib * MIB, faults(mib * MIB))];
        Forked { weight, ..Forked::looking(&readings) }.finding().is_some()
    };
    for (weight, explained) in [(Some(objects(100 * MIB)), true), (Some(few), false), (None, false)] {
        assert_eq!(is_reported(weight, 56), explained, "{weight:?}");
        assert!(is_reported(weight, 80), "{weight:?}");
    }
}

#[test]
fn healthy_readings_are_not_blamed() {
    let (m, f) = (MIB, faults);
    let readings: [(&str, [Reading; 3]); 4] = [
        (
            "numpy: flat",
            [(500 * m, 10 * m, f(10 * m)), (501 * m, 14 * m, f(14 * m)), (501 * m, 15 * m, f(15 * m))],
        ),
        (
            "a leak",
            [(510 * m, 20 * m, f(20 * m)), (700 * m, 210 * m, f(210 * m)), (900 * m, 410 * m, f(410 * m))],
        ),
        (
            "a buffer of its own from the start",
            [(700 * m, 210 * m, f(210 * m)), (700 * m, 212 * m, f(212 * m)), (700 * m, 212 * m, f(212 * m))],
        ),
        ("the parent rewrote", [(500 * m, 10 * m, 3000), (500 * m, 300 * m, 3100), (500 * m, 400 * m, 3200)]),
    ];
    for (what, readings) in readings {
        for weight in [Some(objects(100 * MIB)), None] {
            let found = Forked { weight, parent_faults: 80_000, ..Forked::looking(&readings) }.finding();
            assert_eq!(found, None, "{what}");
        }
    }
}

#[test]
fn a_little_is_a_note_and_a_job_that_ran_out_of_memory_is_warned_of_it() {
    let readings = [(500 * MIB, 30 * MIB, faults(30 * MIB))];
    let finding = Forked::looking(&readings).finding().unwrap();
    assert_eq!(finding.severity, Severity::Note);
    let mut run = Forked::looking(&readings).run();
    run.exception(3.0, MAIN, raised("MemoryError", "")).finish(4.0, Ending::Exited(1));
    let verdict = run.verdict();
    let finding = verdict.findings.iter().find(|f| f.cause == "refcount-cow-fork-workers").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
}

/// Two workers that live from 1 s to 19 s and have copied so many MiB each at so many seconds.
fn over_time(read: &[(f64, u64)], parent: u64) -> Option<(Status, Severity)> {
    let mut run = Run::new();
    for pid in &WORKERS[..2] {
        run.process(1.0, *pid, MAIN, Role::LoaderWorker(Some(0)), limits(), 1000);
    }
    for &(at, mib) in read {
        let main = sized(reading(MAIN, 1, "python"), parent, 90_100);
        let worker = |&pid: &i32| {
            probed(sized(reading(pid, MAIN, "pt_data_worker"), parent, faults(mib * MIB)), mib * MIB)
        };
        let processes = std::iter::once(main).chain(WORKERS[..2].iter().map(worker)).collect();
        run.tick(at, processes, |_| {});
    }
    for pid in &WORKERS[..2] {
        run.ended(19.0, *pid, Ending::Exited(0));
    }
    run.finish(20.0, Ending::Exited(0));
    let verdict = run.verdict();
    let finding = verdict.findings.iter().find(|one| one.cause == "refcount-cow-fork-workers")?;
    Some((finding.status(), finding.severity))
}

#[test]
fn copies_that_go_on_are_warned_of_as_growth_is() {
    let straight: [(f64, u64); 5] = [(2.0, 20), (6.0, 45), (10.0, 70), (14.0, 95), (18.0, 120)];
    let early = [(2.0, 100), (6.0, 118), (10.0, 119), (14.0, 120), (18.0, 120)];
    for (what, read, parent, severity) in [
        ("a straight line", &straight[..], GIB / 2, Severity::Warning),
        ("of a large job", &straight[..], 8 * GIB, Severity::Note),
        ("all of it early", &early[..], GIB / 2, Severity::Note),
        ("nothing was read early", &straight[3..], GIB / 2, Severity::Note),
        ("ends half-way", &straight[..3], GIB / 2, Severity::Note),
    ] {
        assert_eq!(over_time(read, parent), Some((Status::Supported, severity)), "{what}");
    }
}

#[test]
fn a_tenth_of_the_limit_is_worth_a_warning() {
    for (limit, severity) in [(GIB, Severity::Warning), (8 * GIB, Severity::Note)] {
        let mut run = Forked::looking(&[(500 * MIB, 40 * MIB, faults(40 * MIB))]).run();
        run.tick(5.0, vec![reading(MAIN, 1, "python")], |sample| {
            sample.cgroups = vec![group("/job", GIB / 2, limit, 0, 0)];
        });
        run.finish(20.0, Ending::Exited(0));
        assert_eq!(run.verdict().findings[0].severity, severity, "{limit}");
    }
}

#[test]
fn what_forked_workers_share_is_not_held_once_more_in_each() {
    // 10 GiB in the parent, shared by four: the sum over processes is 50 GiB, and what they hold 11.2 GiB.
    let readings = [(10 * GIB, 300 * MIB, faults(300 * MIB))];
    let finding = Forked { weight: None, parent: 10 * GIB, ..Forked::looking(&readings) }.finding();
    assert_eq!(finding.map(|finding| finding.severity), Some(Severity::Warning));
}

#[test]
fn workers_of_two_epochs_are_not_added_up() {
    let mut run = Forked::looking(&copying()).run();
    for pid in WORKERS {
        run.ended(6.0, pid, Ending::Exited(0));
        run.process(7.0, pid + 100, MAIN, Role::LoaderWorker(None), limits(), 1000);
    }
    let worker =
        |pid: i32| probed(sized(reading(pid + 100, MAIN, "pt_data_worker"), 500 * MIB, 90_000), 80 * MIB);
    let main = sized(reading(MAIN, 1, "python"), 500 * MIB, 90_000);
    run.tick(7.5, std::iter::once(main).chain(WORKERS.map(worker)).collect(), |_| {});
    run.finish(20.0, Ending::Exited(0));
    let text = sentences(&run.verdict().findings[0]);
    assert!(text.contains("copied 360 MiB"), "the larger of the two: {text}");
}

#[test]
fn pages_that_may_not_be_read_leave_it_open() {
    for (why, open) in [(Missing::NoPermission, true), (Missing::NotAsked, false)] {
        let mut run = Run::new();
        run.process(1.0, 300, MAIN, Role::LoaderWorker(None), limits(), 1000);
        agent(&mut run, 1.0, 300, begins("torch.utils.data._utils.worker._worker_loop", "fork", None, None));
        let mut worker = sized(reading(300, MAIN, "pt_data_worker"), 500 * MIB, 60_000);
        worker.exclusive = Measured::Missing(why);
        run.tick(2.0, vec![reading(MAIN, 1, "python"), worker], |_| {}).finish(9.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert_eq!(undetermined(&verdict).contains(&"refcount-cow-fork-workers"), open);
        assert!(verdict.healthy);
    }
}

/// Three workers of a loader, each with so much memory, of which the agent said so much.
fn spawned(anonymous: u64, dataset: Option<Weight>, parent: Option<Weight>, agents: bool) -> Run {
    let mut run = Run::new();
    if agents {
        agent(&mut run, 1.0, MAIN, loader("spawn", parent));
    }
    for pid in &WORKERS[..3] {
        run.process(1.0, *pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
        if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
            if let EventKind::ProcessSeen { facts } = &mut event.what {
                facts.command_line.push("--multiprocessing-fork".into());
            }
        }
        if agents && dataset.is_some() {
            let target = "torch.utils.data._utils.worker._worker_loop";
            agent(&mut run, 1.5, *pid, begins(target, "spawn", Some(anonymous), dataset));
        }
    }
    for at in [2.0, 3.0, 4.0] {
        let worker = |&pid: &i32| sized(reading(pid, MAIN, "pt_data_worker"), anonymous, 90_000);
        let all = std::iter::once(reading(MAIN, 1, "python")).chain(WORKERS[..3].iter().map(worker));
        run.tick(at, all.collect(), |_| {});
    }
    run
}

#[test]
fn copies_of_the_dataset_in_spawned_workers_are_reported_with_their_sum() {
    let weight = Some(Weight { objects: 90 * MIB, arrays: 110 * MIB, tensors: 7 * GIB });
    let mut run = spawned(480 * MIB, weight, weight, true);
    run.finish(9.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["spawn-forkserver-full-copy"]);
    let finding = &verdict.findings[0];
    assert_eq!((finding.status(), finding.severity), (Status::Established, Severity::Warning));
    let text = sentences(finding);
    assert!(text.contains("3 loader workers hold a copy of the dataset __main__.Names (1,000,000 items): 200 MiB each, 600 MiB in all"), "{text}");
    assert!(text.contains("480 MiB of anonymous memory before its first item"), "{text}");
    assert!(text.contains("as multiprocessing_context=\"spawn\" says"), "{text}");
}

#[test]
fn imports_and_shared_datasets_are_no_copies() {
    let small = objects(2 * MIB);
    let tensors = Some(Weight { tensors: 4 * GIB, ..Weight::default() });
    let shared_after_all = Some(Weight { objects: 900 * MIB, ..Weight::default() });
    for (what, weight) in [("imports", small), ("tensors", tensors), ("no room for it", shared_after_all)] {
        let mut run = spawned(480 * MIB, weight, weight, true);
        run.finish(9.0, Ending::Exited(0));
        let verdict = run.verdict();
        assert!(verdict.findings.is_empty() && verdict.undetermined.is_empty(), "{what}: {verdict:?}");
    }
}

#[test]
fn the_weight_in_the_parent_supports_it_where_the_workers_said_nothing() {
    let mut run = spawned(480 * MIB, None, objects(200 * MIB), true);
    run.finish(9.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["spawn-forkserver-full-copy"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
}

#[test]
fn without_the_agent_large_spawned_workers_stay_open_until_memory_runs_out() {
    let mut run = spawned(480 * MIB, None, None, false);
    run.finish(9.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy && verdict.findings.is_empty());
    assert_eq!(undetermined(&verdict), ["spawn-forkserver-full-copy"]);
    let mut run = spawned(480 * MIB, None, None, false);
    let killed = |oom| vec![group("/job", GIB, GIB, oom, oom)];
    run.tick(5.0, vec![reading(MAIN, 1, "python")], |sample| sample.cgroups = killed(0));
    run.tick(6.0, vec![reading(MAIN, 1, "python")], |sample| sample.cgroups = killed(1));
    run.ended(6.0, 300, Ending::Signaled(9)).finish(9.0, Ending::Exited(1));
    let verdict = run.verdict();
    let finding = verdict.findings.iter().find(|f| f.cause == "spawn-forkserver-full-copy").unwrap();
    assert_eq!(finding.status(), Status::Hypothesis, "{verdict:?}");
    let mut unknown = spawned(480 * MIB, None, None, false);
    for pid in &WORKERS[..3] {
        unknown.event(4.5, EventKind::RoleKnown { id: id(*pid), role: Role::Other });
    }
    unknown.finish(9.0, Ending::Exited(0));
    let open = ["spawn-forkserver-full-copy", "worker-import-overhead"];
    assert_eq!(undetermined(&unknown.verdict()), open, "a loader's or a pool's");
    let mut small = spawned(100 * MIB, None, None, false);
    small.finish(9.0, Ending::Exited(0));
    assert!(small.verdict().undetermined.is_empty());
}

/// Four workers of a pool with a global of 128 MiB each, and resident sizes from and to.
fn pool(method: &str, from: u64, to: u64, picked: [Option<&str>; 4]) -> Verdict {
    let mut run = Run::new();
    for (pid, picked) in WORKERS.into_iter().zip(picked) {
        run.process(1.0, pid, MAIN, Role::PoolWorker, limits(), 1000);
        let anonymous = (method != "fork").then_some(from);
        agent(&mut run, 1.0, pid, begins("multiprocessing.pool.worker", method, anonymous, None));
        let global = Held {
            name: "GLOBAL_BUFFER".into(),
            type_name: "numpy.ndarray".into(),
            bytes: 128 * MIB,
            picked: picked.map(str::to_owned),
        };
        agent(&mut run, 2.5, pid, AgentMessage::Holds { globals: vec![global] });
    }
    for (at, anonymous) in [(2.0, from), (3.0, to), (4.0, to)] {
        let main = sized(reading(MAIN, 1, "python"), from, 1);
        let worker = |pid: i32| sized(reading(pid, MAIN, "python"), anonymous, 9);
        run.tick(at, std::iter::once(main).chain(WORKERS.map(worker)).collect(), |_| {});
    }
    for pid in WORKERS {
        run.ended(8.0, pid, Ending::Signaled(15));
    }
    run.finish(9.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn a_global_that_every_worker_of_a_pool_fills_is_reported() {
    for method in ["spawn", "forkserver", "fork"] {
        let verdict = pool(method, 16 * MIB, 145 * MIB, [Some("aa"); 4]);
        assert_eq!(causes(&verdict), ["worker-import-overhead"], "{method}");
        let text = sentences(&verdict.findings[0]);
        assert_eq!(verdict.findings[0].status(), Status::Established);
        assert!(text.contains("Each of 4 workers holds its own global `"), "{text}");
        assert!(text.contains("sharing saves 384 MiB"), "{text}");
    }
}

#[test]
fn contents_that_differ_are_said_and_make_it_less_sure() {
    for picked in [[Some("aa"), Some("aa"), Some("aa"), Some("bb")], [None; 4]] {
        let verdict = pool("spawn", 16 * MIB, 145 * MIB, picked);
        assert_eq!(verdict.findings[0].status(), Status::Supported, "{picked:?}");
    }
}

#[test]
fn a_global_that_was_inherited_or_mapped_is_no_copy() {
    assert!(
        pool("fork", 145 * MIB, 146 * MIB, [Some("aa"); 4]).findings.is_empty(),
        "filled before the fork"
    );
    assert!(pool("spawn", 16 * MIB, 17 * MIB, [Some("aa"); 4]).findings.is_empty(), "not its own memory");
}

/// Main, of 300 MiB, and so many processes of this role and start method that were given 100 MiB each; `killed`: one of them, by its
/// cgroup's limit.
fn given(role: &Role, method: &str, number: i32, killed: bool) -> Verdict {
    let mut run = Run::new();
    let sized = |pid: i32, mib: u64| {
        let mut process = reading(pid, MAIN, "python");
        if let Measured::Known(memory) = &mut process.memory {
            memory.anonymous = Bytes(mib * MIB);
        }
        process
    };
    for pid in 300..300 + number {
        run.process(0.5, pid, MAIN, role.clone(), limits(), 1000);
        let mut message = begins("envs.worker", method, Some(130 * MIB), None);
        if let AgentMessage::Process { arguments, .. } = &mut message {
            *arguments = Some(Weight { arrays: 100 * MIB, ..Weight::default() });
        }
        run.event(1.0, EventKind::Agent { id: Some(id(pid)), pid, message });
    }
    for second in 1..8 {
        let all = (300..300 + number).map(|pid| sized(pid, 140));
        run.tick(f64::from(second), std::iter::once(sized(MAIN, 300)).chain(all).collect(), |sample| {
            sample.cgroups = vec![group("/job", 1140 * MIB, 1150 * MIB, 0, 0)];
        });
    }
    if killed {
        run.ended(7.4, 300, Ending::Signaled(9));
        run.tick(7.5, vec![sized(MAIN, 300)], |sample| {
            sample.cgroups = vec![group("/job", 1000 * MIB, 1150 * MIB, 1, 9)];
        });
    }
    run.finish(8.0, Ending::Exited(i32::from(killed))).verdict()
}

#[test]
fn what_processes_of_spawn_were_given_is_there_once_for_each_of_them() {
    let well = given(&Role::Trainer, "forkserver", 6, false);
    assert_eq!(causes(&well), Vec::<&str>::new(), "each may have been given a part of its own");
    assert_eq!(well.findings[0].cause, "spawn-forkserver-full-copy");
    let verdict = given(&Role::Trainer, "forkserver", 6, true);
    let first = &verdict.findings[0];
    assert_eq!((first.cause.as_str(), first.status()), ("spawn-forkserver-full-copy", Status::Supported));
    assert!(first.severity >= Severity::Warning);
    assert_eq!(
        first.title,
        "6 processes each unpickled the data that they were given: 100 MiB each, 600 MiB in all"
    );
}

#[test]
fn one_process_forked_ones_ranks_and_workers_of_a_pool_hold_no_copies_of_arguments() {
    for (role, method, number) in [
        (Role::Trainer, "spawn", 1),
        (Role::Trainer, "fork", 6),
        (Role::Rank(1), "spawn", 6),
        (Role::PoolWorker, "spawn", 6),
    ] {
        let verdict = given(&role, method, number, false);
        let copies = verdict.findings.iter().any(|finding| finding.cause == "spawn-forkserver-full-copy");
        assert!(!copies, "{role:?} {method}");
    }
}
