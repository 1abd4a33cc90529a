//! Everything of a run that can grow, and by how much it did: each process's private memory, what forked ones copied, the
//! job's shared memory, mapped files, kernel memory. From the timeline's series and from attribution.
//!
//! The surprise: a process begins by loading libraries, and that is no growth of the job's. Its own begins when the
//! mapped files of its first seconds are there.

use super::split::split;
use crate::analysis::run::Run;
use crate::history::ProcessHistory;
use crate::history::Series;
use crate::policy::growth::{
    COPIED_BYTES, COPIED_ONGOING, COPIED_SHARE, EARLY, GIVEN_BACK, GONE_MOST_S, GONE_S, GONE_SHARE,
    GROWTH_BYTES, GROWTH_SHARE, LOADED, LOADING_S, LOADING_SHARE, OF_MANY_PART, START_MOST_S, START_S,
    START_SHARE,
};
use crate::policy::trends::LEAST_SPAN_S;
use crate::trend::{rise, Rise};
use ullage_model::{At, Ending, GrowthClass, ProcessId, Role};

/// Something that rose.
#[derive(Clone, Debug)]
pub(crate) struct GrowthSource {
    /// By class; the sum is `rise.by`.
    pub(crate) parts: Vec<(GrowthClass, f64)>,
    pub(crate) rise: Rise,
    /// Whose.
    pub(crate) process: Option<ProcessId>,
    /// The agent was asked how private memory splits, and said nothing that tells.
    pub(crate) not_split: bool,
}

impl GrowthSource {
    /// Pages that a forked process copied.
    pub(crate) fn copied(&self) -> bool {
        self.parts.iter().any(|part| part.0 == GrowthClass::CopyOnWrite)
    }
}

/// Bytes by which something must grow to be told.
pub(crate) fn least(run: &Run) -> f64 {
    let held = run.timeline.tree.peak().map_or(0.0, |(_, bytes)| bytes);
    (GROWTH_BYTES as f64).max(GROWTH_SHARE * held)
}

/// When the run was last seen alive, seconds.
pub(crate) fn end(run: &Run) -> f64 {
    run.timeline.last_alive().map_or(0.0, |at| at.seconds())
}

/// Processes that were there at the end, or nearly.
pub(crate) fn present<'a>(run: &Run<'a>) -> impl Iterator<Item = &'a ProcessHistory> + use<'a> {
    let (end, timeline) = (end(run), run.timeline);
    let lately = move |process: &ProcessHistory| {
        let life = process.last_seen.since(process.first_seen);
        end - process.last_seen.seconds() <= GONE_S.max((GONE_SHARE * life).min(GONE_MOST_S))
    };
    timeline.processes().filter(move |process| lately(process))
}

/// Those, and processes whose end was a failure.
pub(crate) fn not_done<'a>(run: &Run<'a>) -> Vec<&'a ProcessHistory> {
    let failed = |process: &&ProcessHistory| {
        process.ended.is_some_and(|(_, ending, _)| !matches!(ending, Ending::Exited(0)))
    };
    let there: Vec<&ProcessHistory> = present(run).collect();
    let others = run.timeline.processes().filter(failed);
    let others = others.filter(|process| there.iter().all(|one| one.id != process.id));
    there.iter().copied().chain(others).collect()
}

/// When it had loaded what it needs, seconds. On a machine that is busy that lasts longer, and the rest of its life may not.
pub(crate) fn loaded(process: &ProcessHistory) -> f64 {
    let born = process.first_seen;
    // A forked process begins with everything, but a fork server has nothing of the job's.
    let forked = process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some());
    if forked && process.began_empty().is_none() {
        return born.seconds();
    }
    // Before its target runs, multiprocessing imports the program's main module and unpickles what was sent.
    let begun = process.began_empty().and(process.begun).map_or(born, |begun| begun.at).seconds();
    let longest = LOADING_S.min(LOADING_SHARE * process.unhindered(born, process.last_seen));
    let points = || process.files.points().take_while(|(at, _)| process.unhindered(born, *at) <= longest);
    let Some((_, there)) = points().last() else { return begun };
    points().find(|(_, bytes)| *bytes >= LOADED * there).map_or(born, |(at, _)| at).seconds().max(begun)
}

/// When the job had: that of the process that holds most, of those that were there early.
pub(crate) fn began(run: &Run) -> f64 {
    let held = |process: &&ProcessHistory| process.anonymous.peak().map_or(0.0, |(_, bytes)| bytes);
    let early = EARLY * end(run);
    let there = present(run).filter(|process| process.first_seen.seconds() <= early);
    let most = there.max_by(|a, b| held(a).total_cmp(&held(b)));
    most.map_or(0.0, loaded)
}

/// By when a start is over, and has been read, of a program that lives for so many seconds.
pub(crate) fn start(run: &Run, life: f64) -> f64 {
    (START_S + run.facts.interval_s).max((START_SHARE * life).min(START_MOST_S))
}

/// Whether a process had just loaded at this time, seconds: on a machine that is busy, a start lasts longer.
pub(crate) fn is_start(process: &ProcessHistory, until: f64) -> bool {
    process.unhindered(At::from_seconds(loaded(process)), At::from_seconds(until)) <= START_S
}

