//! Does a run show model-copies-on-cpu? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::no_memory_in;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    no_memory_in(analysis, &RULE, "copying whole tensors, as copy.deepcopy of a model does", copies, |_| None)
}

fn copies(failure: &Failure) -> bool {
    failure.calls("torch/_tensor.py", &["__deepcopy__"])
        || failure.calls("torch/nn/parameter.py", &["__deepcopy__"])
        || failure.calls("torch/storage.py", &["__deepcopy__", "clone"])
        || failure.calls_native(&["clone"])
        || failure.calls("torch/optim/swa_utils.py", &["__init__", "update_parameters"])
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Store the best state on disk",
            "torch.save(model.state_dict(), \"best.pt\")  # instead of copy.deepcopy(model.state_dict())",
        ),
        Fix::new(
            "Or write into one copy",
            "best = {k: torch.empty_like(v) for k, v in model.state_dict().items()}  # once\n\
                      for k, v in model.state_dict().items():\n    best[k].copy_(v)",
        ),
    ]
}
