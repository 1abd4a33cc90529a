use crate::{text, Ended, Format, Kind, Metric, Samples};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use ullage_diagnosis::Timeline;
use ullage_job_state::{now_json, Derivation, JobState};
use ullage_model::{Bytes, ProcessMemory, Role, RunFacts};
use ullage_testing::{process, SampleBuilder};

const RUN: &str = "20261125-010203-train-7";

fn now() -> Value {
    json!({
        "run": RUN, "command": ["python", "train.py"], "job": "4711", "node": "n064", "rank": 3, "attempt": null,
        "started_unix": 1_000.0, "at": 5.5,
        "memory": {"bytes": 700, "error_bytes": 10, "categories": {"malloc": 500, "stack": 200}, "beside": {"page-cache": 9}},
        "processes": [
            {"role": "loader worker", "index": 0, "bytes": 30, "private_bytes": 10, "swap_bytes": 0},
            {"role": "pool worker", "index": null, "bytes": 5, "private_bytes": 4, "swap_bytes": null},
            {"role": "pool worker", "index": null, "bytes": 7, "private_bytes": 6, "swap_bytes": null},
        ],
        "roles": {"loader worker": {"count": 1, "private_bytes": 10, "shared_bytes": 20, "swap_bytes": 0, "cpu_s": 1.5, "major_faults": 2}},
        "limits": [
            {"limit": "mappings", "scope": "process 4711 (loader worker 0)", "role": "loader worker", "used": 50, "allowed": 100, "seconds_left": 60.0},
            {"limit": "/dev/shm bytes", "scope": "/dev/shm", "used": 1, "allowed": 4, "seconds_left": null},
            {"limit": "cgroup memory", "scope": "cgroup /a", "used": null, "allowed": 4, "seconds_left": null},
        ],
        "growth": {"class": "fd-leak", "bytes": 0, "bytes_per_second": -1.0},
        "segments": {"by_kind": {"torch": {"count": 2, "bytes": 20}}, "unused": 1, "unused_bytes": 10},
        "findings": [{"cause": "unnamed-growth", "severity": "warning"}],
        "stall_s": null, "oom_kills": 0, "restarts": null, "gpus": [],
        "cost": {"cpu_s": 0.25, "peak_bytes": 1000},
    })
}

fn classic(now: &Value) -> String {
    text(&Samples::live(now), Format::Classic)
}

/// The line of a series without its `run`.
fn line<'a>(text: &'a str, series: &str) -> Option<&'a str> {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let comma = if labels == "}" { "" } else { "," };
    let wanted = format!("{name}{{run=\"{RUN}\"{comma}{labels} ");
    text.lines().find_map(|line| line.strip_prefix(&wanted))
}

