//! Does a run show glibc-arenas-per-core? page.md says what that is, and how it differs from its look-alikes.

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
        Allocator::Arenas,
        |retention| {
            format!(
                "malloc holds {} free in {} of {}: {} private, {} in use.",
                evidence::bytes(retention.retained.bytes as u64),
                evidence::plural(retention.retained.arenas.saturating_sub(1), "arena", "arenas"),
                evidence::describe(retention.process),
                evidence::bytes(retention.retained.anonymous as u64),
                evidence::bytes(retention.retained.used as u64)
            )
        },
        |retention| {
            let threads = retention.process.threads.peak().map(|(at, threads)| {
                let sentence = format!(
                    "It ran up to {} on {}; each thread may get an arena, up to eight a core.",
                    evidence::plural(threads as u64, "thread", "threads"),
                    evidence::plural(analysis.machine().cores.into(), "core", "cores")
                );
                let source = evidence::Source::Process(retention.process.id.pid, "stat");
                evidence::number("threads", threads as u64, "threads", source, at, sentence)
            });
            threads.into_iter().chain(allocators::variable(analysis, "MALLOC_ARENA_MAX")).collect()
        },
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gives =
        context.bytes.map_or(String::new(), |bytes| format!(" (about {} here)", evidence::bytes(bytes)));
    vec![
        Fix::new(
            "Let all threads share two arenas (set before the program starts)",
            "export MALLOC_ARENA_MAX=2",
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
