//! Does a run show glibc-dynamic-mmap-threshold? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Either of them stops the threshold from moving.
const VARIABLES: [&str; 2] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Heap,
        |retention| {
            format!(
                "malloc holds {} free below live blocks in {}: {} private, {} in use.",
                evidence::bytes(retention.retained.bytes as u64),
                evidence::describe(retention.process),
                evidence::bytes(retention.retained.anonymous as u64),
                evidence::bytes(retention.retained.used as u64)
            )
        },
        |_| VARIABLES.into_iter().filter_map(|name| allocators::variable(analysis, name)).collect(),
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gives =
        context.bytes.map_or(String::new(), |bytes| format!(" (about {} here)", evidence::bytes(bytes)));
    vec![
        Fix::new(
            "Large blocks: map each block of 128 KiB or more by itself (counts against vm.max_map_count)",
            "export MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072",
        ),
        Fix::new(
            format!("Or return it at the end of each epoch{gives}"),
            "import ctypes\nctypes.CDLL(\"libc.so.6\").malloc_trim(0)",
        ),
        Fix::new(
            "Or use an allocator that returns memory itself (Debian: libjemalloc2)",
            "export LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=background_thread:true,dirty_decay_ms:1000",
        ),
    ]
}
