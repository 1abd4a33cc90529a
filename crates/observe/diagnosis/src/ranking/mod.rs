//! The verdict: all rules asked, findings ranked, and how COMMAND ended.
//!
//! First the most severe, with what comes of it behind it (each finding names what it explains), then the earliest, then the
//! one of the best proof; what is still equal goes by id, so that one recording always gives one answer. A cause
//! that could not be told is listed only where no fatal one was at least supported.

mod gathers;
mod growths;
mod kills;
mod refusals;
mod surroundings;

use crate::analysis::oom::{cut_short, KillSign, Victim};
use crate::analysis::Analysis;
use crate::causes::causes;
use crate::history::{BudgetStep, Timeline};
use crate::policy::given::{NS_PER_S, SIGKILL};
use crate::policy::sizes::NOT_THE_WHOLE_PERCENT;
use crate::rule::Judgement;
use std::cmp::Ordering;
use ullage_model::{
    BudgetUse, Cost, EndedBy, Finding, Growth, Outcome, OutcomeKind, ProcessRef, RunFacts, Severity, Status,
    Undetermined, Verdict,
};

/// Judges a run by every rule.
pub fn diagnose(run: &RunFacts, timeline: &Timeline) -> Verdict {
    let analysis = Analysis::of(run, timeline);
    let mut findings = Vec::new();
    let mut undetermined = Vec::new();
    for cause in causes() {
        match cause.judge(&analysis) {
            Judgement::Found(found) => findings.extend(found),
            Judgement::Nothing => {}
            Judgement::Undetermined { because } => {
                undetermined.push(Undetermined { cause: cause.id.into(), because });
            }
        }
    }
    crate::causes::yield_to_others(&analysis, &mut findings);
    crate::ranking::gathers::explain(&analysis, &mut findings);
    crate::ranking::kills::explain(&analysis, &mut findings);
    crate::ranking::refusals::explain(&analysis, &mut findings);
    crate::ranking::growths::explain(&analysis, &mut findings);
    crate::ranking::surroundings::fit(&analysis, &mut findings);
    let findings = in_order(findings);
    let explained = findings
        .iter()
        .any(|finding| finding.severity == Severity::Fatal && finding.status() >= Status::Supported);
    if explained {
        undetermined.clear();
    }
    let outcome = outcome(&analysis);
    let well = outcome.kind == OutcomeKind::Exit && outcome.code == Some(0);
    let healthy = well && findings.iter().all(|finding| finding.severity == Severity::Note);
    let mut not_seen = run.not_seen.clone();
    for sentence in timeline.not_seen() {
        if !not_seen.contains(sentence) {
            not_seen.push(sentence.clone());
        }
    }
    let cost = run.cost;
    let limits = analysis.limits.to_vec();
    let mut growth = analysis.growth.as_ref().map(|(growth, _)| growth.clone());
    if let Some(growth) = &mut growth {
        growth.explained_by = explained_by(growth, &findings);
    }
    let first_failure = crate::analysis::first_failure::first_failure(&analysis);
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
        segments: crate::analysis::segments::summary(run, timeline),
        undetermined,
        not_seen,
        fixes: fixes(run, timeline),
        cost_cpu_share: cost.and_then(|cost| share(cost, duration_s)),
        cost_peak_rss: cost.map(|cost| cost.peak_rss.0),
        duration_s,
        marks: timeline.marks().cloned().collect(),
        attempts: timeline.attempts().to_vec(),
    }
}

/// The first finding of the process that grew which is about growth of private memory.
fn explained_by(growth: &Growth, findings: &[Finding]) -> Option<String> {
    let of = |process: &Option<ProcessRef>| process.as_ref().map(|process| process.id);
    let explains = |finding: &&Finding| {
        crate::causes::explains_growth(&finding.cause) && of(&finding.process) == of(&growth.process)
    };
    findings.iter().find(explains).map(|finding| finding.cause.clone())
}

/// The remedies that were on, and how much went through the arena.
fn fixes(run: &RunFacts, timeline: &Timeline) -> Vec<String> {
    let mut fixes: Vec<String> = run.remedies.iter().map(ToString::to_string).collect();
    let (through, past) = timeline.arena;
    let whole = through + past;
    if whole > 0.0 && whole.is_finite() {
        let share = match through / whole {
            // Not rounded to 100 where something went past.
            share if past > 0.0 => format!("{:.1} %", (100.0 * share).min(NOT_THE_WHOLE_PERCENT)),
            share => crate::evidence::share(share),
        };
        let whole = crate::evidence::bytes(whole as u64);
        fixes
            .push(format!("{share} of the {whole} of loaders' messages and datasets went through the arena"));
    } else if timeline.arena_reported && asked_for_arena(run) {
        fixes.push("arena: nothing travelled; no loader with workers handed a batch over in it".into());
    }
    fixes
}

