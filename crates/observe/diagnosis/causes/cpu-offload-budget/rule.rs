//! Does a run show cpu-offload-budget? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::{no_memory_in, ranks_beside};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let doing = "moving activations, parameters or optimizer states to host memory";
    no_memory_in(analysis, &RULE, doing, offloads, |failure| {
        ranks_beside(analysis, failure, "share this machine's memory")
    })
}

/// Functions that allocate on the host what a device computes with, as torch 2.13 and DeepSpeed name them.
fn offloads(failure: &Failure) -> bool {
    failure.calls("torch/autograd/graph.py", &["pack_to_cpu"])
        || failure.calls("deepspeed/ops/adam/cpu_adam.py", &["step", "step_subgroup"])
        || failure.calls("deepspeed/runtime/zero/stage3.py", &["_create_param_groups_fp16_flat_cpu_memory"])
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "DeepSpeed: offload only the optimizer, unpinned",
            "\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": false}}",
        ),
        Fix::new(
            "DeepSpeed: estimate the memory before the run",
            "from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs_all_live\n\
                      estimate_zero3_model_states_mem_needs_all_live(model, num_gpus_per_node=8, num_nodes=1)",
        ),
        Fix::new(
            "Recompute activations instead of storing them",
            "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # instead of save_on_cpu()",
        ),
    ]
}
