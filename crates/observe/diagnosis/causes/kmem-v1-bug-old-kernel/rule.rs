//! Does a run show kmem-v1-bug-old-kernel? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Symptom;
use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::CgroupHistory;
use crate::policy::machine::FREE_PART;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let kernel = &analysis.machine().kernel;
    if !kernel.starts_with("3.10.") {
        return Judgement::Nothing;
    }
    let killed = analysis.oom_victims.iter().find(|victim| victim.of_cgroup()).map(|victim| victim.at);
    let refused = analysis.failures.iter().find(|failure| {
        let mappings = failure.counts().and_then(|counts| counts.mappings.zip(counts.max_map_count));
        failure.symptom() == Symptom::NoMemory && mappings.is_none_or(|(mappings, max)| mappings < max / 2)
    });
    let Some(at) = killed.or(refused.map(|failure| failure.at)) else { return Judgement::Nothing };
    let far = own_groups(analysis).into_iter().find_map(|own| {
        let (group, limit) = limiting(analysis, own)?;
        far_below(group, limit, at).map(|(read, used)| (group, limit, read, used))
    });
    let free = analysis.timeline.host().available.at_or_before(at).map(|(_, available)| available);
    let total = analysis.machine().memory_total.known().map_or(0, |bytes| bytes.0);
    let (Some((group, limit, read, used)), true) =
        (far, free.is_some_and(|free| free > total as f64 / FREE_PART))
    else {
        return Judgement::Nothing;
    };
    let sentence = format!(
        "Kernel {kernel} refused memory although the cgroup {} held only {} of {}.",
        group.path(),
        evidence::bytes(used as u64),
        evidence::bytes(limit)
    );
    let source = evidence::Source::CgroupMemory(group.path().to_owned());
    let met = evidence::number("cgroup memory", used as u64, "bytes", source, read, sentence);
    let severity = if analysis.ended_well() { Severity::Warning } else { Severity::Fatal };
    let mut finding = of_job(
        &RULE,
        severity,
        Proof::Estimated,
        vec![evidence::with_limit(met, limit)],
        &analysis.remedy_context(None),
    );
    finding.at = Some(at);
    Judgement::one(finding)
}

fn far_below(group: &CgroupHistory, limit: u64, at: At) -> Option<(At, f64)> {
    let (read, used) = group.memory.highest_before(at)?;
    (used < limit as f64 / 2.0).then_some((read, used))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes =
        vec![Fix::new("Confirm it in the kernel log", "dmesg | grep 'SLUB: Unable to allocate memory'")];
    if context.is_root() {
        fixes.push(Fix::new(
            "From kernel 3.10.0-1062.4.1.el7: switch the accounting off and reboot",
            "grubby --update-kernel=ALL --args=cgroup.memory=nokmem && reboot",
        ));
    }
    fixes
}
