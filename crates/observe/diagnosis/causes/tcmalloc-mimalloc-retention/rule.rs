//! Does a run show tcmalloc-mimalloc-retention? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fact, Fix, GrowthClass};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    if let Some(because) = mimalloc(analysis) {
        return Judgement::undetermined(because);
    }
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Tcmalloc,
        |retention| {
            format!(
                "tcmalloc holds {} free in {}: {} private, {} in use.",
                evidence::bytes(retention.retained.bytes as u64),
                evidence::describe(retention.process),
                evidence::bytes(retention.retained.anonymous as u64),
                evidence::bytes(retention.retained.used as u64)
            )
        },
        |_| {
            let variables = ["LD_PRELOAD", "TCMALLOC_RELEASE_RATE"].into_iter();
            variables.filter_map(|name| allocators::variable(analysis, name)).collect()
        },
    )
}

/// It is in malloc's place, and what grows lies in no other heap.
fn mimalloc(analysis: &Analysis) -> Option<String> {
    let allocators = analysis.timeline.inside().get("loaded.allocator").and_then(Fact::text)?;
    let (growth, _) = analysis.growth.as_ref()?;
    let may_be = matches!(growth.class, GrowthClass::LiveNativeBlocks | GrowthClass::LiveGrowth);
    (allocators.contains("mimalloc") && may_be).then(|| {
        let grew = evidence::bytes(growth.bytes);
        format!("private memory grew by {grew}, and mimalloc does not report how much of it is free")
    })
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Let tcmalloc return pages ten times as fast", "export TCMALLOC_RELEASE_RATE=10"),
        Fix::new(
            "Or return them at the end of each epoch",
            "import ctypes\nctypes.CDLL(None).MallocExtension_ReleaseFreeMemory()",
        ),
    ]
}
