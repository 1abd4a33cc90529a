//! # accumulate-tensors-with-graph
//!
//! ## What it does
//! Finds a container of tensors that becomes ever longer, or a tensor that is computed from itself at each step, whose autograd
//! graphs keep all that the steps saved; says its name, the line where it grows, and how many bytes hang on it.
//!
//! ## Why it happens
//! A tensor that was computed from parameters holds the graph that made it, and the graph holds what each operation saved for
//! the backward pass: the activations of a whole step, often a thousand times the size of the tensor. `losses.append(loss)`,
//! `total_loss += loss` and a hidden state that is handed to the next step without `detach()` keep every step's.
//!
//! ## How it is told apart
//! The process must grow to the end of the run. A census counts containers that are longer than at an earlier one, and looks
//! whether their tensors carry a graph; the operations of a graph are numbered in the order in which they were made, so that
//! the oldest one within reach shows how far a graph goes back. What its operations saved is added up for some of them.
//! Kept outputs without a graph are accumulate-metrics-outputs. Established where what was seen explains half of the growth.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. What a graph saved is told by newer versions of torch only;
//! else it is what no other holder explains.
//!
//! ## Example
//! `RuntimeError: [enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory`, an hour into an epoch.
//!
//! ## Remedy
//! Keep a number, or a tensor without its graph.
//!
//! ## References
//! - <https://pytorch.org/docs/stable/notes/faq.html>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "accumulate-tensors-with-graph",
    title: "Losses/outputs kept with their autograd graph",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Graph)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Keep the number and not the graph".into(),
            command: match &context.path {
                Some(name) => format!("{name}.append(loss.item())  # or: total += loss.item()"),
                None => "losses.append(loss.item())  # or: total += loss.item()".into(),
            },
            automatic: None,
        },
        Fix {
            title: "Or keep a tensor without its graph".into(),
            command: "kept = output.detach()  # a hidden state too: hidden = hidden.detach()".into(),
            automatic: None,
        },
    ]
}
