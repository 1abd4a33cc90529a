//! # python-314-incremental-gc
//!
//! ## What it does
//! Says so where a process runs a Python whose garbage collector finishes late.
//!
//! ## Why it happens
//! Python 3.14.0 to 3.14.4 collect incrementally: objects in cycles stay much longer, and programs that make many of them
//! need up to several times the memory. 3.14.5 went back to the collector of 3.13.
//!
//! ## How it is told apart
//! By the version that the agent reads in the process, and its private memory, which rose. Whether cycles are what fills it is
//! not seen: it is never more than a hypothesis, a warning only where the job ran out of memory, and a note else.
//!
//! ## Known problems
//! Needs the agent. A program that makes no cycles is not affected.
//!
//! ## Example
//! Killed for memory after nothing but an upgrade of Python.
//!
//! ## Remedy
//! Another patch release, or collect by hand.
//!
//! ## References
//! - <https://docs.python.org/3.14/whatsnew/changelog.html>
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::UNCOLLECTED_BYTES;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "python-314-incremental-gc",
    title: "Python 3.14.0-3.14.4 incremental GC uses much more memory",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    let rose = analysis.timeline.processes().filter(|process| affected(process)).filter_map(|process| {
        let ((_, first), (at, peak)) = (process.anonymous.first()?, process.anonymous.peak()?);
        (peak - first >= UNCOLLECTED_BYTES as f64).then_some((peak - first, at, process))
    });
    let Some((grown, at, process)) = rose.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Judgement::Nothing;
    };
    let version = process.python.as_deref().unwrap_or_default();
    let sentence = format!(
        "{} runs Python {version}, which collects cycles late; its anonymous memory rose by {}.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(grown as u64)
    );
    let source = format!("agent in {}", process.id.pid);
    let evidence = evidence::text("python", version, &source, Some(at), sentence);
    let severity = if analysis.ran_out { Severity::Warning } else { Severity::Note };
    let context = analysis.remedy_context_of(Some(process));
    let mut finding = of_job(&RULE, severity, (Status::Hypothesis, 0.3), vec![evidence], &context);
    finding.process = Some(evidence::process_ref(process));
    Judgement::one(finding)
}

fn affected(process: &ProcessHistory) -> bool {
    let patch = process.python.as_deref().and_then(|version| version.strip_prefix("3.14."));
    patch.and_then(|patch| patch.parse::<u32>().ok()).is_some_and(|patch| patch < 5)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Use Python 3.14.5 or newer, or 3.13".into(),
            command: "python3 -V".into(),
            automatic: None,
        },
        Fix {
            title: "Or collect by hand, which also shows whether it is this".into(),
            command: "if step % 100 == 0:\n    gc.collect()".into(),
            automatic: None,
        },
    ]
}
