//! Does a run show exception-traceback-holds-frames? What that is, and how it is told apart, says page.md.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Error)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Keep the text of the exception",
            match &context.path {
                Some(name) => format!("{name}.append(traceback.format_exc())"),
                None => "errors.append(traceback.format_exc())".to_owned(),
            },
        ),
        Fix::new("Or let go of the frames", "traceback.clear_frames(error.__traceback__)"),
    ]
}
