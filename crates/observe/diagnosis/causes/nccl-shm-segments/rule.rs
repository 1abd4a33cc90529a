//! Does a run show nccl-shm-segments? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{better, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let found: Option<Finding> =
        analysis.failures.iter().filter(|failure| !failure.is_echo()).fold(None, |found, failure| {
            match about_segment(failure) {
                Some(space) => better(found, reported(analysis, failure, space)),
                None => found,
            }
        });
    found.map_or(Judgement::Nothing, Judgement::one)
}

/// It is about a segment of NCCL's; whether for lack of room.
fn about_segment(failure: &Failure) -> Option<bool> {
    let text = failure.text();
    let nccl = text.contains("NCCL") || text.contains("nccl");
    let segment = text.contains("/nccl-")
        || [
            "creating shared memory segment",
            "attaching to shared memory segment",
            "failed to extend /dev/shm/",
        ]
        .iter()
        .any(|words| text.contains(words));
    let refused = ["No space left", "No such file", "posix_fallocate", "failed to extend", "Error while"];
    (nccl && segment && refused.iter().any(|words| text.contains(words)))
        .then(|| !text.contains("No such file") && !text.contains("attaching"))
}

fn reported(analysis: &Analysis, failure: &Failure, space: bool) -> Finding {
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    if let Some((used, size, at, source)) = sharing::shm(analysis, failure) {
        let whole = size.map_or("no limit".to_owned(), evidence::bytes);
        let sentence = if space {
            format!(
                "/dev/shm had {} of {whole} in use; NCCL's next segment did not fit.",
                evidence::bytes(used)
            )
        } else {
            format!("/dev/shm had {} of {whole} in use: it had room for the segment.", evidence::bytes(used))
        };
        let met = evidence::number("/dev/shm in use", used, "bytes", source, at, sentence);
        evidence.push(size.map_or(met.clone(), |size| evidence::with_limit(met, size)));
    }
    let bytes = sharing::shm(analysis, failure).and_then(|(_, size, _, _)| size);
    let context = RemedyContext { bytes, ..analysis.remedy_context(Some(failure)) };
    finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &context)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gib = (context.bytes.unwrap_or(0).saturating_mul(4) >> 30).max(4);
    vec![
        Fix::new(
            "In a container: give all ranks of the node one larger /dev/shm",
            format!("docker run --gpus all --shm-size={gib}g IMAGE"),
        )
        .only(Place::Container),
        Fix::new(
            "Remove the segments of crashed runs",
            "rm -f /dev/shm/nccl-*  # while no NCCL job runs on this node",
        ),
        Fix::new("Or run NCCL without shared memory (slower)", "export NCCL_SHM_DISABLE=1"),
    ]
}
