//! Does a run show prefetch-times-workers? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::{segments, space};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::reaches;
use crate::policy::memory::{IN_FLIGHT, LOADER_BEGINS_S};
use crate::policy::sizes::{NOTE_PART, WORK_NOTE_BYTES};
use crate::rule::finding::of_process;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, FilesystemUse, Fix, LoaderSettings, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let Some((starter, settings)) = largest_loader(analysis) else { return Judgement::Nothing };
    let shm = analysis.failures.iter().find(|failure| {
        (space::is_no_space(failure) && space::about_shm(failure)) || space::is_bus_error(failure)
    });
    // A reading before most of it came says nothing of what filled it.
    let came_later = |batches: &segments::Batches| {
        let at_failure = shm.and_then(|failure| failure.counts()?.shm_used).unwrap_or(0);
        in_shm(analysis, batches.at).max(batches.bytes) * 2 < at_failure
    };
    let batches = segments::batches(analysis.timeline).filter(|batches| !came_later(batches));
    let in_flight = batches.map_or(0, |batches| batches.bytes - batches.received);
    let mut evidence = vec![product(starter, settings)];
    evidence.extend(batches.filter(|batches| batches.bytes > 0).map(|batches| measured(&batches)));
    let judged = match (shm, batches) {
        (Some(_), Some(batches)) if batches.bytes > 0 => {
            // Most of what the workers made waits, and that is most of what is in use.
            let used = in_shm(analysis, batches.at).max(batches.bytes);
            let waits = in_flight * 2 >= batches.bytes && batches.bytes * 2 >= used;
            waits.then_some((Severity::Warning, Proof::Estimated))
        }
        (Some(failure), _) => {
            // A worker could not put its batch there, and the trainer keeps none: too early for any other.
            let by_worker = failure.process.is_some_and(|process| process.id != starter.id);
            let early = failure.at.since(starter.loader_at.unwrap_or(failure.at)) <= LOADER_BEGINS_S;
            (by_worker && early && space::is_no_space(failure))
                .then_some((Severity::Warning, Proof::Consistent))
        }
        (None, Some(_)) if analysis.ran_out => {
            let held = analysis.timeline.memory().peak_bytes;
            reaches(IN_FLIGHT, in_flight, held).then_some((Severity::Warning, Proof::Estimated))
        }
        (None, Some(_)) => {
            let held = analysis.timeline.memory().peak_bytes;
            (in_flight >= WORK_NOTE_BYTES && in_flight * NOTE_PART >= held)
                .then_some((Severity::Note, Proof::Estimated))
        }
        (None, None) => None,
    };
    let Some((severity, known)) = judged else { return Judgement::Nothing };
    Judgement::one(of_process(analysis, &RULE, severity, known, evidence, starter))
}

/// The loader that has most batches in flight.
fn largest_loader<'a>(analysis: &Analysis<'a>) -> Option<(&'a ProcessHistory, &'a LoaderSettings)> {
    analysis
        .timeline
        .processes()
        .flat_map(|process| process.iterators.iter().map(move |(settings, _)| (process, settings)))
        .filter(|(_, settings)| settings.workers > 0)
        .max_by_key(|(process, settings)| (ahead(settings), std::cmp::Reverse(process.id)))
}

/// Batches that wait at most.
fn ahead(settings: &LoaderSettings) -> u64 {
    u64::from(settings.workers).saturating_mul(settings.prefetch_factor.unwrap_or(2))
}

fn product(starter: &ProcessHistory, settings: &LoaderSettings) -> Evidence {
    let size =
        settings.batch_size.map_or("unknown size".into(), |size| evidence::plural(size, "sample", "samples"));
    let sentence = format!(
        "The loader over {} keeps {} workers x prefetch_factor {} = {} of {size} ready.",
        settings.dataset.as_deref().unwrap_or("the dataset"),
        settings.workers,
        settings.prefetch_factor.unwrap_or(2),
        evidence::plural(ahead(settings), "batch", "batches"),
    );
    let source = evidence::Source::Agent(starter.id.pid);
    let at = starter.loader_at.unwrap_or(starter.first_seen);
    evidence::number("batches in flight", ahead(settings), "batches", source, at, sentence)
}

fn measured(batches: &segments::Batches) -> Evidence {
    let waiting = batches.bytes - batches.received;
    let sentence = format!(
        "{} of the workers' {} in shared memory waited for the training process.",
        evidence::bytes(waiting),
        evidence::bytes(batches.bytes)
    );
    evidence::number(
        "batches that wait",
        waiting,
        "bytes",
        "shared segments and who maps them",
        batches.at,
        sentence,
    )
}

fn in_shm(analysis: &Analysis, at: At) -> u64 {
    let used = analysis.timeline.filesystems(FilesystemUse::Shm).filter_map(|shm| shm.used.at_or_before(at));
    used.map(|(_, used)| used as u64).max().unwrap_or(0)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        sharing::fewer_batches(context),
        Fix::new(
            "Send bytes, and convert to float in the training step: a quarter of the size",
            "return image  # uint8 in __getitem__\nbatch = batch.to(device).float().div_(255)  # in the step",
        ),
        Fix::new(
            "End the training workers before validation starts its own",
            context.loader("persistent_workers=False"),
        )
        .only(Place::Loader),
    ]
}
