//! Does a run show numa-membind-oom? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{logged, of_victim};
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Fix};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let Some(victim) = analysis.oom_victims.iter().find(|victim| victim.bound) else {
        return Judgement::Nothing;
    };
    let log = logged(victim, |line| {
        format!(
            "The kernel killed {} (pid {}): its memory nodes were full ({} anonymous, {} shared).",
            line.task,
            line.pid,
            evidence::bytes(line.anonymous),
            evidence::bytes(line.shared)
        )
    });
    let mut evidence: Vec<Evidence> = log.into_iter().collect();
    if let Some((at, available)) = analysis.timeline.host().available.at_or_before(victim.at) {
        let sentence = format!(
            "The whole machine had {} available, {} before.",
            evidence::bytes(available as u64),
            evidence::seconds(victim.at.since(at))
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
    Judgement::one(of_victim(analysis, &RULE, victim, evidence, &analysis.remedy_context(None)))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let command = context.typed();
    vec![
        Fix::new(
            "Prefer the node, and use others when it is full",
            format!("numactl --preferred=0 {command}"),
        ),
        Fix::new("Or spread pages over all nodes", format!("numactl --interleave=all {command}")),
    ]
}
