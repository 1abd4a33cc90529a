//! Does a run show pymalloc-fragmentation? What that is, and how it is told apart, says page.md.

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
        Fix::new(
            "Build it in a process that ends, and take over arrays only",
            "import concurrent.futures\n\
                      with concurrent.futures.ProcessPoolExecutor(1) as pool:\n    \
                      lengths, text = pool.submit(read_index, path).result()  # numpy arrays",
        ),
        Fix::new(
            "Or keep columns in place of objects: no small piece for each row",
            "labels = numpy.fromiter((row[\"label\"] for row in read_rows(path)), dtype=numpy.int32)",
        ),
        Fix::new(
            "To settle it: the same with malloc in its place, which can be trimmed",
            "PYTHONMALLOC=malloc python train.py",
        ),
    ]
}
