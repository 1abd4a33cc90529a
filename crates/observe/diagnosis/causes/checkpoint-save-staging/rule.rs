//! # checkpoint-save-staging
//!
//! ## What it does
//! Finds a job that ran out of memory while it saved a checkpoint.
//!
//! ## Why it happens
//! `.cpu()` of every tensor, a full state dict gathered on one rank, torch.save into a BytesIO, and the staging buffers of an
//! asynchronous save each make a further copy of weights and optimizer state. It is a peak at each save.
//!
//! ## How it is told apart
//! The exception for lack of memory left through torch.save or torch.distributed.checkpoint's save. Which limit was met is
//! a finding of its own. Dirty page cache of the written file is no memory of the process and is written back.
//!
//! ## Known problems
//! A process that the kernel kills raises nothing: what it was doing is not known then. Needs the agent.
//!
//! ## Example
//! `MemoryError` in `torch/serialization.py _save`, at the save of every epoch
//!
//! ## Remedy
//! Save to a file, not into memory, and in shards.
//!
//! ## References
//! - <https://pytorch.org/docs/stable/distributed.checkpoint.html>

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::no_memory_in;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "checkpoint-save-staging",
    title: "Checkpoint save: full CPU copy, pickling and async staging buffers",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    no_memory_in(analysis, &RULE, "a checkpoint was being saved", saves, |_| None)
}

fn saves(failure: &Failure) -> bool {
    failure.calls("torch/serialization.py", &["save", "_save", "_legacy_save"])
        || failure.calls("safetensors/torch.py", &["save", "save_file", "save_model", "_tobytes", "_flatten"])
        || failure.calls(
            "torch/distributed/checkpoint/state_dict_saver.py",
            &["save", "async_save", "_save_state_dict"],
        )
        || failure.calls("torch/distributed/checkpoint/staging.py", &["stage", "_offload_state_dict"])
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Save to the file itself, without a copy in memory".into(),
            command: "torch.save(model.state_dict(), path)  # no .cpu() of all, no io.BytesIO()".into(),
            automatic: None,
        },
        Fix {
            title: "Several ranks: let each save its own shard".into(),
            command: "torch.distributed.checkpoint.save(state, checkpoint_id=path)".into(),
            automatic: None,
        },
        Fix {
            title: "Asynchronous saves: wait for the one before".into(),
            command: "if saving is not None:\n    saving.result()\n\
                      saving = torch.distributed.checkpoint.async_save(state, checkpoint_id=path)"
                .into(),
            automatic: None,
        },
    ]
}
