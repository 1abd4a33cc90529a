//! From a `now.json` or a verdict to samples: which value has which labels.
//!
//! A value that is missing has no sample; none is ever 0 in its place. What the file says is bounded here once more, so that
//! no file, however odd, makes series without end.

use crate::metric::Metric;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use ullage_report::format;

/// Series of one metric and run, at most; what is more is summed in a series `other`, or left out.
const MOST_CATEGORIES: usize = 24;
const MOST_BESIDE: usize = 8;
const MOST_PROCESSES: usize = 64;
const MOST_ROLES: usize = 12;
const MOST_LIMITS: usize = 16;
const MOST_KINDS: usize = 8;
const MOST_FINDINGS: usize = 12;
/// Characters of a label.
const MOST_LABEL: usize = 120;
/// Words of a command, and characters of each, as in `now.json`.
const MOST_WORDS: usize = 16;
const MOST_WORD: usize = 100;
const OTHER: &str = "other";

/// Labels beside `run`, in the order of the metric's.
type Labels = Vec<String>;

/// Samples by metric and labels: no two have the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(BTreeMap<(Metric, String, Labels), f64>);

/// How a run has ended, as far as a monitoring system asks.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The verdict as JSON (`verdict.json`, `--json`); null where there is none.
    pub verdict: &'a Value,
    /// `run.json`, or what of it is known: job, node, rank, attempt.
    pub run: &'a Value,
    /// When, in seconds since 1970.
    pub at_unix: f64,
}

impl Samples {
    /// Of a run that goes on, by its `now.json`. None of a value that is no such file.
    pub fn live(now: &Value) -> Samples {
        let mut samples = Samples::default();
        let Some(run) = now["run"].as_str().map(label) else { return samples };
        let mut to = To { samples: &mut samples, run };
        to.info(now);
        if let (Some(began), Some(at)) = (now["started_unix"].as_f64(), now["at"].as_f64()) {
            to.set(Metric::SampleTime, &[], began + at);
        }
        to.memory(&now["memory"]);
        to.processes(now);
        to.limits(&now["limits"]);
        let growth = &now["growth"];
        if let (Some(class), Some(speed)) = (growth["class"].as_str(), growth["bytes_per_second"].as_f64()) {
            to.set(Metric::Growth, &[class], speed);
        }
        to.segments(&now["segments"]);
        to.findings(&now["findings"]);
        to.if_known(Metric::OomKills, &now["oom_kills"]);
        to.if_known(Metric::MemoryStall, &now["stall_s"]);
        to.if_known(Metric::Restarts, &now["restarts"]);
        to.if_known(Metric::WatchCpu, &now["cost"]["cpu_s"]);
        to.if_known(Metric::WatchMemory, &now["cost"]["peak_bytes"]);
        samples
    }

    /// Of a run that has ended: who it was, how it ended and why. No value of its memory, which nobody holds any more.
    pub fn ended(ended: &Ended<'_>) -> Samples {
        let mut samples = Samples::default();
        let Ended { verdict, run, at_unix } = ended;
        let Some(name) = run["run"].as_str().map(label) else { return samples };
        let mut to = To { samples: &mut samples, run: name };
        to.info(run);
        let of_verdict = verdict["outcome"]["kind"].as_str();
        let outcome = of_verdict.or_else(|| run["outcome"]["kind"].as_str()).unwrap_or("unknown");
        to.set(Metric::RunEnded, &[&outcome.replace('_', "-")], 1.0);
        to.set(Metric::RunEndedTime, &[], *at_unix);
        to.findings(&verdict["findings"]);
        samples
    }

    /// These and those.
    pub fn extend(&mut self, other: Samples) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each metric's together; the labels beside `run` in the order of [`Metric::labels`].
    pub fn each(&self) -> impl Iterator<Item = (Metric, &str, &[String], f64)> {
        self.0.iter().map(|((metric, run, labels), value)| (*metric, run.as_str(), labels.as_slice(), *value))
    }
}

/// A text of the job as a label: nothing in it steers a terminal, and it is not long.
fn label(text: &str) -> String {
    format::clean(&text.chars().take(MOST_LABEL).collect::<String>())
}

/// Samples of one run on their way.
struct To<'a> {
    samples: &'a mut Samples,
    run: String,
}

