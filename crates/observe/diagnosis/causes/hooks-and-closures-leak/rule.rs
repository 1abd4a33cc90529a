//! Does a run show hooks-and-closures-leak? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Hook)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Remove each hook after use",
            "handle = module.register_forward_hook(hook)\ntry:\n    module(batch)\nfinally:\n    handle.remove()",
        ),
        Fix::new(
            "Or register it once, before the loop",
            "module.register_forward_hook(hook)  # and in the hook: features[name] = output.detach()",
        ),
    ]
}
