//! Does a run show accumulate-metrics-outputs? What that is, and how it is told apart, says page.md.

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
    retainers::judge_with_unheld(analysis, &RULE, Kind::Output, grows)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Empty it at the end of each epoch, when it has been used",
            match &context.path {
                Some(name) => format!("{name}.clear()  # a metric: metric.reset()"),
                None => "outputs.clear()  # a metric: metric.reset()".to_owned(),
            },
        ),
        Fix::new(
            "Or keep what is needed of each output, not all of it",
            "outputs.append(logits.argmax(-1).to(torch.int16))  # instead of the logits",
        ),
    ]
}
