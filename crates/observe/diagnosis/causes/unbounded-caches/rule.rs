//! Does a run show unbounded-caches? What that is, and how it is told apart, says page.md.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Cache)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Give a cached function a bound", "@functools.lru_cache(maxsize=1024)"),
        Fix::new(
            "Or let the oldest entry go before a new one comes",
            match &context.path {
                Some(name) => format!("if len({name}) >= 1024: {name}.pop(next(iter({name})))"),
                None => "if len(cache) >= 1024: cache.pop(next(iter(cache)))".to_owned(),
            },
        ),
    ]
}
