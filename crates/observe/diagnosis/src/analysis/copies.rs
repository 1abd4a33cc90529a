//! Memory that the job holds more than once: what forked processes have copied, what of it was held at one time,
//! whether that matters, and the fixes that the causes of it have in common.

use crate::analysis::oom::limit;
use crate::analysis::{Analysis, RemedyContext};
use crate::history::ProcessHistory;
use crate::policy::given::PAGE_BYTES;
use crate::policy::growth::{GROWTH_WARN_BYTES, GROWTH_WARN_SHARE, UNNAMED_HALF};
use crate::policy::sizes::{NOTE_BYTES, UNKNOWN_BYTES, WARN_BYTES, WARN_PART};
use ullage_model::{At, Fix, Place, Role, Severity};

/// Something of one process's memory that another process holds too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy<'a> {
    /// Who holds it.
    pub(crate) process: &'a ProcessHistory,
    /// How much.
    pub(crate) bytes: u64,
    /// Half of its 95 % interval, where it was estimated.
    pub(crate) error: u64,
    /// When that was read.
    pub(crate) at: At,
}

/// What a forked process has copied of its parent's memory: what it alone maps, without what it has taken for itself
/// since. Each page copied is a fault of its own; where the faults are fewer, others gave the pages up.
pub(crate) fn copied<'a>(analysis: &Analysis<'a>, process: &'a ProcessHistory) -> Option<Copy<'a>> {
    estimates(analysis, process).into_iter().max_by_key(|copy| copy.bytes)
}

/// What it had copied when that was read for the last time: not the highest of many estimates, which chance made so.
pub(crate) fn copied_last<'a>(analysis: &Analysis<'a>, process: &'a ProcessHistory) -> Option<Copy<'a>> {
    estimates(analysis, process).pop()
}

fn estimates<'a>(analysis: &Analysis<'a>, process: &'a ProcessHistory) -> Vec<Copy<'a>> {
    let Some((first_at, first)) = process.anonymous.first() else { return Vec::new() };
    // At its first reading it may have taken memory of its own already; its parent has not.
    let parent = parent(analysis, process).and_then(|parent| parent.anonymous.at_or_before(first_at));
    let inherited = parent.map_or(first, |(_, held)| held.min(first)) as u64;
    let page = analysis.machine().page_size.max(PAGE_BYTES);
    process
        .probes
        .iter()
        .map(|probe| {
            let fresh = probe.anonymous.saturating_sub(inherited);
            let bytes = probe.exclusive.bytes.0.saturating_sub(fresh).min(probe.faults.saturating_mul(page));
            Copy { process, bytes, error: probe.exclusive.error.0, at: probe.at }
        })
        .collect()
}

/// The process that started this one.
pub(crate) fn parent<'a>(analysis: &Analysis<'a>, process: &ProcessHistory) -> Option<&'a ProcessHistory> {
    analysis.timeline.by_pid(process.born_to()).filter(|parent| parent.id != process.id)
}

/// Those of the copies that were held at one time and are the most together: workers of each epoch are new ones.
pub(crate) fn at_once(copies: Vec<Copy>) -> Vec<Copy> {
    let alive = |copy: &Copy, at: At| (copy.process.first_seen..=copy.process.last_seen).contains(&at);
    let together = |at: At| {
        copies.iter().filter(|copy| alive(copy, at)).map(|copy| copy.bytes).fold(0, u64::saturating_add)
    };
    let most = copies.iter().map(|copy| copy.process.last_seen).max_by_key(|at| (together(*at), *at));
    most.map_or_else(Vec::new, |at| copies.iter().filter(|copy| alive(copy, at)).copied().collect())
}

/// Bytes of all of them.
pub(crate) fn sum(copies: &[Copy]) -> u64 {
    copies.iter().map(|copy| copy.bytes).fold(0, u64::saturating_add)
}

/// The process that started most of them, where the remedy goes.
pub(crate) fn starter<'a>(analysis: &Analysis<'a>, copies: &[Copy]) -> Option<&'a ProcessHistory> {
    let of = |pid: i32| copies.iter().filter(|copy| copy.process.born_to() == pid).count();
    let pid = copies.iter().map(|copy| copy.process.born_to()).max_by_key(|pid| (of(*pid), -pid))?;
    let starter = analysis.timeline.by_pid(pid)?;
    match starter.role {
        // It starts what others ask it to.
        Role::Forkserver => parent(analysis, starter).or(Some(starter)),
        _ => Some(starter),
    }
}

