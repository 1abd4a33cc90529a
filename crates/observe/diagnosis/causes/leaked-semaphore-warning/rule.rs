//! Does a run show leaked-semaphore-warning? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Ending, Fix, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let trackers = analysis.timeline.processes().filter(|process| process.role == Role::ResourceTracker);
    let owner = trackers
        .filter_map(|tracker| {
            let owner = analysis.timeline.by_pid(tracker.born_to())?;
            let (at, ending, _) = owner.ended?;
            let Ending::Signaled(signal) = ending else { return None };
            (tracker.last_seen >= owner.last_seen).then_some((at, owner, signal, tracker))
        })
        .min_by_key(|(at, owner, _, _)| (*at, owner.id));
    let Some((at, owner, signal, tracker)) = owner else { return Judgement::Nothing };
    let sentence = format!(
        "{} was killed by {}; the 'leaked semaphore' warning only reports its cleanup (pid {}).",
        evidence::capital(&evidence::describe(owner)),
        evidence::signal_name(signal),
        tracker.id.pid
    );
    let evidence = evidence::text(
        "end of the owner",
        &format!("signal {signal}"),
        "how the process ended",
        Some(at),
        sentence,
    );
    let known = Proof::Estimated;
    let mut finding = of_job(&RULE, Severity::Note, known, vec![evidence], &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(owner));
    Judgement::one(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Read in this run's other findings what killed it", "ullage report"),
        Fix::new(
            "Your own segments: remove them in a finally block",
            "try:\n    ...\nfinally:\n    segment.close()\n    segment.unlink()",
        ),
    ]
}
