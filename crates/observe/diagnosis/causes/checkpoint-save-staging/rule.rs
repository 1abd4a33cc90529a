//! Does a run show checkpoint-save-staging? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::no_memory_in;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    no_memory_in(analysis, &RULE, "saving a checkpoint", saves, |_| None)
}

fn saves(failure: &Failure) -> bool {
    failure.calls("torch/serialization.py", &["save", "_save", "_legacy_save"])
        || failure.calls("safetensors/torch.py", &["save", "save_file", "save_model", "_tobytes", "_flatten"])
        || failure.calls(
            "torch/distributed/checkpoint/state_dict_saver.py",
            &["save", "async_save", "_save_state_dict"],
        )
        || failure.calls("torch/distributed/checkpoint/staging.py", &["stage", "_offload_state_dict"])
        || failure.calls("", &SAVE)
}

/// What frameworks, and programs after them, call it. A state dict by itself may be copied for anything.
const SAVE: [&str; 4] = ["save_checkpoint", "_save_checkpoint", "dump_checkpoint", "save_pretrained"];

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Save straight to the file, without a copy in memory",
            "torch.save(model.state_dict(), path)  # no .cpu() of all, no io.BytesIO()",
        ),
        Fix::new(
            "Several ranks: save one shard on each",
            "torch.distributed.checkpoint.save(state, checkpoint_id=path)",
        ),
        Fix::new(
            "Asynchronous saves: wait for the previous one",
            "if saving is not None:\n    saving.result()\n\
                      saving = torch.distributed.checkpoint.async_save(state, checkpoint_id=path)",
        ),
    ]
}
