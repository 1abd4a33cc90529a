//! Which limit is met first, from files of real kernels to the verdict's limits: sampler and diagnosis on `fixtures/hosts`.
//! The mistakes that others shipped stand in the names of the fixtures.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ullage_diagnosis::Timeline;
use ullage_kernel::KernelRoot;
use ullage_model::{At, EventKind, Item, Limit, LimitKind, LimitState, RunFacts, RunId, Scope};
use ullage_sampler::{Sampler, SamplerSettings};

struct Seen {
    name: String,
    truth: Value,
    limits: Vec<LimitState>,
    not_seen: Vec<String>,
}

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/hosts");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// What a run of one tick on this machine would have said.
fn seen() -> Vec<Seen> {
    let mut all: Vec<Seen> = folders().iter().filter_map(|folder| read(folder)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn read(folder: &Path) -> Option<Seen> {
    let truth: Value = serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap();
    let pid = i32::try_from(truth["main"].as_i64()?).unwrap();
    let root = KernelRoot::at(folder);
    let main = root.process(pid).unwrap().stat(&mut Vec::new()).unwrap().id;
    let machine = root.machine_facts();
    let settings = SamplerSettings { kernel_log: false, ..SamplerSettings::default() };
    let tick = Sampler::new(root, settings, main).tick(At(1));
    let mut timeline = Timeline::default();
    let not_seen = tick.events.iter().filter_map(|event| match &event.what {
        EventKind::NotSeen { text } => Some(text.clone()),
        _ => None,
    });
    let not_seen = not_seen.collect();
    tick.events.into_iter().for_each(|event| timeline.push(Item::Event(event)));
    timeline.push(Item::Sample(Box::new(tick.sample)));
    let run = RunFacts {
        format: 1,
        run: RunId::default(),
        command: Vec::new(),
        started_unix: 0.0,
        main: Some(main),
        recorder: None,
        interval_s: 1.0,
        agent: false,
        node: None,
        job: None,
        rank: None,
        environment: BTreeMap::new(),
        machine,
        outcome: None,
        duration_s: None,
        cost: None,
        not_seen: Vec::new(),
        memory_max: None,
        node_rank: None,
        attempt: None,
        launcher: None,
        remedies: Vec::new(),
    };
    let limits = ullage_diagnosis::limits(&run, &timeline);
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    Some(Seen { name, truth, limits, not_seen })
}

/// The memory limits of the job, first met first.
fn memory_limits(seen: &Seen) -> Vec<&LimitState> {
    let of_memory =
        |state: &&LimitState| matches!(state.kind, LimitKind::CgroupMemory | LimitKind::HostMemory);
    seen.limits.iter().filter(of_memory).filter(|state| finite(state).is_some()).collect()
}

fn finite(state: &LimitState) -> Option<u64> {
    state.limit.known().and_then(Limit::at)
}

#[test]
fn the_tightest_group_comes_first_and_the_machine_before_a_limit_above_it() {
    let mut checked = 0;
    for seen in seen() {
        let Some(tightest) = seen.truth.get("tightest") else { continue };
        let first = memory_limits(&seen)[0].clone();
        match tightest.as_str() {
            Some(path) => assert_eq!(first.scope, Scope::Cgroup(path.into()), "{}: {first:?}", seen.name),
            None => assert_eq!(first.scope, Scope::Host, "{}: {first:?}", seen.name),
        }
        checked += 1;
    }
    println!("{checked} machines");
    assert!(checked >= 6, "{checked}");
}

#[test]
fn no_limit_is_a_huge_number_and_all_that_were_set_are_there() {
    let mut checked = 0;
    for seen in seen() {
        for (controller, kind) in [("limits", LimitKind::CgroupMemory), ("pids", LimitKind::CgroupTasks)] {
            for (path, limit) in seen.truth[controller].as_object().into_iter().flatten() {
                let scope = Scope::Cgroup(path.clone());
                let of = |state: &&LimitState| state.kind == kind && state.scope == scope;
                let states: Vec<&LimitState> = seen.limits.iter().filter(of).collect();
                assert_eq!(states.len(), 1, "{}: {kind:?} of {path}: {states:?}", seen.name);
                assert_eq!(finite(states[0]), limit.as_u64(), "{}: {states:?}", seen.name);
                checked += 1;
            }
        }
        for state in &seen.limits {
            assert!(finite(state).is_none_or(|limit| limit < 1 << 60), "{}: {state:?}", seen.name);
        }
    }
    println!("{checked} limits");
    assert!(checked >= 25, "{checked}");
}

/// A group that has the job's path in a hierarchy where the job is elsewhere does not limit it.
#[test]
fn a_strangers_group_of_equal_path_is_not_the_jobs() {
    let (mut v1, mut strangers) = (0, 0);
    for seen in seen().iter().filter(|seen| seen.name.ends_with("cgroup-v1-ancestor")) {
        v1 += 1;
        strangers += seen.limits.iter().filter(|state| finite(state) == Some(7)).count();
    }
    assert!(v1 >= 2, "{v1}");
    assert_eq!(strangers, 0);
}

#[test]
fn a_limit_that_cannot_be_seen_is_said_and_not_replaced_by_the_machines() {
    let mut hidden = 0;
    for seen in seen() {
        let said = seen.not_seen.iter().any(|text| text.contains("memory cgroup"));
        let out_of_sight = seen.truth["out_of_sight"].is_string();
        assert_eq!(said, out_of_sight, "{}: {:?}", seen.name, seen.not_seen);
        if out_of_sight {
            let groups = seen.limits.iter().filter(|state| state.kind == LimitKind::CgroupMemory).count();
            assert_eq!(groups, 0, "{}", seen.name);
            hidden += 1;
        }
    }
    assert!(hidden >= 4, "{hidden}");
}
