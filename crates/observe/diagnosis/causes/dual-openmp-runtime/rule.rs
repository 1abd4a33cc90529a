//! Does a run show dual-openmp-runtime? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeSet;
use ullage_model::{Evidence, Fact, Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let loaded = analysis.timeline.inside().get("loaded.openmp").and_then(Fact::text).unwrap_or_default();
    let runtimes: Vec<&str> = loaded.split(", ").filter(|one| family(one).is_some()).collect();
    if runtimes.len() < 2 {
        return Judgement::Nothing;
    }
    let families: BTreeSet<&str> = runtimes.iter().filter_map(|one| family(one)).collect();
    let main = analysis.main().and_then(|id| analysis.timeline.process(id));
    let threads = main.and_then(|main| main.threads.peak());
    let pools = threads.map_or(String::new(), |(_, threads)| {
        let number = evidence::plural(threads as u64, "thread", "threads");
        format!(
            " It ran up to {number} on {}.",
            evidence::plural(analysis.machine().cores.into(), "core", "cores")
        )
    });
    let copies = if families.len() == 1 { " They are copies of one runtime." } else { "" };
    let sentence = format!(
        "The program loaded {} OpenMP runtimes, each with its own threads: {loaded}.{copies}{pools}",
        evidence::count(runtimes.len() as u64)
    );
    let at = threads.map(|(at, _)| at);
    let mut evidence: Vec<Evidence> = vec![evidence::text("OpenMP runtimes", loaded, "agent", at, sentence)];
    evidence.extend(crate::rule::allocators::variable(analysis, "KMP_DUPLICATE_LIB_OK"));
    let known = Proof::Estimated;
    let mut finding = of_job(&RULE, Severity::Note, known, evidence, &analysis.remedy_context_of(main));
    finding.process = main.map(evidence::process_ref);
    Judgement::one(finding)
}

/// Which of them a library is, of `package:name`.
fn family(library: &str) -> Option<&'static str> {
    let name = library.rsplit(':').next().unwrap_or(library);
    ["libgomp", "libiomp", "libomp"].into_iter().find(|family| name.starts_with(family))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "List the libraries that load them (pip install threadpoolctl)",
            "python -m threadpoolctl -i torch numpy",
        ),
        Fix::new(
            "Install all from pip or all from conda; with conda's MKL, use torch's libgomp",
            "export MKL_THREADING_LAYER=GNU",
        ),
        Fix::new(
            "If workers hang after a fork: start them by forkserver",
            context.loader("multiprocessing_context=\"forkserver\""),
        )
        .only(Place::Loader),
    ]
}
