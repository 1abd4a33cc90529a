//! Does a run show subprocess-in-workers? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::PROGRAMS_SEEN;
use crate::rule::finding::{finding, of_job};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{Evidence, Fix, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let programs =
        Cohort::of(analysis.timeline.processes().filter(|process| is_program_of_worker(analysis, process)));
    let seen = started(analysis, &programs);
    if let Some(failure) = analysis.failures.iter().find(|failure| refused(failure)) {
        let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
        evidence.extend(seen);
        let mut finding = finding(
            analysis,
            &RULE,
            failure,
            Proof::InPart,
            evidence,
            &analysis.remedy_context(Some(failure)),
        );
        // The limit that refused it is a finding of its own.
        finding.severity = finding.severity.min(Severity::Warning);
        return Judgement::one(finding);
    }
    match seen {
        Some(seen) if programs.members.len() >= PROGRAMS_SEEN => Judgement::one(of_job(
            &RULE,
            Severity::Note,
            Proof::SeenOutside,
            vec![seen],
            &analysis.remedy_context(None),
        )),
        _ => Judgement::Nothing,
    }
}

fn is_program_of_worker(analysis: &Analysis, process: &ProcessHistory) -> bool {
    let by_worker = |process: &ProcessHistory| {
        analysis
            .timeline
            .by_pid(process.born_to())
            .is_some_and(|parent| matches!(parent.role, Role::LoaderWorker(_)) && parent.id != process.id)
    };
    process.role == Role::Helper && by_worker(process)
}

fn refused(failure: &Failure) -> bool {
    let of_worker = failure.process.is_some_and(|process| matches!(process.role, Role::LoaderWorker(_)))
        || failure.exception.is_some_and(|seen| seen.report.left == "loader-worker");
    let starts = failure.calls("subprocess.py", &["_execute_child", "__init__", "_posix_spawn"])
        || failure.calls("os.py", &["popen", "_spawnvef"]);
    of_worker && starts && matches!(failure.symptom(), Symptom::NoMemory | Symptom::NoTask)
}

/// What was seen of them.
fn started(analysis: &Analysis, programs: &Cohort) -> Option<Evidence> {
    let (at, bytes) = programs.heaviest(analysis.timeline)?;
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    programs.members.iter().for_each(|program| *names.entry(program.name()).or_default() += 1);
    let (name, _) = names.iter().max_by_key(|(_, number)| **number)?;
    let sentence = format!(
        "Loader workers started at least {} ({name} most often), holding up to {} at once.",
        evidence::plural(programs.members.len() as u64, "program", "programs"),
        evidence::bytes(bytes)
    );
    let number = programs.members.len() as u64;
    Some(evidence::number(
        "programs started",
        number,
        "processes",
        "/proc/PID/stat below the workers",
        at,
        sentence,
    ))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Decode in the worker itself",
            "torchcodec.decoders.VideoDecoder(path)  # instead of subprocess.run([\"ffmpeg\", ...])",
        ),
        Fix::new(
            "Or start programs without copying page tables",
            "subprocess.run(command, close_fds=False)  # lets CPython use vfork or posix_spawn",
        ),
        Fix::new(
            "Or convert once, before training, and read the results",
            "ls *.mp4 | xargs -P 4 -I{} ffmpeg -i {} {}.wav",
        ),
    ]
}
