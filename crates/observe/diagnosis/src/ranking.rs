//! The verdict: all rules asked, findings ranked, and how COMMAND ended.
//!
//! First the most severe, then the earliest in the causal chain, then the best known, then the most certain;
//! what is still equal goes by id, so that one recording always gives one answer. A cause that could not be
//! told is listed only where no fatal one was at least supported.

use crate::oom::cut_short;
use crate::rule::{rules, Case, Judgement};
use crate::timeline::{BudgetStep, Timeline};
use std::cmp::Ordering;
use ullage_model::{
    BudgetUse, Cost, Finding, Outcome, OutcomeKind, RunFacts, Severity, Status, Undetermined, Verdict,
};

/// Judges a run by every rule.
pub fn diagnose(run: &RunFacts, timeline: &Timeline) -> Verdict {
    let case = Case::new(run, timeline);
    let mut findings = Vec::new();
    let mut undetermined = Vec::new();
    for rule in rules() {
        match (rule.judge)(&case) {
            Judgement::Found(found) => findings.extend(found),
            Judgement::Nothing => {}
            Judgement::CannotTell { because } => {
                undetermined.push(Undetermined { cause: rule.id.into(), because });
            }
        }
    }
    findings.sort_by(rank);
    let explained = findings
        .iter()
        .any(|finding| finding.severity == Severity::Fatal && finding.status >= Status::Supported);
    if explained {
        undetermined.clear();
    }
    let outcome = outcome(&case, &findings);
    let well = outcome.kind == OutcomeKind::Exit && outcome.code == Some(0);
    let healthy = well && findings.iter().all(|finding| finding.severity == Severity::Note);
    let mut not_seen = run.not_seen.clone();
    for sentence in timeline.not_seen() {
        if !not_seen.contains(sentence) {
            not_seen.push(sentence.clone());
        }
    }
    let cost = run.cost;
    let limits = case.limits().to_vec();
    let growth = case.growth().map(|(growth, _)| growth.clone());
    let first_failure = crate::first::first_failure(&case);
    let duration_s = run.duration_s.or_else(|| (timeline.samples() > 0).then(|| timeline.end().seconds()));
    Verdict {
        run: run.run.clone(),
        command: run.command.clone(),
        outcome,
        healthy,
        findings,
        limits,
        memory: timeline.memory(),
        growth,
        first_failure,
        segments: crate::segments::summary(run, timeline),
        undetermined,
        not_seen,
        fixes: fixes(run, timeline),
        cost_cpu_share: cost.and_then(|cost| share(cost, duration_s)),
        cost_peak_rss: cost.map(|cost| cost.peak_rss.0),
        duration_s,
    }
}

/// The remedies that were on, and how much went through the arena.
fn fixes(run: &RunFacts, timeline: &Timeline) -> Vec<String> {
    let mut fixes = run.fixes.clone();
    let (through, past) = timeline.arena;
    if through + past > 0.0 {
        let share = 100.0 * through / (through + past);
        let whole = crate::say::bytes((through + past) as u64);
        // Not rounded to 100 where something went past.
        let share = if past > 0.0 { share.min(99.9) } else { share };
        fixes.push(format!(
            "{share:.1} % of the {whole} of loaders' messages and datasets went through the arena"
        ));
    }
    fixes
}

fn share(cost: Cost, duration_s: Option<f64>) -> Option<f64> {
    duration_s.filter(|seconds| *seconds > 0.0).map(|seconds| cost.cpu_ns as f64 / 1e9 / seconds)
}

/// The order in which findings are told.
pub fn rank(a: &Finding, b: &Finding) -> Ordering {
    let at = |finding: &Finding| finding.at.map_or(u64::MAX, |at| at.0);
    b.severity
        .cmp(&a.severity)
        .then_with(|| at(a).cmp(&at(b)))
        .then_with(|| b.status.cmp(&a.status))
        .then_with(|| b.confidence.total_cmp(&a.confidence))
        .then_with(|| a.cause.cmp(&b.cause))
}

/// How COMMAND ended, with the killer where the kernel's own words or counters prove it.
fn outcome(case: &Case, findings: &[Finding]) -> Outcome {
    let plain = case.plain_outcome();
    if plain.kind == OutcomeKind::Budget {
        return Outcome { budget: budget_use(case.timeline.budget()), ..plain };
    }
    let by_sigkill = plain.kind == OutcomeKind::Signal && plain.signal == Some(9);
    let gone = cut_short(case);
    if !by_sigkill && !gone {
        return plain;
    }
    let established = |cause: &str| {
        findings.iter().any(|finding| {
            let main = finding.process.as_ref().map(|process| process.id);
            finding.cause == cause
                && finding.status == Status::Established
                && (main == case.main() || (gone && main.is_none()))
        })
    };
    let by = match (established("memcg-oom-kill"), established("host-oom-kill")) {
        (true, _) => "kernel memcg",
        (_, true) => "kernel oom",
        _ if gone => return Outcome::of(OutcomeKind::Unknown),
        _ => return plain,
    };
    Outcome { signal: Some(9), by: Some(by.into()), ..Outcome::of(OutcomeKind::OomKill) }
}

/// The most that any step of the budget counted.
fn budget_use(steps: &[BudgetStep]) -> Option<BudgetUse> {
    let most = steps.iter().max_by_key(|step| step.used)?;
    Some(BudgetUse { budget: most.budget, used: most.used })
}
