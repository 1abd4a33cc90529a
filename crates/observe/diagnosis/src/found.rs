//! How a rule makes its finding.

use crate::failure::Failure;
use crate::rule::{Case, Judgement, Rule, Setting};
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

/// Judges every failure; one that nothing can be said of leaves the cause open, unless another one shows it.
pub(crate) fn by_failure<'a>(
    case: &Case<'a>,
    judge: impl Fn(&Failure<'a>) -> Result<Option<Finding>, String>,
) -> Judgement {
    let mut found: Option<Finding> = None;
    let mut unsure = None;
    for failure in &case.failures {
        match judge(failure) {
            Ok(Some(next)) => found = better(found, next),
            Ok(None) => {}
            Err(because) => {
                unsure.get_or_insert(because);
            }
        }
    }
    match (found, unsure) {
        (Some(found), _) => Judgement::one(found),
        (None, Some(because)) => Judgement::CannotTell { because },
        (None, None) => Judgement::Nothing,
    }
}

/// The better of two candidates of one rule: the earlier failure, unless the later one is known better.
pub(crate) fn better(kept: Option<Finding>, next: Finding) -> Option<Finding> {
    match kept {
        Some(kept) if kept.status >= next.status => Some(kept),
        _ => Some(next),
    }
}
