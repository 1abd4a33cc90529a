//! Does a run show view-retains-base? What that is, and how it is told apart, says page.md.

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
    let copy = Fix::new(
        "Copy the part that is kept",
        match &context.path {
            Some(name) => format!("{name}.append(batch[0].clone())  # an array: array[:10].copy()"),
            None => "kept.append(batch[0].clone())  # an array: array[:10].copy()".to_owned(),
        },
    );
    let table = Fix::new(
        "Where many are kept, copy them into one tensor made before: small copies between large batches split the heap",
        "rows = torch.empty(steps, *batch[0].shape); rows[step] = batch[0]",
    );
    vec![copy, table]
}