/// Bytes that the job held at its peak, where these copies are what their holders do not share: summed over processes, what
/// forked ones share counts in each of them.
pub(crate) fn held_in_all(analysis: &Analysis, copies: &[Copy]) -> u64 {
    let shares = |process: &ProcessHistory| copies.iter().any(|copy| copy.process.id == process.id);
    let others = analysis.timeline.processes().filter(|process| !shares(process));
    let others = others.filter_map(|process| process.anonymous.peak()).map(|(_, peak)| peak as u64);
    others.fold(sum(copies), u64::saturating_add).min(analysis.timeline.memory().peak_bytes)
}

/// How much it matters that so many bytes, of so many that the job held, could be saved; none where it does not.
pub(crate) fn severity(analysis: &Analysis, saved: u64, held: u64) -> Option<Severity> {
    let limits = analysis.timeline.cgroups().filter_map(limit);
    let machine = analysis.machine().memory_total.known().map(|total| total.0);
    let room = limits.chain(machine).min().unwrap_or(u64::MAX);
    let much = saved >= WARN_BYTES && saved.saturating_mul(WARN_PART) >= held;
    match saved {
        ..NOTE_BYTES => None,
        _ if much || saved.saturating_mul(WARN_PART) >= room || analysis.ran_out => Some(Severity::Warning),
        _ => Some(Severity::Note),
    }
}

/// They are as much as growth that is warned of, of a job that held so much, and as much of them came in the second half of their
/// processes' lives as of growth that goes on. What was not read by then is not known to have come later.
pub(crate) fn go_on(analysis: &Analysis, copies: &[Copy], held: u64) -> bool {
    let much = (GROWTH_WARN_BYTES as f64).max(GROWTH_WARN_SHARE * held as f64);
    let came_late = |copy: &Copy| {
        let half = (copy.process.first_seen.seconds() + copy.process.last_seen.seconds()) / 2.0;
        let all = estimates(analysis, copy.process);
        let early = all.iter().filter(|one| one.at.seconds() <= half);
        let before = early.map(|one| one.bytes.saturating_add(one.error)).max()?;
        let (last, error) = all.last().map(|one| (one.bytes, one.error))?;
        Some(last.saturating_sub(error).saturating_sub(before))
    };
    let late = copies.iter().filter_map(came_late).fold(0, u64::saturating_add);
    sum(copies) as f64 >= much && late as f64 >= UNNAMED_HALF * much
}

/// It was neither forked from a process of the job nor started as a program of its own: spawn, or a fork server, made it
/// with nothing of the job's memory.
pub(crate) fn started_empty(analysis: &Analysis, process: &ProcessHistory) -> bool {
    if process.started_by.is_some() {
        return process.began_empty().is_some();
    }
    let spawned = process
        .facts
        .as_ref()
        .is_some_and(|facts| facts.command_line.iter().any(|word| word.contains("--multiprocessing-fork")));
    spawned || parent(analysis, process).is_some_and(|parent| parent.role == Role::Forkserver)
}

/// Workers that were started with nothing, of which the agent said nothing, and that hold much each: what it is cannot be
/// seen from outside. The sentence says how many and how much.
pub(crate) fn unknown_private(analysis: &Analysis, of_a_loader: bool) -> Option<String> {
    let unknown: Vec<Copy> = analysis
        .timeline
        .processes()
        .filter(|process| !process.agent && started_empty(analysis, process))
        .filter(|process| match process.role {
            Role::LoaderWorker(_) => of_a_loader,
            Role::PoolWorker => !of_a_loader,
            // Which of the two it is only the agent knows.
            Role::Trainer | Role::Other => true,
            _ => false,
        })
        .filter_map(|process| {
            let (at, held) = process.anonymous.last()?;
            (held as u64 >= UNKNOWN_BYTES).then_some(Copy { process, bytes: held as u64, error: 0, at })
        })
        .collect();
    let together = at_once(unknown);
    let most = together.iter().max_by_key(|copy| copy.bytes)?;
    (together.len() > 1).then(|| {
        format!(
            "{} spawned processes hold {} of private memory, the largest {}; no agent was inside to see whether it is the dataset",
            together.len(),
            crate::evidence::bytes(sum(&together)),
            crate::evidence::bytes(most.bytes)
        )
    })
}

/// The dataset held once: the remedies that leave the start method as it is.
pub(crate) fn share() -> Fix {
    Fix::new(
        "Share the dataset: all workers then read one packed copy (lists, dicts, strings, numbers, arrays, tensors)",
        "import ullage\nself.samples = ullage.share(samples)  # in the dataset's __init__",
    )
}

/// Workers forked from a process that holds the dataset, frozen, and nothing else.
pub(crate) fn zygote(context: &RemedyContext) -> Option<Fix> {
    context.freezes().then(|| {
        Fix::new(
            "Fork the workers from a small process that holds the dataset frozen (Python 3.12 or newer)",
            context.loader("multiprocessing_context=ullage.context(\"zygote\")"),
        )
        .only(Place::Loader)
    })
}