#[test]
fn each_value_has_its_series() {
    let text = classic(&now());
    for (series, value) in [
        (r#"ullage_run_info{job_id="4711",node="n064",rank="3",attempt="",command="python train.py"}"#, "1"),
        ("ullage_sample_timestamp_seconds", "1005.5"),
        (r#"ullage_memory_bytes{category="malloc"}"#, "500"),
        (r#"ullage_memory_beside_bytes{category="page-cache"}"#, "9"),
        ("ullage_memory_error_bytes", "10"),
        (r#"ullage_process_memory_bytes{role="loader worker",index="0",kind="shared"}"#, "20"),
        (r#"ullage_process_memory_bytes{role="pool worker",index="",kind="private"}"#, "10"),
        (r#"ullage_processes{role="loader worker"}"#, "1"),
        (r#"ullage_limit_used_ratio{limit="mappings",scope="loader worker"}"#, "0.5"),
        (r#"ullage_limit_seconds_left{limit="mappings",scope="loader worker"}"#, "60"),
        (r#"ullage_limit_used_ratio{limit="/dev/shm bytes",scope="/dev/shm"}"#, "0.25"),
        (r#"ullage_growth_bytes_per_second{class="fd-leak"}"#, "-1"),
        (r#"ullage_shared_segments{kind="torch"}"#, "2"),
        ("ullage_orphaned_bytes", "10"),
        ("ullage_oom_kills_total", "0"),
        (r#"ullage_cpu_seconds_total{role="loader worker"}"#, "1.5"),
        (r#"ullage_major_faults_total{role="loader worker"}"#, "2"),
        (r#"ullage_finding{cause="unnamed-growth",severity="warning"}"#, "1"),
        ("ullage_watch_cpu_seconds_total", "0.25"),
    ] {
        assert_eq!(line(&text, series), Some(value), "{series}\n{text}");
    }
}

#[test]
fn what_is_missing_has_no_series() {
    let text = classic(&now());
    for series in [
        r#"ullage_process_memory_bytes{role="pool worker",index="",kind="swap"}"#,
        r#"ullage_limit_used_ratio{limit="cgroup memory",scope="cgroup /a"}"#,
        r#"ullage_limit_seconds_left{limit="/dev/shm bytes",scope="/dev/shm"}"#,
        "ullage_memory_stall_seconds_total",
        "ullage_restarts_total",
    ] {
        assert_eq!(line(&text, series), None, "{series}");
    }
    for nothing in [json!(null), json!([]), json!({}), json!({"run": 7}), json!("x")] {
        assert!(Samples::live(&nothing).is_empty());
    }
    let only_a_name = Samples::live(&json!({"run": "r", "memory": 7, "processes": {}, "limits": "x"}));
    assert_eq!(only_a_name.len(), 1);
}

#[test]
fn no_label_has_a_pid() {
    assert!(!classic(&now()).replace(r#"job_id="4711""#, "").contains("4711"));
}

#[test]
fn of_workers_of_one_role_the_nearest_limit_stands() {
    let mut now = now();
    for (used, left) in [(90, 600.0), (10, 30.0)] {
        let limit = json!({"limit": "mappings", "scope": "process 5 (x)", "role": "loader worker", "used": used, "allowed": 100, "seconds_left": left});
        now["limits"].as_array_mut().unwrap().push(limit);
    }
    let text = classic(&now);
    let labels = r#"{limit="mappings",scope="loader worker"}"#;
    assert_eq!(line(&text, &format!("ullage_limit_used_ratio{labels}")), Some("0.9"));
    assert_eq!(line(&text, &format!("ullage_limit_seconds_left{labels}")), Some("30"));
}

#[test]
fn a_limit_of_nothing_is_met() {
    let mut now = now();
    now["limits"] = json!([{"limit": "x", "scope": "y", "used": 0, "allowed": 0}]);
    assert_eq!(line(&classic(&now), r#"ullage_limit_used_ratio{limit="x",scope="y"}"#), Some("1"));
}

#[test]
fn hostile_names_stay_inside_their_quotes() {
    let mut now = now();
    now["command"] = json!(["a\"} 1\nullage_memory_bytes{run=\"x\"} 9\n", "\\", "\u{1b}[2J\u{202e}", "é"]);
    let text = classic(&now);
    let info = text.lines().find(|line| line.starts_with("ullage_run_info")).unwrap();
    let wanted = r#"command="a\"} 1 ullage_memory_bytes{run=\"x\"} 9  \\ "#;
    assert!(info.contains(wanted), "{info}");
    assert!(info.ends_with("\u{fffd}[2J\u{fffd} é\"} 1"), "{info}");
    assert_eq!(text.lines().count(), classic(&self::now()).lines().count());
}

#[test]
fn a_label_is_cut() {
    let mut now = now();
    now["command"] = json!(["x".repeat(5_000)]);
    assert!(classic(&now).lines().all(|line| line.len() < 400));
}

#[test]
fn a_live_run_and_the_same_run_ended_have_one_name() {
    let facts = RunFacts { command: vec!["word".repeat(40); 30], ..facts() };
    let live: Value = serde_json::from_str(&now_json(&facts, &JobState::default())).unwrap();
    let run = serde_json::to_value(&facts).unwrap();
    let ended = Samples::ended(&Ended { verdict: &Value::Null, run: &run, at_unix: 1.0 });
    let info = |samples: &Samples| samples.each().next().map(|(_, _, labels, _)| labels.to_vec());
    assert_eq!(info(&Samples::live(&live)), info(&ended));
}

#[test]
fn help_and_type_stand_once_before_each_metric() {
    for format in [Format::Classic, Format::OpenMetrics] {
        let text = text(&Samples::live(&now()), format);
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        assert_eq!(types.len(), types.iter().collect::<BTreeSet<_>>().len());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split('{').next().unwrap();
            assert!(Metric::ALL.iter().any(|metric| metric.name() == name), "{line}");
        }
    }
}

#[test]
fn a_counter_of_openmetrics_has_its_suffix_on_the_sample_alone() {
    let text = text(&Samples::live(&now()), Format::OpenMetrics);
    assert!(text.contains("# TYPE ullage_oom_kills counter\n"), "{text}");
    assert!(text.contains("\nullage_oom_kills_total{"));
    assert!(text.ends_with("\n# EOF\n"));
    assert!(!classic(&now()).contains("# EOF"));
}

#[test]
fn names_follow_the_conventions() {
    for metric in Metric::ALL {
        let name = metric.name();
        assert_eq!(name.ends_with("_total"), metric.kind() == Kind::Counter, "{name}");
        assert!(name.starts_with("ullage_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        assert!(!metric.help().contains(['\\', '"', '\n']) && metric.help().ends_with('.'), "{name}");
        assert!(metric
            .labels()
            .iter()
            .all(|label| *label != "job" && *label != "instance" && *label != "run"));
    }
}

#[test]
fn an_ended_run_says_how_and_why_and_holds_no_memory() {
    let verdict = json!({
        "outcome": {"kind": "oom-kill"},
        "findings": [{"cause": "cgroup-oom", "severity": "fatal"}, {"cause": "copy-on-write", "severity": "warning"}],
    });
    let run = now();
    let text =
        text(&Samples::ended(&Ended { verdict: &verdict, run: &run, at_unix: 2_000.0 }), Format::Classic);
    assert_eq!(line(&text, r#"ullage_run_ended{outcome="oom-kill"}"#), Some("1"));
    assert_eq!(line(&text, "ullage_run_ended_timestamp_seconds"), Some("2000"));
    assert_eq!(line(&text, r#"ullage_finding{cause="cgroup-oom",severity="fatal"}"#), Some("1"));
    assert!(text.contains("ullage_run_info{"));
    assert!(!text.contains("ullage_memory_bytes{") && !text.contains("ullage_processes{"));
}

#[test]
fn without_a_verdict_the_run_says_how_it_ended() {
    let run = json!({"run": RUN, "outcome": {"kind": "oom_kill"}});
    let samples = Samples::ended(&Ended { verdict: &Value::Null, run: &run, at_unix: 1.0 });
    let text = text(&samples, Format::Classic);
    assert_eq!(line(&text, r#"ullage_run_ended{outcome="oom-kill"}"#), Some("1"));
}

#[test]
fn two_runs_stand_side_by_side_below_one_head() {
    let mut samples = Samples::live(&now());
    let alone = samples.len();
    let mut other = now();
    other["run"] = json!("other");
    samples.extend(Samples::live(&other));
    assert_eq!(samples.len(), 2 * alone);
    let text = text(&samples, Format::Classic);
    assert_eq!(text.matches("# TYPE ullage_memory_bytes gauge").count(), 1);
}

fn facts() -> RunFacts {
    serde_json::from_value(json!({
        "format": 1, "run": RUN, "command": ["python", "train.py"], "started_unix": 0.0,
        "main": null, "recorder": null, "interval_s": 1.0, "agent": false, "node": null, "job": null,
        "rank": null, "environment": {}, "machine": ullage_model::MachineFacts::default(),
        "outcome": null, "duration_s": null, "cost": null, "not_seen": [], "memory_max": null,
    }))
    .unwrap()
}

fn of_state(state: &JobState) -> Samples {
    Samples::live(&serde_json::from_str(&now_json(&facts(), state)).unwrap())
}

fn series(samples: &Samples) -> BTreeSet<(Metric, Vec<String>)> {
    samples.each().map(|(metric, _, labels, _)| (metric, labels.to_vec())).collect()
}

/// The job at one second: these workers, of these pids.
fn sampled(
    derivation: &mut Derivation,
    timeline: &mut Timeline,
    second: u32,
    workers: &[(i32, u32)],
) -> JobState {
    let memory = |mib: u64| ProcessMemory {
        anonymous: Bytes(mib << 20),
        shared: Bytes(3 << 20),
        ..ProcessMemory::default()
    };
    let mut builder = SampleBuilder::at(f64::from(second)).process(process(10).memory(memory(900)));
    for (pid, index) in workers {
        builder = builder.process(process(*pid).parent(10).memory(memory(u64::from(*index) + 5)));
    }
    let sample = builder.build();
    for (pid, index) in workers {
        let id = sample.processes.iter().find(|process| process.id.pid == *pid).unwrap().id;
        let role = Role::LoaderWorker(Some(*index));
        let event =
            ullage_model::Event { at: sample.at, what: ullage_model::EventKind::RoleKnown { id, role } };
        timeline.push_event(event.clone());
        derivation.event(&event, timeline);
    }
    timeline.push_sample(&sample);
    derivation.sample(&sample, timeline)
}

#[test]
fn a_thousand_restarts_of_workers_make_no_new_series() {
    let (mut derivation, mut timeline) = (Derivation::new(&facts()), Timeline::default());
    let workers = |restart: u32| -> Vec<(i32, u32)> {
        (0..4).map(|index| (i32::try_from(100 + 4 * restart + index).unwrap(), index)).collect()
    };
    // A process has its role from the reading after it was told.
    for second in 0..2 {
        sampled(&mut derivation, &mut timeline, second, &workers(0));
    }
    let first = series(&of_state(&sampled(&mut derivation, &mut timeline, 2, &workers(0))));
    let mut all = first.clone();
    for restart in 1..=1_000 {
        let state = sampled(&mut derivation, &mut timeline, restart + 2, &workers(restart));
        all.extend(series(&of_state(&state)));
    }
    let new: Vec<_> = all.difference(&first).collect();
    assert!(new.is_empty(), "{new:?}");
}

#[test]
fn a_full_run_has_at_most_350_series_and_its_categories_sum_to_the_job() {
    let (mut derivation, mut timeline) = (Derivation::new(&facts()), Timeline::default());
    let workers: Vec<(i32, u32)> =
        (0..63_u32).map(|index| (i32::try_from(index + 100).unwrap(), index)).collect();
    let mut state = JobState::default();
    for second in 0..20 {
        state = sampled(&mut derivation, &mut timeline, second, &workers);
    }
    let samples = of_state(&state);
    assert!(samples.len() <= 350, "{}", samples.len());
    let rows = samples.each().filter(|(metric, ..)| *metric == Metric::ProcessMemory).count();
    assert_eq!(rows, 64 * 3);
    let sum: f64 =
        samples.each().filter(|(metric, ..)| *metric == Metric::Memory).map(|(.., value)| value).sum();
    assert!((sum - state.memory.bytes as f64).abs() <= state.memory.bytes as f64 / 1000.0, "{sum}");
}

#[test]
fn beyond_64_processes_roles_stand_for_them() {
    let (mut derivation, mut timeline) = (Derivation::new(&facts()), Timeline::default());
    let mut all = BTreeSet::new();
    for second in 0..200 {
        // Which hold most changes all the time.
        let workers: Vec<(i32, u32)> =
            (0..300_u32).map(|n| (i32::try_from(n + 100).unwrap(), (n + second * 7) % 300)).collect();
        let samples = of_state(&sampled(&mut derivation, &mut timeline, second, &workers));
        all.extend(series(&samples));
    }
    assert!(all.len() <= 60, "{}", all.len());
    assert!(all.iter().any(|(_, labels)| labels == &["loader worker", "", "private"]), "{all:?}");
}

/// Any JSON, with the keys of `now.json` among its own.
fn odd() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("role"),
        Just("index"),
        Just("bytes"),
        Just("private_bytes"),
        Just("limit"),
        Just("scope"),
        Just("used"),
        Just("allowed"),
        Just("count"),
        Just("cause"),
        Just("severity"),
        Just("categories"),
        Just("by_kind"),
    ]
    .prop_map(str::to_owned);
    let key = prop_oneof![key, ".{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 400, 80, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..80).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..80)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_file_has_few_series_and_each_line_is_one(parts in prop::collection::vec(odd(), 8)) {
        let mut now = json!({"run": "r"});
        let keys = ["memory", "processes", "roles", "limits", "growth", "segments", "findings", "command"];
        for (key, part) in keys.iter().zip(parts) {
            now[*key] = part;
        }
        let samples = Samples::live(&now);
        prop_assert!(samples.len() <= 350);
        let text = text(&samples, Format::Classic);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            prop_assert!(line.starts_with("ullage_"), "{line}");
            let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            prop_assert!(value.is_finite());
        }
    }
}
