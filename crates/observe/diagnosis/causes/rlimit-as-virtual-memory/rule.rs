//! Does a run show rlimit-as-virtual-memory? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::requested::requested_bytes;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{counted_at_limit, reaches, FAR_FROM_LIMIT, SPACE_AT_LIMIT};
use crate::policy::machine::ADDRESS_SPACE_PART;
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| {
        let reported = matches!(failure.symptom(), Symptom::NoMemory | Symptom::NoTask);
        let limits = failure.process.and_then(|process| process.limits);
        let read = limits.and_then(|limits| limits.address_space.at());
        let limit = failure.counts().and_then(|counts| counts.address_space_limit).or(read);
        match limit.filter(|_| reported || failure.unexplained_end()) {
            Some(limit) => judge_failure(analysis, failure, reported, limit),
            None => Ok(None),
        }
    })
}

fn judge_failure(
    analysis: &Analysis,
    failure: &Failure,
    reported: bool,
    limit: u64,
) -> Result<Option<Finding>, String> {
    let counts = failure.counts();
    if let Some((mappings, max)) = counts.and_then(|counts| counts.mappings.zip(counts.max_map_count)) {
        if counted_at_limit(mappings, max) {
            return Ok(None);
        }
    }
    let name = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let memory = failure.process.and_then(|process| process.memory);
    let peak = memory.map(|(at, memory)| (at, memory.peak_virtual.0.max(memory.virtual_size.0)));
    let asked = requested_bytes(&failure.text()).unwrap_or(0);
    let at_failure = counts.and_then(|counts| counts.virtual_size);
    let refused = failure.text().contains("failed to map segment");
    let known = match (reported, at_failure, peak) {
        (true, Some(size), _) if reaches(SPACE_AT_LIMIT, size.saturating_add(asked), limit) => {
            Proof::SeenInside
        }
        (true, _, Some((_, peak))) if reaches(FAR_FROM_LIMIT, peak, limit) => Proof::ReadNearLimit,
        (true, Some(size), _) if size >= limit / 2 || refused => Proof::InPart,
        (true, None, _) if refused => Proof::InPart,
        (true, Some(_), _) if asked == 0 && only_limit(analysis, failure) => Proof::Consistent,
        (false, _, Some((_, peak))) if reaches(SPACE_AT_LIMIT, peak, limit) => Proof::ReadNearLimit,
        (false, _, Some((at, peak))) if peak >= limit / ADDRESS_SPACE_PART => {
            return Err(format!(
                "{name} ended on its own, with {} of {} of address space {} before, and reported no exception",
                evidence::bytes(peak),
                evidence::bytes(limit),
                evidence::seconds(failure.at.since(at))
            ));
        }
        (false, _, None) => {
            return Err(format!(
                "{name} ended on its own before its address space was read (limit: ulimit -v {})",
                evidence::bytes(limit)
            ));
        }
        _ => return Ok(None),
    };
    let mut evidence: Vec<Evidence> = Vec::new();
    if let Some(size) = at_failure {
        let more =
            if asked > 0 { format!(" and asked for {} more", evidence::bytes(asked)) } else { String::new() };
        let sentence = format!(
            "{} used {} of {} of address space (ulimit -v){more} at the exception.",
            evidence::capital(&name),
            evidence::bytes(size),
            evidence::bytes(limit)
        );
        let met =
            evidence::number("address space", size, "bytes", failure.agent_source(), failure.at, sentence);
        evidence.push(evidence::with_limit(met, limit));
    }
    if let (Some((at, peak)), Some(process)) = (peak, failure.process) {
        let sentence = format!(
            "Its address space peaked at {} of {} (VmPeak), {} before the failure.",
            evidence::bytes(peak),
            evidence::bytes(limit),
            evidence::seconds(failure.at.since(at).max(0.0))
        );
        let source = evidence::Source::Process(process.id.pid, "status");
        evidence.push(evidence::with_limit(
            evidence::number("largest address space", peak, "bytes", source, at, sentence),
            limit,
        ));
    }
    if let Some(resident) =
        counts.and_then(|counts| counts.resident).or(memory.map(|(_, memory)| memory.resident().0))
    {
        let sentence = format!("Only {} of that was memory in use.", evidence::bytes(resident));
        evidence.push(evidence::number("resident memory", resident, "bytes", "VmRSS", failure.at, sentence));
    }
    if known == Proof::Consistent {
        let sentence =
            "How much more it asked for is not known, nor was another limit that refuses a mapping seen to be near.";
        evidence.push(evidence::text(
            "request",
            "unknown",
            failure.agent_source(),
            Some(failure.at),
            sentence.into(),
        ));
    }
    evidence.extend(sharing::exception_sentence(failure));
    Ok(Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

/// The kernel refused a mapping of a size that nobody knows: what one process asks for, up to all of the machine's memory, is
/// refused for its address space only, where its mappings are few and the kernel lends more than there is.
fn only_limit(analysis: &Analysis, failure: &Failure) -> bool {
    let refused = failure.symptom() == Symptom::NoMemory
        && (failure.exception.is_some_and(|seen| seen.report.errno == Some(12))
            || failure.text().contains("Cannot allocate memory"));
    refused && !failure.in_fork() && analysis.machine().overcommit_memory.known() != Some(2)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Raise the limit on address space to its hard limit", "ulimit -S -v $(ulimit -H -v)"),
        Fix::new(
            "To limit memory, limit memory in use instead",
            format!("systemd-run --user --scope -p MemoryMax=SIZE {}", context.typed()),
        ),
        Fix::new("Reserve less: use fewer arenas", "export MALLOC_ARENA_MAX=2 OMP_NUM_THREADS=1"),
    ]
}
