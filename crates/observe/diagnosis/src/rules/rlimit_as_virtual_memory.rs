//! # rlimit-as-virtual-memory
//!
//! ## What it does
//! Finds a process whose address space met `RLIMIT_AS` (`ulimit -v`, SGE `h_vmem`), with little memory in use.
//!
//! ## Why it happens
//! Address space is not memory: torch's libraries map gigabytes, each thread's arena reserves 64 MiB, CUDA
//! reserves as much as all GPUs and the machine have. A limit on it stops imports, threads and CUDA.
//!
//! ## How it is told apart
//! `ENOMEM` with a finite limit and an address space at it (or within the size asked for), while resident memory is
//! small. Without a limit it is max-map-count-exhausted or strict-overcommit.
//!
//! ## Known problems
//! A failed import gives back what it had mapped, so that the address space at the exception is smaller than
//! at the failure; VmPeak keeps the larger figure.
//!
//! ## Example
//! `ImportError: libtorch_python.so: failed to map segment from shared object`
//!
//! ## Remedy
//! Take the limit away, or limit resident memory instead.
//!
//! ## References
//! - getrlimit(2)

use crate::failure::{Failure, Symptom};
use crate::found::{better, finding};
use crate::requested::requested_bytes;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::{say, sharing};
use ullage_model::{Evidence, Finding, Fix, Status};

pub(super) const RULE: Rule = Rule {
    id: "rlimit-as-virtual-memory",
    title: "RLIMIT_AS (ulimit -v, h_vmem) smaller than the address space torch/CUDA reserve",
    source: include_str!("rlimit_as_virtual_memory.rs"),
    judge,
    fixes,
};

fn judge(case: &Case) -> Judgement {
    let mut found: Option<Finding> = None;
    let mut unsure = None;
    for failure in &case.failures {
        let told = matches!(failure.symptom(), Symptom::NoMemory | Symptom::NoTask);
        if !told && !failure.unexplained_end() {
            continue;
        }
        let counts = failure.counts();
        let read =
            failure.process.and_then(|process| process.limits).and_then(|limits| limits.address_space.at());
        let Some(limit) = counts.and_then(|counts| counts.address_space_limit).or(read) else { continue };
        match judge_failure(case, failure, told, limit) {
            Ok(Some(next)) => found = better(found, next),
            Ok(None) => {}
            Err(because) => {
                unsure.get_or_insert(because);
            }
        }
    }
    match (found, unsure) {
        (Some(found), _) => Judgement::one(found),
        (None, Some(because)) => Judgement::CannotTell { because },
        (None, None) => Judgement::Nothing,
    }
}

fn judge_failure(case: &Case, failure: &Failure, told: bool, limit: u64) -> Result<Option<Finding>, String> {
    let counts = failure.counts();
    if let Some((mappings, max)) = counts.and_then(|counts| counts.mappings.zip(counts.max_map_count)) {
        if mappings >= max - max / 100 {
            return Ok(None);
        }
    }
    let name = failure.process.map_or_else(|| "the process".to_owned(), say::who);
    let memory = failure.process.and_then(|process| process.memory);
    let peak = memory.map(|(at, memory)| (at, memory.peak_virtual.0.max(memory.virtual_size.0)));
    let asked = requested_bytes(&failure.text()).unwrap_or(0);
    let at_failure = counts.and_then(|counts| counts.virtual_size);
    let refused = failure.text().contains("failed to map segment");
    let known = match (told, at_failure, peak) {
        (true, Some(size), _) if size.saturating_add(asked) >= limit - limit / 20 => {
            (Status::Established, 0.96)
        }
        (true, _, Some((_, peak))) if peak >= limit / 10 * 8 => (Status::Supported, 0.9),
        (true, Some(size), _) if size >= limit / 2 || refused => (Status::Supported, 0.85),
        (true, None, _) if refused => (Status::Supported, 0.75),
        (false, _, Some((_, peak))) if peak >= limit / 20 * 19 => (Status::Supported, 0.8),
        (false, _, Some((at, peak))) if peak >= limit / 4 => {
            return Err(format!(
                "{name} ended on its own; its address space had reached {} of {}, read {} before, and the agent reported no exception from it",
                say::bytes(peak),
                say::bytes(limit),
                say::seconds(failure.at.since(at))
            ));
        }
        (false, _, None) => {
            return Err(format!(
                "{name} ended on its own before its address space was read; its limit (ulimit -v) is {}",
                say::bytes(limit)
            ));
        }
        _ => return Ok(None),
    };
    let mut evidence: Vec<Evidence> = Vec::new();
    if let Some(size) = at_failure {
        let more =
            if asked > 0 { format!(", and asked for {} more", say::bytes(asked)) } else { String::new() };
        let sentence = format!(
            "{} had an address space of {} of the {} that its limit (ulimit -v) allows{more}, counted inside it at the exception.",
            say::capital(&name),
            say::bytes(size),
            say::bytes(limit)
        );
        let met = say::number("address space", size, "bytes", &failure.agent_source(), failure.at, sentence);
        evidence.push(say::of(met, limit));
    }
    if let (Some((at, peak)), Some(process)) = (peak, failure.process) {
        let sentence = format!(
            "Its address space had reached {} of {} (VmPeak), read {} before the failure.",
            say::bytes(peak),
            say::bytes(limit),
            say::seconds(failure.at.since(at))
        );
        let source = format!("/proc/{}/status", process.id.pid);
        evidence
            .push(say::of(say::number("largest address space", peak, "bytes", &source, at, sentence), limit));
    }
    if let Some(resident) =
        counts.and_then(|counts| counts.resident).or(memory.map(|(_, memory)| memory.resident().0))
    {
        let sentence = format!("Only {} of it was memory in use.", say::bytes(resident));
        evidence.push(say::number("resident memory", resident, "bytes", "VmRSS", failure.at, sentence));
    }
    evidence.extend(sharing::exception_sentence(failure));
    Ok(Some(finding(case, &RULE, failure, known, evidence, &case.setting(Some(failure)))))
}

fn fixes(_setting: &Setting) -> Vec<Fix> {
    vec![
        Fix {
            title: "Take the limit on address space away (up to the hard limit everybody may)".into(),
            command: "ulimit -S -v $(ulimit -H -v)".into(),
            automatic: None,
        },
        Fix {
            title: "Where memory shall be limited: limit what is in use".into(),
            command: "systemd-run --user --scope -p MemoryMax=16G python train.py".into(),
            automatic: None,
        },
        Fix {
            title: "Reserve less: fewer arenas".into(),
            command: "export MALLOC_ARENA_MAX=2 OMP_NUM_THREADS=1".into(),
            automatic: None,
        },
    ]
}
