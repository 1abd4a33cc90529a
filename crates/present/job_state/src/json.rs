//! `now.json`: how the job stands, in one object that any number of readers may read.

use crate::derivation::group;
use crate::state::{JobState, Process, Used};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use ullage_model::{LimitState, ProcessId, RunFacts, Scope, Severity};
use ullage_report::format;

/// The most that `now.json` may be, bytes: readers take it in one read.
pub const MOST_BYTES: usize = 16 << 10;
const SCHEMA: u32 = 1;
/// Processes and limits listed one by one; the rest is summed, or left out.
const MOST_PROCESSES: usize = 64;
const MOST_LIMITS: usize = 12;
const MOST_FINDINGS: usize = 8;
/// A command of a thousand arguments is known by its first ones.
const MOST_WORDS: usize = 16;
const MOST_WORD: usize = 100;

#[derive(Serialize)]
struct Now<'a> {
    schema: u32,
    ullage: &'static str,
    run: &'a str,
    command: Vec<String>,
    job: Option<String>,
    node: Option<String>,
    rank: Option<u32>,
    /// How often a launcher had started this run before.
    attempt: Option<u32>,
    /// Who writes this: where it no longer runs, this is old.
    recorder: Option<ProcessId>,
    started_unix: f64,
    at: f64,
    memory: MemoryNow<'a>,
    processes: Vec<ProcessNow>,
    roles: BTreeMap<String, RoleNow>,
    limits: Vec<LimitNow>,
    growth: Option<GrowthNow>,
    segments: Option<SegmentsNow>,
    findings: Vec<FindingNow<'a>>,
    stall_s: Option<f64>,
    oom_kills: u64,
    restarts: Option<u32>,
    gpus: [u8; 0],
    cost: CostNow,
}

#[derive(Serialize)]
struct MemoryNow<'a> {
    bytes: u64,
    error_bytes: u64,
    bytes_per_second: Option<f64>,
    categories: BTreeMap<&'a str, u64>,
    beside: BTreeMap<&'a str, u64>,
}

#[derive(Serialize)]
struct ProcessNow {
    role: String,
    index: Option<u32>,
    /// How many, where it is a row of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    bytes: Option<u64>,
    private_bytes: Option<u64>,
    swap_bytes: Option<u64>,
    descriptors: Option<u64>,
    mappings: Option<u64>,
    cpu_s: f64,
}

/// All processes of a role, however many are listed one by one.
#[derive(Default, Serialize)]
struct RoleNow {
    count: u64,
    private_bytes: u64,
    shared_bytes: u64,
    swap_bytes: u64,
    /// Since the run began, of those that exited too.
    cpu_s: f64,
    major_faults: u64,
}

#[derive(Serialize)]
struct FindingNow<'a> {
    cause: &'a str,
    severity: Severity,
}

#[derive(Serialize)]
struct LimitNow {
    limit: &'static str,
    scope: String,
    /// Of the process, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    unit: &'static str,
    used: Option<u64>,
    allowed: Option<u64>,
    seconds_left: Option<f64>,
}

#[derive(Serialize)]
struct GrowthNow {
    class: &'static str,
    bytes: u64,
    bytes_per_second: f64,
}

#[derive(Serialize)]
struct SegmentsNow {
    by_kind: BTreeMap<&'static str, Segments>,
    unused: u64,
    unused_bytes: u64,
}

