//! What lies behind a refusal? A limit on tasks or descriptors is how a job failed. What piled up until it was full is why: it
//! explains the refusal, weighs as much, and stands before it.

use crate::analysis::Analysis;
use crate::policy::sizes::MOST;
use crate::rule::descriptors::lead_to_children;
use ullage_model::{Evidence, EvidenceValue, Finding, Limit, ProcessRef, Unit};

/// What piles up, each with the number of it as its first evidence.
const PILES: [&str; 3] = ["zombie-children", "threads-per-task", "worker-processes-accumulate"];
/// Limits on tasks: a thread, a process and a zombie are one each.
const OF_TASKS: [&str; 2] = ["pids-limit-cgroup", "nproc-rlimit"];
const OF_DESCRIPTORS: &str = "fd-leak-files-sockets";

/// Lets the largest pile that was most of a limit explain the refusals of more.
pub(crate) fn explain(analysis: &Analysis, findings: &mut [Finding]) {
    for refused in 0..findings.len() {
        let filled = |pile: &usize| fills(analysis, &findings[*pile], &findings[refused]);
        let piles = (0..findings.len()).filter(|at| PILES.contains(&findings[*at].cause.as_str()));
        let most =
            piles.filter(filled).max_by(|a, b| number(&findings[*a]).total_cmp(&number(&findings[*b])));
        let Some(pile) = most else { continue };
        let (cause, severity) = (findings[refused].cause.clone(), findings[refused].severity);
        let met = findings[refused].evidence.iter().find(|evidence| evidence.limit.is_some()).cloned();
        let pile = &mut findings[pile];
        pile.severity = pile.severity.max(severity);
        pile.evidence.extend(met);
        pile.explains.push(cause);
        // Who met the limit need not be who filled it.
        pile.beyond_its_process = true;
    }
}

fn fills(analysis: &Analysis, pile: &Finding, refused: &Finding) -> bool {
    let id = |process: &Option<ProcessRef>| process.as_ref().map(|process| process.id);
    match refused.cause.as_str() {
        // Where the limit could not be read, nothing is most of it.
        cause if OF_TASKS.contains(&cause) => {
            limit(refused).is_some_and(|limit| number(pile) >= MOST * limit)
        }
        // Each child costs its parent a pipe, or several.
        OF_DESCRIPTORS => {
            let parent = id(&pile.process).filter(|parent| id(&refused.process) == Some(*parent));
            pile.cause == PILES[2] && parent.is_some_and(|parent| lead_to_children(analysis, parent))
        }
        _ => false,
    }
}

fn number(pile: &Finding) -> f64 {
    match pile.evidence.first().map(|evidence| &evidence.value) {
        Some(EvidenceValue::Number(number, Unit::Of(_))) => *number,
        _ => 0.0,
    }
}

fn limit(refused: &Finding) -> Option<f64> {
    let limit = |evidence: &Evidence| evidence.limit.and_then(Limit::at);
    refused.evidence.iter().find_map(limit).map(|limit| limit as f64)
}
