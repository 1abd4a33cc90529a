//! The answer, of rows that are made up.

use super::*;
use serde_json::{json, Value};
use ullage_model::{Fact, Facts, FailureKind, FirstBy, FleetAnswer, FleetRow, RunFacts};

fn run(changes: Value) -> RunFacts {
    let mut run = json!({
        "format": 1, "run": "r", "command": ["python"], "started_unix": 1000.0, "main": null, "recorder": null,
        "interval_s": 1.0, "agent": true, "node": "n1", "job": "7", "rank": 3, "environment": {},
        "machine": ullage_model::MachineFacts::default(),
        "outcome": {"kind": "exit", "code": 1, "signal": null, "by": null},
        "duration_s": 50.0, "cost": null, "not_seen": [], "memory_max": null,
    });
    merge(&mut run, changes);
    serde_json::from_value(run).unwrap()
}

fn verdict(changes: Value) -> VerdictView {
    let mut verdict = json!({
        "run": "r", "outcome": {"kind": "exit", "code": 1, "signal": null, "by": null}, "healthy": false,
        "headline": "It failed", "findings": [], "limits": [],
        "memory": {"peak_bytes": 1024, "by_role": []}, "growth": {"missing": "too little was read"},
        "first_failure": null, "duration_s": 50.0,
    });
    merge(&mut verdict, changes);
    serde_json::from_value(verdict).unwrap()
}

fn merge(into: &mut Value, changes: Value) {
    let Value::Object(changes) = changes else { return };
    for (key, value) in changes {
        into[key] = value;
    }
}

fn failure(changes: Value) -> Value {
    let mut failure = json!({
        "process": {"pid": 9, "start": 1, "role": "rank 3", "name": "python"},
        "at": 40.0, "exception": null, "signal": null, "code": null, "sentence": "It failed.", "rank": 3,
    });
    merge(&mut failure, changes);
    json!({ "first_failure": failure })
}

fn fatal(cause: &str, at: f64) -> Value {
    json!([{
        "cause": cause, "title": cause, "severity": "fatal", "proof": "kernel-said", "process": null, "at": at,
        "evidence": [{"value": 65530, "unit": "mappings"}, {"value": "text", "unit": ""}],
    }])
}

fn kind(changes: Value) -> (FailureKind, String) {
    let row = row("r", &run(json!({})), &verdict(failure(changes)), None);
    (row.failure.unwrap(), row.ending.unwrap())
}

#[test]
fn echoes_are_known_by_their_words_and_signals() {
    let of = |exception: &str| kind(json!({ "exception": exception }));
    let gloo = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4711";
    assert_eq!(of(gloo), (FailureKind::Echo, "closed connection".into()));
    let nccl = "torch.distributed.DistBackendError: NCCL: Watchdog caught collective operation timeout";
    assert_eq!(of(nccl), (FailureKind::Echo, "NCCL time-out".into()));
    assert_eq!(of("KeyError: 'labels'"), (FailureKind::Own, "KeyError".into()));
    assert_eq!(of("SignalException: Process 7 got signal: 15"), (FailureKind::Echo, "SIGTERM".into()));
    assert_eq!(kind(json!({"signal": 15})), (FailureKind::Echo, "SIGTERM".into()));
    assert_eq!(kind(json!({"signal": 9})), (FailureKind::Echo, "SIGKILL".into()));
    assert_eq!(kind(json!({"signal": 11})), (FailureKind::Own, "SIGSEGV".into()));
    assert_eq!(kind(json!({"signal": 6})), (FailureKind::Unclear, "SIGABRT".into()));
    assert_eq!(kind(json!({"code": 143})), (FailureKind::Echo, "SIGTERM".into()));
    assert_eq!(kind(json!({"code": 1})), (FailureKind::Unclear, "exit status 1".into()));
    let by_kernel =
        json!({"signal": 9, "sentence": "It was killed by SIGKILL; the kernel's OOM killer sent it."});
    assert_eq!(kind(by_kernel).0, FailureKind::Own);
}

#[test]
fn a_fatal_finding_makes_a_failure_its_own_but_not_where_it_came_after_an_echo() {
    let of = |at: f64| {
        let mut changes = failure(json!({"signal": 15}));
        changes["findings"] = fatal("max-map-count-exhausted", at);
        row("r", &run(json!({})), &verdict(changes), None)
    };
    assert_eq!(of(40.0).failure, Some(FailureKind::Own));
    assert_eq!(of(49.0).failure, Some(FailureKind::Echo));
    assert_eq!(of(40.0).figures["mappings"], 65530.0);
}

