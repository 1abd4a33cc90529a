//! Does a run show per-rank-copies? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::copies::{at_once, severity, sum, Copy};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::reaches;
use crate::policy::memory::{HOLDS_COPY, RANKS_ALIKE, RANK_DATASET_BYTES};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{Fix, LoaderSettings, Proof, Role, Severity, Weight};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let mut alike: BTreeMap<(&str, u64), Vec<(Copy, &LoaderSettings)>> = BTreeMap::new();
    for process in analysis.timeline.processes().filter(|process| is_rank(process)) {
        let Some((settings, weight)) = weighed(process) else { continue };
        let (Some(dataset), Some(length)) = (settings.dataset.as_deref(), settings.dataset_len) else {
            continue;
        };
        let Some((at, peak)) = process.anonymous.peak() else { continue };
        if weight >= RANK_DATASET_BYTES && peak >= HOLDS_COPY * weight as f64 {
            let copy = Copy { process, bytes: weight, error: 0, at };
            alike.entry((dataset, length)).or_default().push((copy, settings));
        }
    }
    let found = alike.into_iter().filter_map(|(key, copies)| copied(analysis, key, &copies));
    match found.max_by_key(|(saved, _)| *saved) {
        Some((_, judgement)) => judgement,
        None => Judgement::Nothing,
    }
}

/// It was started as a program or a process of its own, with nothing of another's memory.
fn is_rank(process: &ProcessHistory) -> bool {
    let forked = process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some())
        || process.started_by.as_deref() == Some("fork");
    let role =
        matches!(process.role, Role::Rank(_) | Role::Trainer | Role::Other | Role::PoolWorker | Role::Helper);
    role && (!forked || matches!(process.role, Role::Rank(_)))
}

fn weighed(process: &ProcessHistory) -> Option<(&LoaderSettings, u64)> {
    let settings = process.heaviest.as_ref()?;
    let weight: Weight = settings.weight?;
    Some((settings, weight.copied_by_pickle().saturating_add(weight.tensors)))
}

fn copied(
    analysis: &Analysis,
    (dataset, length): (&str, u64),
    copies: &[(Copy, &LoaderSettings)],
) -> Option<(u64, Judgement)> {
    let together = at_once(copies.iter().map(|(copy, _)| *copy).collect());
    let least = together.iter().min_by_key(|copy| copy.bytes)?;
    let most = together.iter().max_by_key(|copy| copy.bytes)?;
    if together.len() < 2 || !reaches(RANKS_ALIKE, least.bytes, most.bytes) {
        return None;
    }
    let saved = sum(&together) - most.bytes;
    let severity = match severity(analysis, saved, analysis.timeline.memory().peak_bytes)? {
        Severity::Warning if !analysis.ran_out => Severity::Note,
        severity => severity,
    };
    let sentence = format!(
        "{} processes each hold the dataset {dataset} ({}, about {}): {} in all, {} of it repeated.",
        evidence::count(together.len() as u64),
        evidence::plural(length, "item", "items"),
        evidence::bytes(most.bytes),
        evidence::bytes(sum(&together)),
        evidence::bytes(saved)
    );
    let source = evidence::Source::Agents(most.process.id.pid);
    let evidence = evidence::number("saved by sharing", saved, "bytes", source, most.at, sentence);
    let finding = of_process(analysis, &RULE, severity, Proof::InPart, vec![evidence], most.process);
    Some((saved, Judgement::one(finding)))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Write arrays once, and map them in every rank",
            "if local_rank == 0:\n    numpy.save(\"data.npy\", data)\n\
                      torch.distributed.barrier()\n\
                      data = numpy.load(\"data.npy\", mmap_mode=\"r\")",
        ),
        Fix::new(
            "Or load in each rank only its own samples",
            "samples = samples[rank::world_size]  # instead of a DistributedSampler over all",
        ),
    ]
}
