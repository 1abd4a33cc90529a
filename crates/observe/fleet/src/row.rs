//! How does one recording become a row? From `run.json` and the verdict, whichever way that was come by.
//!
//! The surprise: a rank that another one's death ended fails too, and its recording alone often shows nothing else. So a row
//! says whether the failure is its own, an echo, or unclear; what it is then decides who was first.

use crate::place::of_path;
use crate::policy::{
    AFTER_AN_ECHO_S, EXCEPTION_ERROR_S, FAULT_SIGNALS, LOST_AFTER_S, SENT_SIGNALS, SHELL_SIGNALS_FROM,
    SIGTERM,
};
use crate::verdict::{FailureView, FindingView, ProcessView, VerdictView};
use std::collections::BTreeMap;
use ullage_diagnosis::repeats_another;
use ullage_model::{
    figures, Facts, FailureKind, FleetRow, OutcomeKind, ProcessId, Proof, RunFacts, Severity,
};

/// Characters of the name of an exception.
const MOST_NAME: usize = 60;

/// The row of a recording. `last_s`: seconds from its start to the last thing that it holds, where it has no end; a verdict that
/// the node itself wrote is of a run that ended, even if the copy of its run.json is of before.
pub fn row(path: &str, run: &RunFacts, verdict: &VerdictView, last_s: Option<f64>) -> FleetRow {
    let mut row = of_run(path, run);
    row.closed = last_s.is_none();
    let duration_s = verdict.duration_s.value().copied().or(run.duration_s);
    row.duration_s = duration_s.filter(|_| row.closed);
    row.ended_unix = row.duration_s.or(last_s).map(|seconds| run.started_unix + seconds);
    row.outcome = verdict.outcome.kind;
    row.code = verdict.outcome.code;
    row.signal = verdict.outcome.signal;
    row.by = verdict.outcome.by;
    row.healthy = verdict.healthy;
    row.headline = verdict.headline.clone();
    let finding = verdict.findings.first().filter(|finding| finding.severity > Severity::Note);
    if let Some(finding) = finding {
        of_finding(&mut row, finding, verdict.first_failure.as_ref());
    }
    of_failure(&mut row, run, verdict, finding, last_s);
    row.peak_bytes = verdict.memory.peak_bytes.value().copied();
    if let Some(growth) = verdict.growth.value() {
        row.growth = Some(growth.class.clone());
        row.growth_per_second = Some(growth.per_second);
    }
    let nearest = verdict.limits.iter().find(|limit| limit.time_left_s.is_some()).or(verdict.limits.first());
    if let Some(nearest) = nearest {
        row.limit = Some(nearest.name.clone());
        row.limit_scope = Some(nearest.scope.clone());
        row.limit_time_left_s = nearest.time_left_s;
    }
    row.figures = figures_of(verdict);
    row
}

/// The row of a recording that cannot be read.
pub fn unreadable(path: &str, problem: String) -> FleetRow {
    let names = of_path(path);
    FleetRow {
        path: path.to_owned(),
        job: names.job.flatten(),
        node: names.node.flatten(),
        rank: names.rank.flatten(),
        attempt: names.attempt.unwrap_or(0),
        problem: Some(problem),
        ..FleetRow::default()
    }
}

/// Facts of the machine and variables, by which nodes are compared.
pub fn facts(run: &RunFacts) -> Facts {
    let mut facts = run.machine.by_name();
    // Of one boot or one reading: they differ everywhere.
    facts.retain(|name, _| name != "boot.id" && !name.starts_with("clock."));
    facts.extend(run.environment.iter().map(|(name, value)| (format!("env.{name}"), value.as_str().into())));
    facts
}

fn of_run(path: &str, run: &RunFacts) -> FleetRow {
    let names = of_path(path);
    let variable = |name: &str| run.environment.get(name).and_then(|text| text.parse::<u32>().ok());
    let option = |names: &[&str]| option(&run.command, names);
    let rank = names.rank.unwrap_or(run.rank);
    let local_size = match rank {
        Some(_) => None,
        None => option(&["--nproc-per-node", "--nproc_per_node"]).or_else(|| variable("LOCAL_WORLD_SIZE")),
    };
    let world_nodes = variable("SLURM_STEP_NUM_NODES")
        .or_else(|| variable("SLURM_JOB_NUM_NODES"))
        .or_else(|| option(&["--nnodes"]));
    let counted = match rank {
        Some(_) => variable("WORLD_SIZE").or_else(|| variable("SLURM_STEP_NUM_TASKS")),
        None => variable("WORLD_SIZE"),
    };
    let clock_error_s = run.machine.others.get("clock.error_s").and_then(|fact| match fact {
        ullage_model::Fact::Text(text) => text.parse().ok(),
        fact => fact.number().map(|seconds| seconds as f64),
    });
    FleetRow {
        path: path.to_owned(),
        run: run.run.0.clone(),
        job: names.job.unwrap_or_else(|| run.job.clone()),
        node: names.node.unwrap_or_else(|| run.node.clone()),
        rank,
        attempt: names.attempt.or(run.attempt).unwrap_or(0),
        node_rank: run.node_rank,
        started_unix: run.started_unix,
        clock_error_s,
        boot_id: run.machine.others.get("boot.id").and_then(|fact| fact.text()).map(str::to_owned),
        world_size: counted.or_else(|| Some(world_nodes?.saturating_mul(local_size?))),
        world_nodes: world_nodes.or_else(|| {
            let (world, local) = (variable("WORLD_SIZE")?, variable("LOCAL_WORLD_SIZE")?);
            (local > 0).then(|| world.div_ceil(local))
        }),
        local_size,
        ..FleetRow::default()
    }
}

