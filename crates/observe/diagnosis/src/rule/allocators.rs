//! What do the rules say of memory that an allocator retains? One rule for each allocator; this is what they have in common.
//!
//! Retained memory is there for the next block, and costs nothing until something else needs it: a note. It is a warning
//! where it is what the job grows by to its end, or where memory ran out and it was much of it.

use crate::analysis::goes_on::{settles, stands};
use crate::analysis::growth_class::rising;
use crate::analysis::retained::{retained, Retained};
use crate::analysis::retainers::is_not_live;
use crate::analysis::retention::Retention;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::{Allocator, ProcessHistory};
use crate::policy::growth::{ARENA_THREADS, RETAINED_MUCH, UNNAMED_EACH_BYTES};
use crate::policy::sizes::{MOST, WARN_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Evidence, EvidenceValue, Finding, GrowthClass, Proof, Role, Severity, Unit};

/// What evidence of the whole job's growth is called: it is not what the allocator retains.
pub(crate) const JOB_GROWTH: &str = "growth";

const RETAINED: &str = "kept by the allocator";

/// Bytes that an allocator retains, where a finding is of one.
pub(crate) fn retained_by_allocator(finding: &Finding) -> Option<f64> {
    match finding.evidence.first()? {
        Evidence { what, value: EvidenceValue::Number(bytes, Unit::Bytes), .. } if what == RETAINED => {
            Some(*bytes)
        }
        _ => None,
    }
}

/// The finding of an allocator's rule. `known`: further evidence, in front of it what the allocator said.
pub(crate) fn judge(
    analysis: &Analysis,
    rule: &Rule,
    allocator: Allocator,
    sentence: impl Fn(&Retention) -> String,
    known: impl Fn(&Retention) -> Vec<Evidence>,
) -> Judgement {
    let Some(retention) = analysis.retention_of(allocator) else { return unread(analysis, allocator) };
    let grower = grower(analysis, retention);
    let retention = grower.as_ref().map_or(retention, |(grower, _)| grower);
    let most = analysis.retention.iter().map(|retention| retention.bytes).fold(0.0, f64::max);
    let growing = analysis.growth.as_ref().filter(|(growth, _)| growth.class == GrowthClass::FreedButHeld);
    let short =
        analysis.ran_out && retention.bytes >= RETAINED_MUCH * analysis.timeline.memory().peak_bytes as f64;
    let severity = if short || grower.is_some() { Severity::Warning } else { Severity::Note };
    let pid = retention.process.id.pid;
    let source = evidence::Source::Agent(pid);
    let text = format!("{}{}", sentence(retention), others(retention));
    let said = evidence::number(
        RETAINED,
        retention.retained.bytes as u64,
        "bytes",
        source.clone(),
        retention.retained.at,
        text,
    );
    let mut evidence = vec![said];
    if let Some((growth, _)) = growing {
        let (what, at) = (JOB_GROWTH, growth.since.unwrap_or(retention.retained.at));
        evidence.push(evidence::number(what, growth.bytes, "bytes", source, at, growth.because.clone()));
    }
    evidence.extend(known(retention));
    let context = RemedyContext {
        bytes: Some(retention.retained.trimmable as u64),
        ..analysis.remedy_context_of(Some(retention.process))
    };
    // One that retains less than half of what another one does is a part of the story.
    let proof = if retention.bytes < MOST * most { Proof::InPart } else { Proof::Estimated };
    let mut finding = of_job(rule, severity, proof, evidence, &context);
    finding.process = Some(evidence::process_ref(retention.process));
    let since = grower.as_ref().map(|(_, rise)| At::from_seconds(rise.since));
    if let Some(since) = since.or(growing.and_then(|(growth, _)| growth.since)) {
        finding.at = Some(since);
    }
    Judgement::one(finding)
}

/// What came to a process and is free is a growth: the job goes on growing, and the lows rise with it. A loader's worker holds what
/// it has freed for the next epoch.
pub(crate) fn is_free_growth(analysis: &Analysis, process: &ProcessHistory, rise: &Rise) -> bool {
    let goes_on = analysis.growth.as_ref().is_some_and(|(_, ongoing)| *ongoing);
    goes_on && !matches!(process.role, Role::LoaderWorker(_)) && stands(process, rise)
}

/// Of the processes that grow to their ends by what this allocator retains, most of all allocators in them, the one that grew
/// most; where all of them grew by enough.
fn grower<'a>(analysis: &Analysis<'a>, retention: &Retention<'a>) -> Option<(Retention<'a>, Rise)> {
    let grows = |(process, rise): &(&ProcessHistory, Rise)| {
        is_not_live(process, rise) && !settles(process, rise) && is_free_growth(analysis, process, rise)
    };
    let retained_most = |process: &'a ProcessHistory| {
        let of = |allocator| retained(&process.memory_readings, allocator);
        let own = of(retention.allocator)?;
        Allocator::ALL
            .iter()
            .all(|other| of(*other).is_none_or(|other| other.bytes <= own.bytes))
            .then_some(own)
    };
    let all: Vec<(&ProcessHistory, Retained, Rise)> = rising(analysis, UNNAMED_EACH_BYTES)
        .into_iter()
        .filter(grows)
        .filter_map(|(process, rise)| Some((process, retained_most(process)?, rise)))
        .collect();
    let by: f64 = all.iter().map(|(_, _, rise)| rise.by).sum();
    let most = all.into_iter().max_by(|a, b| a.2.by.total_cmp(&b.2.by));
    let (process, retained, rise) = most.filter(|_| by >= WARN_BYTES as f64)?;
    Some((Retention { process, retained, ..*retention }, rise))
}

fn others(retention: &Retention) -> String {
    match retention.processes {
        1 => String::new(),
        number => format!(
            " With {} more like it: {}.",
            evidence::plural(number - 1, "process", "processes"),
            evidence::bytes(retention.bytes as u64)
        ),
    }
}

/// Private memory grows, and nobody inside said what it is.
fn unread(analysis: &Analysis, allocator: Allocator) -> Judgement {
    let preloads =
        |name: &str| analysis.variable("LD_PRELOAD").is_some_and(|libraries| libraries.contains(name));
    let there = match allocator {
        Allocator::Jemalloc => preloads("jemalloc"),
        Allocator::Tcmalloc => preloads("tcmalloc") || preloads("mimalloc"),
        Allocator::Arenas | Allocator::Heap => !preloads("malloc"),
        Allocator::Pymalloc | Allocator::Arrow => false,
    };
    let Some((growth, _)) = analysis.growth.as_ref().filter(|_| there) else { return Judgement::Nothing };
    let process = growth.process.as_ref().and_then(|process| analysis.timeline.process(process.id));
    let Some(process) = process.filter(|process| !process.agent) else { return Judgement::Nothing };
    let threads = process.threads.peak().map_or(0.0, |(_, threads)| threads);
    if growth.class != GrowthClass::LiveGrowth
        || (growth.bytes as f64) < WARN_BYTES as f64
        || (allocator == Allocator::Arenas && threads < ARENA_THREADS)
    {
        return Judgement::Nothing;
    }
    Judgement::undetermined(format!(
        "{} grew by {}; no agent was inside to see how much of it malloc holds free",
        evidence::describe(process),
        evidence::bytes(growth.bytes)
    ))
}

/// A variable that was set for the job, as evidence.
pub(crate) fn variable(analysis: &Analysis, name: &str) -> Option<Evidence> {
    let value = analysis.variable(name)?;
    Some(evidence::text(name, value, "environment", None, format!("{name}={value} is set.")))
}
