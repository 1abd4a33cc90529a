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

use crate::growing::Keeper;
use crate::kept;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{Fact, Fix, GrowthClass};

pub(super) const RULE: Rule = Rule {
    id: "tcmalloc-mimalloc-retention",
    title: "tcmalloc/mimalloc thread caches and page heap keep memory",
    source: include_str!("tcmalloc_mimalloc_retention.rs"),
    judge,
    fixes,
};

fn judge(case: &Case) -> Judgement {
    if let Some(because) = mimalloc(case) {
        return Judgement::cannot_tell(because);
    }
    kept::judge(
        case,
        &RULE,
        Keeper::Tcmalloc,
        |kept| {
            format!(
                "tcmalloc in {} had handed out {} and held {} more in memory, of {} private memory.",
                say::who(kept.process),
                say::bytes(kept.hoard.used as u64),
                say::bytes(kept.hoard.bytes as u64),
                say::bytes(kept.hoard.anonymous as u64)
            )
        },
        |_| {
            let variables = ["LD_PRELOAD", "TCMALLOC_RELEASE_RATE"].into_iter();
            variables.filter_map(|name| kept::variable(case, name)).collect()
        },
    )
}

/// It is in malloc's place, and what grows lies in no other heap.
fn mimalloc(case: &Case) -> Option<String> {
    let allocators = case.timeline.inside().get("loaded.allocator").and_then(Fact::text)?;
    let (growth, _) = case.growth()?;
    let may_be = matches!(growth.class, GrowthClass::LiveNativeBlocks | GrowthClass::LiveGrowth);
    (allocators.contains("mimalloc") && may_be).then(|| {
        let grew = say::bytes(growth.bytes);
        format!("private memory grew by {grew}, and mimalloc, which is in malloc's place, does not say how much of it is free")
    })
}

fn fixes(_setting: &Setting) -> Vec<Fix> {
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
