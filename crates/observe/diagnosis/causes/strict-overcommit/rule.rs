//! Does a run show strict-overcommit? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::requested::requested_bytes;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{counted_at_limit, reaches, NEAR_LIMIT, SPACE_AT_LIMIT};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let strict = analysis.machine().overcommit_memory.known() == Some(2);
    by_failure(analysis, |failure| {
        let reported =
            failure.symptom() == Symptom::NoMemory || (strict && failure.symptom() == Symptom::NoTask);
        match (reported, strict) {
            (true, true) => promised(analysis, failure, true),
            (true, false) => Ok(larger_than_machine(analysis, failure)),
            (false, true) if failure.unexplained_end() => promised(analysis, failure, false),
            _ => Ok(None),
        }
    })
}

fn other_limit(failure: &Failure, asked: u64) -> bool {
    failure.counts().is_some_and(|counts| {
        let mappings = matches!((counts.mappings, counts.max_map_count), (Some(n), Some(max)) if counted_at_limit(n, max));
        let space = matches!((counts.virtual_size, counts.address_space_limit), (Some(size), Some(limit)) if reaches(SPACE_AT_LIMIT, size.saturating_add(asked), limit));
        mappings || space
    })
}

fn promised(analysis: &Analysis, failure: &Failure, reported: bool) -> Result<Option<Finding>, String> {
    let asked = requested_bytes(&failure.text()).unwrap_or(0);
    if other_limit(failure, asked) {
        return Ok(None);
    }
    let (committed, limit, at, source) = match failure.counts().and_then(|c| c.committed.zip(c.commit_limit))
    {
        Some((committed, limit)) => (committed, limit, failure.at, failure.agent_source()),
        None => match last_read(analysis, failure) {
            Some((committed, limit, at)) => (committed, limit, at, "/proc/meminfo".into()),
            None => return Err("vm.overcommit_memory is 2, and Committed_AS could not be read".into()),
        },
    };
    // fork promises the private writable memory of the parent once more.
    let forked = ["fork", "popen", "subprocess"].iter().any(|part| failure.passes(part));
    let own =
        failure.process.and_then(|process| process.memory).map_or(0, |(_, memory)| memory.virtual_size.0);
    let needed = asked.max(if forked { own } else { 0 });
    let near = reaches(NEAR_LIMIT, committed.saturating_add(needed), limit);
    let known = match (reported, near) {
        (true, true) if at == failure.at => Proof::SeenInside,
        (true, true) => Proof::ReadNearLimit,
        (true, false) => Proof::InPart,
        (false, _) if reaches(SPACE_AT_LIMIT, committed, limit) => Proof::ReadNearLimit,
        (false, _) => {
            return Err(format!(
                "a process ended on its own under vm.overcommit_memory=2, with {} of {} committed, and reported no exception",
                evidence::bytes(committed),
                evidence::bytes(limit)
            ));
        }
    };
    let more = match (asked, forked) {
        (0, true) => "; a fork commits its parent's memory again".to_owned(),
        (0, false) => String::new(),
        (asked, _) => format!("; the request was for {} more", evidence::bytes(asked)),
    };
    let sentence = format!(
        "The kernel had committed {} of {} (CommitLimit, vm.overcommit_memory=2){more}.",
        evidence::bytes(committed),
        evidence::bytes(limit)
    );
    let mut evidence = vec![evidence::with_limit(
        evidence::number("committed memory", committed, "bytes", source, at, sentence),
        limit,
    )];
    if let Some((at, free)) = analysis.timeline.host().available.at_or_before(failure.at) {
        let sentence = format!("{} of memory were still free.", evidence::bytes(free as u64));
        evidence.push(evidence::number(
            "available memory",
            free as u64,
            "bytes",
            "/proc/meminfo",
            at,
            sentence,
        ));
    }
    evidence.extend(sharing::exception_sentence(failure));
    Ok(Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

fn last_read(analysis: &Analysis, failure: &Failure) -> Option<(u64, u64, At)> {
    let host = analysis.timeline.host();
    let limit = host.last.memory.as_known()?.commit_limit.0;
    let (at, committed) = host.committed.highest_before(failure.at)?;
    Some((committed as u64, limit, at))
}

/// Modes 0 and 1: one request larger than all there is.
fn larger_than_machine(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let asked = requested_bytes(&failure.text())?;
    if other_limit(failure, asked) {
        return None;
    }
    let swap = analysis.timeline.host().last.memory.as_known().map_or(0, |memory| memory.swap_total.0);
    let whole = analysis.machine().memory_total.known()?.0.saturating_add(swap);
    if asked <= whole {
        return None;
    }
    let sentence = format!(
        "One request asked for {} on a machine with {} (swap included): check its shape and dtype.",
        evidence::bytes(asked),
        evidence::bytes(whole)
    );
    let mut evidence = vec![evidence::with_limit(
        evidence::number("bytes asked for", asked, "bytes", failure.agent_source(), failure.at, sentence),
        whole,
    )];
    evidence.extend(sharing::exception_sentence(failure));
    let known = Proof::InPart;
    let mut finding =
        finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)));
    finding.title =
        format!("One request asked for more memory than the machine has: {}", evidence::bytes(asked));
    finding.fixes =
        vec![Fix::new("Print the requested shape just before the failing line", "print(shape, dtype)")];
    Some(finding)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if context.is_root() {
        fixes.push(Fix::new(
            "Let the kernel overcommit (needs a writable /proc/sys)",
            "sysctl -w vm.overcommit_memory=0",
        ));
        fixes.push(Fix::new(
            "Or keep mode 2, and raise its share of memory",
            "sysctl -w vm.overcommit_ratio=95",
        ));
    }
    fixes.push(
        Fix::new(
            "Start the workers before you load the data, and keep them",
            format!(
                "loader = {}\nnext(iter(loader))  # before anything large",
                context.loader("persistent_workers=True")
            ),
        )
        .only(Place::Loader),
    );
    fixes.push(Fix::new("Map the file instead of reading it", "torch.load(path, mmap=True)"));
    fixes
}
