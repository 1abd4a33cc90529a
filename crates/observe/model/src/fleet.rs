//! A fleet of recordings: one flat row for each, and the answer that all rows together give.
//!
//! Rows and answer are written as they stand here (docs/schema/fleet-1.json), so that a query over rows and the answer
//! use the same names.

use crate::{Difference, EndedBy, OutcomeKind, Proof, Severity};
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether a failure has a cause of its own, or follows from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A cause, an exception or a fault of the process itself.
    Own,
    /// It may be either: an abort or an exit status without a word.
    Unclear,
    /// It reports that another process failed: a signal of the launcher, a closed connection, a time-out.
    Echo,
}

impl FailureKind {
    /// As it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            FailureKind::Own => "own",
            FailureKind::Unclear => "unclear",
            FailureKind::Echo => "echo",
        }
    }
}

/// One recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetRow {
    /// Its folder.
    pub path: String,
    /// Name of the run.
    pub run: String,
    /// The launcher's job id.
    pub job: Option<String>,
    /// Name of the node.
    pub node: Option<String>,
    /// Rank in the job; none for a recording of a launcher with several ranks.
    pub rank: Option<u32>,
    /// How often the launcher had started the job again.
    pub attempt: u32,
    /// Number of the node in its job.
    pub node_rank: Option<u32>,
    /// Wall clock at the start, seconds since 1970.
    pub started_unix: f64,
    /// Wall clock at the end, or at the last reading.
    pub ended_unix: Option<f64>,
    /// Length of the run; none where no end was recorded.
    pub duration_s: Option<f64>,
    /// An end was recorded.
    pub closed: bool,
    /// Kind of the end of COMMAND's own process.
    pub outcome: OutcomeKind,
    /// Its exit status.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Who ended it.
    pub by: Option<EndedBy>,
    /// Exited 0, and nothing found above `note`.
    pub healthy: bool,
    /// The verdict in one sentence.
    pub headline: String,
    /// First finding above `note`: id of its cause.
    pub cause: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its severity.
    pub severity: Option<Severity>,
    /// What it rests on.
    pub proof: Option<Proof>,
    /// Role of the process that it is about.
    pub cause_role: Option<String>,
    /// Rank of that process.
    pub cause_rank: Option<u32>,
    /// The first failure: whether it is its own.
    pub failure: Option<FailureKind>,
    /// When it happened, by the node's wall clock.
    pub failure_unix: Option<f64>,
    /// Half of the interval in which it happened, without the error of the node's clock.
    pub failure_error_s: Option<f64>,
    /// Role of the process that failed.
    pub failure_role: Option<String>,
    /// Its rank, or that of the rank that started it.
    pub failure_rank: Option<u32>,
    /// How it ended, in a few words: what a cascade is counted by.
    pub ending: Option<String>,
    /// All of that in one sentence.
    pub failure_sentence: Option<String>,
    /// Bound of the error of the node's clock; none where it was not read.
    pub clock_error_s: Option<f64>,
    /// Id of the boot: recordings of one boot have one clock.
    pub boot_id: Option<String>,
    /// Memory of the job at its peak.
    pub peak_bytes: Option<u64>,
    /// Kind of growth.
    pub growth: Option<String>,
    /// Bytes a second.
    pub growth_per_second: Option<f64>,
    /// Nearest limit: its name.
    pub limit: Option<String>,
    /// Whose it is.
    pub limit_scope: Option<String>,
    /// Seconds until it is met; none where it is not approached.
    pub limit_time_left_s: Option<f64>,
    /// The most that was used, by the names of a comparison: `mappings`, `descriptors`, …
    pub figures: BTreeMap<String, f64>,
    /// How many ranks the job has.
    pub world_size: Option<u32>,
    /// How many nodes the job has.
    pub world_nodes: Option<u32>,
    /// How many ranks this recording should hold.
    pub local_size: Option<u32>,
    /// Why it cannot be read, where it cannot.
    pub problem: Option<String>,
}

/// Which recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FleetPlace {
    /// Its folder.
    pub path: String,
    /// Name of the node.
    pub node: Option<String>,
    /// The rank that failed or stands out, or else that of the recording.
    pub rank: Option<u32>,
}

/// What decided which failure was first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstBy {
    /// No other recording failed of its own.
    Only,
    /// The clocks: its interval lies before all others.
    Clock,
    /// Intervals overlap, and it alone has a proven cause.
    Cause,
}

/// A recording that may have failed first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetCandidate {
    /// Which.
    #[serde(flatten)]
    pub place: FleetPlace,
    /// When it failed.
    pub at_unix: f64,
    /// Half of the interval, the error of the clock included.
    pub error_s: f64,
    /// Whether the failure is its own.
    pub failure: FailureKind,
    /// Role of the process that failed.
    pub role: Option<String>,
    /// Id of the cause.
    pub cause: Option<String>,
    /// What the cause rests on.
    pub proof: Option<Proof>,
    /// How it ended, in a few words.
    pub ending: String,
    /// The verdict of the recording where a cause was found, else what happened; one sentence without its full stop.
    pub sentence: String,
}

