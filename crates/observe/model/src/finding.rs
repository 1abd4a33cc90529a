//! Findings and verdicts: what diagnosis says, and what the reports show.

use crate::{
    At, Evidence, Growth, LimitState, Outcome, ProcessId, Proof, Role, RunId, SegmentSummary, Status,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; leaves a run healthy.
    Note,
    /// It will go wrong, or did without ending the run.
    Warning,
    /// It ended the run or a process of it.
    Fatal,
}

/// A process as a finding names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Pid and start time.
    pub id: ProcessId,
    /// What it is in the job.
    pub role: Role,
    /// comm.
    pub name: String,
}

/// What went wrong first in a job that failed, whatever the cause.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstFailure {
    /// In which process; none where it ended before it was ever read.
    pub process: Option<ProcessRef>,
    /// Number of the rank that it is, or that started it; none where no launcher numbered one.
    pub rank: Option<u32>,
    /// When.
    pub at: At,
    /// Type and first line of the exception that left it.
    pub exception: Option<String>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its exit status.
    pub code: Option<i32>,
    /// All of that in words, and of SIGKILL whether the kernel's OOM killer sent it.
    pub sentence: String,
}

/// Where alone a remedy can be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a container, which can be started in another way.
    Container,
    /// Under Slurm.
    Slurm,
    /// Where a DataLoader is made.
    Loader,
}

/// One way to remove a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, in a few words.
    pub title: String,
    /// Exact command or code; may have several lines.
    pub command: String,
    /// Name of the remedy of `ullage run --fix` that does it, where there is one.
    pub automatic: Option<String>,
    /// Where alone it can be carried out; none: everywhere.
    pub place: Option<Place>,
}

impl Fix {
    /// One that can be carried out everywhere, by hand.
    pub fn new(title: impl Into<String>, command: impl Into<String>) -> Fix {
        Fix { title: title.into(), command: command.into(), automatic: None, place: None }
    }

    /// The same, which can be carried out there only.
    pub fn only(self, place: Place) -> Fix {
        Fix { place: Some(place), ..self }
    }

    /// The same, which a remedy of `ullage run --fix` does.
    pub fn automatic(self, remedy: &str) -> Fix {
        Fix { automatic: Some(remedy.to_owned()), ..self }
    }
}

/// A cause, seen in a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Id in the catalogue.
    pub cause: String,
    /// One line.
    pub title: String,
    /// What was seen in this run, in one sentence; the title where nothing was.
    pub headline: String,
    /// How bad.
    pub severity: Severity,
    /// What it rests on: how it is known, and how sure it is, follow.
    pub proof: Proof,
    /// Whose; none for a finding on the host or a cgroup.
    pub process: Option<ProcessRef>,
    /// When the cause took effect: ranks findings along the causal chain.
    pub at: Option<At>,
    /// What it rests on, most telling first.
    pub evidence: Vec<Evidence>,
    /// What to do, best first.
    pub fixes: Vec<Fix>,
    /// Ids of causes whose findings come of this one.
    pub explains: Vec<String>,
    /// It filled a limit that processes share: what it explains may be of another one.
    pub beyond_its_process: bool,
}

impl Finding {
    /// How it is known.
    pub fn status(&self) -> Status {
        self.proof.status()
    }

    /// The other one comes of this one: it names its cause, and both are of one process, as far as each is of one, or of a
    /// limit that processes share.
    pub fn is_cause_of(&self, other: &Finding) -> bool {
        let of_one = self.process.as_ref().zip(other.process.as_ref()).is_none_or(|(a, b)| a.id == b.id);
        (of_one || self.beyond_its_process) && self.explains.contains(&other.cause)
    }
}

/// Ids of the causes among `findings` that this one comes of.
pub fn caused_by<'a>(finding: &Finding, findings: &'a [Finding]) -> Vec<&'a str> {
    let causes = findings.iter().filter(|other| other.is_cause_of(finding));
    causes.map(|other| other.cause.as_str()).collect()
}

/// A cause that could be neither found nor ruled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undetermined {
    /// Id in the catalogue.
    pub cause: String,
    /// What could not be read.
    pub because: String,
}

