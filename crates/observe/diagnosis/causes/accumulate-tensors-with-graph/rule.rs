//! Does a run show accumulate-tensors-with-graph? What that is, and how it is told apart, says page.md.

use super::unnamed_growth;
use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
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
        Fix::new(
            "Keep the number and not the graph",
            match &context.path {
                Some(name) => format!("{name}.append(loss.item())  # or: total += loss.item()"),
                None => "losses.append(loss.item())  # or: total += loss.item()".to_owned(),
            },
        ),
        Fix::new(
            "Or keep a tensor without its graph",
            "kept = output.detach()  # a hidden state too: hidden = hidden.detach()",
        ),
    ]
}
