//! Does a run show joblib-loky-memmap? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{better, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let about = analysis
        .failures
        .iter()
        .filter(|failure| failure.symptom() == Symptom::NoSpace && about_joblib(failure));
    let found: Option<Finding> =
        about.fold(None, |found, failure| better(found, reported(analysis, failure)));
    found.map_or(Judgement::Nothing, Judgement::one)
}

fn about_joblib(failure: &Failure) -> bool {
    let path = failure.counts().and_then(|counts| counts.path.as_deref()).unwrap_or_default();
    path.contains("joblib_memmapping_folder")
        || failure.text().contains("joblib_memmapping_folder")
        || failure.passes("joblib/_memmapping_reducer")
}

fn reported(analysis: &Analysis, failure: &Failure) -> Finding {
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    let counts = failure.counts();
    if let Some(path) = counts.and_then(|counts| counts.path.as_deref()) {
        let free = counts.and_then(|counts| counts.path_free).map_or("unknown room".into(), evidence::bytes);
        let sentence = format!("joblib was writing {path}, with {free} free on its filesystem.");
        evidence.push(evidence::text("path", path, failure.agent_source(), Some(failure.at), sentence));
    }
    if let Some((used, size, at, source)) = sharing::shm(analysis, failure) {
        let whole = size.map_or("no limit".to_owned(), evidence::bytes);
        let sentence = format!("/dev/shm had {} of {whole} in use.", evidence::bytes(used));
        let met = evidence::number("/dev/shm in use", used, "bytes", source, at, sentence);
        evidence.push(size.map_or(met.clone(), |size| evidence::with_limit(met, size)));
    }
    let context = analysis.remedy_context(Some(failure));
    finding(analysis, &RULE, failure, Proof::SeenInside, evidence, &context)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Give joblib a folder on a disk with room", "export JOBLIB_TEMP_FOLDER=\"$HOME/tmp\""),
        Fix::new("Or send the arrays instead of mapping them", "joblib.Parallel(n_jobs=2, max_nbytes=None)"),
        Fix::new(
            "Remove the folders of killed runs",
            "rm -r /dev/shm/joblib_memmapping_folder_*  # while no joblib job runs",
        ),
    ]
}
