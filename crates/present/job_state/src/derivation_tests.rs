use super::*;
use crate::json::{now_json, MOST_BYTES};
use ullage_model::{ClockTicks, Ending, EndingSource, Missing, OomConstraint, ProcessFacts, ProcessMemory};
use ullage_testing::{process, SampleBuilder};

fn run() -> RunFacts {
    serde_json::from_value(serde_json::json!({
        "format": 1, "run": "20261125-010203-train-7", "command": ["python", "train.py"], "started_unix": 0.0,
        "main": null, "recorder": null, "interval_s": 1.0, "agent": false, "node": null, "job": null,
        "rank": null, "environment": {}, "machine": ullage_model::MachineFacts::default(),
        "outcome": null, "duration_s": null, "cost": null, "not_seen": [], "memory_max": null,
    }))
    .unwrap()
}

/// A timeline and the derivation beside it, fed as the recording feeds them.
struct Fed {
    timeline: Timeline,
    derivation: Derivation,
}

impl Fed {
    fn new() -> Fed {
        Fed { timeline: Timeline::default(), derivation: Derivation::new(&run()) }
    }

    fn sample(&mut self, sample: Sample) -> JobState {
        self.timeline.push_sample(&sample);
        self.derivation.sample(&sample, &self.timeline)
    }

    fn event(&mut self, seconds: f64, what: EventKind) -> Option<Happened> {
        let event = Event { at: At::from_seconds(seconds), what };
        self.timeline.push_event(event.clone());
        self.derivation.event(&event, &self.timeline)
    }
}

fn anonymous(mib: u64) -> ProcessMemory {
    ProcessMemory { anonymous: Bytes(mib << 20), ..ProcessMemory::default() }
}

#[test]
fn children_stand_below_their_parents_and_a_circle_ends() {
    let mut fed = Fed::new();
    let state = fed.sample(
        SampleBuilder::at(1.0)
            .process(process(12).parent(11))
            .process(process(11).parent(10))
            .process(process(10))
            .process(process(13).parent(10))
            .process(process(20).parent(21))
            .process(process(21).parent(20))
            .build(),
    );
    let tree: Vec<(i32, u16)> =
        state.processes.iter().map(|process| (process.identity.id.pid, process.depth)).collect();
    assert_eq!(tree, [(10, 0), (11, 1), (12, 2), (13, 1), (21, 0), (20, 1)]);
}

#[test]
fn an_exited_process_stays_a_minute_with_the_cause_that_came_later() {
    let mut fed = Fed::new();
    let id = ProcessId { pid: 11, start: ClockTicks(1011) };
    fed.sample(SampleBuilder::at(1.0).process(process(10)).process(process(11).parent(10)).build());
    let ended = EventKind::ProcessEnded { id, ending: Ending::Signaled(9), source: EndingSource::Wait };
    let happened = fed.event(2.0, ended).unwrap();
    assert_eq!(happened.text, "other 11 was killed by SIGKILL");
    fed.event(
        2.5,
        EventKind::KernelOomKill(KernelOomKill {
            pid: 11,
            constraint: OomConstraint::Cgroup,
            oom_cgroup: Some("/job".into()),
            ..KernelOomKill::default()
        }),
    );
    let state = fed.sample(SampleBuilder::at(30.0).process(process(10)).build());
    assert_eq!((state.processes.len(), state.running(), state.oom_kills), (2, 1, 1));
    let exit = state.processes[1].exited.as_ref().unwrap();
    assert_eq!(exit.how, "was killed by the kernel's OOM killer at the limit of cgroup /job");
    assert!(exit.failed && state.processes[1].depth == 1);
    let state = fed.sample(SampleBuilder::at(62.5).process(process(10)).build());
    assert_eq!(state.processes.len(), 1, "not shown after a minute");
}

#[test]
fn cpu_is_of_the_time_since_the_reading_before() {
    let mut fed = Fed::new();
    let at = |seconds: f64, ticks: u64| {
        let mut reading = process(10).build();
        reading.cpu = ClockTicks(ticks);
        let mut sample = SampleBuilder::at(seconds).build();
        sample.processes.push(reading);
        sample
    };
    assert_eq!(fed.sample(at(1.0, 500)).processes[0].cpu_share, None);
    assert_eq!(fed.sample(at(3.0, 600)).processes[0].cpu_share, Some(0.5));
}

