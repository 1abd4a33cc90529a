//! Shared memory of a run as a verdict tells it: computed from readings of segments, never recorded.

use crate::{At, CreatorSource, Missing, ProcessId, ProcessRef, Segment, SegmentKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Segments and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentTotal {
    /// How many.
    pub count: u64,
    /// Pages that they hold, as far as these could be told.
    pub bytes: u64,
    /// How many of them hold pages that could not be told.
    pub unmeasured: u64,
}

/// Who made a segment, as a reader of the verdict knows processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentCreator {
    /// A process of the job.
    Job {
        /// Which.
        process: ProcessRef,
        /// It had ended at the reading.
        ended: bool,
        /// How it is known.
        by: CreatorSource,
    },
    /// A process that is not of the job, and lived at the reading.
    Outside {
        /// Which.
        id: ProcessId,
        /// How it is known.
        by: CreatorSource,
    },
    /// A pid that no process had any more.
    Gone {
        /// As the name, or the kernel, tells it.
        pid: i32,
        /// How it is known.
        by: CreatorSource,
    },
    /// Nothing tells.
    Unknown(Missing),
}

/// A segment, or several that are alike, with whoever has to do with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSeen {
    /// As read.
    pub segment: Segment,
    /// Who made it.
    pub creator: SegmentCreator,
    /// Nobody of the job uses it, and whoever made it has ended, as far as is known; nor does a `torch_shm_manager` of
    /// the job live that removes it.
    pub orphan: bool,
    /// Processes that map it.
    pub mappers: Vec<ProcessRef>,
    /// Processes that hold it open only.
    pub openers: Vec<ProcessRef>,
}

/// A /dev/shm of the job at the reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentPlace {
    /// Path inside the job.
    pub path: String,
    /// In use, as the filesystem says.
    pub used: u64,
    /// Of these, in segments of the reading, whoever made them.
    pub attributed: u64,
}

/// What was there when the run was over, and nobody uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// All of it.
    pub total: SegmentTotal,
    /// The largest.
    pub largest: Vec<SegmentSeen>,
    /// Not among them: torch's segments that living managers still remove.
    pub managed: SegmentTotal,
    /// These managers; empty where nothing waits for them.
    pub managers: Vec<ProcessRef>,
}

/// Shared memory of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSummary {
    /// The reading in which the job's segments held most.
    pub at: At,
    /// Of the job: made or used by it, or appeared during it and claimed by nobody.
    pub total: SegmentTotal,
    /// Of these, orphans.
    pub orphans: SegmentTotal,
    /// The rest of its /dev/shm: from before, or of others.
    pub others: SegmentTotal,
    /// By kind.
    pub by_kind: BTreeMap<SegmentKind, SegmentTotal>,
    /// By who made them, largest first.
    pub by_creator: Vec<(SegmentCreator, SegmentTotal)>,
    /// The largest ones.
    pub largest: Vec<SegmentSeen>,
    /// Each /dev/shm of the job.
    pub places: Vec<SegmentPlace>,
    /// What the run left; none where its end was not seen.
    pub left_behind: Option<LeftBehind>,
}
