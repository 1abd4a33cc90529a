//! `now.json`: how the job stands, in one object that any number of readers may read.

use crate::moment::{Moment, Process};
use serde_json::{json, Map, Value};
use ullage_model::{LimitState, RunFacts, SegmentKind};

/// The most that `now.json` may be, bytes: readers take it in one read.
pub const MOST_BYTES: usize = 16 << 10;
const SCHEMA: u32 = 1;
/// Processes and limits told one by one; the rest is summed, or left out.
const MOST_PROCESSES: usize = 64;
const MOST_LIMITS: usize = 12;
/// A command of a thousand arguments is known by its first ones.
const MOST_WORDS: usize = 16;
const MOST_WORD: usize = 100;

/// The text of `now.json` at this moment, at most [`MOST_BYTES`] long.
pub fn now_json(run: &RunFacts, moment: &Moment) -> String {
    let mut most = MOST_PROCESSES;
    loop {
        let text = format!("{}\n", ullage_report::json::line(&object(run, moment, most)).trim_end());
        if text.len() <= MOST_BYTES || most == 0 {
            return text;
        }
        most /= 2;
    }
}

fn object(run: &RunFacts, moment: &Moment, most: usize) -> Value {
    let memory = &moment.memory;
    let short = |word: &String| word.chars().take(MOST_WORD).collect::<String>();
    json!({
        "schema": SCHEMA,
        "ullage": env!("CARGO_PKG_VERSION"),
        "run": run.run.0,
        "command": run.command.iter().take(MOST_WORDS).map(short).collect::<Vec<_>>(),
        "job": run.job.as_ref().map(short),
        "node": run.node.as_ref().map(short),
        "rank": run.rank,
        "started_unix": run.started_unix,
        "at": moment.at.seconds(),
        "memory": {
            "bytes": memory.bytes,
            "error_bytes": memory.error_bytes,
            "bytes_per_second": moment.bytes_per_second.map(f64::round),
            "categories": map(&memory.categories),
            "beside": map(&memory.beside),
        },
        "processes": processes(moment, most),
        "limits": moment.limits.iter().take(MOST_LIMITS.min(most.max(1))).map(limit).collect::<Vec<_>>(),
        "growth": moment.growth.as_ref().map(|growth| json!({
            "class": growth.class.id(),
            "bytes": growth.bytes,
            "bytes_per_second": growth.per_second.round(),
        })),
        "segments": segments(moment),
        "stall_s": moment.stall_s,
        "oom_kills": moment.oom_kills,
        "gpus": [],
        "cost": {"cpu_s": moment.cost.cpu_ns as f64 / 1e9, "peak_bytes": moment.cost.peak_rss.0},
    })
}

fn map(parts: &[(String, u64)]) -> Map<String, Value> {
    parts.iter().map(|(name, bytes)| (name.clone(), json!(bytes))).collect()
}

/// Those that hold most one by one; the rest as one row without an index.
fn processes(moment: &Moment, most: usize) -> Vec<Value> {
    let mut running: Vec<&Process> =
        moment.processes.iter().filter(|process| process.exited.is_none()).collect();
    running.sort_by_key(|process| std::cmp::Reverse(process.private.unwrap_or(0)));
    let (told, rest) = running.split_at(most.min(running.len()));
    let mut rows: Vec<Value> = told
        .iter()
        .map(|process| {
            json!({
                "role": process.identity.role.kind(),
                "index": process.identity.index(),
                "bytes": process.private.zip(process.shared).map(|(private, shared)| private.saturating_add(shared)),
                "private_bytes": process.private,
                "descriptors": process.descriptors,
                "mappings": process.mappings,
                "cpu_s": process.cpu_s,
            })
        })
        .collect();
    if !rest.is_empty() {
        let sum = |of: fn(&Process) -> Option<u64>| {
            rest.iter().filter_map(|process| of(process)).fold(0, u64::saturating_add)
        };
        let private = sum(|process| process.private);
        rows.push(json!({
            "role": "other processes",
            "index": null,
            "count": rest.len(),
            "bytes": private.saturating_add(sum(|process| process.shared)),
            "private_bytes": private,
            "descriptors": sum(|process| process.descriptors),
            "mappings": sum(|process| process.mappings),
            "cpu_s": rest.iter().map(|process| process.cpu_s).sum::<f64>(),
        }));
    }
    rows
}

fn limit(state: &LimitState) -> Value {
    json!({
        "limit": state.kind.name(),
        "scope": state.scope.to_string().chars().take(MOST_WORD).collect::<String>(),
        "unit": state.kind.unit(),
        "used": state.used.as_known(),
        "allowed": state.limit.as_known().and_then(|limit| limit.at()),
        "seconds_left": state.time_left_s.map(f64::round),
    })
}

fn segments(moment: &Moment) -> Option<Value> {
    let segments = moment.segments.as_ref()?;
    let mut of_kind = Map::new();
    for kind in SegmentKind::ALL {
        let these = || segments.iter().filter(move |segment| segment.kind == kind);
        if these().next().is_some() {
            let count: u64 = these().map(|segment| segment.count).fold(0, u64::saturating_add);
            let bytes: u64 = these().map(|segment| segment.bytes).fold(0, u64::saturating_add);
            of_kind.insert(kind.word().into(), json!({"count": count, "bytes": bytes}));
        }
    }
    let unused = || segments.iter().filter(|segment| segment.unused);
    Some(json!({
        "by_kind": of_kind,
        "unused": unused().map(|segment| segment.count).fold(0, u64::saturating_add),
        "unused_bytes": unused().map(|segment| segment.bytes).fold(0, u64::saturating_add),
    }))
}
