//! Does a run show arrow-memory-pool-retention? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fact, Fix};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Arrow,
        |retention| {
            format!(
                "Arrow's pool holds {} free in {}: {} private, {} in use.",
                evidence::bytes(retention.retained.bytes as u64),
                evidence::describe(retention.process),
                evidence::bytes(retention.retained.anonymous as u64),
                evidence::bytes(retention.retained.used as u64)
            )
        },
        |_| {
            let version =
                analysis.timeline.inside().get("package.pyarrow").and_then(Fact::text).map(|version| {
                    let sentence = format!("It uses pyarrow {version}.");
                    evidence::text("pyarrow", version, "agent", None, sentence)
                });
            version.into_iter().chain(allocators::variable(analysis, "ARROW_DEFAULT_MEMORY_POOL")).collect()
        },
    )
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Return unused memory after each file",
            "pyarrow.default_memory_pool().release_unused()",
        ),
        Fix::new("Or let Arrow use malloc", "export ARROW_DEFAULT_MEMORY_POOL=system MALLOC_ARENA_MAX=2"),
        Fix::new(
            "Or read in pieces, on one thread",
            "for batch in pyarrow.parquet.ParquetFile(path, pre_buffer=False).iter_batches(use_threads=False):\n    ...",
        ),
    ]
}
