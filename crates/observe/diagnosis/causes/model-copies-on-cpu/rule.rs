//! # model-copies-on-cpu
//!
//! ## What it does
//! Finds a job that ran out of memory while it copied a model or its state.
//!
//! ## Why it happens
//! `copy.deepcopy(model.state_dict())` for the best epoch, averages of weights (EMA, SWA), the last k states in a list, an
//! optimizer moved to the CPU for saving: each is as large as the model, and a list of them grows by one each epoch.
//!
//! ## How it is told apart
//! The exception for lack of memory left through the copying of a tensor, a parameter or a module. Which limit was met is a
//! finding of its own.
//!
//! ## Known problems
//! A process that the kernel kills raises nothing: what it was doing is not known then. Needs the agent. Steps of the
//! model's size that fit are not told.
//!
//! ## Example
//! `DefaultCPUAllocator: can't allocate memory: you tried to allocate 268435456 bytes` in `torch/_tensor.py __deepcopy__`
//!
//! ## Remedy
//! Keep one copy and write into it, or keep states on disk.
//!
//! ## References
//! - <https://pytorch.org/docs/stable/notes/serialization.html>

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::no_memory_in;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "model-copies-on-cpu",
    title: "EMA, best-state deepcopy, optimizer state moves pile up on CPU",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    no_memory_in(
        analysis,
        &RULE,
        "tensors were being copied whole, as copy.deepcopy of a model or its state does",
        copies,
        |_| None,
    )
}

fn copies(failure: &Failure) -> bool {
    failure.calls("torch/_tensor.py", &["__deepcopy__"])
        || failure.calls("torch/nn/parameter.py", &["__deepcopy__"])
        || failure.calls("torch/storage.py", &["__deepcopy__", "clone"])
        || failure.calls("torch/optim/swa_utils.py", &["__init__", "update_parameters"])
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Keep the best state on disk".into(),
            command:
                "torch.save(model.state_dict(), \"best.pt\")  # instead of copy.deepcopy(model.state_dict())"
                    .into(),
            automatic: None,
        },
        Fix {
            title: "Or keep one copy, and write into it".into(),
            command: "best = {k: torch.empty_like(v) for k, v in model.state_dict().items()}  # once\n\
                      for k, v in model.state_dict().items():\n    best[k].copy_(v)"
                .into(),
            automatic: None,
        },
    ]
}
