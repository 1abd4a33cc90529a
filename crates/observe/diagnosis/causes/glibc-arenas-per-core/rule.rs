//! # glibc-arenas-per-core
//!
//! ## What it does
//! Finds a process in which arenas of malloc, one for each thread that asked, keep memory that the program has let go of.
//!
//! ## Why it happens
//! glibc gives threads that allocate at one time an arena each, eight for each core at most. What is freed in an arena is there
//! for the threads of that arena only, and goes back to the kernel from the arena's end only: a single block that lives on
//! keeps up to 64 MiB. So a pool of decoding threads takes ten times its live memory on a machine with many cores, and
//! not on a small one.
//!
//! ## How it is told apart
//! malloc itself says how much is free in which heap. A leak is in use and not free; what lies free in the first heap is
//! `glibc-dynamic-mmap-threshold`; Python's small objects (`pymalloc-fragmentation`) are in no heap of malloc, and a
//! `malloc_trim(0)` gives nothing of them back.
//!
//! ## Known problems
//! Without the agent free memory looks like memory in use. Memory that was freed and stands still is a note: it is there for
//! the next blocks. It is a warning where it still grows at the end, or where memory ran out.
//!
//! ## Example
//! 12 threads each free all but one of their blocks: 560 MiB stay, `malloc_trim(0)` leaves 11
//!
//! ## Remedy
//! Fewer arenas, set before the program starts.
//!
//! ## References
//! - <https://sourceware.org/bugzilla/show_bug.cgi?id=28850>
//! - mallopt(3)

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "glibc-arenas-per-core",
    title: "glibc malloc arenas: 8 x cores arenas keep freed memory",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Arenas,
        |kept| {
            format!(
                "Of {} private memory in {}, {} lay free in {} of malloc beside its first heap, {} were in use in all of them; {}.",
                evidence::bytes(kept.retained.anonymous as u64),
                evidence::describe(kept.process),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::plural(kept.retained.arenas.saturating_sub(1), "arena", "arenas"),
                evidence::bytes(kept.retained.used as u64),
                allocators::trim(&kept.retained)
            )
        },
        |kept| {
            let threads = kept.process.threads.peak().map(|(at, threads)| {
                let sentence = format!(
                    "It had {} at most, on {}; each of them may have an arena, up to eight for a core.",
                    evidence::plural(threads as u64, "thread", "threads"),
                    evidence::plural(analysis.machine().cores.into(), "core", "cores")
                );
                let source = format!("/proc/{}/stat", kept.process.id.pid);
                evidence::number("threads", threads as u64, "threads", &source, at, sentence)
            });
            threads.into_iter().chain(allocators::variable(analysis, "MALLOC_ARENA_MAX")).collect()
        },
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gives =
        context.bytes.map_or(String::new(), |bytes| format!(" (about {} here)", evidence::bytes(bytes)));
    vec![
        Fix {
            title: "Let all threads share two arenas, set before the program starts".into(),
            command: "export MALLOC_ARENA_MAX=2".into(),
            automatic: None,
        },
        Fix {
            title: format!("Or give it back at times, at the end of an epoch{gives}"),
            command: "import ctypes\nctypes.CDLL(\"libc.so.6\").malloc_trim(0)".into(),
            automatic: None,
        },
        Fix {
            title: "Or an allocator that gives memory back by itself (Debian: libjemalloc2)".into(),
            command:
                "export LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=background_thread:true,dirty_decay_ms:1000"
                    .into(),
            automatic: None,
        },
    ]
}