impl To<'_> {
    fn key(&self, metric: Metric, labels: &[&str]) -> (Metric, String, Labels) {
        debug_assert_eq!(labels.len(), metric.labels().len());
        (metric, self.run.clone(), labels.iter().map(|text| label(text)).collect())
    }

    fn set(&mut self, metric: Metric, labels: &[&str], value: f64) {
        let key = self.key(metric, labels);
        self.samples.0.insert(key, value);
    }

    fn if_known(&mut self, metric: Metric, value: &Value) {
        if let Some(value) = value.as_f64() {
            self.set(metric, &[], value);
        }
    }

    fn add(&mut self, metric: Metric, labels: &[&str], value: f64) {
        let key = self.key(metric, labels);
        *self.samples.0.entry(key).or_insert(0.0) += value;
    }

    /// Of several with the same labels, the one that `better` says.
    fn pick(&mut self, metric: Metric, labels: &[&str], value: f64, better: fn(f64, f64) -> f64) {
        let key = self.key(metric, labels);
        let best = self.samples.0.entry(key).or_insert(value);
        *best = better(*best, value);
    }

    fn info(&mut self, run: &Value) {
        let text = |key: &str| match &run[key] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        // `now.json` cuts a long command, `run.json` has all of it: both become one label.
        let words =
            run["command"].as_array().into_iter().flatten().take(MOST_WORDS).filter_map(Value::as_str);
        let short = |word: &str| word.chars().take(MOST_WORD).collect::<String>();
        let command = words.map(short).collect::<Vec<_>>().join(" ");
        let [job, node, rank, attempt] = ["job", "node", "rank", "attempt"].map(text);
        self.set(Metric::RunInfo, &[&job, &node, &rank, &attempt, &command], 1.0);
    }

    fn memory(&mut self, memory: &Value) {
        self.sums(Metric::Memory, &memory["categories"], MOST_CATEGORIES, |bytes| bytes.as_f64());
        self.sums(Metric::MemoryBeside, &memory["beside"], MOST_BESIDE, |bytes| bytes.as_f64());
        self.if_known(Metric::MemoryError, &memory["error_bytes"]);
    }

    /// A series for each key of an object; those beyond `most` as one.
    fn sums(&mut self, metric: Metric, of: &Value, most: usize, value: impl Fn(&Value) -> Option<f64>) {
        for (n, (key, of)) in entries(of).enumerate() {
            if let Some(value) = value(of) {
                self.add(metric, &[if n < most { key } else { OTHER }], value);
            }
        }
    }

    fn processes(&mut self, now: &Value) {
        self.sums(Metric::Processes, &now["roles"], MOST_ROLES, |role| role["count"].as_f64());
        self.sums(Metric::MajorFaults, &now["roles"], MOST_ROLES, |role| role["major_faults"].as_f64());
        self.sums(Metric::CpuTime, &now["roles"], MOST_ROLES, |role| role["cpu_s"].as_f64());
        let rows = now["processes"].as_array().map_or(&[][..], Vec::as_slice);
        // A row of several: which ones are listed changes from reading to reading, and with it the series would.
        let all_are_listed = rows.len() <= MOST_PROCESSES && rows.iter().all(|row| row["count"].is_null());
        if !all_are_listed {
            for kind in ["private", "shared", "swap"] {
                for (n, (role, row)) in entries(&now["roles"]).enumerate() {
                    let role = if n < MOST_ROLES { role } else { OTHER };
                    if let Some(bytes) = row[format!("{kind}_bytes")].as_f64() {
                        self.add(Metric::ProcessMemory, &[role, "", kind], bytes);
                    }
                }
            }
            return;
        }
        for row in rows {
            let Some(role) = row["role"].as_str() else { continue };
            let index = row["index"].as_u64().map(|index| index.to_string()).unwrap_or_default();
            let private = row["private_bytes"].as_f64();
            let shared = row["bytes"].as_f64().zip(private).map(|(both, private)| (both - private).max(0.0));
            for (kind, bytes) in
                [("private", private), ("shared", shared), ("swap", row["swap_bytes"].as_f64())]
            {
                if let Some(bytes) = bytes {
                    // Several pool workers have no index to tell them apart.
                    self.add(Metric::ProcessMemory, &[role, &index, kind], bytes);
                }
            }
        }
    }

    fn limits(&mut self, limits: &Value) {
        for limit in limits.as_array().into_iter().flatten().take(MOST_LIMITS) {
            let Some(name) = limit["limit"].as_str() else { continue };
            // The scope of a process names its pid.
            let Some(scope) = limit["role"].as_str().or_else(|| limit["scope"].as_str()) else { continue };
            if let (Some(used), Some(allowed)) = (limit["used"].as_f64(), limit["allowed"].as_f64()) {
                // A limit of nothing is met by nothing.
                let ratio = if allowed > 0.0 { used / allowed } else { 1.0 };
                self.pick(Metric::LimitUsed, &[name, scope], ratio, f64::max);
            }
            if let Some(left) = limit["seconds_left"].as_f64() {
                self.pick(Metric::LimitLeft, &[name, scope], left, f64::min);
            }
        }
    }

    fn segments(&mut self, segments: &Value) {
        self.sums(Metric::SharedBytes, &segments["by_kind"], MOST_KINDS, |kind| kind["bytes"].as_f64());
        self.sums(Metric::SharedSegments, &segments["by_kind"], MOST_KINDS, |kind| kind["count"].as_f64());
        self.if_known(Metric::OrphanedBytes, &segments["unused_bytes"]);
        self.if_known(Metric::OrphanedSegments, &segments["unused"]);
    }

    fn findings(&mut self, findings: &Value) {
        for finding in findings.as_array().into_iter().flatten().take(MOST_FINDINGS) {
            if let (Some(cause), Some(severity)) = (finding["cause"].as_str(), finding["severity"].as_str()) {
                self.set(Metric::Finding, &[cause, severity], 1.0);
            }
        }
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}
