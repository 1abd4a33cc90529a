//! # view-retains-base
//!
//! ## What it does
//! Finds a container of small tensors or arrays, each of which keeps a much larger storage alive; says its name, the line where
//! it grows, what its elements show, and what they keep.
//!
//! ## Why it happens
//! `batch[0]`, `array[:10]`, `torch.from_numpy` and `split` copy nothing: the new tensor shares the storage of the old one, and
//! the whole of it lives as long as any part is referred to. A hundred rows of 1 KB from a hundred batches keep a hundred
//! batches.
//!
//! ## How it is told apart
//! The process must grow to the end of the run, the container must be longer than at an earlier census, and most of its
//! elements must show an eighth or less of what they keep. Rows of one batch that are all kept keep nothing more than
//! themselves: each storage counts once.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. Views of memory that is mapped from a file are left out.
//!
//! ## Example
//! Features of 1 KB each are kept, and each costs as much as a batch.
//!
//! ## Remedy
//! Copy the part; where many are kept, into one tensor or array made before. A copy of its own is a small block between large
//! ones, and glibc's aligned blocks often do not fit again into the hole that the batch left: the heap goes on growing though
//! nothing is kept (measured with torch 2.13, glibc 2.36: 1 MiB a batch; glibc-dynamic-mmap-threshold then says so).
//!
//! ## References
//! - <https://pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "view-retains-base",
    title: "A small view keeps a large base buffer alive (slices, numpy views, torch.save of slices)",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::View)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let copy = Fix {
        title: "Copy the part that is kept".into(),
        command: match &context.path {
            Some(name) => format!("{name}.append(batch[0].clone())  # an array: array[:10].copy()"),
            None => "kept.append(batch[0].clone())  # an array: array[:10].copy()".into(),
        },
        automatic: None,
    };
    let table = Fix {
        title: "Where many are kept, copy them into one tensor made before: small copies between large batches split the heap"
            .into(),
        command: "rows = torch.empty(steps, *batch[0].shape); rows[step] = batch[0]".into(),
        automatic: None,
    };
    vec![copy, table]
}
