//! Does a run show hugetlb-reserved? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Symptom;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{HUGE_LEFT, HUGE_MISSED, HUGE_NOTED};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let host = analysis.timeline.host();
    let (Some(memory), Some(kernel)) = (host.last.memory.known(), host.last.kernel.known()) else {
        return Judgement::Nothing;
    };
    let (total, unused) = (memory.total.0, kernel.hugetlb_free.0);
    let share = unused as f64 / total.max(1) as f64;
    let failed = ran_out(analysis, total);
    let severity = match failed {
        Some(_) if share >= HUGE_MISSED => Severity::Fatal,
        _ if share >= HUGE_NOTED => Severity::Note,
        _ => return Judgement::Nothing,
    };
    let severity = if analysis.ended_well() { severity.min(Severity::Warning) } else { severity };
    let at = failed.map_or(analysis.timeline.end(), |(at, _)| at);
    let sentence = format!(
        "{} of {} of memory are reserved for huge pages that no process uses ({} reserved in all).",
        evidence::bytes(unused),
        evidence::bytes(total),
        evidence::bytes(kernel.hugetlb.0)
    );
    let met = evidence::number("unused hugetlb pages", unused, "bytes", "/proc/meminfo", at, sentence);
    let mut evidence = vec![evidence::with_limit(met, total)];
    if let Some((at, available)) = failed {
        let sentence = format!(
            "The machine had {} available when the job ran out of memory.",
            evidence::bytes(available as u64)
        );
        evidence.push(evidence::number(
            "available memory",
            available as u64,
            "bytes",
            "/proc/meminfo",
            at,
            sentence,
        ));
    }
    let mut finding = of_job(&RULE, severity, Proof::Estimated, evidence, &analysis.remedy_context(None));
    finding.at = Some(at);
    Judgement::one(finding)
}

/// When the job lacked memory of the machine, and how much that had left.
pub(super) fn ran_out(analysis: &Analysis, total: u64) -> Option<(At, f64)> {
    let available = |at: At| analysis.timeline.host().available.lowest_before(at).map(|(_, bytes)| bytes);
    let killed = analysis.oom_victims.iter().find(|victim| victim.host).map(|victim| victim.at);
    let refused = analysis
        .failures
        .iter()
        .find(|failure| failure.symptom() == Symptom::NoMemory)
        .map(|failure| failure.at);
    match (killed, refused) {
        (Some(at), _) => Some((at, available(at)?)),
        (None, Some(at)) => Some((at, available(at)?)).filter(|(_, left)| *left <= total as f64 * HUGE_LEFT),
        (None, None) => None,
    }
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if context.is_root() {
        fixes.push(Fix::new(
            "Release the unused pages (check first who reserved them)",
            "sysctl -w vm.nr_hugepages=0",
        ));
    }
    fixes.push(Fix::new("Show the reservation", "grep -i -e huge /proc/meminfo"));
    fixes
}
