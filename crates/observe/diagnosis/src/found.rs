//! How a rule makes its finding.

use crate::failure::Failure;
use crate::rule::{Case, Rule, Setting};
use crate::say;
use ullage_model::{Evidence, Finding, Severity, Status};

/// A finding about a failure.
pub(crate) fn finding(
    case: &Case,
    rule: &Rule,
    failure: &Failure,
    (status, confidence): (Status, f64),
    evidence: Vec<Evidence>,
    setting: &Setting,
) -> Finding {
    Finding {
        cause: rule.id.into(),
        title: rule.title.into(),
        severity: case.severity(failure),
        confidence,
        status,
        process: failure.process.map(say::process_ref),
        at: Some(failure.at),
        evidence,
        fixes: (rule.fixes)(setting),
    }
}

/// A finding that no single failure stands for.
pub(crate) fn of_job(
    rule: &Rule,
    severity: Severity,
    (status, confidence): (Status, f64),
    evidence: Vec<Evidence>,
    setting: &Setting,
) -> Finding {
    Finding {
        cause: rule.id.into(),
        title: rule.title.into(),
        severity,
        confidence,
        status,
        process: None,
        at: evidence.first().and_then(|evidence| evidence.at),
        evidence,
        fixes: (rule.fixes)(setting),
    }
}

/// The better of two candidates of one rule: the earlier failure, unless the later one is known better.
pub(crate) fn better(kept: Option<Finding>, next: Finding) -> Option<Finding> {
    match kept {
        Some(kept) if kept.status >= next.status => Some(kept),
        _ => Some(next),
    }
}