/// The number of `--name=7` or `--name 7`; none for `1:4`, which says how many there may be.
fn option(command: &[String], names: &[&str]) -> Option<u32> {
    let mut words = command.iter();
    while let Some(word) = words.next() {
        if names.contains(&word.as_str()) {
            return words.next()?.parse().ok();
        }
        if let Some((name, value)) = word.split_once('=') {
            if names.contains(&name) {
                return value.parse().ok();
            }
        }
    }
    None
}

fn of_finding(row: &mut FleetRow, finding: &FindingView, failure: Option<&FailureView>) {
    row.cause = Some(finding.cause.clone());
    row.title = Some(finding.title.clone());
    row.severity = Some(finding.severity);
    row.proof = finding.proof;
    row.cause_role = finding.process.as_ref().map(|process| process.role.clone());
    let failed = failure.and_then(|failure| Some((identity(failure.process.as_ref()?), failure.rank?)));
    let of_process = |process: &ProcessView| {
        let same = failed.filter(|(id, _)| *id == identity(process)).map(|(_, rank)| rank);
        rank_of(&process.role).or(same)
    };
    row.cause_rank = row.rank.or_else(|| finding.process.as_ref().and_then(of_process));
}

fn identity(process: &ProcessView) -> ProcessId {
    ProcessId { pid: process.pid, start: ullage_model::ClockTicks(process.start) }
}

fn rank_of(role: &str) -> Option<u32> {
    role.strip_prefix("rank ")?.parse().ok()
}

fn of_failure(
    row: &mut FleetRow,
    run: &RunFacts,
    verdict: &VerdictView,
    finding: Option<&FindingView>,
    last_s: Option<f64>,
) {
    let fatal = finding.filter(|finding| finding.severity == Severity::Fatal);
    let Some(failure) = &verdict.first_failure else {
        of_outcome(row, verdict, fatal);
        return;
    };
    // What a job without an end survived for so long did not end it.
    if last_s.is_some_and(|last| !row.closed && failure.at + LOST_AFTER_S < last) {
        return;
    }
    let (mut kind, ending) = of_words(failure);
    let after = |finding: &FindingView| finding.at.is_some_and(|at| at > failure.at + AFTER_AN_ECHO_S);
    if fatal.is_some_and(|finding| kind != FailureKind::Echo || !after(finding)) {
        kind = FailureKind::Own;
    }
    row.failure = Some(kind);
    row.ending = Some(ending);
    row.failure_unix = Some(row.started_unix + failure.at);
    let seen = if failure.exception.is_some() { EXCEPTION_ERROR_S } else { run.interval_s };
    row.failure_error_s = Some(seen.max(EXCEPTION_ERROR_S));
    row.failure_role = failure.process.as_ref().map(|process| process.role.clone());
    let of_role = row.failure_role.as_deref().and_then(rank_of);
    row.failure_rank = row.rank.or(failure.rank).or(of_role);
    // A peer's exception is told at once, a kill at the next sample: the kill was first.
    if let (Some(_), Some(rank)) = (fatal, row.cause_rank) {
        row.failure_rank = Some(rank);
        row.failure_role.clone_from(&row.cause_role);
    }
    row.failure_sentence = Some(failure.sentence.clone());
}

/// Of a run in which no process was seen to fail.
fn of_outcome(row: &mut FleetRow, verdict: &VerdictView, fatal: Option<&FindingView>) {
    let outcome = &verdict.outcome;
    let (kind, ending) = match (outcome.kind, outcome.code, outcome.signal) {
        (OutcomeKind::StillRunning, _, _) | (OutcomeKind::Exit, Some(0), _) => return,
        (OutcomeKind::OomKill, _, _) => (FailureKind::Own, "out of memory".to_owned()),
        (OutcomeKind::Budget, _, _) => (FailureKind::Own, "memory budget".to_owned()),
        (OutcomeKind::NotStarted, _, _) => (FailureKind::Own, "not started".to_owned()),
        (OutcomeKind::Unknown, _, _) if fatal.is_none() => return,
        (_, Some(code), _) => of_status(code),
        (_, _, Some(signal)) => of_signal(signal),
        _ => (FailureKind::Unclear, "no end recorded".to_owned()),
    };
    row.failure = Some(if fatal.is_some() { FailureKind::Own } else { kind });
    row.ending = Some(ending);
    let at = fatal.and_then(|finding| finding.at).map(|at| row.started_unix + at);
    row.failure_unix = at.or(row.ended_unix).or(Some(row.started_unix));
    row.failure_error_s = Some(EXCEPTION_ERROR_S);
    row.failure_role = row.cause_role.clone();
    row.failure_rank = row.cause_rank.or(row.rank);
    row.failure_sentence = Some(format!("{}.", verdict.headline.trim_end_matches('.')));
}

