//! Does a run show fd-leak-files-sockets? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::descriptors;

use crate::analysis::{Analysis, RemedyContext};
use crate::rule::descriptors::Owner;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Place};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    descriptors::judge(analysis, &RULE, Owner::Other)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix::new(
            "Close each file after its sample is read",
            "with open(path, \"rb\") as file:\n    data = file.read()",
        ),
        Fix::new(
            "Find where they are opened: Python names each object dropped unclosed",
            warn_of_resources(context),
        ),
        Fix::new(
            "Bound the leak: end the workers after each epoch",
            context.loader("persistent_workers=False"),
        )
        .only(Place::Loader),
    ];
    fixes.extend(descriptors::raise_soft_limit(context));
    fixes
}

/// The job's command with Python's own warnings of files that were dropped unclosed.
fn warn_of_resources(context: &RemedyContext) -> String {
    let flags = "-X dev -W always::ResourceWarning";
    match context.typed().split_once(' ') {
        Some((program, rest)) if program.contains("python") => format!("{program} {flags} {rest}"),
        _ => format!("python {flags} train.py"),
    }
}
