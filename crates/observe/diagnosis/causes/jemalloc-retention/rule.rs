//! # jemalloc-retention
//!
//! ## What it does
//! Finds a process in which jemalloc, preloaded in malloc's place, keeps memory that the program has let go of.
//!
//! ## Why it happens
//! jemalloc gives freed pages back after some time (`dirty_decay_ms`, 10 seconds), and looks whether that time has come only
//! while somebody allocates, unless a thread of its own does (`background_thread`); a forked process has no such thread. It has
//! four arenas for each core.
//!
//! ## How it is told apart
//! jemalloc itself says what it has handed out (`stats.allocated`) and what it holds in memory (`stats.resident`). In a leak both
//! rise.
//!
//! ## Known problems
//! Copies that a library has built in (pyarrow, Redis) have other names and answer nobody: see `arrow-memory-pool-retention`.
//! Without the agent nobody can be asked. Memory that stands still is a note; it is a warning where it still grows at the end,
//! or where memory ran out.
//!
//! ## Example
//! `LD_PRELOAD=libjemalloc.so.2`: 1 GiB of small blocks freed at once, and most of it not given back while the program sleeps
//!
//! ## Remedy
//! A shorter time, and a thread that keeps it.
//!
//! ## References
//! - <https://jemalloc.net/jemalloc.3.html>

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "jemalloc-retention",
    title: "jemalloc (preloaded or embedded in pyarrow/redis/ray) holds dirty/retained extents",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Jemalloc,
        |kept| {
            format!(
                "jemalloc in {} had handed out {} and held {} more in memory, of {} private memory.",
                evidence::describe(kept.process),
                evidence::bytes(kept.retained.used as u64),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::bytes(kept.retained.anonymous as u64)
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
        Fix {
            title: "Let it give pages back after a second, by a thread of its own".into(),
            command:
                "export MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4"
                    .into(),
            automatic: None,
        },
        Fix {
            title: "In forked workers, which have no such thread: at once".into(),
            command: "export MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0".into(),
            automatic: None,
        },
    ]
}
