//! Of two accounts of one growth, which is nearer to its cause?
//!
//! - What malloc holds free below live blocks, in its first heap or in a thread's, came as these became more: they pin many times
//!   their own size, and without them the rest would go back. A named growth of the process explains it.
//! - What a name leads to, through any number of others, is where a growth was seen. A queue whose items nobody takes explains it.
//! - What is registered to be called at the end, and came with a thread each, waits for the end of those threads.

use crate::analysis::growth_class::rising;
use crate::analysis::retainers::{is_held_by_c, is_much_in_use};
use crate::analysis::Analysis;
use crate::causes::explains_growth;
use crate::policy::growth::GROWTH_BYTES;
use crate::policy::sizes::MOST;
use crate::rule::allocators::retained_by_allocator;
use crate::rule::retainers::LEADS_TO;
use ullage_model::{EvidenceValue, Finding, ProcessId, Severity, Status};

/// Free memory that lies below blocks in use. That of threads' arenas is so too, and yet may be what many threads needed once: it
/// is explained where much is in use.
const BELOW_LIVE: &str = "glibc-dynamic-mmap-threshold";
const IN_ARENAS: &str = "glibc-arenas-per-core";
const QUEUE: &str = "queue-backlog-unbounded";
const THREADS: &str = "threads-per-task";
const AT_EXIT: &str = "hooks-and-closures-leak";

/// Copies of pages, processes, mappings and what has no name: no blocks among others.
const OF_PAGES: [&str; 9] = [
    "fork-parent-rewrites",
    "inductor-compile-workers",
    "large-preallocation-lazy-touch",
    "per-rank-copies",
    "refcount-cow-fork-workers",
    "spawn-forkserver-full-copy",
    "thp-always-rss-bloat",
    "threads-per-task",
    "unnamed-growth",
];

/// Lets the nearer one explain the other.
pub(crate) fn explain(analysis: &Analysis, findings: &mut [Finding]) {
    let of = |finding: &Finding| finding.process.as_ref().map(|process| process.id);
    for farther in 0..findings.len() {
        let Some(process) = of(&findings[farther]) else { continue };
        let cause = findings[farther].cause.clone();
        let is_pinned = cause == BELOW_LIVE || cause == IN_ARENAS && much_is_in_use(analysis, process);
        let is_queued =
            leads_to(&findings[farther]).is_some_and(|bytes| waiting(analysis, process) >= MOST * bytes);
        let of_threads = cause == AT_EXIT && came_with_threads(analysis, process);
        let nearer = findings.iter_mut().find(|finding| {
            let known = finding.severity > Severity::Note && finding.status() >= Status::Supported;
            let fits = (is_pinned && pins(finding))
                || (is_queued && finding.cause == QUEUE)
                || (of_threads && finding.cause == THREADS);
            known && fits && finding.cause != cause && of(finding) == Some(process)
        });
        let Some(nearer) = nearer else { continue };
        if !nearer.explains.contains(&cause) {
            nearer.explains.push(cause);
        }
        // What is pinned needs no remedy of its own, unless memory ran out.
        let pinned = &mut findings[farther].severity;
        if is_pinned && *pinned == Severity::Warning && !analysis.ran_out {
            *pinned = Severity::Note;
        }
    }
}

/// It is of blocks that stay in use, whose names are known.
fn pins(finding: &Finding) -> bool {
    let is_other = retained_by_allocator(finding).is_some() || OF_PAGES.contains(&finding.cause.as_str());
    // Hooks are worth a word however little they are.
    let is_trifle = finding.evidence.first().is_some_and(|first| match first.value {
        EvidenceValue::Number(bytes, _) => first.what.ends_with("_hooks") && bytes < GROWTH_BYTES as f64,
        _ => false,
    });
    explains_growth(&finding.cause) && !is_other && !is_trifle
}

/// Bytes of what a name leads to, where a finding is of that.
fn leads_to(finding: &Finding) -> Option<f64> {
    let first = finding.evidence.first().filter(|evidence| evidence.what.starts_with(LEADS_TO))?;
    match first.value {
        EvidenceValue::Number(bytes, _) => Some(bytes),
        _ => None,
    }
}

/// Of what holds most, the callbacks that C holds are no more than the threads that came meanwhile.
fn came_with_threads(analysis: &Analysis, process: ProcessId) -> bool {
    let Some(process) = analysis.timeline.process(process) else { return false };
    let retainers = process.censuses.iter().flat_map(|(_, census)| &census.retainers);
    let most = retainers.max_by_key(|retainer| retainer.more_bytes);
    let of_c = most.filter(|retainer| is_held_by_c(retainer));
    let threads =
        process.threads.first().zip(process.threads.peak()).map_or(0.0, |(first, most)| most.1 - first.1);
    of_c.is_some_and(|callbacks| {
        threads >= callbacks.length.saturating_sub(callbacks.before.unwrap_or(0)) as f64
    })
}

/// What came to it and is in use would be worth a warning by itself.
fn much_is_in_use(analysis: &Analysis, process: ProcessId) -> bool {
    let rising = rising(analysis, GROWTH_BYTES as f64);
    rising.iter().any(|(one, rise)| one.id == process && is_much_in_use(one, rise))
}

/// Bytes that wait in the queues of a process.
fn waiting(analysis: &Analysis, process: ProcessId) -> f64 {
    analysis.timeline.process(process).map_or(0, |process| process.waiting_bytes()) as f64
}
