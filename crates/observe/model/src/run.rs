//! What `run.json` says of a run.

use crate::{Cost, MachineFacts, Outcome, ProcessId};
use serde::{Deserialize, Serialize};

/// Name of a run: its directory's name, `20261121-035512-train-4711`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

/// Facts of a run. Written at the start, and again at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Format of the recording; readers refuse a larger one.
    pub format: u32,
    /// Name of the run.
    pub run: RunId,
    /// COMMAND and its arguments.
    pub command: Vec<String>,
    /// Wall clock at the start, seconds since 1970.
    pub started_unix: f64,
    /// Pid and start time of COMMAND's process; none where it was not started.
    pub main: Option<ProcessId>,
    /// Pid and start time of ullage itself.
    pub recorder: Option<ProcessId>,
    /// Seconds between ticks, as asked for.
    pub interval_s: f64,
    /// The agent was offered to the job's Pythons.
    pub agent: bool,
    /// Name of the node, where a launcher set it.
    pub node: Option<String>,
    /// SLURM_JOB_ID, TORCHELASTIC_RUN_ID, …
    pub job: Option<String>,
    /// RANK.
    pub rank: Option<u32>,
    /// Number of the node in its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_rank: Option<u32>,
    /// How often the launcher had started this again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `torchrun`, `slurm`, `ray` or `kubernetes`: whose variables tell the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<String>,
    /// Environment variables of the allow-list.
    pub environment: std::collections::BTreeMap<String, String>,
    /// The machine.
    pub machine: MachineFacts,
    /// How it ended; none while it runs, or where ullage was killed.
    pub outcome: Option<Outcome>,
    /// Seconds from start to end.
    pub duration_s: Option<f64>,
    /// What watching cost in all.
    pub cost: Option<Cost>,
    /// What could not be seen, one sentence each.
    pub not_seen: Vec<String>,
    /// The budget of `--memory-max`, bytes.
    pub memory_max: Option<u64>,
    /// The remedies that `--fix` asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<AskedRemedy>,
}

/// A remedy that `--fix` asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRemedy {
    /// Its name on the command line: arena, zygote, nofile.
    pub name: String,
    /// It is on.
    pub applied: bool,
    /// What it does, or why it is not applied.
    pub sentence: String,
}

impl std::fmt::Display for AskedRemedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.sentence)
    }
}
