//! # tcmalloc-mimalloc-retention
//!
//! ## What it does
//! Finds a process in which tcmalloc, preloaded in malloc's place, keeps memory that the program has let go of.
//!
//! ## Why it happens
//! tcmalloc keeps freed blocks in caches of each thread and freed pages in its page heap, and gives these back slowly
//! (`TCMALLOC_RELEASE_RATE`, 1). mimalloc delays it too, and pages of a thread that has ended wait for another one.
//!
//! ## How it is told apart
//! tcmalloc itself says what it has handed out and what it holds in memory. In a leak both rise.
//!
//! ## Known problems
//! mimalloc does not say what it has handed out: where it is in malloc's place and private memory grows, it is said that it
//! cannot be told. Memory that stands still is a note; it is a warning where it still grows at the end, or where memory ran out.
//!
//! ## Example
//! `LD_PRELOAD=libtcmalloc_minimal.so.4`: 500 MiB of blocks are freed, and stay
//!
//! ## Remedy
//! Let it give back faster.
//!
//! ## References
//! - <https://gperftools.github.io/gperftools/tcmalloc.html>
//! - <https://microsoft.github.io/mimalloc/environment.html>

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fact, Fix, GrowthClass};

pub(super) const RULE: Rule = Rule {
    id: "tcmalloc-mimalloc-retention",
    title: "tcmalloc/mimalloc thread caches and page heap keep memory",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    if let Some(because) = mimalloc(analysis) {
        return Judgement::cannot_tell(because);
    }
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Tcmalloc,
        |kept| {
            format!(
                "tcmalloc in {} had handed out {} and held {} more in memory, of {} private memory.",
                evidence::describe(kept.process),
                evidence::bytes(kept.retained.used as u64),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::bytes(kept.retained.anonymous as u64)
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
        format!("private memory grew by {grew}, and mimalloc, which is in malloc's place, does not say how much of it is free")
    })
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Let tcmalloc give pages back ten times as fast".into(),
            command: "export TCMALLOC_RELEASE_RATE=10".into(),
            automatic: None,
        },
        Fix {
            title: "Or at once, at the end of an epoch".into(),
            command: "import ctypes\nctypes.CDLL(None).MallocExtension_ReleaseFreeMemory()".into(),
            automatic: None,
        },
    ]
}
