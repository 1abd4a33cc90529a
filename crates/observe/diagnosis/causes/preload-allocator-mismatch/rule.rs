//! Does a run show preload-allocator-mismatch? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::{better, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let found: Option<Finding> = analysis
        .failures
        .iter()
        .filter(|failure| !failure.is_echo() && about_tls(failure))
        .fold(None, |found, failure| better(found, reported(analysis, failure)));
    found.map_or(Judgement::Nothing, Judgement::one)
}

fn about_tls(failure: &Failure) -> bool {
    let text = failure.text();
    text.contains("static TLS block") || text.contains("any more object with static TLS")
}

fn reported(analysis: &Analysis, failure: &Failure) -> Finding {
    let evidence = sharing::exception_sentence(failure).into_iter().collect();
    let context = RemedyContext { path: library(&failure.text()), ..analysis.remedy_context(Some(failure)) };
    finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &context)
}

/// `/x/libgomp.so.1` of `OSError: /x/libgomp.so.1: cannot allocate memory in static TLS block`.
fn library(text: &str) -> Option<String> {
    let before = &text[..text.find(": cannot allocate memory in static TLS")?];
    let name = before.rsplit(": ").next()?.trim();
    name.starts_with('/').then(|| name.to_owned())
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let library = context.path.as_deref().unwrap_or("/path/of/the/library.so");
    vec![
        Fix::new("Load that library first", format!("export LD_PRELOAD={library}")),
        Fix::new(
            "Or enlarge the reserve (glibc 2.32 or newer)",
            "export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384",
        ),
        Fix::new("Or import its package first", "import torch  # first line of the program"),
    ]
}
