//! Does a run show memory-high-throttle? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::CgroupHistory;
use crate::policy::given::US_PER_S;
use crate::policy::limits::NEAR_LIMIT;
use crate::policy::machine::{HIGH_HITS, HIGH_WAITED};
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Fix, Measured, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let slowed =
        analysis.timeline.cgroups().filter_map(|group| Some((group, line(group)?))).find(|(group, high)| {
            let hits = group.high_hits.growth().unwrap_or(0);
            let max_met = group.limit_hits.growth().unwrap_or(0) > 0;
            let stays = group.working_set.peak().is_some_and(|(_, peak)| peak >= *high as f64 * NEAR_LIMIT);
            hits >= HIGH_HITS && stays && !max_met
        });
    let Some((group, high)) = slowed else { return Judgement::Nothing };
    let hits = group.high_hits.growth().unwrap_or(0);
    let from = group.high_hits.moved.map_or(group.last_at, |(before, _)| before);
    let stalled = stalled(analysis, from, group.last_at);
    if stalled.is_some_and(|share| share < HIGH_WAITED) {
        return Judgement::Nothing;
    }
    let (at, peak) = group.working_set.peak().unwrap_or_default();
    let sentence = format!(
        "The kernel throttled the cgroup {} {}: it held {}, above memory.high of {}.",
        group.path(),
        evidence::plural(hits, "time", "times"),
        evidence::bytes(peak as u64),
        evidence::bytes(high)
    );
    let source = evidence::Source::Cgroup("memory.events", group.path().to_owned());
    let met = evidence::number("times slowed down", hits, "times", source, at, sentence);
    let mut evidence = vec![met];
    if let Some(share) = stalled {
        let percent = (share * 100.0).round() as u64;
        let sentence = format!(
            "Processes waited for memory {percent} % of the time from {} after the start.",
            evidence::seconds(from.seconds())
        );
        evidence.push(evidence::number(
            "time waited",
            percent,
            "percent",
            "/proc/pressure/memory",
            at,
            sentence,
        ));
    }
    let context = RemedyContext { path: Some(group.path().to_owned()), ..analysis.remedy_context(None) };
    let mut finding = of_job(&RULE, Severity::Warning, Proof::KernelSaid, evidence, &context);
    finding.at = Some(from);
    Judgement::one(finding)
}

fn line(group: &CgroupHistory) -> Option<u64> {
    match &group.last.memory {
        Measured::Known(memory) => memory.high.at(),
        Measured::Missing(_) => group.first.memory.as_known()?.high.at(),
    }
}

fn stalled(analysis: &Analysis, from: At, to: At) -> Option<f64> {
    let stalled = &analysis.timeline.host().waited;
    let grown = stalled.at_or_before(to)?.1 - stalled.at_or_before(from).or_else(|| stalled.first())?.1;
    (to > from).then(|| grown / US_PER_S / to.since(from))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if context.is_root() {
        let path = context.path.as_deref().unwrap_or("/GROUP").trim_end_matches('/').to_owned();
        fixes.push(Fix::new(
            "Remove memory.high, and keep memory.max",
            format!("echo max > /sys/fs/cgroup{path}/memory.high"),
        ));
    }
    fixes.push(Fix::new(
        "Under systemd: the same for your own unit",
        "systemctl --user set-property UNIT MemoryHigh=infinity",
    ));
    fixes.push(sharing::fewer_batches(context));
    fixes
}
