//! # leaked-semaphore-warning
//!
//! ## What it does
//! Says where the resource tracker's warning of leaked semaphores or shared memory comes from: its owner was killed.
//!
//! ## Why it happens
//! Python's resource tracker is a small process beside the job that knows the names of its semaphores and segments. When
//! their owner ends without having removed them, it removes them and says so. That is a symptom: the reason is whatever
//! killed the owner.
//!
//! ## How it is told apart
//! A process that had a resource tracker was ended by a signal, and the tracker outlived it. Where every owner ended by
//! itself with 0, such a warning is harmless and nothing is said.
//!
//! ## Known problems
//! Whether the tracker printed anything is not seen: it prints only where a name was left.
//!
//! ## Example
//! `UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown`
//!
//! ## Remedy
//! Look for what killed the process; the warning needs no cure.
//!
//! ## References
//! - <https://docs.python.org/3/library/multiprocessing.shared_memory.html>

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Ending, Fix, Role, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "leaked-semaphore-warning",
    title: "resource_tracker 'leaked semaphore/shared_memory objects' is a symptom, not a cause",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

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
    let known = (Status::Supported, 0.8);
    let mut finding = of_job(&RULE, Severity::Note, known, vec![evidence], &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(owner));
    Judgement::one(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "See what killed it: the other findings of this run".into(),
            command: "ullage report".into(),
            automatic: None,
        },
        Fix {
            title: "A segment of one's own: remove it in any case".into(),
            command: "try:\n    ...\nfinally:\n    segment.close()\n    segment.unlink()".into(),
            automatic: None,
        },
    ]
}
