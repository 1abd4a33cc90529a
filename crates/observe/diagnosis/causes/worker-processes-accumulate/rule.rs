//! Does a run show worker-processes-accumulate? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{GENERATIONS, GENERATIONS_ALIVE, GENERATION_TICKS};
use crate::policy::sizes::MOST;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Place, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let workers =
        analysis.timeline.processes().filter(|process| matches!(process.role, Role::LoaderWorker(_)));
    let found = Cohort::by_parent(workers)
        .into_iter()
        .filter_map(|(parent, cohort)| piled_up(analysis, parent, &cohort));
    match found.max_by_key(|(number, _)| *number) {
        Some((_, finding)) => Judgement::one(finding),
        None => Judgement::Nothing,
    }
}

fn piled_up(analysis: &Analysis, parent: i32, cohort: &Cohort) -> Option<(usize, Finding)> {
    let (first, last) = (cohort.members.first()?.first_seen, cohort.members.last()?.first_seen);
    let alive = cohort.alive(last);
    let generations = generations(&alive);
    let starter = analysis.timeline.by_pid(parent);
    // A job that has not failed goes on to make them.
    let end = starter.map_or(analysis.timeline.end(), |starter| starter.last_seen);
    let ongoing = last.since(first) >= MOST * end.since(first);
    if generations < GENERATIONS
        || (alive.len() as f64) < GENERATIONS_ALIVE * cohort.members.len() as f64
        || !ongoing
    {
        return None;
    }
    let made = starter.and_then(|starter| starter.iterators.iter().max_by_key(|(_, number)| *number));
    if made.is_some_and(|(_, number)| (*number as usize) < GENERATIONS) {
        return None;
    }
    let number = alive.len() as u64;
    let name = starter.map_or_else(|| format!("process {parent}"), evidence::describe);
    let sentence = format!(
        "{} had {} at once, from {} rounds in {}; {} of {} had ended.",
        evidence::capital(&name),
        evidence::plural(number, "loader worker", "loader workers"),
        evidence::count(generations as u64),
        evidence::seconds(last.since(first)),
        evidence::count(cohort.members.len() as u64 - number),
        evidence::count(cohort.members.len() as u64),
    );
    let source = evidence::Source::Children(parent, "/proc/PID/stat");
    let mut evidence = vec![evidence::number("loader workers", number, "processes", source, last, sentence)];
    if let Some((settings, iterators)) = made {
        let sentence = format!(
            "It made {} of the loader over {} with num_workers={}{}.",
            evidence::plural(u64::from(*iterators), "iterator", "iterators"),
            settings.dataset.as_deref().unwrap_or("one dataset"),
            settings.workers,
            if settings.persistent_workers { " and persistent_workers=True" } else { "" },
        );
        let source = evidence::Source::Agent(parent);
        evidence.push(evidence::number(
            "iterators",
            u64::from(*iterators),
            "iterators",
            source,
            last,
            sentence,
        ));
    }
    let held = cohort.held(last);
    let sentence = format!("Together they held {} of anonymous memory.", evidence::bytes(held));
    evidence.push(evidence::number(
        "memory of workers",
        held,
        "bytes",
        "/proc/PID/status of each",
        last,
        sentence,
    ));
    let known = if made.is_some() { Proof::SeenInside } else { Proof::Estimated };
    let mut finding = of_job(&RULE, Severity::Warning, known, evidence, &analysis.remedy_context_of(starter));
    finding.process = starter.map(evidence::process_ref);
    Some((alive.len(), finding))
}

/// Groups of processes that were started together.
fn generations(alive: &[&ProcessHistory]) -> usize {
    let mut starts: Vec<u64> = alive.iter().map(|process| process.id.start.0).collect();
    starts.sort_unstable();
    starts.chunk_by(|a, b| b - a <= GENERATION_TICKS).count()
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Create the loader once, outside the loop, and exhaust its iterator each epoch",
            format!(
                "loader = {}  # once\nfor epoch in range(epochs):\n    for batch in loader:\n        ...",
                context.loader("persistent_workers=True")
            ),
        )
        .only(Place::Loader),
        Fix::new(
            "To take single batches: keep one iterator, and call next() on it",
            "batches = iter(loader)\n\
                      try:\n    batch = next(batches)\n\
                      except StopIteration:\n    batches = iter(loader)  # the old one is dropped here",
        ),
        Fix::new("Delete an iterator that you do not exhaust, and any exception it raised", "del batches"),
    ]
}
