//! Does a run show exception-traceback-holds-frames? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, Collection, RemedyContext, RetainerInCode};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Error)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    if let Some(RetainerInCode { name: Some(name), collection: Collection::Exception, .. }) =
        &context.retainer
    {
        return vec![
            Fix::new(
                "Raise it without the tracebacks of before",
                format!("raise {name}.with_traceback(None)"),
            ),
            Fix::new("Or store what makes it, and make it anew", "raise Failed(*arguments)"),
        ];
    }
    vec![
        Fix::new("Store the text of each exception", context.put("traceback.format_exc()", "errors")),
        Fix::new("Or clear the frames it retains", "traceback.clear_frames(error.__traceback__)"),
    ]
}
