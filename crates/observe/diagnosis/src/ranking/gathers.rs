//! What did ranks gather when memory ran out? A list that grew only to be gathered from all of them is no growth of its own: in the
//! gather it is there as bytes and as objects of every rank, several times over, and that is why the limit was met.

use crate::analysis::Analysis;
use crate::causes::TAKEN;
use crate::policy::sizes::MOST;
use crate::rule::finding::is_killed_at_work;
use crate::rule::retainers::HELD_BY;
use ullage_model::{Finding, Proof, Severity};

/// Gathers of objects.
const GATHER: &str = "object-collectives-pickle";

/// Lets the gather explain what ranks had gathered for it.
pub(crate) fn explain(analysis: &Analysis, findings: &mut [Finding]) {
    let is_sent = |finding: &&Finding| was_sent(analysis, finding).unwrap_or(false);
    let Some(gather) =
        findings.iter().position(|finding| is_gather(finding) && finding.proof == Proof::SeenInside)
    else {
        return;
    };
    // Findings of one cause come of it together, or none does.
    let of_others: Vec<&str> =
        findings.iter().filter(|one| !is_sent(one)).map(|one| one.cause.as_str()).collect();
    let sent = findings.iter().filter(is_sent).map(|finding| finding.cause.clone());
    let sent: Vec<String> = sent.filter(|cause| !of_others.contains(&cause.as_str())).collect();
    let gather = &mut findings[gather];
    for cause in sent {
        gather.beyond_its_process = true;
        if !gather.explains.contains(&cause) {
            gather.explains.push(cause);
        }
    }
}

/// The kernel killed while ranks gathered objects: the agent saw one in the midst of it, or had no time to look since it began.
pub(crate) fn is_gather(finding: &Finding) -> bool {
    let of_ranks = || finding.evidence.iter().any(|evidence| evidence.what == TAKEN);
    finding.cause == GATHER
        && finding.severity > Severity::Note
        && [Proof::SeenInside, Proof::InPart].contains(&finding.proof)
        && (of_ranks() || is_killed_at_work(finding))
}

/// It is of a container that is most of the object that its rank sent last.
fn was_sent(analysis: &Analysis, finding: &Finding) -> Option<bool> {
    let process = analysis.timeline.process(finding.process.as_ref()?.id)?;
    let name = finding.evidence.first()?.what.strip_prefix(HELD_BY)?;
    let (_, census) = process.censuses.last()?;
    let held = census.retainers.iter().find(|retainer| retainer.name == name && !retainer.deep)?;
    let (_, sent) = process.torch_counters.sent.last()?;
    let object = sent.object?.bytes();
    Some(held.bytes as f64 >= MOST * object as f64 && held.more_bytes <= object)
}
