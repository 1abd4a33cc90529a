//! What was seen on both sides, as far as differences are weighed by it: findings, and figures that moved.

use crate::table::stake;
use crate::Side;
use std::collections::BTreeMap;
use ullage_model::{OutcomeKind, Severity, Symptom};

/// Figures that are compared: from which size on, and from which ratio on, a change is more than chance.
const NOTABLE: [(&str, f64, f64); 12] = [
    ("memory", (32u64 << 20) as f64, 1.1),
    ("memory_late", (32u64 << 20) as f64, 1.1),
    ("tasks", 3.0, 1.15),
    ("threads", 2.0, 1.15),
    ("processes", 2.0, 1.15),
    ("descriptors", 16.0, 1.25),
    ("mappings", 200.0, 1.15),
    ("address_space", (256u64 << 20) as f64, 1.15),
    ("locked", (8u64 << 20) as f64, 1.2),
    ("shm_bytes", (4u64 << 20) as f64, 1.25),
    ("shm_inodes", 8.0, 1.25),
    ("seconds", 10.0, 1.5),
];

/// Two sides.
pub(crate) struct View<'a> {
    bad: &'a Side,
    good_peaks: Option<&'a BTreeMap<String, f64>>,
    bad_peaks: Option<&'a BTreeMap<String, f64>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(good: &'a Side, bad: &'a Side) -> View<'a> {
        let peaks = |side: &'a Side| side.seen.as_ref().map(|seen| &seen.peaks);
        View { bad, good_peaks: peaks(good), bad_peaks: peaks(bad) }
    }

    /// Causes found in the bad run above a note, first the one that matters most.
    pub(crate) fn found(&self) -> impl Iterator<Item = &'a str> {
        let findings = self.bad.seen.iter().flat_map(|seen| &seen.verdict.findings);
        findings.filter(|finding| finding.severity > Severity::Note).map(|finding| finding.cause.as_str())
    }

    /// The bad run is known to have gone wrong.
    pub(crate) fn failed(&self) -> bool {
        self.bad.seen.as_ref().is_some_and(|seen| !seen.verdict.healthy)
    }

    /// The bad run, and how it went, is known.
    pub(crate) fn has_run(&self) -> bool {
        self.bad.seen.is_some()
    }

    /// What the first finding is about.
    pub(crate) fn stake(&self) -> Option<(&'a str, &'static [&'static str])> {
        self.found().map(|cause| (cause, stake(cause))).find(|(_, figures)| !figures.is_empty())
    }

    /// The most of a figure in the good run and in the bad one.
    pub(crate) fn peaks(&self, figure: &str) -> (Option<f64>, Option<f64>) {
        let of = |peaks: Option<&BTreeMap<String, f64>>| peaks.and_then(|peaks| peaks.get(figure)).copied();
        (of(self.good_peaks), of(self.bad_peaks))
    }

    /// Both values of a figure, where they differ by more than chance. A run that failed stopped early: less of
    /// anything says nothing.
    pub(crate) fn moved(&self, figure: &str) -> Option<(f64, f64)> {
        let (Some(good), Some(bad)) = self.peaks(figure) else { return None };
        let &(_, least, ratio) = NOTABLE.iter().find(|(name, _, _)| *name == figure)?;
        let notable = (good - bad).abs() >= least && good.max(bad) >= ratio * good.min(bad);
        let cut_short = bad < good && self.failed();
        (notable && !cut_short).then_some((good, bad))
    }

    /// For people: what went wrong, or else which figures differ.
    pub(crate) fn symptoms(&self) -> Vec<Symptom> {
        let Some(seen) = &self.bad.seen else { return Vec::new() };
        let verdict = &seen.verdict;
        let mut symptoms: Vec<Symptom> = verdict
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Note)
            .map(|finding| Symptom::Finding { cause: finding.cause.clone(), title: finding.title.clone() })
            .collect();
        let well = verdict.outcome.kind == OutcomeKind::Exit && verdict.outcome.code == Some(0);
        if symptoms.is_empty() && !well && verdict.outcome.kind != OutcomeKind::StillRunning {
            symptoms.push(Symptom::Failed { outcome: verdict.outcome.clone() });
        }
        symptoms.extend(NOTABLE.iter().filter_map(|(figure, _, _)| {
            let (good, bad) = self.moved(figure)?;
            Some(Symptom::Figure { figure: (*figure).to_owned(), good: good as u64, bad: bad as u64 })
        }));
        symptoms
    }
}
