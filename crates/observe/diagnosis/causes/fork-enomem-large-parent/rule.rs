//! Does a run show fork-enomem-large-parent? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{counted_at_limit, NEARLY_GONE};
use crate::policy::machine::RESERVED_TIMES;
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    // What is promised is counted then, and strict-overcommit says so.
    if analysis.machine().overcommit_memory.known() == Some(2) {
        return Judgement::Nothing;
    }
    by_failure(analysis, |failure| match failure.symptom() == Symptom::NoMemory && in_fork(failure) {
        true => refused(analysis, failure),
        false if failure.unexplained_end() => unexplained(analysis, failure),
        false => Ok(None),
    })
}

/// Nothing was told of why it ended: an address space that cannot be promised twice leaves it open.
fn unexplained(analysis: &Analysis, failure: &Failure) -> Result<Option<Finding>, String> {
    let name = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    match larger_than_memory(analysis, failure, &name) {
        Some(_) => Err(format!(
            "{name} ended on its own, too large to fork (address space above memory and swap), and reported no exception"
        )),
        None => Ok(None),
    }
}

/// The innermost frame starts a process.
fn in_fork(failure: &Failure) -> bool {
    let Some(seen) = failure.exception else { return false };
    let innermost = seen.report.stack.last().is_some_and(|frame| {
        ["popen_fork", "_execute_child", "forkpty", " fork", "os.py", "subprocess.py"]
            .iter()
            .any(|part| frame.contains(part))
    });
    innermost || failure.text().contains("os.fork")
}

fn refused(analysis: &Analysis, failure: &Failure) -> Result<Option<Finding>, String> {
    let counts = failure.counts();
    let mappings = counts.and_then(|counts| counts.mappings.zip(counts.max_map_count));
    if mappings.is_some_and(|(mappings, max)| counted_at_limit(mappings, max)) {
        return Ok(None);
    }
    let name = failure.process.map_or_else(|| "the process".to_owned(), evidence::describe);
    let nearly_gone = host_low(analysis, failure).or_else(|| group_low(analysis, failure));
    let mut evidence: Vec<Evidence> = Vec::new();
    if let Some(low) = nearly_gone {
        evidence.push(low);
    } else if let Some(larger) = larger_than_memory(analysis, failure, &name) {
        evidence.push(larger);
    } else {
        return Err(format!(
            "a fork of {name} was refused although memory was free and its address space fits memory and swap"
        ));
    };
    evidence.extend(parent_sentence(failure, &name));
    evidence.extend(sharing::exception_sentence(failure));
    Ok(Some(finding(
        analysis,
        &RULE,
        failure,
        Proof::ReadNearLimit,
        evidence,
        &analysis.remedy_context(Some(failure)),
    )))
}

fn host_low(analysis: &Analysis, failure: &Failure) -> Option<Evidence> {
    let (at, available) = analysis.timeline.host().available.at_or_before(failure.at)?;
    let total = analysis.machine().memory_total.known()?.0;
    if available > total as f64 * NEARLY_GONE {
        return None;
    }
    let sentence = format!(
        "The machine had {} of {} available when the fork was refused.",
        evidence::bytes(available as u64),
        evidence::bytes(total)
    );
    Some(evidence::with_limit(
        evidence::number("available memory", available as u64, "bytes", "/proc/meminfo", at, sentence),
        total,
    ))
}

fn group_low(analysis: &Analysis, failure: &Failure) -> Option<Evidence> {
    own_groups(analysis).into_iter().find_map(|own| {
        let (group, limit) = limiting(analysis, own)?;
        let (at, used) = group.working_set.at_or_before(failure.at)?;
        if used < limit as f64 * (1.0 - NEARLY_GONE) {
            return None;
        }
        let sentence = format!(
            "The cgroup {} held {} of {} when the fork was refused.",
            group.path(),
            evidence::bytes(used as u64),
            evidence::bytes(limit)
        );
        let source = evidence::Source::CgroupMemory(group.path().to_owned());
        Some(evidence::with_limit(
            evidence::number("cgroup memory", used as u64, "bytes", source, at, sentence),
            limit,
        ))
    })
}

fn larger_than_memory(analysis: &Analysis, failure: &Failure, name: &str) -> Option<Evidence> {
    let size = failure
        .counts()
        .and_then(|counts| counts.virtual_size)
        .or_else(|| Some(failure.process?.memory?.1.virtual_size.0))?;
    let swap = analysis.timeline.host().last.memory.as_known().map_or(0, |memory| memory.swap_total.0);
    let whole = analysis.machine().memory_total.known()?.0.saturating_add(swap);
    // A GPU's driver reserves more address space than any machine has memory, and none of it is promised.
    let reserved = failure.exception.is_some_and(|seen| seen.report.cuda_initialized == Some(true));
    if reserved
        || size <= whole
        || size > whole.saturating_mul(RESERVED_TIMES)
        || analysis.machine().overcommit_memory.known() != Some(0)
    {
        return None;
    }
    let sentence = format!(
        "{} maps {}, above the {} of memory and swap; a fork needs it twice (vm.overcommit_memory=0).",
        evidence::capital(name),
        evidence::bytes(size),
        evidence::bytes(whole)
    );
    let met = evidence::number("address space", size, "bytes", failure.agent_source(), failure.at, sentence);
    Some(evidence::with_limit(met, whole))
}

fn parent_sentence(failure: &Failure, name: &str) -> Option<Evidence> {
    let process = failure.process?;
    let (at, memory) = process.memory?;
    let (first_at, first) = process.anonymous.first()?;
    let grown = memory.anonymous.0 as f64 - first;
    let since = if grown > first.max(1.0) {
        format!(
            ", {} more than {} earlier",
            evidence::bytes(grown as u64),
            evidence::seconds(at.since(first_at))
        )
    } else {
        String::new()
    };
    let sentence = format!(
        "{} held {} of private memory{since}, and {} of page tables.",
        evidence::capital(name),
        evidence::bytes(memory.anonymous.0),
        evidence::bytes(memory.page_tables.0)
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    Some(evidence::number("private memory of the parent", memory.anonymous.0, "bytes", source, at, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix::new(
            "Start the workers before you load anything large, and keep them",
            format!(
                "loader = {}\nnext(iter(loader))  # before anything large",
                context.loader("persistent_workers=True")
            ),
        )
        .only(Place::Loader),
        Fix::new("Start them from a small process", context.loader("multiprocessing_context=\"forkserver\""))
            .only(Place::Loader),
        Fix::new(
            "Start any process from a small one",
            "multiprocessing.set_start_method(\"forkserver\")  # first line of the program",
        ),
    ];
    if context.is_root() {
        fixes.push(Fix::new(
            "Let the kernel overcommit (needs a writable /proc/sys)",
            "sysctl -w vm.overcommit_memory=1",
        ));
    }
    fixes
}
