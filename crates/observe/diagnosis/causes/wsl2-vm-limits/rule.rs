//! Does a run show wsl2-vm-limits? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let kernel = analysis.machine().kernel.to_lowercase();
    let Some(total) = analysis.machine().memory_total.known().filter(|_| kernel.contains("microsoft")) else {
        return Judgement::Nothing;
    };
    let killed = analysis.oom_victims.iter().find(|victim| victim.host);
    let pinned = analysis.failures.iter().find(|failure| {
        let text = failure.text();
        let host_side = ["cudaHostAlloc", "cudaMallocHost", "cudaHostRegister", "CachingHostAllocator"];
        host_side.iter().any(|call| text.contains(call))
            || (text.contains("CUDA error: out of memory") && failure.passes("pin_memory"))
    });
    let at = match (killed, pinned) {
        (Some(victim), _) => victim.at,
        (None, Some(failure)) => failure.at,
        (None, None) => return Judgement::Nothing,
    };
    let sentence = format!(
        "WSL2 gives its virtual machine {}, by default half of the computer's memory (kernel {}).",
        evidence::bytes(total.0),
        analysis.machine().kernel
    );
    let mut evidence = vec![evidence::number(
        "memory of the virtual machine",
        total.0,
        "bytes",
        "/proc/meminfo",
        at,
        sentence,
    )];
    evidence.extend(pinned.and_then(|failure| sharing::exception_sentence(failure)));
    let severity = if analysis.ended_well() { Severity::Warning } else { Severity::Fatal };
    let mut finding = of_job(&RULE, severity, Proof::Estimated, evidence, &analysis.remedy_context(pinned));
    finding.process = killed
        .and_then(|victim| victim.process)
        .or(pinned.and_then(|failure| failure.process))
        .map(evidence::process_ref);
    finding.at = Some(at);
    Judgement::one(finding)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "In Windows, in %UserProfile%\\.wslconfig; then `wsl --shutdown`",
            "[wsl2]\nmemory=48GB\nswap=16GB\n[experimental]\nautoMemoryReclaim=gradual",
        ),
        Fix::new("Pin no memory", context.loader("pin_memory=False")).only(Place::Loader),
    ]
}
