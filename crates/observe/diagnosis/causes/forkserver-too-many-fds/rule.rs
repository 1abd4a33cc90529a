//! Does a run show forkserver-too-many-fds? page.md says what that is, and how it differs from its look-alikes.

use crate::policy::counts::TENSORS_CLOSED;
use crate::policy::given::{FORKSERVER_DESCRIPTORS, FORKSERVER_TENSORS, SHARED_A_SECOND};
use crate::trend::{reach, Reach};

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Proof, Role};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| {
        if failure.symptom() == Symptom::ForkserverFds {
            Ok(Some(reported(analysis, failure)))
        } else if failure.unexplained_end() && has_forkserver(analysis, failure) {
            seen(analysis, failure)
        } else {
            Ok(None)
        }
    })
}

fn reported(analysis: &Analysis, failure: &Failure) -> Finding {
    let torch = failure.counts().and_then(|counts| counts.fds_torch);
    let name = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let mut evidence = Vec::new();
    let mut known = Proof::InPart;
    if let Some(torch) = torch {
        if torch >= FORKSERVER_TENSORS - TENSORS_CLOSED {
            known = Proof::SeenInside;
        }
        let far = failure.counts().and_then(|counts| counts.nofile).map_or(String::new(), |nofile| {
            format!(" (its limit of open files: {})", evidence::count(nofile))
        });
        let sentence = format!(
            "{} had {} torch descriptors to send; a forkserver passes at most {FORKSERVER_DESCRIPTORS}{far}.",
            evidence::capital(&name),
            evidence::count(torch)
        );
        let met = evidence::number(
            "descriptors to send",
            torch,
            "descriptors",
            failure.agent_source(),
            failure.at,
            sentence,
        );
        evidence.push(evidence::with_limit(met, FORKSERVER_DESCRIPTORS));
    }
    evidence.extend(sharing::exception_sentence(failure));
    if failure.passes("forkserver") {
        let text = "The exception came from multiprocessing/forkserver.py, while starting a worker.";
        evidence.push(evidence::text(
            "stack",
            "multiprocessing/forkserver.py",
            failure.agent_source(),
            Some(failure.at),
            text.into(),
        ));
    }
    evidence.extend(sharing::loader_sentence(failure));
    finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))
}

/// It has started a forkserver, or was started by one: children of a forkserver use the same one for their own.
fn has_forkserver(analysis: &Analysis, failure: &Failure) -> bool {
    let Some(process) = failure.process else { return false };
    let parent = process.born_to();
    analysis.timeline.processes().filter(|server| server.role == Role::Forkserver).any(|server| {
        let starter = server.born_to();
        server.id.pid == parent || process.id.pid == starter
    })
}

/// Without the agent: only where no other limit could have been met since the last look.
fn seen(analysis: &Analysis, failure: &Failure) -> Result<Option<Finding>, String> {
    let Some(process) = failure.process else { return Ok(None) };
    let name = evidence::describe(process);
    let elsewhere = [
        process.limits.and_then(|limits| limits.open_files.at()).map(|limit| (&process.descriptors, limit)),
        analysis.machine().max_map_count.known().map(|limit| (&process.mapping_count, limit)),
    ];
    let other_limit = elsewhere.into_iter().flatten().any(|(series, limit)| {
        series.last().is_some() && reach(series, limit, failure.at, SHARED_A_SECOND) != Reach::Excluded
    });
    // Numbers without kinds: a process with a handful of descriptors shared no tensors yet, but may have since.
    let few = process
        .descriptors
        .last()
        .filter(|(at, count)| *count + failure.at.since(*at) * SHARED_A_SECOND < FORKSERVER_TENSORS as f64);
    let Some((at, _, kinds)) = &process.kinds else {
        if few.is_some() {
            return Ok(None);
        }
        return Err(format!("{name} has a forkserver and ended on its own; its descriptors were not read, and it reported no exception"));
    };
    let (at, age) = (*at, failure.at.since(*at));
    let grown = kinds.torch_shared as f64 + age * SHARED_A_SECOND >= FORKSERVER_TENSORS as f64;
    if kinds.torch_shared < FORKSERVER_TENSORS && !grown {
        return Ok(None);
    }
    if kinds.torch_shared < FORKSERVER_TENSORS || other_limit {
        return Err(format!(
            "{name} has a forkserver and ended on its own, {} after it had {} torch descriptors, and reported no exception",
            evidence::seconds(age),
            evidence::count(kinds.torch_shared)
        ));
    }
    let sentence = format!(
        "{} had {} torch descriptors {} before it ended; a forkserver passes at most {FORKSERVER_DESCRIPTORS}.",
        evidence::capital(&name),
        evidence::count(kinds.torch_shared),
        evidence::seconds(age)
    );
    let source = evidence::Source::Process(process.id.pid, "fd");
    let evidence: Vec<Evidence> = vec![evidence::with_limit(
        evidence::number("descriptors to send", kinds.torch_shared, "descriptors", source, at, sentence),
        FORKSERVER_DESCRIPTORS,
    )];
    let known = Proof::Consistent;
    Ok(Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = sharing::arena(context);
    fixes.extend(sharing::fork_context(context));
    fixes.push(sharing::one_tensor());
    fixes.push(Fix::new(
        "Share by names (the next limit is vm.max_map_count, near 65,000 tensors)",
        "torch.multiprocessing.set_sharing_strategy(\"file_system\")",
    ));
    fixes
}