#[derive(Default, Serialize)]
struct Segments {
    count: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct CostNow {
    cpu_s: f64,
    peak_bytes: u64,
}

/// The text of `now.json` at this moment, at most [`MOST_BYTES`] long.
pub fn now_json(run: &RunFacts, state: &JobState) -> String {
    let mut most = MOST_PROCESSES;
    loop {
        // Numbers, and strings as keys: it cannot fail.
        let text = serde_json::to_string(&now(run, state, most)).unwrap_or_default();
        let text = format::clean_json(&text) + "\n";
        if text.len() <= MOST_BYTES || most == 0 {
            return text;
        }
        most /= 2;
    }
}

fn now<'a>(run: &'a RunFacts, state: &'a JobState, most: usize) -> Now<'a> {
    let memory = &state.memory;
    let short = |word: &String| word.chars().take(MOST_WORD).collect::<String>();
    Now {
        schema: SCHEMA,
        ullage: env!("CARGO_PKG_VERSION"),
        run: &run.run.0,
        command: run.command.iter().take(MOST_WORDS).map(short).collect(),
        job: run.job.as_ref().map(short),
        node: run.node.as_ref().map(short),
        rank: run.rank,
        attempt: run.attempt,
        recorder: run.recorder,
        started_unix: run.started_unix,
        at: state.at.seconds(),
        memory: MemoryNow {
            bytes: memory.bytes,
            error_bytes: memory.error_bytes,
            bytes_per_second: state.bytes_per_second.map(f64::round),
            categories: by_name(&memory.categories),
            beside: by_name(&memory.beside),
        },
        processes: processes(state, most),
        roles: roles(state),
        limits: limits(state, MOST_LIMITS.min(most.max(1))),
        growth: state.growth.as_ref().map(|growth| GrowthNow {
            class: growth.class.id(),
            bytes: growth.bytes,
            bytes_per_second: growth.per_second.round(),
        }),
        segments: segments(state),
        findings: (state.findings.iter().take(MOST_FINDINGS))
            .map(|finding| FindingNow { cause: &finding.cause, severity: finding.severity })
            .collect(),
        stall_s: state.stall_s,
        oom_kills: state.oom_kills,
        restarts: state.restarts,
        gpus: [],
        cost: CostNow { cpu_s: state.cost.cpu_ns as f64 / 1e9, peak_bytes: state.cost.peak_rss.0 },
    }
}

fn by_name(parts: &[(String, u64)]) -> BTreeMap<&str, u64> {
    parts.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect()
}

/// Those that hold most one by one; the rest as one row without an index.
fn processes(state: &JobState, most: usize) -> Vec<ProcessNow> {
    let mut running: Vec<&Process> =
        state.processes.iter().filter(|process| process.exited.is_none()).collect();
    running.sort_by_key(|process| std::cmp::Reverse(process.private.unwrap_or(0)));
    let (listed, rest) = running.split_at(most.min(running.len()));
    let row = |process: &&Process| ProcessNow {
        role: process.identity.role.kind(),
        index: process.identity.index(),
        count: None,
        bytes: process.private.zip(process.shared).map(|(private, shared)| private.saturating_add(shared)),
        private_bytes: process.private,
        swap_bytes: process.swap,
        descriptors: process.descriptors,
        mappings: process.mappings,
        cpu_s: process.cpu_s,
    };
    let mut rows: Vec<ProcessNow> = listed.iter().map(row).collect();
    if !rest.is_empty() {
        let sum = |of: fn(&Process) -> Option<u64>| {
            rest.iter().filter_map(|process| of(process)).fold(0, u64::saturating_add)
        };
        let private = sum(|process| process.private);
        rows.push(ProcessNow {
            role: "other processes".into(),
            index: None,
            count: Some(rest.len()),
            bytes: Some(private.saturating_add(sum(|process| process.shared))),
            private_bytes: Some(private),
            swap_bytes: Some(sum(|process| process.swap)),
            descriptors: Some(sum(|process| process.descriptors)),
            mappings: Some(sum(|process| process.mappings)),
            cpu_s: rest.iter().map(|process| process.cpu_s).sum(),
        });
    }
    rows
}

/// Sums over all processes that run; what was used also by those that exited.
fn roles(state: &JobState) -> BTreeMap<String, RoleNow> {
    let used = |(role, used): (&String, &Used)| {
        let row = RoleNow { cpu_s: used.cpu_s, major_faults: used.major_faults, ..RoleNow::default() };
        (role.clone(), row)
    };
    let mut roles: BTreeMap<String, RoleNow> = state.used.iter().map(used).collect();
    for process in state.processes.iter().filter(|process| process.exited.is_none()) {
        let row = roles.entry(process.identity.role.kind()).or_default();
        row.count += 1;
        for (sum, bytes) in [
            (&mut row.private_bytes, process.private),
            (&mut row.shared_bytes, process.shared),
            (&mut row.swap_bytes, process.swap),
        ] {
            *sum = sum.saturating_add(bytes.unwrap_or(0));
        }
    }
    roles
}

/// The nearest ones; of processes of one role, the nearest of each kind.
fn limits(state: &JobState, most: usize) -> Vec<LimitNow> {
    let mut groups = HashSet::new();
    state.limits.iter().filter(|state| groups.insert(group(state))).take(most).map(limit).collect()
}

fn limit(state: &LimitState) -> LimitNow {
    LimitNow {
        limit: state.kind.name(),
        scope: state.scope.to_string().chars().take(MOST_WORD).collect(),
        role: match &state.scope {
            Scope::Process(_, role) => Some(role.kind()),
            _ => None,
        },
        unit: state.kind.unit(),
        used: state.used.as_known().copied(),
        allowed: state.limit.as_known().and_then(|limit| limit.at()),
        seconds_left: state.time_left_s.map(f64::round),
    }
}

fn segments(state: &JobState) -> Option<SegmentsNow> {
    let segments = state.segments.as_ref()?;
    let mut by_kind: BTreeMap<&'static str, Segments> = BTreeMap::new();
    let (mut unused, mut unused_bytes) = (0_u64, 0_u64);
    for segment in segments.iter() {
        let of_kind = by_kind.entry(segment.kind.word()).or_default();
        of_kind.count = of_kind.count.saturating_add(segment.count);
        of_kind.bytes = of_kind.bytes.saturating_add(segment.bytes);
        if segment.unused {
            unused = unused.saturating_add(segment.count);
            unused_bytes = unused_bytes.saturating_add(segment.bytes);
        }
    }
    Some(SegmentsNow { by_kind, unused, unused_bytes })
}
