//! Does a run show leaked-semaphore-warning? What that is, and how it is told apart, says page.md.

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
        "{} was ended by signal {signal}, so that its resource tracker (pid {}) removes what it left; a warning of leaked semaphores or shared memory says that, and no more.",
        evidence::capital(&evidence::describe(owner)),
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
        Fix::new("See what killed it: the other findings of this run", "ullage report"),
        Fix::new(
            "A segment of one's own: remove it in any case",
            "try:\n    ...\nfinally:\n    segment.close()\n    segment.unlink()",
        ),
    ]
}
