//! # unbounded-caches
//!
//! ## What it does
//! Finds a dict, a set, a cached function or a list of a class or a module that takes ever more entries; says its name, the
//! line where it grows, how many entries came, and how much of the growth they explain.
//!
//! ## Why it happens
//! `functools.lru_cache(maxsize=None)`, a dict of results, a dataset that keeps each decoded sample: nothing ever leaves. Each
//! loader worker has a cache of its own. With keys that come back, growth ends when all have been seen; with keys that do not
//! (augmentations, tensors as keys), it does not end.
//!
//! ## How it is told apart
//! The process must grow to the end of the run, and the cache must have more entries than at an earlier census. A cache that
//! has come to rest is none. It is a warning where a quarter of the process or more came, and 96 MiB at least, else a note.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. A cache that will hold all samples of a dataset, but had not
//! by the end of the run, looks the same. What a cache with a `maxsize` holds is not weighed.
//!
//! ## Example
//! Each worker grows through the first epoch, by the size of a decoded sample at a time.
//!
//! ## Remedy
//! Give the cache a bound.
//!
//! ## References
//! - <https://docs.python.org/3/library/functools.html#functools.lru_cache>
//! - <https://github.com/pfnet/pfio/issues/339>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "unbounded-caches",
    title: "lru_cache(maxsize=None), memo dicts, dataset 'cache=True' and class-level lists",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Cache)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Give a cached function a bound".into(),
            command: "@functools.lru_cache(maxsize=1024)".into(),
            automatic: None,
        },
        Fix {
            title: "Or let the oldest entry go before a new one comes".into(),
            command: match &context.path {
                Some(name) => format!("if len({name}) >= 1024: {name}.pop(next(iter({name})))"),
                None => "if len(cache) >= 1024: cache.pop(next(iter(cache)))".into(),
            },
            automatic: None,
        },
    ]
}
