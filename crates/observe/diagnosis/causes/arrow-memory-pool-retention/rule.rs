//! # arrow-memory-pool-retention
//!
//! ## What it does
//! Finds a process in which the allocator of Arrow's pool keeps memory of tables that are gone.
//!
//! ## Why it happens
//! pyarrow has an allocator of its own (mimalloc, or jemalloc) for its tables. It keeps freed pages for later, for each thread,
//! and reading with several threads and read-ahead takes many. So `pyarrow.total_allocated_bytes()` goes back to nothing, and
//! resident memory does not.
//!
//! ## How it is told apart
//! Arrow's pool says what it has handed out, and what that was at its most. What malloc has, and Python's small objects, are counted
//! apart; what is left of the private memory that came since the first look is as much as the pool no longer needs.
//!
//! ## Known problems
//! Another library with an allocator of its own looks the same. With `ARROW_DEFAULT_MEMORY_POOL=system` the memory is malloc's, and
//! told under its causes. Memory that stands still is a note; it is a warning where it still grows at the end, or where
//! memory ran out. pyarrow 18 and 21.0.0 are known to take more than others.
//!
//! ## Example
//! RSS grows with each Parquet file, and `pyarrow.total_allocated_bytes()` is 0
//!
//! ## Remedy
//! Let the pool give back what it does not use, or use malloc.
//!
//! ## References
//! - <https://arrow.apache.org/docs/cpp/memory.html#default-memory-pool>
//! - <https://github.com/apache/arrow/issues/47266>

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fact, Fix};

pub(super) const RULE: Rule = Rule {
    id: "arrow-memory-pool-retention",
    title: "pyarrow/pandas parquet reading: pool retention and bad versions",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Arrow,
        |kept| {
            format!(
                "Arrow's pool in {} had handed out {}, and {} of what it had before were still in its {} of private memory.",
                evidence::describe(kept.process),
                evidence::bytes(kept.retained.used as u64),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::bytes(kept.retained.anonymous as u64)
            )
        },
        |_| {
            let version =
                analysis.timeline.inside().get("package.pyarrow").and_then(Fact::text).map(|version| {
                    let sentence = format!("pyarrow {version} is installed.");
                    evidence::text("pyarrow", version, "agent", None, sentence)
                });
            version.into_iter().chain(allocators::variable(analysis, "ARROW_DEFAULT_MEMORY_POOL")).collect()
        },
    )
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Give back what is not in use, after each file".into(),
            command: "pyarrow.default_memory_pool().release_unused()".into(),
            automatic: None,
        },
        Fix {
            title: "Or let Arrow use malloc".into(),
            command: "export ARROW_DEFAULT_MEMORY_POOL=system MALLOC_ARENA_MAX=2".into(),
            automatic: None,
        },
        Fix {
            title: "Or read in pieces, by one thread".into(),
            command: "for batch in pyarrow.parquet.ParquetFile(path, pre_buffer=False).iter_batches(use_threads=False):\n    ..."
                .into(),
            automatic: None,
        },
    ]
}