fn asked_for_arena(run: &RunFacts) -> bool {
    run.remedies.iter().any(|remedy| remedy.applied && ["arena", "zygote"].contains(&remedy.name.as_str()))
}

fn share(cost: Cost, duration_s: Option<f64>) -> Option<f64> {
    duration_s.filter(|seconds| *seconds > 0.0).map(|seconds| cost.cpu_ns as f64 / NS_PER_S / seconds)
}

/// Findings as they are reported: by rank, but that what comes of another one stands right behind it, unless it is more
/// severe. A cause and what comes of it stand where the first of them would.
pub(crate) fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(rank);
    let before = |a: &Finding, b: &Finding| a.severity >= b.severity && a.is_cause_of(b);
    let mut order: Vec<usize> = Vec::new();
    for at in 0..findings.len() {
        let mut first = vec![at];
        let cause = |of: usize, known: &[usize]| {
            let open = |one: &usize| !order.contains(one) && !known.contains(one);
            (0..findings.len()).filter(open).find(|one| before(&findings[*one], &findings[of]))
        };
        while let Some(one) = first.last().and_then(|last| cause(*last, &first)) {
            first.push(one);
        }
        // A cause, and what comes of it, before what comes of that.
        let mut next: Vec<usize> = first;
        while let Some(one) = next.pop() {
            if order.contains(&one) {
                continue;
            }
            order.push(one);
            let come = |other: &usize| !order.contains(other) && before(&findings[one], &findings[*other]);
            let behind: Vec<usize> = (0..findings.len()).rev().filter(come).collect();
            next.extend(behind);
        }
    }
    let mut left: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| left[at].take()).collect()
}

/// The order of findings of which none comes of another.
fn rank(a: &Finding, b: &Finding) -> Ordering {
    let at = |finding: &Finding| finding.at.map_or(u64::MAX, |at| at.0);
    b.severity
        .cmp(&a.severity)
        .then_with(|| at(a).cmp(&at(b)))
        .then_with(|| b.status().cmp(&a.status()))
        .then_with(|| b.proof.cmp(&a.proof))
        .then_with(|| a.cause.cmp(&b.cause))
}

/// How COMMAND ended, with the killer where the kernel's own words or counters prove it.
fn outcome(analysis: &Analysis) -> Outcome {
    let plain = analysis.plain_outcome();
    if plain.kind == OutcomeKind::Budget {
        let steps = analysis.timeline.budget();
        // The kernel holds the limit of a cgroup that ullage made; it kills without a grace.
        let by_kernel = steps.iter().any(|step| step.action == "kernel-kill");
        let by = if by_kernel { Some(EndedBy::CgroupLimit) } else { plain.by };
        return Outcome { budget: budget_use(steps), by, ..plain };
    }
    let by_sigkill = plain.kind == OutcomeKind::Signal && plain.signal == Some(SIGKILL);
    let gone = cut_short(analysis);
    if !by_sigkill && !gone {
        return plain;
    }
    let killed = |victim: &&Victim| {
        let process = victim.process.map(|process| process.id);
        victim.sign != KillSign::AtLimit && (process == analysis.main() || (gone && process.is_none()))
    };
    let by = |of: fn(&Victim) -> bool| analysis.oom_victims.iter().filter(killed).any(of);
    let by = match (by(|victim| victim.of_cgroup()), by(|victim| victim.host)) {
        (true, _) => EndedBy::CgroupLimit,
        (_, true) => EndedBy::HostMemory,
        _ if gone => return Outcome::of(OutcomeKind::Unknown),
        _ => return plain,
    };
    Outcome { signal: Some(SIGKILL), by: Some(by), ..Outcome::of(OutcomeKind::OomKill) }
}

/// The most that any step of the budget counted.
fn budget_use(steps: &[BudgetStep]) -> Option<BudgetUse> {
    let most = steps.iter().max_by_key(|step| step.used)?;
    Some(BudgetUse { budget: most.budget, used: most.used })
}
