//! What of a verdict's JSON, schema 1, does a row need?
//!
//! One shape for a `verdict.json` that another node wrote and for a verdict that was judged here: both are rows by the same
//! code. Keys that are not named are passed over.

use serde::de::IgnoredAny;
use serde::Deserialize;
use ullage_model::{EndedBy, OutcomeKind, Proof, Severity};

/// `verdict.json`: the verdict, and which ullage made it.
#[derive(Clone, Debug, Deserialize)]
pub struct VerdictFile {
    /// Of the file.
    pub schema: u32,
    /// Version of the ullage that wrote it.
    pub ullage: String,
    /// The verdict.
    pub verdict: VerdictView,
}

/// A verdict, as far as a row needs it.
#[derive(Clone, Debug, Deserialize)]
pub struct VerdictView {
    /// Name of the run.
    pub run: String,
    pub(crate) outcome: OutcomeView,
    pub(crate) healthy: bool,
    pub(crate) headline: String,
    pub(crate) findings: Vec<FindingView>,
    pub(crate) limits: Vec<LimitView>,
    pub(crate) memory: MemoryView,
    pub(crate) growth: Known<GrowthView>,
    pub(crate) first_failure: Option<FailureView>,
    pub(crate) duration_s: Known<f64>,
}

/// A value, or `{"missing": "reason"}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Known<T> {
    Value(T),
    Missing(IgnoredAny),
}

impl<T> Known<T> {
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Known::Value(value) => Some(value),
            Known::Missing(_) => None,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OutcomeView {
    pub(crate) kind: OutcomeKind,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) by: Option<EndedBy>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FindingView {
    pub(crate) cause: String,
    pub(crate) title: String,
    pub(crate) severity: Severity,
    pub(crate) proof: Option<Proof>,
    pub(crate) process: Option<ProcessView>,
    pub(crate) at: Option<f64>,
    #[serde(default)]
    pub(crate) evidence: Vec<EvidenceView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EvidenceView {
    pub(crate) value: Known<f64>,
    pub(crate) unit: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ProcessView {
    pub(crate) pid: i32,
    pub(crate) start: u64,
    pub(crate) role: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LimitView {
    pub(crate) name: String,
    pub(crate) scope: String,
    pub(crate) used: Known<f64>,
    pub(crate) time_left_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MemoryView {
    pub(crate) peak_bytes: Known<u64>,
    #[serde(default)]
    pub(crate) by_role: Vec<RoleView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RoleView {
    pub(crate) role: String,
    pub(crate) processes: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrowthView {
    pub(crate) class: String,
    pub(crate) per_second: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FailureView {
    pub(crate) process: Option<ProcessView>,
    pub(crate) at: f64,
    pub(crate) exception: Option<String>,
    pub(crate) signal: Option<i32>,
    pub(crate) code: Option<i32>,
    pub(crate) sentence: String,
    #[serde(default)]
    pub(crate) rank: Option<u32>,
}
