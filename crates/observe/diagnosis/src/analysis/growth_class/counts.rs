//! What grows in number and not in bytes: mappings, descriptors, processes. And what is no growth of the job's own:
//! page cache, and swapping because memory is short.
//!
//! The surprise: shared tensors each take a descriptor, a mapping and memory. The number is the story only where each of
//! them holds little: then the limit of the number is met first.

use super::sources::{began, least, loaded, present};
use crate::analysis::cohort::held_by;
use crate::analysis::run::Run;
use crate::history::ProcessHistory;
use crate::history::Series;
use crate::policy::given::{DEFAULT_MAPPINGS, PAGE_BYTES};
use crate::policy::growth::{
    CACHE_FULL, DESCRIPTORS_MORE, EACH_HANDLE_BYTES, LOADS_ON_S, MAPPINGS_MORE, OWN_SWAP_BYTES,
    PROCESSES_MORE, SWAPPED_BYTES,
};
use crate::policy::machine::SWAP_PAGES;
use crate::policy::sizes::MOST;
use crate::policy::trends::{LEAST_SPAN_S, RISE_AT_REST};
use crate::trend::{rise, Rise};
use ullage_model::{At, FilesystemUse, GrowthClass, ProcessId};

/// Something that is not told in bytes of private or shared memory.
pub(crate) struct CountedGrowth {
    pub(crate) class: GrowthClass,
    pub(crate) bytes: f64,
    pub(crate) rise: Rise,
    pub(crate) process: Option<ProcessId>,
    /// How many more; none where bytes are all there is.
    pub(crate) number: Option<f64>,
}

/// Mappings or descriptors of one process, where they and not `grown` bytes are the story.
pub(crate) fn handles(run: &Run, grown: f64) -> Option<CountedGrowth> {
    let of = |process: &ProcessHistory, class| {
        let (series, least, limit) = match class {
            GrowthClass::FdLeak => (
                &process.descriptors,
                DESCRIPTORS_MORE,
                process.limits.and_then(|limits| limits.open_files.at()).unwrap_or(u64::MAX),
            ),
            // Counted seldom, and estimated between: what was counted must have grown too.
            _ if counted_more(process) < MAPPINGS_MORE => return None,
            _ => (
                &process.mappings_between,
                MAPPINGS_MORE,
                run.machine().max_map_count.known().unwrap_or(DEFAULT_MAPPINGS),
            ),
        };
        let rise = rise(series, loaded(process), least).filter(|rise| rise.ongoing)?;
        let share = rise.by / limit.max(1) as f64;
        let shared = match &process.kinds {
            Some((.., kinds))
                if class == GrowthClass::FdLeak && kinds.torch_shared as f64 >= MOST * rise.by =>
            {
                in_shm(run, rise.since)
            }
            _ => 0.0,
        };
        let (process, number) = (Some(process.id), Some(rise.by));
        if shared / rise.by >= EACH_HANDLE_BYTES {
            // Each has a descriptor: in who sent it, until it is taken, and in who took it and retains it.
            let class = GrowthClass::SharedMemoryBacklog;
            return Some((share, CountedGrowth { class, bytes: shared, rise, process, number }));
        }
        (grown / rise.by < EACH_HANDLE_BYTES)
            .then_some((share, CountedGrowth { class, bytes: grown, rise, process, number }))
    };
    present(run)
        .flat_map(|process| {
            [of(process, GrowthClass::FdLeak), of(process, GrowthClass::MappingLeak)].into_iter().flatten()
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, counted)| counted)
}

/// By how much the job's /dev/shm grew since this moment.
fn in_shm(run: &Run, since: f64) -> f64 {
    let since = At::from_seconds(since.max(0.0));
    let grew = |used: &Series| {
        let from = used.at_or_before(since).or(used.first());
        used.peak().zip(from).map_or(0.0, |(most, from)| most.1 - from.1)
    };
    run.timeline.filesystems(FilesystemUse::Shm).map(|shm| grew(&shm.used)).fold(0.0, f64::max)
}

fn counted_more(process: &ProcessHistory) -> f64 {
    let count = &process.mapping_count;
    count.first().zip(count.last()).map_or(0.0, |(first, last)| last.1 - first.1)
}

