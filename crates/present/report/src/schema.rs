//! What does a verdict look like as JSON, schema 1? The serialised types, apart from the model's, so that a
//! change in the vocabulary cannot change what other programs read.
//!
//! Stable: within a schema number keys are only added. `docs/schema/verdict-1.json` says the same as a JSON
//! Schema, and a test holds both together.

use crate::segments::SegmentsJson;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use ullage_model::{
    caused_by, CopyOnWrite, Evidence, EvidenceValue, Finding, FirstFailure, Fix, Growth, Limit, LimitState,
    Measured, MemoryAt, MemorySummary, Outcome, ProcessRef, Proof, RoleMemory, Severity, Sharing, Status,
    Undetermined, Verdict,
};

/// The number in `schema`.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
pub(crate) struct VerdictJson<'a> {
    schema: u32,
    run: &'a str,
    command: &'a [String],
    outcome: OutcomeJson,
    healthy: bool,
    findings: Vec<FindingJson<'a>>,
    limits: Vec<LimitJson>,
    memory: MemoryJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<SegmentsJson<'a>>,
    undetermined: Vec<UndeterminedJson<'a>>,
    not_seen: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    fixes: &'a [String],
    cost: CostJson,
    duration_s: Value<f64>,
    growth: Value<GrowthJson<'a>>,
    first_failure: Option<FirstFailureJson<'a>>,
    headline: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<MarkJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptJson>,
}

#[derive(Serialize)]
struct MarkJson<'a> {
    at: f64,
    text: &'a str,
}

#[derive(Serialize)]
struct AttemptJson {
    at: f64,
    number: u32,
}

#[derive(Serialize)]
pub(crate) struct FirstFailureJson<'a> {
    process: Option<ProcessJson<'a>>,
    at: f64,
    exception: Option<&'a str>,
    signal: Option<i32>,
    code: Option<i32>,
    sentence: &'a str,
    rank: Option<u32>,
}

#[derive(Serialize)]
pub(crate) struct OutcomeJson {
    kind: ullage_model::OutcomeKind,
    code: Option<i32>,
    signal: Option<i32>,
    by: Option<ullage_model::EndedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetJson>,
}

#[derive(Serialize)]
pub(crate) struct BudgetJson {
    bytes: u64,
    used_bytes: u64,
    overshoot_bytes: u64,
}

#[derive(Serialize)]
pub(crate) struct FindingJson<'a> {
    cause: &'a str,
    title: &'a str,
    severity: Severity,
    confidence: f64,
    status: Status,
    process: Option<ProcessJson<'a>>,
    evidence: Vec<EvidenceJson<'a>>,
    fixes: Vec<FixJson<'a>>,
    why: Vec<&'a str>,
    at: Option<f64>,
    explains: &'a [String],
    caused_by: Vec<&'a str>,
    proof: Proof,
}

#[derive(Serialize)]
pub(crate) struct ProcessJson<'a> {
    pid: i32,
    start: u64,
    role: String,
    name: &'a str,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    what: &'a str,
    value: Value<Scalar<'a>>,
    limit: Option<LimitValue>,
    unit: &'static str,
    source: String,
    at: Option<f64>,
    sentence: &'a str,
}

#[derive(Serialize)]
struct FixJson<'a> {
    title: &'a str,
    command: &'a str,
    automatic: Option<&'a str>,
}

#[derive(Serialize)]
struct LimitJson {
    name: &'static str,
    scope: String,
    used: Value<u64>,
    limit: Value<LimitValue>,
    slope_per_s: Option<f64>,
    time_left_s: Option<f64>,
    unit: &'static str,
    headroom: Option<u64>,
    growing_for_s: Option<f64>,
    warning: bool,
}

#[derive(Serialize)]
struct MemoryJson<'a> {
    peak_bytes: Value<u64>,
    unexplained_share: Value<f64>,
    categories: &'a BTreeMap<String, u64>,
    source: &'a str,
    error_bytes: u64,
    beside: &'a BTreeMap<String, u64>,
    sharing: Option<SharingJson>,
    last: Option<MemoryAtJson<'a>>,
    copy_on_write: Vec<CopyOnWriteJson<'a>>,
    by_role: &'a [RoleMemory],
}

