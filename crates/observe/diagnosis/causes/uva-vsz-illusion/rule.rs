//! Does a run show uva-vsz-illusion? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{VIRTUAL_OF_RESIDENT, VIRTUAL_TIMES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Limit, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let Some(machine) = analysis.machine().memory_total.known() else { return Judgement::Nothing };
    let strict = analysis.machine().overcommit_memory.known() == Some(2);
    let huge = analysis.timeline.processes().filter_map(|process| {
        let (at, memory) = process.memory?;
        let limited = process.limits.is_some_and(|limits| limits.address_space != Limit::Unlimited);
        // ullage's own arena is no finding.
        let own = analysis.timeline.arena_reserved;
        let (virt, resident) = (memory.virtual_size.0.saturating_sub(own), memory.resident().0.max(1));
        let much = virt >= machine.0.saturating_mul(VIRTUAL_TIMES) && virt / VIRTUAL_OF_RESIDENT >= resident;
        (much && !limited && !strict).then_some((virt, resident, at, process))
    });
    let Some((virt, resident, at, process)) = huge.max_by_key(|(virt, _, _, process)| (*virt, process.id))
    else {
        return Judgement::Nothing;
    };
    let sentence = format!(
        "{} has {} of address space but {} in memory; no limit on addresses applies here.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(virt),
        evidence::bytes(resident)
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    let evidence = evidence::number("address space", virt, "bytes", source, at, sentence);
    let known = Proof::SeenOutside;
    let mut finding = of_job(&RULE, Severity::Note, known, vec![evidence], &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(process));
    Judgement::one(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![Fix::new(
        "Nothing to do: watch memory in use instead",
        "grep -E 'RssAnon|RssFile|RssShmem' /proc/PID/status",
    )]
}
