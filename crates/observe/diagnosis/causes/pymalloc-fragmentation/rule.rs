//! Does a run show pymalloc-fragmentation? page.md says what that is, and how it differs from its look-alikes.

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
        Allocator::Pymalloc,
        |retention| {
            format!(
                "{} freed small Python objects; about {} of their memory is still held (of {} private).",
                evidence::capital(&evidence::describe(retention.process)),
                evidence::bytes(retention.retained.bytes as u64),
                evidence::bytes(retention.retained.anonymous as u64)
            )
        },
        |_| allocators::variable(analysis, "PYTHONMALLOC").into_iter().collect(),
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Build the objects in a process that ends, and return only arrays",
            "import concurrent.futures\n\
                      with concurrent.futures.ProcessPoolExecutor(1) as pool:\n    \
                      lengths, text = pool.submit(read_index, path).result()  # numpy arrays",
        ),
        Fix::new(
            "Or store columns instead of one object per row",
            "labels = numpy.fromiter((row[\"label\"] for row in read_rows(path)), dtype=numpy.int32)",
        ),
        Fix::new(
            "Confirm it: run with malloc, which can be trimmed",
            format!("PYTHONMALLOC=malloc {}", context.typed()),
        ),
    ]
}
