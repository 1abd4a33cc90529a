//! Does a run show unbounded-caches? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, Collection, RemedyContext};
use crate::policy::counts::CACHE_BOUND;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Cache)
}

/// The power of two next to half of what it had: a bound above that would have changed nothing.
fn bound(context: &RemedyContext) -> u64 {
    let half = context.retainer.as_ref().map_or(0, |retainer| retainer.length / 2);
    half.checked_ilog2().map_or(CACHE_BOUND, |log| 1 << log)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let most = bound(context);
    let name = context.retainer_name("cache");
    if name == "sys.modules" {
        return vec![
            Fix::new(
                "Load each file once, under a name of its own",
                "module = sys.modules.get(name) or load(name)",
            ),
            Fix::new("Or take out what is used no longer", "del sys.modules[name]"),
        ];
    }
    if let Some(fix) = retainers::end_tasks(context, name) {
        return vec![fix];
    }
    let function = Fix::new("Bound the cached function", format!("@functools.lru_cache(maxsize={most})"));
    let oldest = |code: String| Fix::new("Drop the oldest entry before adding one", code);
    let of_dict = || oldest(format!("if len({name}) >= {most}: {name}.pop(next(iter({name})))"));
    let empty = || Fix::new("Or empty it at the end of each epoch", context.empty("cache"));
    if let Some((outer, Some(inner))) =
        context.retainer.as_ref().map(|retainer| (retainer.collection, retainer.nested))
    {
        let each = if outer == Collection::Dict { format!("{name}.values()") } else { name.to_string() };
        let code = match inner {
            Collection::List => format!("for one in {each}: del one[:-{CACHE_BOUND}]"),
            _ => format!("for one in {each}: one.clear()"),
        };
        return vec![Fix::new("Shorten what it holds, at the end of each epoch", code), empty()];
    }
    match context.retainer.as_ref().map(|retainer| retainer.collection) {
        None => vec![function, of_dict()],
        Some(Collection::CachedFunction) if context.retainer.as_ref().is_some_and(|one| one.deep) => {
            let of_arguments = Fix::new(
                "Cache a function of what the result depends on: that of a method keeps each instance",
                "@functools.lru_cache(maxsize=32)\ndef anchors(shapes, dtype): ...  # without self",
            );
            vec![of_arguments, empty()]
        }
        Some(Collection::CachedFunction) => vec![function, empty()],
        Some(Collection::Dict) => vec![of_dict(), empty()],
        Some(Collection::Set) => vec![oldest(format!("if len({name}) >= {most}: {name}.pop()")), empty()],
        Some(Collection::Deque) => {
            let code = format!("{name} = collections.deque({name}, maxlen={most})");
            vec![Fix::new("Give it a length", code), empty()]
        }
        Some(_) => vec![oldest(format!("del {name}[:-{most}]")), empty()],
    }
}
