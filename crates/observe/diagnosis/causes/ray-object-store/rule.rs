//! Does a run show ray-object-store? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::rule::finding::{better, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let found: Option<Finding> = analysis
        .failures
        .iter()
        .filter(|failure| of_ray(failure))
        .fold(None, |found, failure| better(found, reported(analysis, failure)));
    found.map_or(Judgement::Nothing, Judgement::one)
}

fn of_ray(failure: &Failure) -> bool {
    let text = failure.text();
    text.contains("ObjectStoreFullError") || text.contains("object in object store because it is full")
}

fn reported(analysis: &Analysis, failure: &Failure) -> Finding {
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    evidence.extend(analysis.timeline.processes().find(|process| process.name() == "raylet").and_then(store));
    finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &analysis.remedy_context(Some(failure)))
}

fn store(raylet: &ProcessHistory) -> Option<Evidence> {
    let (at, memory) = raylet.memory?;
    let sentence = format!(
        "raylet (pid {}), which holds the object store, had {} of shared memory.",
        raylet.id.pid,
        evidence::bytes(memory.shared.0)
    );
    let source = evidence::Source::Process(raylet.id.pid, "status");
    Some(evidence::number("shared memory of raylet", memory.shared.0, "bytes", source, at, sentence))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "List the references, and drop those you do not need",
            "ray memory --group-by STACK_TRACE\ndel ref  # in the driver",
        ),
        Fix::new(
            "Enlarge the store (needs room in /dev/shm)",
            "ray.init(object_store_memory=8 * 2**30)  # with docker run --shm-size=10g",
        )
        .only(Place::Container),
        Fix::new("Run fewer tasks at once: declare the memory of each", "@ray.remote(memory=4 * 2**30)"),
    ]
}
