//! # gc-disabled-or-deferred
//!
//! ## What it does
//! Finds a Python that grows by objects which only refer to each other, because its garbage collector is switched off or waits
//! for very many new objects; says how many of the youngest objects are garbage, and how many bytes they keep.
//!
//! ## Why it happens
//! Training programs call `gc.disable()`, or raise its threshold, so that a collection does not interrupt a step. Objects in a
//! circle (a module with hooks that refer to it, a stored exception, a closure that refers to itself) then live until somebody
//! collects, and keep the tensors that they refer to. The collector counts objects, not bytes: a few hundred may keep gigabytes.
//!
//! ## How it is told apart
//! The process must grow to the end of the run. Nothing is collected for the answer: the agent counts the references between the
//! youngest objects, as the collector would; those that none comes to from outside are garbage. A cache or a list that grows
//! is referred to, and is none. It is established where garbage explains half of what came since the first look, and a warning
//! where the process grew by a quarter and by 96 MiB, since a program may mean to collect later.
//!
//! ## Known problems
//! The agent looks where growth of 24 MiB has gone on for a while, at a part of the youngest objects that lie next to each
//! other; what a circle of more than 4,000 objects keeps is not seen. A Python without the global lock is not looked into.
//!
//! ## Example
//! Memory rises by the same amount in each step, and falls to what it was after a call of `gc.collect()`.
//!
//! ## Remedy
//! Collect every so many steps, or let no circle come about.
//!
//! ## References
//! - <https://docs.python.org/3/library/gc.html>
//! - <https://github.com/pytorch/pytorch/issues/155778>

use crate::analysis::growth_class::rising;
use crate::analysis::retainers::is_much;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, EXPLAINS_MOST, GROWTH_BYTES};
use crate::rule::finding::of_job;
use crate::rule::retainers::{growth_sentence, unseen};
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Finding, Fix, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "gc-disabled-or-deferred",
    title: "Cyclic garbage is not collected (gc disabled, frozen, high threshold, other thread)",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let found: Vec<Finding> = rising.filter_map(|(process, rise)| finding(analysis, process, rise)).collect();
    if found.is_empty() {
        return unseen(analysis).map_or(Judgement::Nothing, Judgement::cannot_tell);
    }
    Judgement::Found(found)
}

fn finding(analysis: &Analysis, process: &ProcessHistory, rise: Rise) -> Option<Finding> {
    let (at, census) = process.censuses.last().filter(|(at, _)| at.seconds() >= rise.since)?;
    let garbage = census.garbage.as_ref()?;
    let share = garbage.bytes.min(census.grown) as f64 / census.grown.max(1) as f64;
    if share < EXPLAINS || garbage.bytes < GROWTH_BYTES / 2 {
        return None;
    }
    let known = if share >= EXPLAINS_MOST { (Status::Established, 0.9) } else { (Status::Supported, 0.65) };
    let severity = if is_much(process, &rise) { Severity::Warning } else { Severity::Note };
    let source = format!("agent in {}", process.id.pid);
    let waits = if census.collects {
        format!("collects only after {} new objects", evidence::count(census.collects_after))
    } else {
        "is switched off".into()
    };
    let state = format!(
        "Its garbage collector {waits}; {} objects came since its last collection.",
        evidence::count(garbage.objects)
    );
    let circles = format!(
        "Of {} of these, {} refer to each other only, and nothing else refers to them: it would free them. All such objects keep about {}, of {} that came: {:.0} %.",
        evidence::count(garbage.looked),
        evidence::count(garbage.garbage),
        evidence::bytes(garbage.bytes),
        evidence::bytes(census.grown),
        100.0 * share
    );
    let evidence = vec![
        growth_sentence(process, &rise),
        evidence::number(
            "objects since the last collection",
            garbage.objects,
            "objects",
            &source,
            *at,
            state,
        ),
        evidence::with_limit(
            evidence::number("memory kept by garbage", garbage.bytes, "bytes", &source, *at, circles),
            census.grown,
        ),
    ];
    let mut finding = of_job(&RULE, severity, known, evidence, &analysis.remedy_context_of(Some(process)));
    finding.process = Some(evidence::process_ref(process));
    finding.at = Some(At::from_seconds(rise.since));
    Some(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Collect every so many steps".into(),
            command: "if step % 100 == 0: gc.collect()".into(),
            automatic: None,
        },
        Fix {
            title: "Or leave the collector on, and freeze what is there when training begins".into(),
            command: "gc.collect(); gc.freeze(); gc.enable()".into(),
            automatic: None,
        },
    ]
}
