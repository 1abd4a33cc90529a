//! Does a run show torch-compile-recompiles? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::memory::{GRAPHS_MORE, GRAPH_BYTES, SMALL_NOTE_BYTES};
use crate::policy::sizes::{WARN_BYTES, WARN_PART};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use crate::trend::counter::{rising_counter, RisingCounter};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let found = analysis
        .timeline
        .processes()
        .filter_map(|process| rising_counter(process, "compiled-graphs", GRAPHS_MORE));
    let with = found.filter_map(|rising| Some((memory(&rising)?, rising)));
    let fits =
        with.filter(|(bytes, rising)| *bytes >= SMALL_NOTE_BYTES && *bytes <= GRAPH_BYTES * rising.more());
    let Some((bytes, most)) = fits.max_by_key(|(bytes, rising)| (*bytes, rising.process.id)) else {
        return Judgement::Nothing;
    };
    let out = analysis.ran_out && bytes.saturating_mul(WARN_PART) >= analysis.timeline.memory().peak_bytes;
    let severity = if bytes >= WARN_BYTES || out { Severity::Warning } else { Severity::Note };
    let sentence = format!(
        "{} compiled {} graphs with torch.compile, {} of them in the last {}; memory grew by {}, {} a graph.",
        evidence::capital(&evidence::describe(most.process)),
        evidence::count(most.last.count),
        evidence::count(most.more()),
        evidence::seconds(most.at.since(most.since)),
        evidence::bytes(bytes),
        evidence::bytes(bytes / most.more().max(1)),
    );
    let source = evidence::Source::Agent(most.process.id.pid);
    let evidence = evidence::number("compiled graphs", most.last.count, "graphs", source, most.at, sentence);
    Judgement::one(of_process(analysis, &RULE, severity, Proof::Estimated, vec![evidence], most.process))
}

/// By how much private memory grew while the count was watched.
fn memory(rising: &RisingCounter) -> Option<u64> {
    let held = &rising.process.anonymous;
    let before = held.at_or_before(rising.since).or(held.first())?.1;
    Some((held.at_or_before(rising.at)?.1 - before).max(0.0) as u64)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("List what differs between the calls", format!("TORCH_LOGS=recompiles {}", context.typed())),
        Fix::new(
            "Compile once for all sizes",
            "step = torch.compile(step, dynamic=True)  # or torch._dynamo.mark_dynamic(x, 0)",
        ),
        Fix::new("Or compile outside the loop, and drop the graphs between phases", "torch.compiler.reset()"),
    ]
}
