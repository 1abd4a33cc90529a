//! Does a run show python-314-incremental-gc? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::UNCOLLECTED_BYTES;
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

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
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::text("python", version, source, Some(at), sentence);
    let severity = if analysis.ran_out { Severity::Warning } else { Severity::Note };
    Judgement::one(of_process(analysis, &RULE, severity, Proof::Consistent, vec![evidence], process))
}

fn affected(process: &ProcessHistory) -> bool {
    let patch = process.python.as_deref().and_then(|version| version.strip_prefix("3.14."));
    patch.and_then(|patch| patch.parse::<u32>().ok()).is_some_and(|patch| patch < 5)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Use Python 3.14.5 or newer, or 3.13", "python3 -V"),
        Fix::new(
            "Or collect by hand, which also confirms the cause",
            "if step % 100 == 0:\n    gc.collect()",
        ),
    ]
}
