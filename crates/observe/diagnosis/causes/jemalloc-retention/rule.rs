//! Does a run show jemalloc-retention? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Jemalloc,
        |retention| {
            format!(
                "jemalloc holds {} free in {}: {} private, {} in use.",
                evidence::bytes(retention.retained.bytes as u64),
                evidence::describe(retention.process),
                evidence::bytes(retention.retained.anonymous as u64),
                evidence::bytes(retention.retained.used as u64)
            )
        },
        |_| {
            ["LD_PRELOAD", "MALLOC_CONF"]
                .into_iter()
                .filter_map(|name| allocators::variable(analysis, name))
                .collect()
        },
    )
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Let its background thread return pages after a second",
            "export MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4",
        ),
        Fix::new(
            "In forked workers, which lack that thread: return pages at once",
            "export MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0",
        ),
    ]
}
