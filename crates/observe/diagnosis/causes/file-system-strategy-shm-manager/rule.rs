//! Does a run show file-system-strategy-shm-manager? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::counts::MANAGERS;
use crate::rule::finding::{better, finding, of_job};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let reported = analysis.failures.iter().filter(|failure| !failure.is_echo() && about_manager(failure));
    let found = reported.fold(None, |found, failure| better(found, failed(analysis, failure)));
    match found.or_else(|| left_over(analysis)) {
        Some(finding) => Judgement::one(finding),
        None => Judgement::Nothing,
    }
}

fn about_manager(failure: &Failure) -> bool {
    let text = failure.text();
    ["torch_shm_manager", "torch-shm-dir", "torch-shm-file", "shm_manager"]
        .iter()
        .any(|name| text.contains(name))
}

fn failed(analysis: &Analysis, failure: &Failure) -> Finding {
    let mut evidence: Vec<_> = sharing::exception_sentence(failure).into_iter().collect();
    let report = failure.exception.map(|seen| &seen.report);
    if let Some(strategy) = report.and_then(|report| report.sharing_strategy.as_deref()) {
        let sentence = format!("Its sharing strategy is {strategy}.");
        let source = failure.agent_source();
        evidence.push(evidence::text("sharing strategy", strategy, source, Some(failure.at), sentence));
    }
    finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &analysis.remedy_context(Some(failure)))
}

/// Managers that live on without processes that share.
fn left_over(analysis: &Analysis) -> Option<Finding> {
    let of_role = |manager: bool| {
        Cohort::of(
            analysis
                .timeline
                .processes()
                .filter(move |process| (process.role == Role::ShmManager) == manager),
        )
    };
    let managers = of_role(true);
    let (at, number) = managers.most()?;
    let sharing = of_role(false).alive(at).len();
    if number < MANAGERS || number <= 2 * sharing {
        return None;
    }
    let sentence = format!(
        "{} torch_shm_manager processes lived at once, beside {} of the job.",
        evidence::count(number as u64),
        evidence::plural(sharing as u64, "other process", "other processes")
    );
    let evidence = evidence::number("managers", number as u64, "processes", "/proc/PID/stat", at, sentence);
    Some(of_job(&RULE, Severity::Note, Proof::Estimated, vec![evidence], &analysis.remedy_context(None)))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix::new("Give the manager a short, existing directory with room", "export TMPDIR=/tmp"),
        Fix::new(
            "Or share by descriptors, without a manager, and raise their limit",
            "torch.multiprocessing.set_sharing_strategy(\"file_descriptor\")\n\
                      resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)",
        ),
    ];
    fixes.extend(sharing::arena(context));
    fixes
}
