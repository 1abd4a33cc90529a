//! Readings of shared segments that are kept: the fullest, the last, and files from before the job.
//!
//! The surprise: a file in the job's /dev/shm need not be the job's. It is, where a process of the job made it or
//! uses it; or where it appeared during the run, nobody uses it and nobody who lives made it: then it is an orphan,
//! and only likely to be the job's.

use std::collections::HashSet;
use ullage_attribution::SegmentUse;
use ullage_model::{
    At, Bytes, Creator, FilesystemReading, FilesystemUse, Maker, Measured, PageKind, ProcessId, ProcessState,
    Sample, Segment, SegmentKind, SegmentTotal,
};

/// A reading, and who lived then.
#[derive(Clone, Debug)]
pub(crate) struct SegmentReading {
    pub(crate) at: At,
    pub(crate) segments: Vec<Segment>,
    pub(crate) places: Vec<FilesystemReading>,
    pub(crate) alive: HashSet<ProcessId>,
}

/// The readings that are kept: that in which the job's segments held most, and the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentHistory {
    pub(crate) most: Option<(u64, SegmentReading)>,
    pub(crate) last: Option<SegmentReading>,
    /// A job that is gone has no /dev/shm that could be looked into.
    stale: Option<Stale>,
}

impl SegmentHistory {
    pub(crate) fn read(&mut self, sample: &Sample, of_job: impl Fn(ProcessId) -> bool) {
        let Measured::Known(segments) = &sample.segments else { return };
        let reading = SegmentReading {
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

/// Those with a name in the job's /dev/shm.
pub(crate) fn in_shm(reading: &SegmentReading) -> impl Iterator<Item = &Segment> {
    reading.segments.iter().filter(|segment| {
        matches!(segment.kind, SegmentKind::Torch | SegmentKind::PosixShm)
            && reading.places.iter().any(|place| place.device == segment.device)
    })
}

/// Files in the job's /dev/shm from before the job; none where that could not be seen.
fn stale(reading: &SegmentReading) -> Option<Stale> {
    if reading.places.is_empty() {
        return None;
    }
    let of_living = |segment: &Segment| match segment.creator {
        Measured::Known(Creator { maker: Maker::Process(_), .. }) => true,
        Measured::Known(Creator { maker: Maker::Gone(_), .. }) | Measured::Missing(_) => false,
    };
    let mut stale: Vec<&Segment> =
        in_shm(reading).filter(|segment| segment.before && segment.unused() && !of_living(segment)).collect();
    stale.sort_by_key(|segment| std::cmp::Reverse(bytes(segment)));
    let total = total(stale.iter().copied());
    let gone = stale
        .iter()
        .filter(|segment| matches!(segment.creator, Measured::Known(Creator { maker: Maker::Gone(_), .. })));
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
    pub(crate) fn sysv_left(&self, of_job: impl Fn(ProcessId) -> bool) -> Option<(At, u64, u64)> {
        let reading = self.last.as_ref()?;
        let left = reading.segments.iter().filter(|segment| {
            let by_job = match segment.creator {
                Measured::Known(Creator { maker: Maker::Process(id), .. }) => of_job(id),
                _ => false,
            };
            segment.kind == SegmentKind::Sysv && !segment.before && segment.unused() && by_job
        });
        let total = total(left);
        (total.count > 0).then_some((reading.at, total.count, total.bytes))
    }
}

pub(crate) fn belongs(segment: &Segment, of_job: impl Fn(ProcessId) -> bool) -> bool {
    let used = !segment.mappers.is_empty() || !segment.openers.is_empty();
    used || match segment.creator {
        Measured::Known(Creator { maker: Maker::Process(id), .. }) => of_job(id),
        _ => !segment.before && segment.unused(),
    }
}

pub(crate) fn total<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> SegmentTotal {
    let mut total = SegmentTotal::default();
    segments.into_iter().for_each(|segment| add(&mut total, segment));
    total
}

pub(crate) fn add(total: &mut SegmentTotal, segment: &Segment) {
    total.count += segment.count;
    total.bytes = total.bytes.saturating_add(bytes(segment));
    total.unmeasured += if segment.allocated.missing().is_some() { segment.count } else { 0 };
}

pub(crate) fn bytes(segment: &Segment) -> u64 {
    segment.allocated.known().map_or(0, |bytes| bytes.0)
}
