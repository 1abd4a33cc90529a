//! Does a run show autograd-function-ctx-leak? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::EXPLAINS_MOST;
use crate::policy::memory::{CONTEXTS_MORE, CONTEXTS_WARN_BYTES, SMALL_NOTE_BYTES};
use crate::policy::sizes::FILLED_PART;
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use crate::trend::counter::rising_counter;
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

const WHAT: &str = "autograd-circles";
const GARBAGE: &str = "gc-disabled-or-deferred";

fn judge(analysis: &Analysis) -> Judgement {
    let peak = analysis.timeline.memory().peak_bytes;
    let found = analysis.timeline.processes().filter_map(|process| {
        let (at, counter) = process.torch_counters.latest(WHAT)?;
        let bytes = counter.bytes.unwrap_or(0);
        let rises = rising_counter(process, WHAT, CONTEXTS_MORE).is_some();
        let filled = analysis.ran_out && bytes.saturating_mul(FILLED_PART) >= peak;
        let severity = if filled || (rises && bytes >= CONTEXTS_WARN_BYTES) {
            Severity::Warning
        } else {
            Severity::Note
        };
        let much = filled || rises || bytes.saturating_mul(FILLED_PART) >= peak;
        (bytes >= SMALL_NOTE_BYTES && much).then_some((severity, bytes, at, counter, process))
    });
    let Some((severity, bytes, at, counter, process)) = found.max_by_key(|found| (found.0, found.1)) else {
        return Judgement::Nothing;
    };
    let sentence = format!(
        "{} had {} that refer to their own autograd context, most of {}; these contexts hold {}.",
        evidence::capital(&evidence::describe(process)),
        evidence::plural(counter.count, "tensor", "tensors"),
        counter.name,
        evidence::bytes(bytes),
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::number("held in circles", bytes, "bytes", source, at, sentence);
    let mut finding = of_process(analysis, &RULE, severity, Proof::SeenInside, vec![evidence], process);
    if is_most_garbage(process, bytes) {
        finding.explains.push(GARBAGE.into());
    }
    Judgement::one(finding)
}

/// Whether the garbage that the last census found is mostly these circles: then they are why it is there.
fn is_most_garbage(process: &ProcessHistory, circles: u64) -> bool {
    let garbage = process.censuses.last().and_then(|(_, census)| census.garbage.as_ref());
    garbage.is_some_and(|garbage| circles as f64 >= EXPLAINS_MOST * garbage.bytes as f64)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Let torch save what backward needs, and free it afterwards",
            "ctx.save_for_backward(y)  # in forward, instead of ctx.y = y\n\
                      (y,) = ctx.saved_tensors  # in backward",
        ),
        Fix::new("Store any other tensor as an attribute, without its graph", "ctx.mask = mask.detach()"),
    ]
}
