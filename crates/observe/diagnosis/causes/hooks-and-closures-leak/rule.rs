//! # hooks-and-closures-leak
//!
//! ## What it does
//! Finds a module that has ever more hooks, and a container that only a closure refers to and that becomes ever longer; says its
//! name and the numbers.
//!
//! ## Why it happens
//! `register_forward_hook` in a loop adds one hook a step: each stays until its handle is removed, keeps what its closure refers
//! to, and runs at every forward pass. A list that a hook appends to is emptied by nobody.
//!
//! ## How it is told apart
//! The process must grow to the end of the run. The number of a module's hooks is counted at each census: 16 more are enough,
//! because no program needs that. A container that is a variable of a closure must explain its part of the growth.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. What hooks keep in native memory is not weighed.
//!
//! ## Example
//! Steps become slower as memory grows: every forward pass runs all the hooks that were added before.
//!
//! ## Remedy
//! Remove the hook when it has done its work.
//!
//! ## References
//! - <https://github.com/pytorch/pytorch/issues/46386>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "hooks-and-closures-leak",
    title: "Forward/backward hooks, closures and bound methods keep activations/modules",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Hook)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Remove each hook when it has done its work".into(),
            command: "handle = module.register_forward_hook(hook)\ntry:\n    module(batch)\nfinally:\n    handle.remove()".into(),
            automatic: None,
        },
        Fix {
            title: "Or register it once, before the loop".into(),
            command: "module.register_forward_hook(hook)  # and in the hook: features[name] = output.detach()".into(),
            automatic: None,
        },
    ]
}