#[test]
fn a_peak_of_one_reading_stays_in_the_line_and_missing_is_missing() {
    let mut fed = Fed::new();
    let mut state = JobState::default();
    for second in 0..200 {
        let mib = if second == 150 { 800 } else { 100 };
        let mut sample =
            SampleBuilder::at(f64::from(second)).process(process(10).memory(anonymous(mib))).build();
        sample.processes[0].descriptors = Measured::Missing(Missing::NoPermission);
        state = fed.sample(sample);
    }
    let line = state.processes[0].line;
    assert_eq!(line.iter().filter(|level| **level == 8).count(), 1, "{line:?}");
    assert_eq!((state.processes[0].descriptors, state.processes[0].mappings), (None, None));
    assert!(state.bytes_per_second.is_some_and(|speed| speed.abs() < 10_000.0));
}

#[test]
fn now_json_is_small_and_sums_what_it_does_not_list() {
    let mut fed = Fed::new();
    let mut builder = SampleBuilder::at(1.0);
    for pid in 10..3010 {
        builder = builder.process(process(pid).memory(anonymous(u64::from(pid.unsigned_abs()))));
    }
    let state = fed.sample(builder.build());
    let long = RunFacts { command: vec!["\u{1b}é".repeat(9_000); 90], ..run() };
    for facts in [run(), long] {
        let text = now_json(&facts, &state);
        assert!(text.len() <= MOST_BYTES, "{}", text.len());
        assert!(!text.contains('\u{1b}'));
        let now: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = now["processes"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row["private_bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, (10..3010_u64).sum::<u64>() << 20);
        let counted: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap_or(1)).sum();
        assert_eq!(counted, 3000);
    }
}

#[test]
fn a_start_has_a_name_and_a_note_is_no_event() {
    let mut fed = Fed::new();
    let facts = ProcessFacts {
        id: ProcessId { pid: 10, start: ClockTicks(1) },
        parent: 1,
        uid: Measured::default(),
        command_line: vec!["python".into()],
        comm: "python".into(),
        limits: Measured::default(),
        cgroups: Vec::new(),
        role: Role::Main,
        seccomp: Measured::default(),
        cores_allowed: Measured::default(),
        forked_from: None,
    };
    let seen = fed.event(0.5, EventKind::ProcessSeen { facts: Box::new(facts) }).unwrap();
    assert_eq!(seen.text, "main 10 started");
    assert_eq!(fed.event(0.6, EventKind::NotSeen { text: "x".into() }), None);
}

#[test]
fn what_was_used_stays_counted_when_its_process_exits() {
    let mut fed = Fed::new();
    let mut state = JobState::default();
    for (second, (pid, ticks)) in [(10, 100), (10, 150), (11, 30), (12, 70)].into_iter().enumerate() {
        let mut reading = process(pid).build();
        (reading.cpu, reading.major_faults) = (ClockTicks(ticks), ticks / 10);
        let mut sample = SampleBuilder::at(second as f64).build();
        sample.processes.push(reading);
        state = fed.sample(sample);
    }
    assert_eq!(state.used["other"], Used { cpu_s: 2.5, major_faults: 15 + 3 + 7 });
    fed.event(9.0, EventKind::Attempt { number: 3 });
    let state = fed.sample(SampleBuilder::at(10.0).process(process(12)).build());
    assert_eq!(state.restarts, Some(3));
}

#[test]
fn workers_that_near_their_limits_do_not_push_others_out() {
    let limit = |kind, scope, used| ullage_model::LimitState {
        kind,
        scope,
        used: Measured::Known(used),
        limit: Measured::Known(ullage_model::Limit::At(1000)),
        slope_per_s: None,
        time_left_s: None,
        growing_for_s: None,
        warning: false,
    };
    let worker = |pid| {
        let id = ProcessId { pid, start: ClockTicks(1) };
        limit(LimitKind::Mappings, Scope::Process(id, Role::LoaderWorker(Some(0))), 900)
    };
    let mut limits: Vec<_> = (1..=200).map(worker).collect();
    limits.push(limit(LimitKind::ShmBytes, Scope::Filesystem("/dev/shm".into()), 500));
    let mut fed = Fed::new();
    fed.derivation.limits(limits);
    let state = fed.sample(SampleBuilder::at(1.0).process(process(10)).build());
    assert_eq!(state.limits.len(), MOST_LIMITS + 1);
    let now: serde_json::Value = serde_json::from_str(&now_json(&run(), &state)).unwrap();
    let listed: Vec<_> = now["limits"].as_array().unwrap().iter().map(|limit| &limit["limit"]).collect();
    assert_eq!(listed, ["mappings", "/dev/shm bytes"], "{now}");
    assert_eq!(now["limits"][0]["role"], "loader worker");
    assert_eq!(now["roles"]["other"]["count"], 1);
}
