//! Shared segments of a run: which held most and when, who made them, and what was left behind.
//!
//! The surprise: a file in the job's /dev/shm need not be the job's. It is, where a process of the job made it or
//! uses it; or where it appeared during the run, nobody uses it and nobody who lives made it: then it is an orphan,
//! and only likely to be the job's. A tensor that dead workers of torch left is none while a `torch_shm_manager` of the job
//! lives: that one removes it, seconds after its last client has gone.

use crate::say;
use crate::timeline::Timeline;
use std::collections::{BTreeMap, HashSet};
use ullage_attribution::SegmentUse;
use ullage_model::{
    At, Bytes, Creator, FilesystemReading, FilesystemUse, LeftBehind, Maker, Measured, PageKind, ProcessId,
    ProcessRef, ProcessState, Role, RunFacts, Sample, Segment, SegmentCreator, SegmentKind, SegmentPlace,
    SegmentSeen, SegmentSummary, SegmentTotal,
};

/// Segments told one by one.
const LARGEST: usize = 20;
/// Makers told one by one.
const CREATORS: usize = 64;

/// A reading, and who lived then.
#[derive(Clone, Debug)]
struct Reading {
    at: At,
    segments: Vec<Segment>,
    places: Vec<FilesystemReading>,
    alive: HashSet<ProcessId>,
}

/// The readings that are kept: that in which the job's segments held most, and the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentHistory {
    most: Option<(u64, Reading)>,
    last: Option<Reading>,
    /// A job that is gone has no /dev/shm that could be looked into.
    stale: Option<Stale>,
}

impl SegmentHistory {
    pub(crate) fn read(&mut self, sample: &Sample, of_job: impl Fn(ProcessId) -> bool) {
        let Measured::Known(segments) = &sample.segments else { return };
        let reading = Reading {
            at: sample.at,
            segments: segments.clone(),
            places: sample
                .filesystems
                .iter()
                .filter(|place| place.used_for == FilesystemUse::Shm)
                .cloned()
                .collect(),
            alive: sample
                .processes
                .iter()
                .filter(|process| !matches!(process.state, ProcessState::Zombie | ProcessState::Dead))
                .map(|process| process.id)
                .collect(),
        };
        let held = segments
            .iter()
            .filter(|segment| belongs(segment, &of_job))
            .map(bytes)
            .fold(0, u64::saturating_add);
        if self.most.as_ref().is_none_or(|(most, _)| held > *most) {
            self.most = Some((held, reading.clone()));
        }
        if let Some(stale) = stale(&reading) {
            self.stale = Some(stale);
        }
        self.last = Some(reading);
    }
}

/// The job's own in a reading, for the account of its memory; none where one of them was not counted to the last page.
pub(crate) fn uses(sample: &Sample, of_job: impl Fn(ProcessId) -> bool) -> Option<Vec<SegmentUse>> {
    let Measured::Known(segments) = &sample.segments else { return None };
    segments
        .iter()
        .filter(|segment| belongs(segment, &of_job))
        .map(|segment| match segment.allocated {
            Measured::Known(Bytes(allocated)) if !segment.at_least => {
                Some(SegmentUse { kind: page_kind(segment.kind), allocated })
            }
            _ => None,
        })
        .collect()
}

fn page_kind(kind: SegmentKind) -> PageKind {
    match kind {
        SegmentKind::Torch => PageKind::TorchShared,
        SegmentKind::UllageArena => PageKind::UllageArena,
        SegmentKind::UllageShare => PageKind::UllageShare,
        SegmentKind::Memfd => PageKind::Memfd,
        SegmentKind::Sysv => PageKind::Sysv,
        SegmentKind::PosixShm | SegmentKind::SharedAnonymous => PageKind::OtherShared,
    }
}

/// Batches on their way in the fullest reading: torch's segments that loader workers made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    pub(crate) at: At,
    /// Of all that workers made.
    pub(crate) bytes: u64,
    /// Of these, what a process that is no worker maps: it has received them.
    pub(crate) received: u64,
}

/// None where segments were never read.
pub(crate) fn batches(timeline: &Timeline) -> Option<Batches> {
    let (_, most) = timeline.segments.most.as_ref()?;
    let is_worker = |id: ProcessId| {
        timeline.process(id).is_some_and(|process| matches!(process.role, Role::LoaderWorker(_)))
    };
    let mut batches = Batches { at: most.at, bytes: 0, received: 0 };
    for segment in most.segments.iter().filter(|segment| segment.kind == SegmentKind::Torch) {
        let Measured::Known(Creator { who: Maker::Process(maker), .. }) = segment.creator else { continue };
        if is_worker(maker) {
            batches.bytes = batches.bytes.saturating_add(bytes(segment));
            if segment.mappers.iter().any(|mapper| !is_worker(*mapper)) {
                batches.received = batches.received.saturating_add(bytes(segment));
            }
        }
    }
    Some(batches)
}

