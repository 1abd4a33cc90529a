//! Does a run show onednn-primitive-cache-shapes? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::retention::Retention;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::history::ProcessHistory;
use crate::policy::growth::GROWTH_BYTES;
use crate::policy::memory::{GENERATED_AGAIN_S, GENERATED_BYTES, GENERATED_LATE, GENERATED_ONGOING};
use crate::policy::sizes::{WARN_BYTES, WARN_PART};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Code that was generated, and what came with it.
struct Grown<'a> {
    process: &'a ProcessHistory,
    at: At,
    code: u64,
    before: u64,
    memory: u64,
    ongoing: bool,
}

fn judge(analysis: &Analysis) -> Judgement {
    let grown = analysis.timeline.processes().filter_map(grown);
    let Some(most) = grown.max_by_key(|grown| (grown.memory, grown.process.id)) else {
        return Judgement::Nothing;
    };
    let severity = match (most.ongoing && most.memory >= WARN_BYTES, analysis.ran_out) {
        (true, _) => Severity::Warning,
        (_, true) if most.memory.saturating_mul(WARN_PART) >= analysis.timeline.memory().peak_bytes => {
            Severity::Warning
        }
        _ => Severity::Note,
    };
    let sentence = format!(
        "{} generated code for new input shapes, from {} to {}; its memory grew by {}{}.",
        evidence::capital(&evidence::describe(most.process)),
        evidence::bytes(most.before),
        evidence::bytes(most.code),
        evidence::bytes(most.memory),
        if most.ongoing { " and still grew at the end" } else { "" }
    );
    let source = evidence::Source::Process(most.process.id.pid, "maps");
    let mut evidence =
        vec![evidence::number("generated code", most.code, "bytes", source, most.at, sentence)];
    if let Some(capacity) = analysis.facts.environment.get("ONEDNN_PRIMITIVE_CACHE_CAPACITY") {
        let sentence = format!("ONEDNN_PRIMITIVE_CACHE_CAPACITY={capacity} is set.");
        evidence.push(evidence::text(
            "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
            capacity,
            "environment",
            None,
            sentence,
        ));
    }
    let heap =
        analysis.retention_of(Allocator::Heap).filter(|retention| retention.process.id == most.process.id);
    evidence.extend(heap.map(between));
    let mut finding = of_process(analysis, &RULE, severity, Proof::Estimated, evidence, most.process);
    if most.ongoing && heap.is_some() {
        // Then what the heap retains comes of the cache, and not the other way round.
        finding.explains = vec!["glibc-dynamic-mmap-threshold".into()];
    }
    Judgement::one(finding)
}

/// The cache's objects are small, live on, and lie between the buffers of each call.
fn between(retention: &Retention) -> Evidence {
    let sentence = format!(
        "{} of its heap is free but pinned between live blocks, such as the cache's.",
        evidence::bytes(retention.retained.bytes as u64)
    );
    let source = evidence::Source::Agent(retention.process.id.pid);
    evidence::number(
        "free in the heap",
        retention.retained.bytes as u64,
        "bytes",
        source,
        retention.retained.at,
        sentence,
    )
}

fn grown(process: &ProcessHistory) -> Option<Grown<'_>> {
    let (first_at, first) = process.executable.first()?;
    let (last_at, last) = process.executable.last()?;
    let (since, half) = process.executable.at_or_before(middle(first_at, last_at))?;
    // A model is compiled in its first steps; shapes that keep coming go on with it.
    let late = last - half;
    let more = (last - first) as u64;
    if more < GENERATED_BYTES || late < GENERATED_LATE * (last - first) {
        return None;
    }
    let (before, after) =
        (process.anonymous.at_or_before(first_at)?.1, process.anonymous.at_or_before(last_at)?.1);
    let memory = (after - before).max(0.0) as u64;
    let recent = process.last_seen.since(last_at) <= last_at.since(since).max(GENERATED_AGAIN_S);
    // Code is read ever more seldom, memory at each tick: what came with the code goes on to come.
    let (then, end) = (process.anonymous.at_or_before(since)?.1, process.anonymous.last()?.1);
    let goes_on = end - after >= GENERATED_ONGOING * (after - then).max(GROWTH_BYTES as f64);
    (memory >= GROWTH_BYTES).then_some(Grown {
        process,
        at: last_at,
        code: last as u64,
        before: first as u64,
        memory,
        ongoing: late >= GENERATED_ONGOING * (last - first) && (recent || goes_on),
    })
}

fn middle(from: At, to: At) -> At {
    At::from_seconds((from.seconds() + to.seconds()) / 2.0)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Cache fewer primitives", "export ONEDNN_PRIMITIVE_CACHE_CAPACITY=16"),
        Fix::new(
            "Or pad the inputs to a few sizes",
            "length = -(-length // 128) * 128  # pad to the next multiple of 128",
        ),
        Fix::new("Or switch oneDNN off (slower)", "torch.backends.mkldnn.enabled = False"),
    ]
}
