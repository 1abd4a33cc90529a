//! What the agent says of things that torch keeps in a Python: counts of them, batches behind a late one, objects on their
//! way through a collective.
//!
//! Written by `python/ullage/agent/torch_counts.py`.

use crate::Weight;
use serde::{Deserialize, Serialize};

/// There are more of them than ever before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TorchCount {
    /// `process-groups`, `compiled-graphs`, `autograd-circles`, `shuffle-buffer`.
    pub what: String,
    /// How many.
    pub count: u64,
    /// What they hold, where that is known.
    pub bytes: Option<u64>,
    /// What most of them are called, or where they are, where that is known.
    pub name: String,
}

/// Batches that a loader's process has received and keeps, because one that comes before them is late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// How many wait.
    pub batches: u64,
    /// Batches that were asked for and not handed on: those that wait, the late one, and others that are not made yet.
    pub outstanding: u64,
    /// Number of the worker that makes the late one.
    pub worker: Option<u32>,
    /// Seconds for which that one was waited for.
    pub waited_s: f64,
    /// What one of those that wait weighs.
    pub batch: Option<Weight>,
}

/// A Python object is made into bytes for a collective of torch.distributed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collective {
    /// `all_gather_object`.
    pub of: String,
    /// Where the program calls it, `train.py:31`.
    pub line: String,
    /// Ranks of its group.
    pub ranks: u64,
    /// What this rank sends.
    pub object: Option<Weight>,
}
