//! What did ranks gather when memory ran out? A list that grew only to be gathered from all of them is no growth of its own: in the
//! gather it is there as bytes and as objects of every rank, several times over, and that is why the limit was met.

use crate::analysis::Analysis;
use crate::causes::{explains_growth, TAKEN};
use ullage_model::{EvidenceValue, Finding, ProcessId, Severity, Status};

/// Lets the gather explain what a rank had gathered for it.
pub(crate) fn explain(analysis: &Analysis, findings: &mut [Finding]) {
    let sent = |finding: &Finding| {
        let process = finding.process.as_ref()?.id;
        (explains_growth(&finding.cause) && holds_what_was_sent(analysis, process, finding))
            .then(|| finding.cause.clone())
    };
    let sent: Vec<String> = findings.iter().filter_map(sent).collect();
    let known =
        |finding: &&mut Finding| finding.severity > Severity::Note && finding.status() >= Status::Supported;
    let Some(gather) = findings.iter_mut().filter(known).find(|finding| is_gather(finding)) else { return };
    for cause in sent.into_iter().filter(|cause| *cause != gather.cause) {
        gather.beyond_its_process = true;
        if !gather.explains.contains(&cause) {
            gather.explains.push(cause);
        }
    }
}

/// The kernel killed while ranks gathered objects, and what all of them took is known.
pub(crate) fn is_gather(finding: &Finding) -> bool {
    finding.evidence.iter().any(|evidence| evidence.what == TAKEN)
}

/// Its rank sent an object to the others that is no less than what it holds.
fn holds_what_was_sent(analysis: &Analysis, process: ProcessId, finding: &Finding) -> bool {
    let sent = analysis.timeline.process(process).and_then(|process| process.torch_counters.sent.last());
    let object = sent.and_then(|(_, what)| what.object).map_or(0, |weight| weight.bytes());
    let held = finding.evidence.first().map_or(0.0, |first| match first.value {
        EvidenceValue::Number(bytes, _) => bytes,
        _ => 0.0,
    });
    held > 0.0 && object as f64 >= held
}