/// Files that were there before the job and that nobody of it uses.
#[derive(Clone, Debug)]
pub(crate) struct Stale {
    pub(crate) at: At,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Of these bytes, in files whose maker is known to have ended.
    pub(crate) makers_gone: u64,
    /// Names of the largest.
    pub(crate) names: Vec<String>,
}

/// Files in the job's /dev/shm from before the job; none where that could not be seen.
fn stale(reading: &Reading) -> Option<Stale> {
    if reading.places.is_empty() {
        return None;
    }
    let in_shm = |segment: &&Segment| {
        matches!(segment.kind, SegmentKind::Torch | SegmentKind::PosixShm)
            && reading.places.iter().any(|place| place.device == segment.device)
    };
    let of_living = |segment: &Segment| match segment.creator {
        Measured::Known(Creator { who: Maker::Process(_), .. }) => true,
        Measured::Known(Creator { who: Maker::Gone(_), .. }) | Measured::Missing(_) => false,
    };
    let mut stale: Vec<&Segment> = reading
        .segments
        .iter()
        .filter(in_shm)
        .filter(|segment| segment.before && segment.unused() && !of_living(segment))
        .collect();
    stale.sort_by_key(|segment| std::cmp::Reverse(bytes(segment)));
    let total = total(stale.iter().copied());
    let gone = stale
        .iter()
        .filter(|segment| matches!(segment.creator, Measured::Known(Creator { who: Maker::Gone(_), .. })));
    Some(Stale {
        at: reading.at,
        bytes: total.bytes,
        count: total.count,
        makers_gone: gone.map(|segment| bytes(segment)).fold(0, u64::saturating_add),
        names: stale.iter().take(3).map(|segment| segment.name.clone()).collect(),
    })
}

impl SegmentHistory {
    /// Files in the job's /dev/shm from before the job, as last seen while the job lived; none where they never were.
    pub(crate) fn stale(&self) -> Option<Stale> {
        self.stale.clone()
    }

    /// Segments of System V that the job made, and that nobody had attached when it was over: how many, and their bytes.
    pub(crate) fn sysv_left(&self, timeline: &Timeline) -> Option<(At, u64, u64)> {
        let reading = self.last.as_ref()?;
        let left = reading.segments.iter().filter(|segment| {
            let by_job = match segment.creator {
                Measured::Known(Creator { who: Maker::Process(id), .. }) => timeline.process(id).is_some(),
                _ => false,
            };
            segment.kind == SegmentKind::Sysv && !segment.before && segment.unused() && by_job
        });
        let total = total(left);
        (total.count > 0).then_some((reading.at, total.count, total.bytes))
    }
}

/// The summary; none where segments were never read.
pub(crate) fn summary(run: &RunFacts, timeline: &Timeline) -> Option<SegmentSummary> {
    let history = &timeline.segments;
    let (_, most) = history.most.as_ref()?;
    let of_job = |id: ProcessId| timeline.process(id).is_some();
    let (own, others): (Vec<&Segment>, Vec<&Segment>) =
        most.segments.iter().partition(|segment| belongs(segment, of_job));
    let view = |segment: &&Segment| seen(segment, most, timeline);
    let mut by_kind: BTreeMap<_, SegmentTotal> = BTreeMap::new();
    let mut by_creator: Vec<(SegmentCreator, SegmentTotal)> = Vec::new();
    let mut orphans = SegmentTotal::default();
    for segment in &own {
        add(by_kind.entry(segment.kind).or_default(), segment);
        let seen = view(segment);
        if seen.orphan {
            add(&mut orphans, segment);
        }
        match by_creator.iter_mut().find(|(creator, _)| *creator == seen.creator) {
            Some((_, total)) => add(total, segment),
            None => by_creator.push((seen.creator, total([*segment]))),
        }
    }
    by_creator.sort_by_key(|(_, total)| std::cmp::Reverse((total.bytes, total.count)));
    by_creator.truncate(CREATORS);
    Some(SegmentSummary {
        at: most.at,
        total: total(own.iter().copied()),
        orphans,
        others: total(others),
        by_kind,
        by_creator,
        largest: largest(own.iter().map(view)),
        places: most.places.iter().map(|place| told(place, &most.segments)).collect(),
        left_behind: left_behind(run, timeline),
    })
}

