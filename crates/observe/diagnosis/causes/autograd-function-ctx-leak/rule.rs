//! # autograd-function-ctx-leak
//!
//! ## What it does
//! Finds a custom autograd function that keeps its own output as an attribute of `ctx`, so that neither is freed when the
//! program lets go of both.
//!
//! ## Why it happens
//! `ctx.y = y` in forward: the output refers to its graph, the graph to `ctx`, and `ctx` to the output. Such a circle waits for
//! Python's collector, which counts objects and not bytes: a few hundred outputs of many megabytes each do not make it run.
//! Early versions of torch never freed it, because part of it lies in C++. `ctx.save_for_backward` keeps outputs without a
//! circle, and lets them go after the backward pass.
//!
//! ## How it is told apart
//! The agent goes through the youngest tensors in the collector's list, and finds those whose `grad_fn` is the context of a
//! custom function that holds this very tensor as an attribute: the circle itself. It is a warning where their number rises
//! in both halves of the time in which it was watched and to its end, or where memory ran out and they held a good part of
//! it; a note where they held as much and nothing failed. Contexts that hold an input, or a tensor without its graph, are no
//! circle.
//!
//! ## Known problems
//! Needs the agent. A tensor in a list or a dict of `ctx` is not looked for. The circle that `backward(create_graph=True)`
//! makes between a parameter and its gradient is another one.
//!
//! ## Example
//! Memory rises by the size of an activation with each step, and falls when `gc.collect()` is called by hand, if ever.
//!
//! ## Remedy
//! `ctx.save_for_backward`.
//!
//! ## References
//! - <https://docs.pytorch.org/docs/stable/notes/extending.html>
//! - <https://github.com/pytorch/pytorch/issues/25340>
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::memory::{CONTEXTS_MORE, CONTEXTS_WARN_BYTES, SMALL_NOTE_BYTES};
use crate::policy::sizes::FILLED_PART;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use crate::trend::counter::rising_counter;
use ullage_model::{Fix, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "autograd-function-ctx-leak",
    title: "custom autograd.Function stores tensors on ctx; create_graph cycles",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

const WHAT: &str = "autograd-circles";

fn judge(analysis: &Analysis) -> Judgement {
    let peak = analysis.timeline.memory().peak_bytes;
    let told = analysis.timeline.processes().filter_map(|process| {
        let (at, kept) = process.torch_counters.latest(WHAT)?;
        let bytes = kept.bytes.unwrap_or(0);
        let rises = rising_counter(process, WHAT, CONTEXTS_MORE).is_some();
        let filled = analysis.ran_out && bytes.saturating_mul(FILLED_PART) >= peak;
        let severity = if filled || (rises && bytes >= CONTEXTS_WARN_BYTES) {
            Severity::Warning
        } else {
            Severity::Note
        };
        let much = filled || rises || bytes.saturating_mul(FILLED_PART) >= peak;
        (bytes >= SMALL_NOTE_BYTES && much).then_some((severity, bytes, at, kept, process))
    });
    let Some((severity, bytes, at, kept, process)) = told.max_by_key(|told| (told.0, told.1)) else {
        return Judgement::Nothing;
    };
    let sentence = format!(
        "{} held {} of {} in circles: each was made by an autograd function (most by {}) whose context keeps it as an attribute.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(bytes),
        evidence::plural(kept.count, "tensor", "tensors"),
        kept.name,
    );
    let source = format!("agent in {}", process.id.pid);
    let evidence = evidence::number("held in circles", bytes, "bytes", &source, at, sentence);
    let context = analysis.remedy_context_of(Some(process));
    let mut finding = of_job(&RULE, severity, (Status::Established, 0.95), vec![evidence], &context);
    finding.process = Some(evidence::process_ref(process));
    Judgement::one(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Let torch keep what backward needs: it lets it go afterwards".into(),
            command: "ctx.save_for_backward(y)  # in forward, instead of ctx.y = y\n\
                      (y,) = ctx.saved_tensors  # in backward"
                .into(),
            automatic: None,
        },
        Fix {
            title: "Something that is neither input nor output may stay an attribute, without its graph"
                .into(),
            command: "ctx.mask = mask.detach()".into(),
            automatic: None,
        },
    ]
}