/// How many processes there were, without an orderly end: once the last one was started they only become fewer, and how long
/// that takes says the machine.
fn standing(run: &Run) -> Series {
    let (began, end) = (began(run), super::sources::end(run));
    let last = run.timeline.processes().map(|process| process.first_seen).max().unwrap_or_default();
    let late = end - last.seconds() <= RISE_AT_REST * (end - began);
    let mut series = Series::default();
    let points = run.timeline.alive.points().filter(|(at, _)| !late || *at <= last);
    points.for_each(|(at, number)| series.push(at, number));
    series
}

/// Processes that become ever more.
pub(crate) fn processes(run: &Run) -> Option<CountedGrowth> {
    let rise = rise(&standing(run), began(run), PROCESSES_MORE).filter(|rise| rise.ongoing)?;
    let young = present(run).filter(|process| process.first_seen.seconds() > rise.since);
    let last = At::from_seconds(rise.until);
    let held = |process: &ProcessHistory| held_by(run.timeline, process, last).unwrap_or(0) as f64;
    let bytes = young.map(held).sum();
    let number = Some(rise.by);
    Some(CountedGrowth { class: GrowthClass::ProcessAccumulation, bytes, rise, process: None, number })
}

/// Files in memory: those that the job's cgroup counts, or as many as its Pythons read and wrote. Others may be in that
/// cgroup too: no more is the job's than what went through a disk for it, where its processes said how much that was.
pub(crate) fn page_cache(run: &Run) -> Option<CountedGrowth> {
    let (least, began) = (least(run), began(run));
    let counted = |bytes, rise| CountedGrowth {
        class: GrowthClass::PageCache,
        bytes,
        rise,
        process: None,
        number: None,
    };
    let of = |process: &ProcessHistory| {
        let libraries = process.files.peak().map_or(0.0, |(_, bytes)| bytes);
        process.memory_readings.disk(loaded(process) + LOADS_ON_S, libraries)
    };
    let read: Vec<f64> = run.timeline.processes().filter_map(of).collect();
    // What a child read counts for its parent too, once that has waited for it: the sum is a bound, the largest is not twice.
    if let Some(rise) = rise(&run.timeline.groups.cache, began, least) {
        let most = if read.is_empty() { rise.by } else { read.iter().sum() };
        let bytes = rise.by.min(most);
        return (bytes >= least).then(|| counted(bytes, rise));
    }
    let disk = read.into_iter().fold(0.0, f64::max);
    if disk < least {
        return None;
    }
    let host = run.timeline.host();
    let memory = host.last.memory.as_known()?;
    let (until, full) = (super::sources::end(run), CACHE_FULL * memory.total.0 as f64);
    let work_on_disk = run.timeline.filesystems(FilesystemUse::Work).all(|place| !place.last.tmpfs);
    // Others let go of theirs meanwhile: the most that it grew by is at least what came in.
    let start = At::from_seconds(began);
    let from = host.cache.at_or_before(start).or(host.cache.first());
    let most = host.cache.peak_between(start, At::from_seconds(until));
    let grew = most.zip(from).map_or(0.0, |(most, from)| most.1 - from.1);
    (work_on_disk && (grew >= least / 2.0 || (memory.free.0 as f64) < full)).then(|| {
        let per_second = disk / (until - began).max(LEAST_SPAN_S);
        counted(disk, Rise { since: began, until, by: disk, per_second, ongoing: true })
    })
}

/// Pages go to swap and come back, and the job has some there.
pub(crate) fn swapping(run: &Run) -> Option<CountedGrowth> {
    let host = run.timeline.host();
    let end = super::sources::end(run);
    let half = At::from_seconds(end / 2.0);
    let moved = |series: &Series| {
        let (from, to) = (series.at_or_before(half).or(series.first())?, series.last()?);
        Some((to.1 - from.1) * PAGE_BYTES as f64)
    };
    let (came, went) = (moved(&host.swap_in)?, moved(&host.swap_out)?);
    let own = run.timeline.groups.swap.peak().map_or(0.0, |(_, bytes)| bytes);
    let least = SWAPPED_BYTES.max(SWAP_PAGES * PAGE_BYTES as f64 * (end / 2.0));
    (came >= least && went >= least && own >= OWN_SWAP_BYTES).then(|| CountedGrowth {
        class: GrowthClass::SwapThrash,
        bytes: came,
        rise: Rise {
            since: end / 2.0,
            until: end,
            by: came,
            per_second: came / (end / 2.0).max(LEAST_SPAN_S),
            ongoing: true,
        },
        process: None,
        number: None,
    })
}
