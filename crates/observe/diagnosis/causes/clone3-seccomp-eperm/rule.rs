//! Does a run show clone3-seccomp-eperm? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::SECCOMP_FILTER;
use crate::policy::limits::{counted_at_limit, FEW_TASKS};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let refused = analysis.timeline.cgroups().any(|group| group.refused.growth().unwrap_or(0) > 0);
    if refused || analysis.timeline.fork_rejections().next().is_some() {
        return Judgement::Nothing;
    }
    by_failure(analysis, |failure| {
        if failure.unexplained_end() {
            return unexplained(failure);
        }
        if !first_thread_refused(failure) {
            return Ok(None);
        }
        let process = failure.process;
        let name = process.map_or_else(|| "the process".to_owned(), evidence::describe);
        match process.and_then(|process| process.facts.as_ref()?.seccomp.known()) {
            Some(SECCOMP_FILTER) => Ok(Some(reported(analysis, failure, &name))),
            Some(_) => Ok(None),
            None => Err(format!(
                "{name} could not start its first thread, with no limit near; its seccomp state could not be read"
            )),
        }
    })
}

/// The words of a failed thread, from a process that had none beside its first, and nothing near a limit.
pub(super) fn first_thread_refused(failure: &Failure) -> bool {
    let words = ["can't start new thread", "pthread_create failed", "Thread creation failed"];
    let text = failure.text();
    let Some(counts) = failure.counts() else { return false };
    let alone = counts.threads == Some(1);
    let mappings =
        matches!((counts.mappings, counts.max_map_count), (Some(n), Some(max)) if counted_at_limit(n, max));
    let space = matches!((counts.virtual_size, counts.address_space_limit), (Some(size), Some(limit)) if size >= limit / 2);
    let tasks = counts.nproc.is_some_and(|limit| limit < FEW_TASKS);
    words.iter().any(|words| text.contains(words)) && alone && !mappings && !space && !tasks
}

/// Nothing was told of why it ended: a filter, and a process that never had a second thread, leave it open.
fn unexplained(failure: &Failure) -> Result<Option<Finding>, String> {
    let Some(process) = failure.process else { return Ok(None) };
    let filtered = process.facts.as_ref().and_then(|facts| facts.seccomp.known()) == Some(SECCOMP_FILTER);
    let alone = process.threads.peak().is_some_and(|(_, threads)| threads <= 1.0);
    match filtered && alone {
        true => Err(format!(
            "{} ended on its own behind a seccomp filter, never had a second thread, and reported no exception",
            evidence::describe(process)
        )),
        false => Ok(None),
    }
}

fn reported(analysis: &Analysis, failure: &Failure, name: &str) -> Finding {
    let sentence =
        format!("{} could not start a second thread, and no limit was near.", evidence::capital(name));
    let source = failure.agent_source();
    let mut evidence = vec![evidence::number("threads", 1, "threads", source, failure.at, sentence)];
    let source = evidence::Source::Process(failure.process.map_or(0, |process| process.id.pid), "status");
    let sentence = "Its seccomp filter (Seccomp: 2) can refuse clone3.".to_owned();
    evidence.push(evidence::text("seccomp", "filter", source, Some(failure.at), sentence));
    evidence.extend(sharing::exception_sentence(failure));
    let says_so = failure.text().contains("Operation not permitted");
    let known = if says_so { Proof::SeenInside } else { Proof::InPart };
    finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Confirm it: run without the filter (only with an image that you trust)",
            "docker run --security-opt seccomp=unconfined IMAGE",
        )
        .only(Place::Container),
        Fix::new(
            "Update the container runtime",
            "apt-get install --only-upgrade docker-ce containerd.io libseccomp2",
        ),
    ]
}
