//! Does a run show view-retains-base? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::View)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let part = format!("batch[0].{}", context.copied());
    let row = if context.copied() == "copy()" { "numpy.empty" } else { "torch.empty" };
    vec![
        Fix::new("Store a copy of the part that you need", context.put(&part, "kept")),
        Fix::new(
            "For many parts: copy them into one table made before the loop",
            format!("rows = {row}((steps, *batch[0].shape))\nrows[step] = batch[0]"),
        ),
    ]
}