#[derive(Serialize)]
struct GrowthJson<'a> {
    class: &'static str,
    because: &'a str,
    bytes: u64,
    per_second: f64,
    since_s: Option<f64>,
    share: f64,
    process: Option<ProcessJson<'a>>,
    until: Option<GrowthLimitJson>,
    parts: Vec<GrowthPartJson>,
    explained_by: Option<&'a str>,
}

#[derive(Serialize)]
struct GrowthLimitJson {
    limit: &'static str,
    scope: String,
    time_left_s: Option<f64>,
}

#[derive(Serialize)]
struct GrowthPartJson {
    class: &'static str,
    bytes: u64,
    share: f64,
}

#[derive(Serialize)]
struct SharingJson {
    private_bytes: u64,
    shared_within_job_bytes: u64,
    shared_with_others_bytes: u64,
}

#[derive(Serialize)]
struct MemoryAtJson<'a> {
    at_s: f64,
    bytes: u64,
    error_bytes: u64,
    unexplained_share: f64,
    categories: &'a BTreeMap<String, u64>,
    source: &'a str,
    beside: &'a BTreeMap<String, u64>,
    sharing: Option<SharingJson>,
}

#[derive(Serialize)]
struct CopyOnWriteJson<'a> {
    process: ProcessJson<'a>,
    at_s: f64,
    inherited_bytes: u64,
    shared_bytes: u64,
    copied_bytes: u64,
    parent_changed_bytes: u64,
    unknown_bytes: u64,
    new_bytes: u64,
    error_bytes: u64,
    by_class: BTreeMap<&'a str, ClassJson>,
    over_time: Vec<CopiedAtJson>,
}

#[derive(Serialize)]
struct ClassJson {
    shared_bytes: u64,
    unshared_bytes: u64,
}

#[derive(Serialize)]
struct CopiedAtJson {
    at_s: f64,
    shared_bytes: u64,
    copied_bytes: u64,
}

#[derive(Serialize)]
struct UndeterminedJson<'a> {
    cause: &'a str,
    because: &'a str,
}

#[derive(Serialize)]
struct CostJson {
    cpu_share_of_one_core: Value<f64>,
    peak_rss_bytes: Value<u64>,
}

/// A value, or `{"missing": "reason"}`.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Value<T> {
    Known(T),
    Missing { missing: &'static str },
}

/// Number or text; a whole number comes out without a fraction.
#[derive(Serialize)]
#[serde(untagged)]
enum Scalar<'a> {
    Whole(u64),
    Number(f64),
    Text(&'a str),
}

/// A number, or `"unlimited"`.
struct LimitValue(Limit);

impl Serialize for LimitValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Limit::Unlimited => serializer.serialize_str("unlimited"),
            Limit::At(n) => serializer.serialize_u64(n),
        }
    }
}

impl<T> Value<T> {
    pub(crate) fn of<U>(measured: &Measured<U>, convert: impl FnOnce(&U) -> T) -> Value<T> {
        match measured {
            Measured::Known(value) => Value::Known(convert(value)),
            Measured::Missing(reason) => Value::Missing { missing: reason.reason() },
        }
    }

    pub(crate) fn or(value: Option<T>, missing: &'static str) -> Value<T> {
        value.map_or(Value::Missing { missing }, Value::Known)
    }
}

impl<'a> From<&'a Verdict> for VerdictJson<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        VerdictJson {
            schema: SCHEMA,
            run: &verdict.run.0,
            command: &verdict.command,
            outcome: (&verdict.outcome).into(),
            healthy: verdict.healthy,
            findings: FindingJson::all(&verdict.findings),
            limits: verdict.limits.iter().map(LimitJson::from).collect(),
            memory: (&verdict.memory).into(),
            segments: verdict.segments.as_ref().map(SegmentsJson::from),
            undetermined: verdict.undetermined.iter().map(UndeterminedJson::from).collect(),
            not_seen: &verdict.not_seen,
            fixes: &verdict.fixes,
            cost: CostJson {
                cpu_share_of_one_core: Value::or(verdict.cost_cpu_share.filter(finite), "not measured"),
                peak_rss_bytes: Value::or(verdict.cost_peak_rss, "not measured"),
            },
            duration_s: Value::or(verdict.duration_s.filter(finite), "the end was not seen"),
            growth: Value::or(verdict.growth.as_ref().map(GrowthJson::from), "too little was read"),
            first_failure: verdict.first_failure.as_ref().map(FirstFailureJson::from),
            headline: crate::text::headline(verdict),
            marks: verdict
                .marks
                .iter()
                .map(|mark| MarkJson { at: mark.at.seconds(), text: &mark.text })
                .collect(),
            attempts: (verdict.attempts.iter())
                .map(|attempt| AttemptJson { at: attempt.at.seconds(), number: attempt.number })
                .collect(),
        }
    }
}

