//! Shared segments of a run: which held most and when, who made them, and what was left behind.
//!
//! The surprise: left behind by the job is only what a process of it is known to have made. A tensor that dead workers of
//! torch left is none while a `torch_shm_manager` of the job lives: that one removes it, seconds after its last client has gone.

use crate::history::segments::{add, belongs, bytes, total, SegmentReading};
use crate::history::{process_ref, Timeline};
use std::collections::BTreeMap;
use ullage_model::{
    At, Creator, FilesystemReading, LeftBehind, Maker, Measured, ProcessId, ProcessRef, Role, RunFacts,
    Segment, SegmentCreator, SegmentKind, SegmentPlace, SegmentSeen, SegmentSummary, SegmentTotal,
};

/// Segments told one by one.
const MOST_SEGMENTS: usize = 20;
/// Makers told one by one.
const MOST_CREATORS: usize = 64;

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
        let Measured::Known(Creator { maker: Maker::Process(maker), .. }) = segment.creator else { continue };
        if is_worker(maker) {
            batches.bytes = batches.bytes.saturating_add(bytes(segment));
            if segment.mappers.iter().any(|mapper| !is_worker(*mapper)) {
                batches.received = batches.received.saturating_add(bytes(segment));
            }
        }
    }
    Some(batches)
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
    by_creator.truncate(MOST_CREATORS);
    Some(SegmentSummary {
        at: most.at,
        total: total(own.iter().copied()),
        orphans,
        others: total(others),
        by_kind,
        by_creator,
        largest: largest(own.iter().map(view)),
        places: most.places.iter().map(|place| segment_place(place, &most.segments)).collect(),
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
        if !made_by_job(&seen.creator, timeline) {
            continue;
        }
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

/// Other jobs of the machine leave files too.
fn made_by_job(creator: &SegmentCreator, timeline: &Timeline) -> bool {
    match creator {
        SegmentCreator::Job { .. } => true,
        SegmentCreator::Gone { pid, .. } => timeline.processes().any(|process| process.id.pid == *pid),
        SegmentCreator::Outside { .. } | SegmentCreator::Unknown(_) => false,
    }
}

/// The helpers of torch that lived at the reading: each removes what its clients leave.
fn managers<'a>(
    reading: &'a SegmentReading,
    timeline: &'a Timeline,
) -> impl Iterator<Item = ProcessRef> + 'a {
    let mut ids: Vec<ProcessId> = reading.alive.iter().copied().collect();
    ids.sort_unstable();
    ids.into_iter()
        .filter_map(|id| timeline.process(id))
        .filter(|history| history.role == Role::ShmManager)
        .map(process_ref)
}

fn gone(creator: &SegmentCreator) -> bool {
    !matches!(creator, SegmentCreator::Job { ended: false, .. } | SegmentCreator::Outside { .. })
}

fn seen(segment: &Segment, reading: &SegmentReading, timeline: &Timeline) -> SegmentSeen {
    let creator = match segment.creator {
        Measured::Missing(why) => SegmentCreator::Unknown(why),
        Measured::Known(Creator { maker: Maker::Gone(pid), by }) => SegmentCreator::Gone { pid, by },
        Measured::Known(Creator { maker: Maker::Process(id), by }) => match timeline.process(id) {
            Some(history) => {
                SegmentCreator::Job { process: process_ref(history), ended: !reading.alive.contains(&id), by }
            }
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
        openers: processes(&segment.openers),
        segment: segment.clone(),
    }
}

fn process(id: ProcessId, timeline: &Timeline) -> ProcessRef {
    timeline
        .process(id)
        .map_or_else(|| ProcessRef { id, role: Role::Other, name: String::new() }, process_ref)
}

fn segment_place(place: &FilesystemReading, segments: &[Segment]) -> SegmentPlace {
    let attributed = segments.iter().filter(|segment| segment.device == place.device).map(bytes);
    SegmentPlace {
        path: place.path.clone(),
        used: place.used.0,
        attributed: attributed.fold(0, u64::saturating_add),
    }
}

fn largest(seen: impl Iterator<Item = SegmentSeen>) -> Vec<SegmentSeen> {
    let mut seen: Vec<SegmentSeen> = seen.collect();
    seen.sort_by_key(|seen| std::cmp::Reverse(bytes(&seen.segment)));
    seen.truncate(MOST_SEGMENTS);
    seen
}