#[test]
fn a_row_has_its_place_from_its_folder_and_the_size_of_its_job_from_the_environment() {
    let ranked = json!({"environment": {"WORLD_SIZE": "64", "LOCAL_WORLD_SIZE": "8"}});
    let ranked = row("/d/job=8/node=a/rank=5/attempt=2", &run(ranked), &verdict(json!({})), None);
    assert_eq!((ranked.job.as_deref(), ranked.node.as_deref()), (Some("8"), Some("a")));
    assert_eq!((ranked.rank, ranked.attempt), (Some(5), 2));
    assert_eq!((ranked.world_size, ranked.world_nodes, ranked.local_size), (Some(64), Some(8), None));
    let whole =
        json!({"rank": null, "command": ["torchrun", "--nnodes=4", "--nproc-per-node", "8", "train.py"]});
    let whole = row("r", &run(whole), &verdict(json!({})), None);
    assert_eq!((whole.job.as_deref(), whole.rank), (Some("7"), None));
    assert_eq!((whole.world_size, whole.world_nodes, whole.local_size), (Some(32), Some(4), Some(8)));
    let elastic = json!({"rank": null, "command": ["torchrun", "--nnodes=1:4", "train.py"]});
    assert_eq!(row("r", &run(elastic), &verdict(json!({})), None).world_nodes, None);
}

#[test]
fn what_a_job_without_an_end_survived_did_not_end_it() {
    let live = json!({"outcome": null, "duration_s": null});
    let torn = |last| {
        let mut changes = failure(json!({"exception": "KeyError: 1"}));
        changes["duration_s"] = json!({"missing": "the end was not seen"});
        row("r", &run(live.clone()), &verdict(changes), Some(last))
    };
    assert_eq!(torn(60.0).failure, Some(FailureKind::Own));
    let later = torn(600.0);
    assert_eq!((later.failure, later.closed, later.ended_unix), (None, false, Some(1600.0)));
}

fn failed(node: &str, rank: u32, at: f64, kind: FailureKind, clock: Option<f64>) -> FleetRow {
    FleetRow {
        path: format!("node={node}/rank={rank}"),
        node: Some(node.into()),
        rank: Some(rank),
        boot_id: Some(format!("boot of {node}")),
        closed: true,
        started_unix: 100.0,
        ended_unix: Some(at + 1.0),
        failure: Some(kind),
        failure_unix: Some(at),
        failure_error_s: Some(0.05),
        ending: Some("x".into()),
        clock_error_s: clock,
        ..FleetRow::default()
    }
}

fn proven(row: FleetRow) -> FleetRow {
    FleetRow {
        cause: Some("memcg-oom-kill".into()),
        severity: Some(ullage_model::Severity::Fatal),
        proof: Some(ullage_model::Proof::KernelSaid),
        ..row
    }
}

fn answer(rows: Vec<FleetRow>) -> FleetAnswer {
    let mut fleet = Fleet::default();
    for row in rows {
        fleet.push(row, &Facts::new());
    }
    fleet.answer(None)
}

fn first(rows: Vec<FleetRow>) -> (Option<FirstBy>, Vec<u32>) {
    let first = answer(rows).first.unwrap();
    assert_eq!(first.determined, first.by.is_some());
    (first.by, first.candidates.iter().filter_map(|one| one.place.rank).collect())
}

#[test]
fn an_echo_is_never_first_where_another_failed_of_its_own() {
    let rows = || {
        vec![
            failed("a", 1, 999.0, FailureKind::Echo, Some(0.01)),
            failed("b", 2, 1000.0, FailureKind::Own, Some(0.01)),
        ]
    };
    assert_eq!(first(rows()), (Some(FirstBy::Only), vec![2]));
    let answer = answer(rows());
    assert_eq!((answer.cascade[0].recordings, answer.cascade[0].within_s), (1, Some(0.0)));
    let echoes = vec![
        failed("a", 1, 999.0, FailureKind::Echo, Some(0.01)),
        failed("b", 2, 1000.0, FailureKind::Echo, Some(0.01)),
    ];
    assert_eq!(first(echoes), (Some(FirstBy::Clock), vec![1]), "the earliest, where nothing else is known");
}

#[test]
fn clocks_decide_only_as_far_as_they_are_right() {
    let pair = |apart: f64, clock| {
        first(vec![
            failed("a", 1, 1000.0, FailureKind::Own, clock),
            failed("b", 2, 1000.0 + apart, FailureKind::Own, clock),
        ])
    };
    assert_eq!(pair(1.0, Some(0.02)), (Some(FirstBy::Clock), vec![1]));
    assert_eq!(pair(1.0, Some(2.0)), (None, vec![1, 2]));
    assert_eq!(pair(5.0, Some(2.0)), (Some(FirstBy::Clock), vec![1]));
    assert_eq!(pair(20.0, None).0, None, "a clock of which nothing is known");
    assert_eq!(pair(40.0, None).0, Some(FirstBy::Clock));
    let one_boot = first(vec![
        failed("a", 1, 1000.0, FailureKind::Own, None),
        failed("a", 2, 1001.0, FailureKind::Own, None),
    ]);
    assert_eq!(one_boot, (Some(FirstBy::Clock), vec![1]));
}

