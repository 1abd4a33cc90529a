//! Does a run show fd-leak-files-sockets? What that is, and how it is told apart, says page.md.

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
            "Close each file when its sample is read",
            "with open(path, \"rb\") as file:\n    data = file.read()",
        ),
        Fix::new(
            "See where they are opened: Python names each object that is dropped unclosed",
            "python -X dev -W always::ResourceWarning train.py",
        ),
        Fix::new(
            "Bound the leak to one epoch: end the workers after each",
            "DataLoader(dataset, num_workers=4, persistent_workers=False)",
        )
        .only(Place::Loader),
    ];
    fixes.extend(descriptors::raise_soft_limit(context));
    fixes
}
