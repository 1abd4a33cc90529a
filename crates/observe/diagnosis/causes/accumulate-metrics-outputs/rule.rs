//! # accumulate-metrics-outputs
//!
//! ## What it does
//! Finds a list, an array or a tensor to which each step adds its output, and that is never emptied; says its name, the line
//! where it grows, what its elements are, and how much of the growth it explains.
//!
//! ## Why it happens
//! Outputs of a validation step, states of a metric (`AUROC` keeps all predictions), a history of logs: each is small, and
//! all steps' together are not. Where the container is emptied at the end of an epoch, memory falls again; where it is not, it
//! grows to the end of the run.
//!
//! ## How it is told apart
//! The process must grow to the end of the run, and the container must be longer than at an earlier census. Tensors that carry
//! a graph are accumulate-tensors-with-graph, slices that keep a whole batch are view-retains-base, and what is looked up by a
//! key is unbounded-caches. Such a container may be meant to be filled: it is a warning where a quarter of the process or more
//! came, and 96 MiB at least; else, and where it has a greatest length (`deque(maxlen=...)`), a note.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. A buffer that is still being filled when the run ends cannot
//! be told from one without a bound.
//!
//! ## Example
//! Memory rises through each evaluation and does not fall; the job is killed while it concatenates what it has collected.
//!
//! ## Remedy
//! Reduce each output to what is needed of it, and empty the container at the end of an epoch.
//!
//! ## References
//! - <https://github.com/Lightning-AI/pytorch-lightning/pull/16520>
//! - <https://github.com/huggingface/transformers/issues/8476>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "accumulate-metrics-outputs",
    title: "Predictions, metric states or step outputs kept for the whole epoch or run",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Output)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Empty it at the end of each epoch, when it has been used".into(),
            command: match &context.path {
                Some(name) => format!("{name}.clear()  # a metric: metric.reset()"),
                None => "outputs.clear()  # a metric: metric.reset()".into(),
            },
            automatic: None,
        },
        Fix {
            title: "Or keep what is needed of each output, not all of it".into(),
            command: "outputs.append(logits.argmax(-1).to(torch.int16))  # instead of the logits".into(),
            automatic: None,
        },
    ]
}