/// Memory of the whole tree: at its peak, and at the last look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemorySummary {
    /// Largest use of the tree in one sample: what its processes hold, each page once.
    pub peak_bytes: u64,
    /// Where that figure comes from.
    pub source: String,
    /// Share of `peak_bytes` that is in no category but `unexplained`.
    pub unexplained_share: f64,
    /// Bytes by category id at the peak. Their sum is `peak_bytes`.
    pub categories: BTreeMap<String, u64>,
    /// Half of the 95 % interval of `peak_bytes`.
    pub error_bytes: u64,
    /// Bytes by id that stand beside `peak_bytes`: page cache that no process maps, mappings of a GPU driver.
    pub beside: BTreeMap<String, u64>,
    /// Of the peak, private memory of the processes of each role, those that hold most first; the rest is shared, or of files.
    #[serde(default)]
    pub by_role: Vec<RoleMemory>,
    /// Who shares it; none where no pages were looked at.
    pub sharing: Option<Sharing>,
    /// The same at the last survey of pages; none where none was made.
    pub last: Option<MemoryAt>,
    /// Forked processes, those that copied most first.
    pub copy_on_write: Vec<CopyOnWrite>,
}

/// Memory of the tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryAt {
    /// When.
    pub at: At,
    /// What its processes hold, each page once.
    pub bytes: u64,
    /// Half of its 95 % interval.
    pub error_bytes: u64,
    /// Where that figure comes from.
    pub source: String,
    /// Bytes by category id.
    pub categories: BTreeMap<String, u64>,
    /// Bytes by id that are not in `bytes`.
    pub beside: BTreeMap<String, u64>,
    /// Private memory of each process; what is shared since a fork is the ancestor's.
    #[serde(default)]
    pub own: Vec<(ProcessId, u64)>,
    /// Who shares it.
    pub sharing: Option<Sharing>,
}

/// Private memory of the processes of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleMemory {
    /// Without a number: `loader worker`.
    pub role: String,
    /// How many processes.
    pub processes: u64,
    /// Of all of them.
    pub bytes: u64,
}

/// Who shares the pages of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Mapped by one process.
    pub private: u64,
    /// Mapped by several processes of the job.
    pub within_job: u64,
    /// Mapped by one process of the job, and by others.
    pub with_others: u64,
}

/// What a forked process still shares of what it inherited, and what became of the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyOnWrite {
    /// Which process.
    pub process: ProcessRef,
    /// When that was seen.
    pub at: At,
    /// Private memory that it began with.
    pub inherited: u64,
    /// Still mapped by others too.
    pub shared: u64,
    /// Copied by this process, which wrote into it.
    pub copied: u64,
    /// No longer shared because its parent wrote into it, or let go of it.
    pub parent_changed: u64,
    /// No longer shared, and which of the two cannot be told.
    pub unknown: u64,
    /// Its own, taken since the fork.
    pub new: u64,
    /// Half of the 95 % interval of `shared` and `copied`.
    pub error: u64,
    /// By category id: still shared, and mapped by this process alone.
    pub by_kind: BTreeMap<String, (u64, u64)>,
    /// Earlier readings: when, still shared, copied.
    pub over_time: Vec<(At, u64, u64)>,
}

/// The answer: how the run ended and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Name of the run.
    pub run: RunId,
    /// COMMAND.
    pub command: Vec<String>,
    /// Of COMMAND's own process.
    pub outcome: Outcome,
    /// Exited 0, and nothing found above `note`.
    pub healthy: bool,
    /// First the most severe, what comes of it behind it; then the earliest, then the best known.
    pub findings: Vec<Finding>,
    /// The limits that matter, first met first.
    pub limits: Vec<LimitState>,
    /// Memory of the tree.
    pub memory: MemorySummary,
    /// Which kind of growth it shows; none where too little was read to tell.
    pub growth: Option<Growth>,
    /// What went wrong first; none where COMMAND ended well or still runs.
    pub first_failure: Option<FirstFailure>,
    /// Its shared segments; none where they were never read.
    pub segments: Option<SegmentSummary>,
    /// Causes that could not be told.
    pub undetermined: Vec<Undetermined>,
    /// What could not be seen, one sentence each.
    pub not_seen: Vec<String>,
    /// Remedies of `--fix` that were on, one line each.
    pub fixes: Vec<String>,
    /// Share of one core that ullage used.
    pub cost_cpu_share: Option<f64>,
    /// Largest resident set of ullage, bytes.
    pub cost_peak_rss: Option<u64>,
    /// Length of the run, seconds.
    pub duration_s: Option<f64>,
    /// Moments that the job marked; the last ones.
    pub marks: Vec<Mark>,
    /// When torchrun started its workers again; the first times.
    pub attempts: Vec<Attempt>,
}

/// A moment that the job marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: At,
    /// Its text; hostile.
    pub text: String,
}

/// A moment when torchrun started its workers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When the first of them was noticed.
    pub at: At,
    /// How often it has by then.
    pub number: u32,
}

impl Attempt {
    /// What is said of it everywhere.
    pub fn sentence(number: u32) -> String {
        format!("torchrun started its workers again (restart {number})")
    }
}
