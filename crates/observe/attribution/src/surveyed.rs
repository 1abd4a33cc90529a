//! A survey, and the sizes at that moment: what later samples are compared with.

use crate::lives::Reading;
use std::collections::BTreeMap;
use ullage_model::{
    Bytes, Counted, Measured, PageKind, Pages, ProcessId, ProcessMemory, ProcessReading, Sample,
};

/// Bytes that a segment of shared memory has allocated, whoever maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentUse {
    /// Which kind of shared memory.
    pub kind: PageKind,
    /// Bytes.
    pub allocated: u64,
}

/// Private memory of one process then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    pub(crate) reading: Reading,
    pub(crate) exclusive: u64,
    /// Mapped by others too.
    pub(crate) shared: u64,
    /// In malloc's heap and arenas, and with each page divided by those of the job that map it.
    pub(crate) malloc: u64,
    pub(crate) malloc_part: u64,
}

/// What a survey found.
#[derive(Clone, Debug)]
pub(crate) struct Surveyed {
    /// The job's rows.
    pub(crate) job: Vec<Pages>,
    /// Rows of processes, private memory.
    pub(crate) own: BTreeMap<ProcessId, Own>,
    /// What each process had mapped then: what shared and file memory is carried on by.
    pub(crate) shared: BTreeMap<ProcessId, u64>,
    pub(crate) file: BTreeMap<ProcessId, u64>,
    /// Shared memory was counted segment by segment, mapped or not.
    pub(crate) exact: bool,
    /// Swapped out, each page once, of what processes say in sum.
    pub(crate) swapped_once: f64,
}

impl Surveyed {
    /// None where the sample has none.
    pub(crate) fn of(sample: &Sample) -> Option<Surveyed> {
        let job: Vec<Pages> = sample.survey.iter().filter(|row| row.of.is_none()).copied().collect();
        if job.is_empty() {
            return None;
        }
        let mut own: BTreeMap<ProcessId, Own> = BTreeMap::new();
        for row in sample.survey.iter().filter(|row| row.kind.counted() == Counted::Anonymous) {
            let Some(id) = row.of else { continue };
            let entry = own.entry(id).or_default();
            entry.exclusive = entry.exclusive.saturating_add(row.exclusive.0);
            entry.shared = entry.shared.saturating_add(row.shared.0).saturating_add(row.outside.0);
            if row.kind == PageKind::Malloc {
                (entry.malloc, entry.malloc_part) = (row.bytes.0, row.proportional.0);
            }
        }
        own.retain(|id, entry| {
            let reading = sample.processes.iter().find(|reading| reading.id == *id);
            match reading.and_then(Reading::of) {
                Some(reading) => {
                    entry.reading = reading;
                    true
                }
                None => false,
            }
        });
        let swapped: u64 = job.iter().map(|row| row.swapped.0).sum();
        let summed = sum(sample, |memory| memory.swap.0);
        Some(Surveyed {
            own,
            shared: by_process(sample, |memory| memory.shared.0),
            file: by_process(sample, |memory| memory.file.0),
            swapped_once: if summed > 0 && swapped > 0 {
                (swapped as f64 / summed as f64).min(1.0)
            } else {
                1.0
            },
            exact: false,
            job,
        })
    }

    /// The job's rows that the kernel counts like this.
    pub(crate) fn rows(&self, counted: Counted) -> impl Iterator<Item = &Pages> {
        self.job.iter().filter(move |row| row.kind.counted() == counted)
    }

    /// Their bytes.
    pub(crate) fn bytes(&self, counted: Counted) -> u64 {
        self.rows(counted).map(|row| row.bytes.0).sum()
    }

    /// Half of the 95 % interval of all of them together.
    pub(crate) fn error(&self, counted: Counted) -> u64 {
        self.rows(counted).map(|row| (row.error.0 as f64).powi(2)).sum::<f64>().sqrt() as u64
    }

    /// What the kernel counts and the survey did not find.
    pub(crate) fn unexplained(&self, counted: Counted) -> u64 {
        self.rows(counted).map(|row| row.unexplained.0).sum()
    }

    /// Puts exact figures of shared memory in the place of estimates. Who shares it is kept in proportion.
    pub(crate) fn count_exactly(&mut self, segments: &[SegmentUse], sample: &Sample) {
        let before = self.bytes(Counted::Shared);
        let all: u64 = segments.iter().map(|segment| segment.allocated).fold(0, u64::saturating_add);
        let part = |pick: fn(&Pages) -> u64| {
            let sum: u64 = self.rows(Counted::Shared).map(pick).sum();
            if before > 0 {
                sum as f64 / before as f64
            } else {
                0.0
            }
        };
        let (shared, outside) = (part(|row| row.shared.0), part(|row| row.outside.0));
        self.job.retain(|row| row.kind.counted() != Counted::Shared);
        for kind in PageKind::ALL.into_iter().filter(|kind| kind.counted() == Counted::Shared) {
            let of_kind = segments.iter().filter(|segment| segment.kind == kind);
            let bytes = of_kind.map(|segment| segment.allocated).fold(0, u64::saturating_add).min(all);
            let of = |share: f64| Bytes(((bytes as f64 * share) as u64).min(bytes));
            let (shared, outside) = (of(shared), of(outside));
            let exclusive = Bytes(bytes).saturating_sub(shared).saturating_sub(outside);
            let proportional = Bytes(bytes);
            self.job.push(Pages {
                bytes: Bytes(bytes),
                exclusive,
                shared,
                outside,
                proportional,
                ..Pages::none(None, kind)
            });
        }
        self.exact = true;
        self.shared = by_process(sample, |memory| memory.shared.0);
    }

    /// Bytes of the kinds whose files lie in /dev/shm, mostly.
    pub(crate) fn in_dev_shm(&self) -> u64 {
        let there = |kind| matches!(kind, PageKind::TorchShared | PageKind::OtherShared);
        self.job.iter().filter(|row| there(row.kind)).map(|row| row.bytes.0).sum()
    }
}

pub(crate) fn known(sample: &Sample) -> impl Iterator<Item = &ProcessMemory> {
    sample.processes.iter().filter_map(|reading| match &reading.memory {
        Measured::Known(memory) => Some(memory),
        Measured::Missing(_) => None,
    })
}

pub(crate) fn sum(sample: &Sample, pick: impl Fn(&ProcessMemory) -> u64) -> u64 {
    known(sample).map(pick).fold(0, u64::saturating_add)
}

pub(crate) fn by_process(sample: &Sample, pick: impl Fn(&ProcessMemory) -> u64) -> BTreeMap<ProcessId, u64> {
    let known = |reading: &ProcessReading| Some((reading.id, pick(reading.memory.as_known()?)));
    sample.processes.iter().filter_map(known).collect()
}
