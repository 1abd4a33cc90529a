//! Does a run show create-graph-cycle? page.md says what that is, and how it differs from its look-alikes.

use super::unnamed_growth;
use crate::analysis::growth_class::rising;
use crate::analysis::retainers::{explained_share, is_much, is_much_in_use, is_not_live};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, GROWTH_BYTES};
use crate::rule::finding::of_job;
use crate::rule::retainers::{growth_sentence, unseen};
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Evidence, Fix, GraphGradients, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let mut all: Vec<(&ProcessHistory, Rise, At, &GraphGradients)> = rising
        .filter_map(|(process, rise)| {
            let (at, census) = process.censuses.last()?;
            let grads = census.grads.as_ref()?;
            let seen = grads.with_graph > 0 || grads.warned;
            (seen && at.seconds() >= rise.since).then_some((process, rise, *at, grads))
        })
        .filter(|(process, rise, ..)| match is_not_live(process, rise) {
            // Each step may have one for a while, beside what malloc holds free.
            true => is_much_in_use(process, rise) && become_more(process),
            false => is_much(process, rise),
        })
        .filter(|(process, ..)| unnamed_growth::grows(analysis, process))
        .filter(|(process, rise, ..)| explained_share(process, *rise) < EXPLAINS)
        .collect();
    all.sort_by(|a, b| b.1.by.total_cmp(&a.1.by));
    let Some((process, rise, at, grads)) = all.first() else {
        return unseen(analysis).map_or(Judgement::Nothing, Judgement::undetermined);
    };
    let evidence = vec![growth_sentence(process, rise), sentence(process, *at, grads)];
    let context = analysis.remedy_context_of(Some(process));
    let mut finding = of_job(&RULE, Severity::Warning, Proof::InPart, evidence, &context);
    finding.process = Some(evidence::process_ref(process));
    finding.at = Some(At::from_seconds(rise.since));
    Judgement::one(finding)
}

/// Gradients with a graph, from each census to the next.
fn become_more(process: &ProcessHistory) -> bool {
    // Of very many objects nobody counted them.
    let counted = process.censuses.iter().filter(|(_, census)| census.tensors.is_some());
    let counts: Vec<u64> =
        counted.filter_map(|(_, census)| Some(census.grads.as_ref()?.with_graph)).collect();
    let since = counts.iter().rposition(|count| *count == 0).unwrap_or(0);
    let counts = &counts[since..];
    counts.len() > 2 && counts.windows(2).all(|two| two[0] < two[1])
}

fn sentence(process: &ProcessHistory, at: At, grads: &GraphGradients) -> Evidence {
    let source = evidence::Source::Agent(process.id.pid);
    let known = if grads.with_graph > 0 {
        let leaves = evidence::plural(grads.with_graph, "tensor has", "tensors have");
        format!("{leaves} a gradient that carries a graph, such as {}", grads.tensor)
    } else {
        "Torch warned of backward(create_graph=True)".to_owned()
    };
    let sentence = format!(
        "{known}: each such gradient keeps its tensor and its graph alive, and no collector sees that cycle."
    );
    if grads.with_graph == 0 {
        return evidence::text("backward(create_graph=True)", "warned of", source, Some(at), sentence);
    }
    evidence::number("gradients with a graph", grads.with_graph, "", source, at, sentence)
}

fn fixes(_: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Request the gradients instead of leaving them in .grad",
            "grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)",
        ),
        Fix::new(
            "Or break the cycle after using the gradients",
            "for parameter in model.parameters():\n    parameter.grad = None",
        ),
    ]
}
