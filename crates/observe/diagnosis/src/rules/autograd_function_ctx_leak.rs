//! # autograd-function-ctx-leak
//!
//! ## What it does
//! Finds a custom autograd function that keeps its own output as an attribute of `ctx`, so that neither is ever freed.
//!
//! ## Why it happens
//! `ctx.y = y` in forward: the output refers to its graph, the graph to `ctx`, and `ctx` to the output. Part of that circle
//! lies in C++, where Python's collector does not look. `ctx.save_for_backward` keeps outputs without such a circle, and lets
//! them go after the backward pass.
//!
//! ## How it is told apart
//! The agent finds contexts of autograd functions in the collector's list, each with a tensor among its attributes whose
//! `grad_fn` is that very context: the circle itself. Their number rises in both halves of the time in which it was watched,
//! and to its end. Contexts of a graph that is still needed hold no such tensor, nor does one that keeps an input.
//!
//! ## Known problems
//! Needs the agent. A tensor in a list or a dict of `ctx` is not looked for. The circle that `backward(create_graph=True)`
//! makes between a parameter and its gradient is another one.
//!
//! ## Example
//! Memory rises by the size of an activation with each step, and `gc.collect()` frees nothing.
//!
//! ## Remedy
//! `ctx.save_for_backward`.
//!
//! ## References
//! - <https://docs.pytorch.org/docs/stable/notes/extending.html>
//! - <https://github.com/pytorch/pytorch/issues/25340>

use crate::copies::ran_out;
use crate::found::of_job;
use crate::keeps::{rising, Rising};
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{Fix, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "autograd-function-ctx-leak",
    title: "custom autograd.Function stores tensors on ctx; create_graph cycles",
    source: include_str!("autograd_function_ctx_leak.rs"),
    judge,
    fixes,
};

const MORE: u64 = 16;
/// So much is worth a note, and so much a warning.
const NOTE: u64 = 16 << 20;
const WARN: u64 = 64 << 20;

fn judge(case: &Case) -> Judgement {
    let found = case.timeline.processes().filter_map(|process| rising(process, "autograd-contexts", MORE));
    let held = |rising: &Rising| rising.last.bytes.unwrap_or(0);
    let Some(most) = found.filter(|rising| held(rising) >= NOTE).max_by_key(held) else {
        return Judgement::Nothing;
    };
    let bytes = held(&most);
    let much =
        bytes >= WARN || (ran_out(case) && bytes.saturating_mul(10) >= case.timeline.memory().peak_bytes);
    let severity = if much { Severity::Warning } else { Severity::Note };
    let sentence = format!(
        "In {} were {} contexts of autograd functions (most of {}) that hold a tensor which they made themselves, {} of them; {} more than {} before.",
        say::who(most.process),
        say::count(most.last.count),
        most.last.name,
        say::bytes(bytes),
        say::count(most.more()),
        say::seconds(most.at.since(most.since))
    );
    let source = format!("agent in {}", most.process.id.pid);
    let evidence = say::number("held by contexts", bytes, "bytes", &source, most.at, sentence);
    let setting = case.setting_of(Some(most.process));
    let mut finding = of_job(&RULE, severity, (Status::Established, 0.95), vec![evidence], &setting);
    finding.process = Some(say::process_ref(most.process));
    Judgement::one(finding)
}

fn fixes(_setting: &Setting) -> Vec<Fix> {
    vec![
        Fix {
            title: "Let torch keep what backward needs: it lets it go afterwards".into(),
            command: "ctx.save_for_backward(y)  # in forward, instead of ctx.y = y\n\
                      (y,) = ctx.saved_tensors  # in backward"
                .into(),
            automatic: None,
        },
        Fix {
            title: "Something that is neither input nor output may stay an attribute, without its graph"
                .into(),
            command: "ctx.mask = mask.detach()".into(),
            automatic: None,
        },
    ]
}
