//! Does a run show accumulate-metrics-outputs? page.md says what that is, and how it differs from its look-alikes.

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
    retainers::judge_with_unheld(analysis, &RULE, Kind::Output, grows)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    if context.retained_by(&[Collection::Element]) {
        return vec![Fix::new(
            "Clear the tree after each record: its root retains every element that was read",
            "events = iter(ElementTree.iterparse(file, events=(\"start\", \"end\"))); root = next(events)[1]  # after each record: root.clear()",
        )];
    }
    if let Some(fix) = retainers::end_tasks(context, context.retainer_name("tasks")) {
        return vec![fix];
    }
    // A metric is no list of its own, and its name is not known then.
    let metric = if context.retainer.is_none() { "  # a metric: metric.reset()" } else { "" };
    let (title, digest) = context.digest();
    vec![
        Fix::new(
            "Empty it when its values are used, at the end of each epoch",
            format!("{}{metric}", context.empty("outputs")),
        ),
        Fix::new(title, context.put(digest, "outputs")),
    ]
}
