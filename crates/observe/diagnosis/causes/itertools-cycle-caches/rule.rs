//! Does a run show itertools-cycle-caches? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::failures::Symptom;
use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::UNHEARD_SEGMENTS;
use crate::policy::sizes::NOTE_BYTES;
use crate::rule::finding::of_process;
use crate::rule::retainers;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Proof, RetainedByIterators, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// A census that saw it grow says more than the count at the end.
fn judge(analysis: &Analysis) -> Judgement {
    match retainers::judge(analysis, &RULE, Kind::Cycle) {
        Judgement::Found(found) => Judgement::Found(found),
        _ => counted(analysis),
    }
}

fn counted(analysis: &Analysis) -> Judgement {
    let stored = analysis.timeline.processes().filter_map(|process| {
        let (at, stored) = process.retained_by_iterators?;
        Some((bytes(&stored), at, stored, process))
    });
    let Some((bytes, at, stored, process)) = stored.max_by_key(|(bytes, at, _, _)| (*bytes, *at)) else {
        return unheard(analysis);
    };
    let short = analysis.failures.iter().any(|failure| {
        let here = failure.process.is_some_and(|failed| failed.id == process.id);
        let of = failure.symptom();
        here && matches!(of, Symptom::NoDescriptors | Symptom::NoMemory | Symptom::NoSpace)
    });
    let severity = match bytes {
        _ if short || (analysis.ran_out && bytes >= NOTE_BYTES) => Severity::Warning,
        NOTE_BYTES.. => Severity::Note,
        _ => return Judgement::Nothing,
    };
    let mut evidence = vec![sentence(process, at, &stored, bytes)];
    let settings = process.loader.as_ref();
    evidence.extend(settings.and_then(|settings| {
        let (length, size) = (settings.dataset_len?, settings.batch_size?.max(1));
        let epoch = length.div_ceil(size);
        let sentence = format!(
            "One epoch of its loader over {} has {}.",
            settings.dataset.as_deref().unwrap_or("the dataset"),
            evidence::plural(epoch, "batch", "batches")
        );
        let source = evidence::Source::Agent(process.id.pid);
        Some(evidence::number("batches of an epoch", epoch, "batches", source, at, sentence))
    }));
    let known = Proof::SeenInside;
    Judgement::one(of_process(analysis, &RULE, severity, known, evidence, process))
}

/// A process that keeps much of what loader workers send, and that nobody spoke from.
fn unheard(analysis: &Analysis) -> Judgement {
    if analysis.ended_well() {
        return Judgement::Nothing;
    }
    let retainer = analysis.timeline.processes().filter(|process| !process.agent).find(|process| {
        let mapped = process.mappings.map_or(0, |(_, mappings)| mappings.torch_shared);
        let open = process.kinds.as_ref().map_or(0, |(_, _, kinds)| kinds.torch_shared);
        mapped.max(open) >= UNHEARD_SEGMENTS && !matches!(process.role, Role::LoaderWorker(_))
    });
    retainer.map_or(Judgement::Nothing, |process| {
        let subject = evidence::describe(process);
        Judgement::undetermined(format!(
            "{subject} retains many torch segments; no agent was inside to see whether an iterator does"
        ))
    })
}

fn bytes(stored: &RetainedByIterators) -> u64 {
    stored.weight.copied_by_pickle().saturating_add(stored.weight.tensors)
}

fn sentence(
    process: &ProcessHistory,
    at: At,
    stored: &RetainedByIterators,
    bytes: u64,
) -> ullage_model::Evidence {
    let (name, items) =
        if stored.cycle >= stored.tee { ("cycle", stored.cycle) } else { ("tee", stored.tee) };
    let sentence = format!(
        "itertools.{name} in {} retained {}, about {}.",
        evidence::describe(process),
        evidence::plural(items, "item", "items"),
        evidence::bytes(bytes)
    );
    let source = evidence::Source::Agent(process.id.pid);
    evidence::number("items kept", items, "items", source, at, sentence)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Iterate the loader anew for each pass: it stores nothing and shuffles again",
            "def forever(loader):\n    while True:\n        yield from loader\n\nbatches = forever(loader)",
        ),
        Fix::new(
            "For tee: read both branches in step, or make two loaders",
            "for batch in loader:\n    first(batch)\n    second(batch)",
        ),
    ]
}