/// Which failure was first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstOfFleet {
    /// It is one; else the intervals of several overlap.
    pub determined: bool,
    /// What decided it.
    pub by: Option<FirstBy>,
    /// The node that all candidates are of.
    pub node: Option<String>,
    /// The one, or those whose intervals overlap, earliest first.
    pub candidates: Vec<FleetCandidate>,
    /// Candidates that are not listed.
    pub more: usize,
}

/// Failures after the first one that ended alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CascadeStep {
    /// How they ended.
    pub ending: String,
    /// Whether that is an echo.
    pub failure: FailureKind,
    /// How many recordings.
    pub recordings: usize,
    /// Seconds from the first failure to the last of these; none where the first is not determined.
    pub within_s: Option<f64>,
}

/// A recording that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetOutlier {
    /// Which.
    #[serde(flatten)]
    pub place: FleetPlace,
    /// The figure: `memory`, `growth`, `mappings`, …
    pub figure: String,
    /// Its value here.
    pub value: f64,
    /// The median of its peers.
    pub median: f64,
    /// How many they are, this one included.
    pub peers: usize,
}

/// A fact in which a node differs from most others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetDifference {
    /// The fact, the value of most as `good`, and what it changes.
    #[serde(flatten)]
    pub difference: Difference,
    /// How many other nodes have the value of most.
    pub agreeing: usize,
    /// How many other nodes have this node's value.
    pub same: usize,
}

/// Why a node is compared with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OddBecause {
    /// It failed first.
    FirstFailure,
    /// A recording of it stands out.
    Outlier,
}

/// What is different about a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OddNode {
    /// Its name.
    pub node: String,
    /// Why it is compared.
    pub because: OddBecause,
    /// How many nodes it is compared with.
    pub others: usize,
    /// What can explain it, strongest first.
    pub differences: Vec<FleetDifference>,
    /// Names of facts that differ too and change nothing that is known.
    pub unimportant: Vec<String>,
}

/// The limit that the fleet meets next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetLimit {
    /// Where it is met first.
    #[serde(flatten)]
    pub place: FleetPlace,
    /// Its name.
    pub limit: String,
    /// Whose it is.
    pub scope: String,
    /// Seconds until it is met.
    pub time_left_s: f64,
    /// How many recordings approach a limit of this name.
    pub recordings: usize,
}

/// A recording that stops long before the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostRecording {
    /// Which.
    #[serde(flatten)]
    pub place: FleetPlace,
    /// Wall clock of its last reading.
    pub last_unix: f64,
}

/// What should be there and is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetMissing {
    /// Ranks that the job has, as its environment says.
    pub expected_ranks: Option<u32>,
    /// Nodes that the job has.
    pub expected_nodes: Option<u32>,
    /// Ranks without a recording.
    pub ranks: Vec<u32>,
    /// Numbers of nodes without a recording.
    pub node_ranks: Vec<u32>,
    /// How many nodes have no recording, numbered or not.
    pub nodes: u32,
    /// Recordings that stop long before the others.
    pub lost: Vec<LostRecording>,
}

/// How many recordings are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FleetStates {
    /// Ended well, and nothing was found.
    pub healthy: usize,
    /// Failed.
    pub failed: usize,
    /// Ended well with a finding above `note`.
    pub warned: usize,
    /// No end was recorded, and the last reading is no older than that of the others.
    pub running: usize,
    /// Stops long before the others.
    pub lost: usize,
    /// Cannot be read.
    pub unreadable: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetAnswer {
    /// Version of this shape; within one, keys are only added.
    pub schema: u32,
    /// The job that it is about.
    pub job: Option<String>,
    /// The attempt that it is about: the last one.
    pub attempt: u32,
    /// Recordings of that attempt.
    pub recordings: usize,
    /// Nodes that they are of.
    pub nodes: usize,
    /// Ranks that have a recording of their own, or are in one of their launcher.
    pub ranks: usize,
    /// In which state the recordings are.
    pub states: FleetStates,
    /// Recordings by kind of outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Recordings by cause of the first finding above `note`.
    pub causes: BTreeMap<String, usize>,
    /// Which failure was first; none where nothing failed.
    pub first: Option<FirstOfFleet>,
    /// What failed after it, the most frequent ending first.
    pub cascade: Vec<CascadeStep>,
    /// Recordings that stand out, the farthest first.
    pub outliers: Vec<FleetOutlier>,
    /// What is different about the node that failed first, and about nodes that stand out.
    pub differs: Vec<OddNode>,
    /// The limit that is met next.
    pub nearest: Option<FleetLimit>,
    /// What should be there and is not.
    pub missing: FleetMissing,
    /// Other jobs in the same folder.
    pub other_jobs: Vec<String>,
    /// Recordings of earlier attempts of this job: in `rows`, and in nothing else.
    pub earlier: usize,
    /// Every recording of the job, by folder.
    pub rows: Vec<FleetRow>,
}

impl FleetAnswer {
    /// The schema that this version writes.
    pub const SCHEMA: u32 = 1;
}
