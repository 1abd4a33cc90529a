//! Does a run show gloo-and-process-group-growth? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{GROUPS_MORE, OF_A_GROUP};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use crate::trend::counter::{rising_counter, RisingCounter};
use ullage_model::{Evidence, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let found: Vec<RisingCounter> = analysis.timeline.processes().filter_map(grows).collect();
    let Some(most) = found.iter().max_by_key(|rising| (rising.more(), rising.process.id)) else {
        return Judgement::Nothing;
    };
    let subject = match found.len() {
        1 => evidence::capital(&evidence::describe(most.process)),
        more => format!("Each of {more} processes ({} most)", evidence::describe(most.process)),
    };
    let sentence = format!(
        "{subject} had {} process groups, {} more than {} before, and destroyed none of them.",
        evidence::count(most.last.count),
        evidence::count(most.more()),
        evidence::seconds(most.at.since(most.since))
    );
    let source = evidence::Source::Agent(most.process.id.pid);
    let mut evidence =
        vec![evidence::number("process groups", most.last.count, "groups", source, most.at, sentence)];
    evidence.extend(with_them(most));
    // What was refused in the end was refused to one of them.
    let refused = analysis.failures.iter().find(|failure| {
        let theirs = |process: &ProcessHistory| found.iter().any(|rising| rising.process.id == process.id);
        !failure.is_echo() && is_refusal(failure) && failure.process.is_some_and(theirs)
    });
    let severity =
        refused.map_or(Severity::Warning, |failure| failure.severity(analysis).max(Severity::Warning));
    let known = Proof::SeenInside;
    let mut finding = of_process(analysis, &RULE, severity, known, evidence, most.process);
    finding.at = Some(most.since);
    Judgement::one(finding)
}

/// Groups become ever more in it.
fn grows(process: &ProcessHistory) -> Option<RisingCounter<'_>> {
    rising_counter(process, "process-groups", GROUPS_MORE)
}

/// So many more threads are those of its groups.
pub(super) fn explains(process: &ProcessHistory, threads: f64) -> bool {
    grows(process).is_some_and(|groups| threads <= OF_A_GROUP * groups.more() as f64)
}

fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.symptom(), Symptom::NoDescriptors | Symptom::NoTask)
}

/// What came with them.
fn with_them(rising: &RisingCounter) -> Option<Evidence> {
    let process = rising.process;
    let more = |series: &crate::Series| {
        let before = series.at_or_before(rising.since).or(series.first())?.1;
        Some((series.at_or_before(rising.at).or(series.last())?.1 - before).max(0.0))
    };
    let (threads, memory) = (more(&process.threads)?, more(&process.anonymous)?);
    let descriptors = more(&process.descriptors);
    let and = descriptors
        .map_or(String::new(), |number| format!(", {} descriptors", evidence::count(number as u64)));
    let sentence = format!(
        "They brought {} threads{and} and {} of private memory.",
        evidence::count(threads as u64),
        evidence::bytes(memory as u64)
    );
    let source = evidence::Source::Process(process.id.pid, "");
    Some(evidence::number("threads", threads as u64, "threads", source, rising.at, sentence))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Make the group once, and use it in every step",
            "group = torch.distributed.new_group(ranks)  # once, before the loop",
        ),
        Fix::new("Or destroy it explicitly", "torch.distributed.destroy_process_group(group)"),
    ]
}
