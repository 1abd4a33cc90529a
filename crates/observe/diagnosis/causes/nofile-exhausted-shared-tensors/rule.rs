//! Does a run show nofile-exhausted-shared-tensors? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::descriptors;

use crate::analysis::{Analysis, RemedyContext};
use crate::rule::descriptors::Owner;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    descriptors::judge(analysis, &RULE, Owner::Torch)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = sharing::arena(context);
    fixes.extend(sharing::fork_context(context));
    fixes.push(sharing::one_tensor());
    fixes.push(Fix::new(
        "If you store batches: store copies, so that their segments are released",
        "kept.append(batch.clone())",
    ));
    fixes.extend(descriptors::raise_soft_limit(context));
    fixes
}