/// Whether it is an echo by its own words alone, and how it ended.
fn of_words(failure: &FailureView) -> (FailureKind, String) {
    match (&failure.exception, failure.signal, failure.code) {
        (Some(text), _, _) => of_exception(text),
        // The sentence says so where the counter of the cgroup does, found or not.
        (None, Some(_), _) if failure.sentence.contains("the kernel's OOM killer sent it") => {
            (FailureKind::Own, "out of memory".to_owned())
        }
        (None, Some(signal), _) => of_signal(signal),
        (None, None, Some(code)) => of_status(code),
        (None, None, None) => (FailureKind::Unclear, "no end recorded".to_owned()),
    }
}

fn of_signal(signal: i32) -> (FailureKind, String) {
    let kind = match signal {
        sent if SENT_SIGNALS.contains(&sent) => FailureKind::Echo,
        fault if FAULT_SIGNALS.contains(&fault) => FailureKind::Own,
        _ => FailureKind::Unclear,
    };
    (kind, figures::signal(signal))
}

fn of_status(code: i32) -> (FailureKind, String) {
    match code - SHELL_SIGNALS_FROM {
        signal if SENT_SIGNALS.contains(&signal) => of_signal(signal),
        _ => (FailureKind::Unclear, format!("exit status {code}")),
    }
}

fn of_exception(text: &str) -> (FailureKind, String) {
    let name = text.split(':').next().unwrap_or(text).trim();
    let name: String = name.rsplit('.').next().unwrap_or(name).chars().take(MOST_NAME).collect();
    // torchrun's, when it is told to end.
    if name == "SignalException" {
        return of_signal(SIGTERM);
    }
    if !repeats_another(text) {
        return (FailureKind::Own, name);
    }
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let ending = if has(&["timed out", "timeout", "time out"]) {
        if has(&["nccl", "watchdog", "collective"]) { "NCCL time-out" } else { "time-out" }.to_owned()
    } else if has(&["nccl"]) {
        "NCCL error".to_owned()
    } else if has(&["connection", "broken pipe", "peer", "socket", "eoferror"]) {
        "closed connection".to_owned()
    } else {
        name
    };
    (FailureKind::Echo, ending)
}

/// Names of a comparison by those of limits, and by units of evidence.
const OF_LIMIT: [(&str, &str); 12] = [
    ("mappings", "mappings"),
    ("descriptors", "descriptors"),
    ("address space", "address_space"),
    ("locked memory", "locked"),
    ("processes", "tasks"),
    ("cgroup memory", "cgroup_memory"),
    ("cgroup tasks", "cgroup_tasks"),
    ("memory and swap", "host_memory"),
    ("commit limit", "committed"),
    ("/dev/shm bytes", "shm_bytes"),
    ("/dev/shm inodes", "shm_inodes"),
    ("temporary files", "tmp_bytes"),
];

fn figures_of(verdict: &VerdictView) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let mut most = |name: String, value: f64| {
        let peak = figures.entry(name).or_insert(value);
        *peak = f64::max(*peak, value);
    };
    for limit in &verdict.limits {
        let named = OF_LIMIT.iter().find(|(name, _)| *name == limit.name);
        if let (Some((_, figure)), Some(used)) = (named, limit.used.value()) {
            most((*figure).to_owned(), *used);
        }
    }
    // Counted at the failure, which no reading may have met.
    let evidence = verdict.findings.iter().flat_map(|finding| &finding.evidence);
    for one in evidence.filter(|one| ["mappings", "descriptors"].contains(&one.unit.as_str())) {
        if let Some(value) = one.value.value() {
            most(one.unit.clone(), *value);
        }
    }
    if let Some(peak) = verdict.memory.peak_bytes.value() {
        most("memory".to_owned(), *peak as f64);
    }
    for role in verdict.memory.by_role.iter().filter(|role| role.processes > 0) {
        most(format!("each {}", role.role), role.bytes as f64 / role.processes as f64);
    }
    if let Some(growth) = verdict.growth.value() {
        let ended = ["none", "plateau", "warm-up"].contains(&growth.class.as_str());
        most("growth".to_owned(), if ended { 0.0 } else { growth.per_second });
    }
    figures
}

/// Whether the cause of a row is proven, and ended it.
pub(crate) fn is_proven(row: &FleetRow) -> bool {
    row.severity == Some(Severity::Fatal) && row.proof.is_some_and(|proof| proof > Proof::MessageOnly)
}
