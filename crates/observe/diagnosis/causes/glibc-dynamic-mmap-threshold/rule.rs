//! # glibc-dynamic-mmap-threshold
//!
//! ## What it does
//! Finds a process in which the first heap of malloc keeps memory that the program has let go of.
//!
//! ## Why it happens
//! A block of 128 KiB or more is a mapping of its own, and gone once it is freed. But the first such block that is freed
//! raises that threshold to its size, up to 32 MiB, and twice that stays at the heap's end. From then on batches and images of
//! some MiB come from the heap, and what is freed there goes back from its end only: one small block that lives on
//! keeps all that lies below it. So resident memory follows the peak, and not what is in use.
//!
//! ## How it is told apart
//! malloc itself says how much is free in which heap. A leak is in use and not free; arenas of threads are
//! `glibc-arenas-per-core`; Python's small objects (`pymalloc-fragmentation`) are in no heap of malloc, and a
//! `malloc_trim(0)` gives nothing of them back.
//!
//! ## Known problems
//! malloc does not say of which size the blocks were: of many small ones that were freed the same is seen, and then only
//! `malloc_trim` helps. Where MALLOC_MMAP_THRESHOLD_ or MALLOC_TRIM_THRESHOLD_ is set, the threshold does not move. Memory
//! that was freed and stands still is a note; it is a warning where it still grows at the end, or where memory ran out.
//!
//! ## Example
//! Batches of 1 to 24 MiB: RSS stays at the peak of 101 MiB by default, and at 57 MiB with the threshold set
//!
//! ## Remedy
//! Keep the threshold where it is, or trim.
//!
//! ## References
//! - <https://www.gnu.org/software/libc/manual/html_node/Malloc-Tunable-Parameters.html>
//! - mallopt(3), M_MMAP_THRESHOLD

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "glibc-dynamic-mmap-threshold",
    title: "glibc dynamic mmap/trim threshold keeps large freed blocks",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

/// Either of them stops the threshold from moving.
const VARIABLES: [&str; 2] = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Heap,
        |kept| {
            format!(
                "Of {} private memory in {}, {} lay free in the first heap of malloc, below blocks that live on; {} were in use in its heaps; {}.",
                evidence::bytes(kept.retained.anonymous as u64),
                evidence::describe(kept.process),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::bytes(kept.retained.used as u64),
                allocators::trim(&kept.retained)
            )
        },
        |_| VARIABLES.into_iter().filter_map(|name| allocators::variable(analysis, name)).collect(),
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gives =
        context.bytes.map_or(String::new(), |bytes| format!(" (about {} here)", evidence::bytes(bytes)));
    vec![
        Fix {
            title: "Where blocks are large: let each of 128 KiB or more be a mapping of its own, for good; each counts against vm.max_map_count while it lives".into(),
            command: "export MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072".into(),
            automatic: None,
        },
        Fix {
            title: format!("Or, whatever their size: give it back at times, at the end of an epoch{gives}"),
            command: "import ctypes\nctypes.CDLL(\"libc.so.6\").malloc_trim(0)".into(),
            automatic: None,
        },
        Fix {
            title: "Or an allocator that gives memory back by itself (Debian: libjemalloc2)".into(),
            command: "export LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=background_thread:true,dirty_decay_ms:1000".into(),
            automatic: None,
        },
    ]
}
