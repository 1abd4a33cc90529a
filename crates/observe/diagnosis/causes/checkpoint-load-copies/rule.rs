//! Does a run show checkpoint-load-copies? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::{no_memory_in, ranks_beside};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    no_memory_in(analysis, &RULE, "loading a checkpoint", loads, |failure| {
        ranks_beside(analysis, failure, "were there, and each loads the whole file")
    })
}

fn loads(failure: &Failure) -> bool {
    failure.calls(
        "torch/serialization.py",
        &["load", "_load", "_legacy_load", "load_tensor", "persistent_load", "_get_restore_location"],
    ) || failure.calls("safetensors/torch.py", &["load", "load_file", "load_model"])
        || failure.calls(
            "torch/distributed/checkpoint/state_dict_loader.py",
            &["load", "_load_state_dict", "read_data"],
        )
        || failure.calls("torch/nn/modules/module.py", &["load_state_dict"])
        // What frameworks, and programs after them, call it.
        || failure.calls("", &["load_checkpoint", "_load_checkpoint", "load_from_checkpoint", "from_pretrained"])
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Map the file and assign its tensors to the model, without copies",
            "state = torch.load(path, mmap=True, map_location=\"cpu\", weights_only=True)\n\
                      model.load_state_dict(state, assign=True)",
        ),
        Fix::new(
            "Create the model without memory first",
            "with torch.device(\"meta\"):\n    model = Model()",
        ),
        Fix::new(
            "Several ranks: load a shard on each",
            "torch.distributed.checkpoint.load(state, checkpoint_id=path)",
        ),
    ]
}
