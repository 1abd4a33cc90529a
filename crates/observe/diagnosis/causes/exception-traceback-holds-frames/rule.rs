//! # exception-traceback-holds-frames
//!
//! ## What it does
//! Finds a container of exceptions that becomes ever longer, and says its name, the line where it grows, and how many bytes the
//! frames of their tracebacks keep.
//!
//! ## Why it happens
//! An exception refers to its traceback, this to every frame that it passed, and a frame to all its locals: the batch, the
//! outputs, the graph. `errors.append(error)` keeps them all.
//!
//! ## How it is told apart
//! The process must grow to the end of the run, and the container must be longer than at an earlier census. Most of its
//! elements are exceptions; the tensors and arrays that are reached through their tracebacks are weighed.
//!
//! ## Known problems
//! The agent counts only where growth of 32 MiB has gone on for a while, a few times in a run, and where a moment comes: at
//! a loader's batch, after an optimizer's step, at a model's call, in `time.sleep`, when the garbage collector has run.
//! Bytes are estimated from some elements that stand for all. A single exception that is kept (`sys.last_exc`, an `except`
//! block that retries) is one step and no growth: it is not told.
//!
//! ## Example
//! Each bad sample is counted and its exception kept for a summary at the end; each keeps a decoded image.
//!
//! ## Remedy
//! Keep the text.
//!
//! ## References
//! - <https://docs.python.org/3/library/traceback.html#traceback.clear_frames>
//! - <https://github.com/pytorch/pytorch/issues/18853>

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "exception-traceback-holds-frames",
    title: "A stored exception/traceback keeps all frames and their tensors",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Error)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Keep the text of the exception".into(),
            command: match &context.path {
                Some(name) => format!("{name}.append(traceback.format_exc())"),
                None => "errors.append(traceback.format_exc())".into(),
            },
            automatic: None,
        },
        Fix {
            title: "Or let go of the frames".into(),
            command: "traceback.clear_frames(error.__traceback__)".into(),
            automatic: None,
        },
    ]
}
