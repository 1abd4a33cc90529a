//! Does a run show stack-ulimit-thread-stacks? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::counts::LARGE_STACK_BYTES;
use crate::policy::given::{INTERRUPTED, SIGINT, USUAL_STACK_BYTES};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Ending, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| match failure.ending {
        Some(Ending::Signaled(SIGINT)) => Ok(interrupted(analysis, failure)),
        _ if failure.unexplained_end() => unexplained(failure),
        _ => Ok(refused(analysis, failure)),
    })
}

/// By itself, where nobody interrupts the job: OpenBLAS raises SIGINT when it cannot start a thread (blas_server.c), and in a process in
/// which one stack is all of its address space no thread can start.
fn interrupted(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let process = failure.process?;
    let outcome = analysis.plain_outcome();
    let from_the_terminal = outcome.signal == Some(SIGINT) || outcome.code == Some(INTERRUPTED);
    let has_threads = process.threads.peak().is_some_and(|(_, threads)| threads > 1.0);
    if from_the_terminal || has_threads {
        return None;
    }
    let limits = process.limits?;
    let stack = limits.stack.at().filter(|stack| *stack >= LARGE_STACK_BYTES)?;
    let space = limits.address_space.at().filter(|space| stack.saturating_add(USUAL_STACK_BYTES) > *space)?;
    let sentence = format!(
        "No thread can start in {}: its stack would take {} (ulimit -s) of {} of address space (ulimit -v). SIGINT ended the process, which OpenBLAS raises where a thread cannot start.",
        evidence::describe(process),
        evidence::bytes(stack),
        evidence::bytes(space)
    );
    let source = evidence::Source::Process(process.id.pid, "limits");
    let met = evidence::number("size of a stack", stack, "bytes", source, failure.at, sentence);
    let evidence = vec![evidence::with_limit(met, space)];
    let context = analysis.remedy_context(Some(failure));
    Some(finding(analysis, &RULE, failure, Proof::InPart, evidence, &context))
}

/// Nothing was told of why it ended: large stacks, of which no further one would have fitted, leave it open.
fn unexplained(failure: &Failure) -> Result<Option<Finding>, String> {
    let tight = |process: &&crate::ProcessHistory| {
        let Some((limits, (_, memory))) = process.limits.zip(process.memory) else { return false };
        let stack = limits.stack.at().filter(|stack| *stack >= LARGE_STACK_BYTES);
        let space = limits.address_space.at();
        stack.zip(space).is_some_and(|(stack, space)| memory.peak_virtual.0.saturating_add(stack) > space / 2)
    };
    match failure.process.filter(tight) {
        Some(process) => Err(format!(
            "{} ended on its own, with large thread stacks (ulimit -s) in a limited address space, and reported no exception",
            evidence::describe(process)
        )),
        None => Ok(None),
    }
}

fn refused(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let threads_refused = failure.symptom() == Symptom::NoTask
        || ["pthread_create failed", "Thread creation failed", "OMP: Error #34"]
            .iter()
            .any(|words| failure.text().contains(words));
    let process = failure.process?;
    let stack = process.limits?.stack.at().filter(|stack| *stack >= LARGE_STACK_BYTES)?;
    let counts = failure.counts()?;
    let threads = counts.threads.filter(|threads| *threads > 1)?;
    if !threads_refused {
        return None;
    }
    let space = counts
        .virtual_size
        .zip(counts.address_space_limit.or(process.limits?.address_space.at()))
        .map(|(used, limit)| (used, limit, "ulimit -v"));
    let strict = analysis.machine().overcommit_memory.known() == Some(2);
    let promised = counts.committed.zip(counts.commit_limit).filter(|_| strict);
    let promised = promised.map(|(used, limit)| (used, limit, "CommitLimit"));
    let too_much = |(used, limit, _): &(u64, u64, &str)| {
        used.saturating_add(stack) > *limit && used.saturating_add(USUAL_STACK_BYTES) <= *limit
    };
    let (used, limit, of) = [space, promised].into_iter().flatten().find(too_much)?;
    let stacks = stack.saturating_mul(threads - 1);
    let sentence = format!(
        "One more thread of {} needs a stack of {}. It has used {} of {} ({of}); the stacks of {} reserve {}.",
        evidence::describe(process),
        evidence::bytes(stack),
        evidence::bytes(used),
        evidence::bytes(limit),
        evidence::plural(threads - 1, "thread", "threads"),
        evidence::bytes(stacks.min(used))
    );
    let met =
        evidence::number("size of a stack", stack, "bytes", failure.agent_source(), failure.at, sentence);
    let mut evidence = vec![evidence::with_limit(met, limit)];
    if let Some(resident) = counts.resident {
        let sentence = format!("Only {} of that was memory in use.", evidence::bytes(resident));
        evidence.push(evidence::number("resident memory", resident, "bytes", "VmRSS", failure.at, sentence));
    }
    evidence.extend(sharing::exception_sentence(failure));
    let context = analysis.remedy_context(Some(failure));
    Some(finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &context))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Set the usual stack size before the job starts", "ulimit -S -s 8192"),
        Fix::new(
            "For Python threads: set it in the program before the first of them",
            "threading.stack_size(8 << 20)",
        ),
        Fix::new("For OpenMP threads", "export OMP_STACKSIZE=2M"),
    ]
}