/// Orphans in the reading that was made when COMMAND had ended.
fn left_behind(run: &RunFacts, timeline: &Timeline) -> Option<LeftBehind> {
    let last = timeline.segments.last.as_ref()?;
    let (ended, _, _) = timeline.process(run.main?)?.ended?;
    if last.at < ended {
        return None;
    }
    let of_job = |id: ProcessId| timeline.process(id).is_some();
    let mut managed = SegmentTotal::default();
    let mut left = Vec::new();
    for segment in last.segments.iter().filter(|segment| !segment.before && belongs(segment, of_job)) {
        let seen = seen(segment, last, timeline);
        if seen.orphan {
            left.push(seen);
        } else if segment.unused() && gone(&seen.creator) {
            add(&mut managed, segment);
        }
    }
    let total = total(left.iter().map(|seen| &seen.segment));
    let managers = if managed.count > 0 { managers(last, timeline).collect() } else { Vec::new() };
    Some(LeftBehind { total, largest: largest(left.into_iter()), managed, managers })
}

/// The helpers of torch that lived at the reading: each removes what its clients leave.
fn managers<'a>(reading: &'a Reading, timeline: &'a Timeline) -> impl Iterator<Item = ProcessRef> + 'a {
    let mut ids: Vec<ProcessId> = reading.alive.iter().copied().collect();
    ids.sort_unstable();
    ids.into_iter()
        .filter_map(|id| timeline.process(id))
        .filter(|history| history.role == Role::ShmManager)
        .map(say::process_ref)
}

fn gone(creator: &SegmentCreator) -> bool {
    !matches!(creator, SegmentCreator::Job { ended: false, .. } | SegmentCreator::Outside { .. })
}

fn belongs(segment: &Segment, of_job: impl Fn(ProcessId) -> bool) -> bool {
    let used = !segment.mappers.is_empty() || !segment.holders.is_empty();
    used || match segment.creator {
        Measured::Known(Creator { who: Maker::Process(id), .. }) => of_job(id),
        _ => !segment.before && segment.unused(),
    }
}

fn seen(segment: &Segment, reading: &Reading, timeline: &Timeline) -> SegmentSeen {
    let creator = match segment.creator {
        Measured::Missing(why) => SegmentCreator::Unknown(why),
        Measured::Known(Creator { who: Maker::Gone(pid), by }) => SegmentCreator::Gone { pid, by },
        Measured::Known(Creator { who: Maker::Process(id), by }) => match timeline.process(id) {
            Some(history) => SegmentCreator::Job {
                process: say::process_ref(history),
                ended: !reading.alive.contains(&id),
                by,
            },
            None => SegmentCreator::Outside { id, by },
        },
    };
    let unused = segment.unused() && gone(&creator);
    let managed = || {
        segment.kind == SegmentKind::Torch && !segment.before && managers(reading, timeline).next().is_some()
    };
    let processes = |ids: &[ProcessId]| ids.iter().map(|id| process(*id, timeline)).collect();
    SegmentSeen {
        orphan: unused && !managed(),
        creator,
        mappers: processes(&segment.mappers),
        holders: processes(&segment.holders),
        segment: segment.clone(),
    }
}

fn process(id: ProcessId, timeline: &Timeline) -> ProcessRef {
    timeline
        .process(id)
        .map_or_else(|| ProcessRef { id, role: Role::Other, name: String::new() }, say::process_ref)
}

fn told(place: &FilesystemReading, segments: &[Segment]) -> SegmentPlace {
    let told = segments.iter().filter(|segment| segment.device == place.device).map(bytes);
    SegmentPlace { path: place.path.clone(), used: place.used.0, told: told.fold(0, u64::saturating_add) }
}

fn largest(seen: impl Iterator<Item = SegmentSeen>) -> Vec<SegmentSeen> {
    let mut seen: Vec<SegmentSeen> = seen.collect();
    seen.sort_by_key(|seen| std::cmp::Reverse(bytes(&seen.segment)));
    seen.truncate(LARGEST);
    seen
}

fn total<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> SegmentTotal {
    let mut total = SegmentTotal::default();
    segments.into_iter().for_each(|segment| add(&mut total, segment));
    total
}

fn add(total: &mut SegmentTotal, segment: &Segment) {
    total.count += segment.count;
    total.bytes = total.bytes.saturating_add(bytes(segment));
    total.not_told += if segment.allocated.missing().is_some() { segment.count } else { 0 };
}

fn bytes(segment: &Segment) -> u64 {
    segment.allocated.known().map_or(0, |bytes| bytes.0)
}
