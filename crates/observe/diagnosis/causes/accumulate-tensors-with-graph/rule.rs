//! Does a run show accumulate-tensors-with-graph? page.md says what that is, and how it differs from its look-alikes.

use super::unnamed_growth;
use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, Collection, RemedyContext};
use crate::history::ProcessHistory;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let grows = |process: &ProcessHistory| unnamed_growth::grows(analysis, process);
    retainers::judge_with_unheld(analysis, &RULE, Kind::Graph, grows)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        match context.retained_by(&[Collection::Tensor]) {
            true => Fix::new(
                "Detach it from its graph in each step",
                format!("{0} = {0}.detach()", context.retainer_name("hidden")),
            ),
            false => Fix::new("Store the number without its graph", context.put("loss.item()", "losses")),
        },
        match context.retained_by(&[Collection::Tensor]) {
            true => Fix::new("Or add up numbers without their graphs", "total += loss.item()"),
            false => {
                Fix::new("Or store tensors without their graph", context.put("output.detach()", "outputs"))
            }
        },
    ]
}
