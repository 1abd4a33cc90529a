//! # pymalloc-fragmentation
//!
//! ## What it does
//! Finds a Python that built very many small objects, let go of them, and keeps their memory.
//!
//! ## Why it happens
//! Python takes objects of up to 512 bytes from arenas of its own, of 1 MiB (256 KiB before Python 3.10), and gives an arena back
//! when nothing in it is in use any more. A dataset that is parsed into millions of small objects leaves survivors in nearly
//! every arena. What was freed is there for Python's next small objects, and for nothing else.
//!
//! ## How it is told apart
//! The number of pieces that Python has handed out fell, and its private memory did not; malloc has no part in it, so that a
//! `malloc_trim(0)` changes nothing. In a leak the number of pieces rises.
//!
//! ## Known problems
//! What is kept is an estimate: what a piece took at the peak, times the pieces that are gone. It is a note: done once more, the
//! same work takes no more memory. It is a warning where memory ran out, or where it is what the job grows by to its end.
//!
//! ## Example
//! `rows = [{"a": n} for n in range(600_000)]; kept = rows[::1000]; del rows`: 143 MiB before, 138 MiB after
//!
//! ## Remedy
//! Build such things in a process that ends, or in columns.
//!
//! ## References
//! - <https://docs.python.org/3/c-api/memory.html#the-pymalloc-allocator>

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::Allocator;
use crate::rule::allocators;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "pymalloc-fragmentation",
    title: "CPython small-object arenas pinned by survivors",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    allocators::judge(
        analysis,
        &RULE,
        Allocator::Pymalloc,
        |kept| {
            format!(
                "{} let go of small Python objects, and about {} of their memory stayed in its {} of private memory; none of it is malloc's, so that malloc_trim(0) gives nothing back.",
                evidence::capital(&evidence::describe(kept.process)),
                evidence::bytes(kept.retained.bytes as u64),
                evidence::bytes(kept.retained.anonymous as u64)
            )
        },
        |_| allocators::variable(analysis, "PYTHONMALLOC").into_iter().collect(),
    )
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "Build it in a process that ends, and take over arrays only".into(),
            command: "import concurrent.futures\n\
                      with concurrent.futures.ProcessPoolExecutor(1) as pool:\n    \
                      lengths, text = pool.submit(read_index, path).result()  # numpy arrays"
                .into(),
            automatic: None,
        },
        Fix {
            title: "Or keep columns in place of objects: no small piece for each row".into(),
            command:
                "labels = numpy.fromiter((row[\"label\"] for row in read_rows(path)), dtype=numpy.int32)"
                    .into(),
            automatic: None,
        },
        Fix {
            title: "To settle it: the same with malloc in its place, which can be trimmed".into(),
            command: "PYTHONMALLOC=malloc python train.py".into(),
            automatic: None,
        },
    ]
}