#[test]
fn a_wide_interval_hides_nobody() {
    let rows = vec![
        failed("a", 1, 990.0, FailureKind::Own, Some(16.0)),
        failed("b", 2, 1000.0, FailureKind::Own, Some(0.01)),
        failed("c", 3, 1004.0, FailureKind::Own, Some(0.01)),
    ];
    assert_eq!(first(rows), (None, vec![1, 2]), "the third was later than the second for sure");
}

#[test]
fn a_proven_cause_decides_among_unclear_ones_only() {
    let with = |other| {
        first(vec![
            proven(failed("a", 1, 1000.0, FailureKind::Own, Some(2.0))),
            failed("b", 2, 999.0, other, Some(2.0)),
        ])
    };
    assert_eq!(with(FailureKind::Unclear), (Some(FirstBy::Cause), vec![1]));
    assert_eq!(with(FailureKind::Own), (None, vec![2, 1]));
}

#[test]
fn a_node_that_stops_without_a_word_may_be_the_first() {
    let lost = FleetRow {
        closed: false,
        failure: None,
        failure_unix: None,
        ended_unix: Some(900.0),
        ..failed("a", 1, 0.0, FailureKind::Own, Some(0.01))
    };
    let rows = || vec![lost.clone(), failed("b", 2, 1500.0, FailureKind::Echo, Some(0.01))];
    assert_eq!(first(rows()), (Some(FirstBy::Only), vec![1]));
    let answer = answer(rows());
    assert_eq!((answer.states.lost, answer.states.failed), (1, 1));
    assert_eq!(answer.missing.lost[0].last_unix, 900.0);
}

#[test]
fn one_job_and_its_last_attempt_are_answered() {
    let of = |job: &str, attempt, started_unix| FleetRow {
        job: Some(job.into()),
        attempt,
        started_unix,
        path: format!("{job}/{attempt}"),
        ..failed("a", 0, started_unix + 10.0, FailureKind::Own, Some(0.01))
    };
    let rows = vec![of("1", 0, 100.0), of("2", 0, 200.0), of("2", 1, 300.0)];
    let mut fleet = Fleet::default();
    rows.into_iter().for_each(|row| fleet.push(row, &Facts::new()));
    let newest = fleet.clone().answer(None);
    assert_eq!((newest.job.as_deref(), newest.attempt, newest.recordings), (Some("2"), 1, 1));
    assert_eq!((newest.earlier, newest.rows.len(), newest.other_jobs), (1, 2, vec!["1".to_owned()]));
    assert_eq!(fleet.clone().answer(Some("1")).recordings, 1);
    assert_eq!(fleet.answer(Some("3")).recordings, 0);
}

#[test]
fn the_odd_node_is_compared_with_what_most_others_have() {
    let mut fleet = Fleet::default();
    for node in 0..10u32 {
        let mut row =
            failed(&format!("n{node}"), node, 1000.0 + f64::from(node), FailureKind::Echo, Some(0.01));
        let mut facts = Facts::from([
            ("cgroup.memory.max".to_owned(), Fact::Number(96 << 30)),
            ("memory.total".to_owned(), Fact::Number((256 << 30) + u64::from(node) * 4096)),
            ("cgroup.0.path".to_owned(), Fact::Text(format!("/job/{node}"))),
            ("sysctl.vm.swappiness".to_owned(), Fact::Number(60)),
        ]);
        if node == 4 {
            row = proven(FleetRow { failure: Some(FailureKind::Own), ..row });
            row.figures.insert("cgroup_memory".into(), (64u64 << 30) as f64);
            facts.insert("cgroup.memory.max".to_owned(), Fact::Number(64 << 30));
            facts.insert("sysctl.vm.swappiness".to_owned(), Fact::Number(10));
        }
        if node == 5 {
            facts.insert("sysctl.vm.swappiness".to_owned(), Fact::Number(10));
        }
        fleet.push(row, &facts);
    }
    let differs = fleet.answer(None).differs;
    assert_eq!((differs.len(), differs[0].node.as_str(), differs[0].others), (1, "n4", 9));
    let names: Vec<&str> =
        differs[0].differences.iter().map(|one| one.difference.change.fact.as_str()).collect();
    assert_eq!(names.first(), Some(&"cgroup.memory.max"));
    assert!(!names.contains(&"memory.total") && !names.contains(&"cgroup.0.path"), "{names:?}");
    assert_eq!((differs[0].differences[0].agreeing, differs[0].differences[0].same), (9, 0));
}

#[test]
fn an_unreadable_recording_is_a_row() {
    let answer = answer(vec![unreadable("d/job=1/node=a/rank=2/attempt=0", "it is damaged".into())]);
    assert_eq!((answer.states.unreadable, answer.recordings, answer.first), (1, 1, None));
    assert_eq!(answer.rows[0].rank, Some(2));
}