/// How the private memory of a process rose, where it did so to the end. `least`: by less is none.
pub(crate) fn still_rises(process: &ProcessHistory, least: f64) -> Option<Rise> {
    rise(&process.private(), loaded(process), least).filter(|rise| rise.ongoing)
}

/// Whether the job's shared memory rises to the end.
pub(super) fn shared_still_rises(run: &Run, least: f64) -> bool {
    rise(&run.timeline.groups.shared, began(run), least).is_some_and(|rise| rise.ongoing)
}

/// A worker before it took as much and gave it back as it ended: then what it takes is no growth.
pub(super) fn gave_back(run: &Run, process: &ProcessHistory, rise: &Rise) -> bool {
    let is_worker =
        |process: &ProcessHistory| matches!(process.role, Role::LoaderWorker(_) | Role::PoolWorker);
    let before = |other: &ProcessHistory| {
        is_worker(other) && other.last_seen < process.first_seen && other.born_to() == process.born_to()
    };
    let took = |other: &ProcessHistory| {
        let private = other.private();
        let first = private.at_or_before(At::from_seconds(loaded(other))).or(private.first());
        private.peak().zip(first).map_or(0.0, |(most, first)| most.1 - first.1)
    };
    is_worker(process)
        && run.timeline.processes().any(|other| before(other) && took(other) >= GIVEN_BACK * rise.by)
}

/// All that rose by enough bytes.
pub(crate) fn sources(run: &Run) -> Vec<GrowthSource> {
    let least = least(run);
    let mut all = private(run, least);
    all.extend(copied(run, least));
    let groups = &run.timeline.groups;
    let began = began(run);
    // Of a file that several processes map, the one that touched most of it says how much.
    let files = present(run).filter_map(|process| {
        let mut series = process.files.clone();
        series.push(process.last_seen, process.files.last()?.1);
        Some((rise(&series, loaded(process), least)?, process.id))
    });
    let files = files.max_by(|a, b| a.0.by.total_cmp(&b.0.by)).map(|(rise, id)| (rise, Some(id)));
    let of_job = |series| rise(series, began, least).map(|rise| (rise, None));
    for (class, found) in [
        (GrowthClass::SharedMemoryBacklog, of_job(&groups.shared)),
        (GrowthClass::MappedFiles, files),
        (GrowthClass::KernelMemory, of_job(&groups.kernel)),
    ] {
        if let Some((rise, process)) = found {
            all.push(GrowthSource { parts: vec![(class, rise.by)], rise, process, not_split: false });
        }
    }
    all
}

/// Private memory. Many processes may each grow by little.
fn private(run: &Run, least: f64) -> Vec<GrowthSource> {
    let processes: Vec<&ProcessHistory> = present(run).collect();
    let each = (least / processes.len().max(1) as f64).max((GROWTH_BYTES as f64) / OF_MANY_PART);
    let rises = processes.iter().filter_map(|process| {
        let rise =
            rise(&process.private(), loaded(process), each).filter(|rise| !gave_back(run, process, rise))?;
        let split = split(&process.memory_readings, rise.since, rise.by, rise.rests(process.worked_until));
        let not_split = split.is_none();
        let parts = split.unwrap_or_else(|| vec![(GrowthClass::LiveGrowth, rise.by)]);
        Some(GrowthSource { parts, rise, process: Some(process.id), not_split })
    });
    let found: Vec<GrowthSource> = rises.collect();
    let together: f64 = found.iter().map(|source| source.rise.by).sum();
    if together >= least {
        found
    } else {
        Vec::new()
    }
}

/// What forked processes copied, as the surveys of pages told over time.
fn copied(run: &Run, least: f64) -> Vec<GrowthSource> {
    let here: Vec<ProcessId> = present(run).map(|process| process.id).collect();
    let found: Vec<GrowthSource> = run
        .timeline
        .memory()
        .copy_on_write
        .iter()
        .filter(|cow| here.contains(&cow.process.id))
        .filter_map(|cow| {
            // What cannot be told from the parent's own writing is no longer shared either way.
            let by = cow.copied.saturating_add(cow.unknown) as f64;
            if by < (COPIED_SHARE * cow.inherited as f64).max(COPIED_BYTES as f64) {
                return None;
            }
            let process = run.timeline.process(cow.process.id)?;
            let mut series = Series::default();
            series.push(process.first_seen, 0.0);
            for (at, _, copied) in &cow.over_time {
                series.push(*at, *copied as f64);
            }
            // No pages were looked at since: nothing moved.
            series.push(process.last_seen, cow.copied as f64);
            let (since, end) = (process.first_seen.seconds(), process.last_seen.seconds());
            let until = cow.over_time.first().map_or(end, |(at, ..)| at.seconds());
            let rise = rise(&series, 0.0, 1.0).map(|rise| Rise { by, ..rise }).unwrap_or(Rise {
                since,
                until,
                by,
                per_second: by / (until - since).max(LEAST_SPAN_S),
                ongoing: until - since > COPIED_ONGOING * (end - since),
            });
            let parts = vec![(GrowthClass::CopyOnWrite, by)];
            (by > 0.0).then_some(GrowthSource {
                parts,
                rise,
                process: Some(cow.process.id),
                not_split: false,
            })
        })
        .collect();
    let together: f64 = found.iter().map(|source| source.rise.by).sum();
    if together >= least {
        found
    } else {
        Vec::new()
    }
}