impl From<&Outcome> for OutcomeJson {
    fn from(outcome: &Outcome) -> Self {
        OutcomeJson {
            kind: outcome.kind,
            code: outcome.code,
            signal: outcome.signal,
            by: outcome.by,
            budget: outcome.budget.map(|spent| BudgetJson {
                bytes: spent.budget,
                used_bytes: spent.used,
                overshoot_bytes: spent.overshoot(),
            }),
        }
    }
}

impl<'a> FindingJson<'a> {
    /// Findings in their order, each with those that it comes of.
    pub(crate) fn all(findings: &'a [Finding]) -> Vec<FindingJson<'a>> {
        findings.iter().map(|finding| FindingJson::of(finding, findings)).collect()
    }

    fn of(finding: &'a Finding, findings: &'a [Finding]) -> Self {
        FindingJson {
            cause: &finding.cause,
            title: &finding.title,
            severity: finding.severity,
            confidence: finding.proof.confidence(),
            status: finding.status(),
            process: finding.process.as_ref().map(ProcessJson::from),
            evidence: finding.evidence.iter().map(EvidenceJson::from).collect(),
            fixes: finding.fixes.iter().map(FixJson::from).collect(),
            why: finding.evidence.iter().map(|e| e.sentence.as_str()).filter(|s| !s.is_empty()).collect(),
            at: finding.at.map(ullage_model::At::seconds),
            explains: &finding.explains,
            caused_by: caused_by(finding, findings),
            proof: finding.proof,
        }
    }
}

impl<'a> From<&'a ProcessRef> for ProcessJson<'a> {
    fn from(process: &'a ProcessRef) -> Self {
        ProcessJson {
            pid: process.id.pid,
            start: process.id.start.0,
            role: process.role.label(),
            name: &process.name,
        }
    }
}

impl<'a> From<&'a Evidence> for EvidenceJson<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        let value = match &evidence.value {
            EvidenceValue::Text(text) => Value::Known(Scalar::Text(text)),
            EvidenceValue::Missing(reason, _) => Value::Missing { missing: reason.reason() },
            EvidenceValue::Number(n, _) if !n.is_finite() => Value::Missing { missing: "unreadable" },
            EvidenceValue::Number(n, _) => Value::Known(whole(*n).map_or(Scalar::Number(*n), Scalar::Whole)),
        };
        EvidenceJson {
            what: &evidence.what,
            value,
            limit: evidence.limit.map(LimitValue),
            unit: evidence.value.unit(),
            source: evidence.source.to_string(),
            at: evidence.at.map(ullage_model::At::seconds),
            sentence: &evidence.sentence,
        }
    }
}

impl<'a> From<&'a Fix> for FixJson<'a> {
    fn from(fix: &'a Fix) -> Self {
        FixJson { title: &fix.title, command: &fix.command, automatic: fix.automatic.as_deref() }
    }
}

impl From<&LimitState> for LimitJson {
    fn from(state: &LimitState) -> Self {
        LimitJson {
            name: state.kind.name(),
            scope: state.scope.to_string(),
            used: Value::of(&state.used, |n| *n),
            limit: Value::of(&state.limit, |limit| LimitValue(*limit)),
            slope_per_s: state.slope_per_s.filter(finite),
            time_left_s: state.time_left_s.filter(finite),
            unit: state.kind.unit(),
            headroom: state.headroom(),
            growing_for_s: state.growing_for_s.filter(finite),
            warning: state.warning,
        }
    }
}

impl<'a> From<&'a MemorySummary> for MemoryJson<'a> {
    fn from(memory: &'a MemorySummary) -> Self {
        // A job that ended before the first sample has used memory, only nobody saw how much.
        let seen = memory.peak_bytes > 0;
        MemoryJson {
            peak_bytes: Value::or(seen.then_some(memory.peak_bytes), "no sample was taken"),
            unexplained_share: Value::or(
                seen.then_some(memory.unexplained_share).filter(finite),
                "no sample was taken",
            ),
            categories: &memory.categories,
            source: &memory.source,
            error_bytes: memory.error_bytes,
            beside: &memory.beside,
            sharing: memory.sharing.map(SharingJson::from),
            last: memory.last.as_ref().map(MemoryAtJson::from),
            copy_on_write: memory.copy_on_write.iter().map(CopyOnWriteJson::from).collect(),
            by_role: &memory.by_role,
        }
    }
}

impl<'a> From<&'a FirstFailure> for FirstFailureJson<'a> {
    fn from(failure: &'a FirstFailure) -> Self {
        FirstFailureJson {
            process: failure.process.as_ref().map(ProcessJson::from),
            at: failure.at.seconds(),
            exception: failure.exception.as_deref(),
            signal: failure.signal,
            code: failure.code,
            sentence: &failure.sentence,
            rank: failure.rank,
        }
    }
}

impl<'a> From<&'a Growth> for GrowthJson<'a> {
    fn from(growth: &'a Growth) -> Self {
        GrowthJson {
            class: growth.class.id(),
            because: &growth.because,
            bytes: growth.bytes,
            per_second: Some(growth.per_second).filter(finite).unwrap_or(0.0),
            since_s: growth.since.map(ullage_model::At::seconds),
            share: growth.share,
            process: growth.process.as_ref().map(ProcessJson::from),
            until: growth.until.as_ref().map(|until| GrowthLimitJson {
                limit: until.kind.name(),
                scope: until.scope.to_string(),
                time_left_s: until.time_left_s.filter(finite),
            }),
            parts: growth
                .parts
                .iter()
                .map(|part| GrowthPartJson { class: part.class.id(), bytes: part.bytes, share: part.share })
                .collect(),
            explained_by: growth.explained_by.as_deref(),
        }
    }
}

impl From<Sharing> for SharingJson {
    fn from(sharing: Sharing) -> Self {
        SharingJson {
            private_bytes: sharing.private,
            shared_within_job_bytes: sharing.within_job,
            shared_with_others_bytes: sharing.with_others,
        }
    }
}

impl<'a> From<&'a MemoryAt> for MemoryAtJson<'a> {
    fn from(memory: &'a MemoryAt) -> Self {
        let unexplained = memory.categories.get("unexplained").copied().unwrap_or(0);
        MemoryAtJson {
            at_s: memory.at.seconds(),
            bytes: memory.bytes,
            error_bytes: memory.error_bytes,
            unexplained_share: if memory.bytes > 0 { unexplained as f64 / memory.bytes as f64 } else { 0.0 },
            categories: &memory.categories,
            source: &memory.source,
            beside: &memory.beside,
            sharing: memory.sharing.map(SharingJson::from),
        }
    }
}

impl<'a> From<&'a CopyOnWrite> for CopyOnWriteJson<'a> {
    fn from(cow: &'a CopyOnWrite) -> Self {
        let class = |(id, (shared, unshared)): (&'a String, &(u64, u64))| {
            (id.as_str(), ClassJson { shared_bytes: *shared, unshared_bytes: *unshared })
        };
        CopyOnWriteJson {
            process: (&cow.process).into(),
            at_s: cow.at.seconds(),
            inherited_bytes: cow.inherited,
            shared_bytes: cow.shared,
            copied_bytes: cow.copied,
            parent_changed_bytes: cow.parent_changed,
            unknown_bytes: cow.unknown,
            new_bytes: cow.new,
            error_bytes: cow.error,
            by_class: cow.by_kind.iter().map(class).collect(),
            over_time: cow
                .over_time
                .iter()
                .map(|(at, shared, copied)| CopiedAtJson {
                    at_s: at.seconds(),
                    shared_bytes: *shared,
                    copied_bytes: *copied,
                })
                .collect(),
        }
    }
}

impl<'a> From<&'a Undetermined> for UndeterminedJson<'a> {
    fn from(undetermined: &'a Undetermined) -> Self {
        UndeterminedJson { cause: &undetermined.cause, because: &undetermined.because }
    }
}

fn finite(n: &f64) -> bool {
    n.is_finite()
}

/// As an integer, where it is one that an f64 holds exactly.
fn whole(n: f64) -> Option<u64> {
    (n >= 0.0 && n.fract() == 0.0 && n < u64::MAX as f64).then_some(n as u64)
}
