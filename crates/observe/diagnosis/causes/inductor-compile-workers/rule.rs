//! Does a run show inductor-compile-workers? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::cohort::Cohort;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::sizes::{FILLED_PART, WORK_NOTE_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let pool = Cohort::of(analysis.timeline.processes().filter(|process| compiles(analysis, process)));
    let (Some((_, number)), Some((at, bytes))) = (pool.most(), pool.heaviest(analysis.timeline)) else {
        return Judgement::Nothing;
    };
    let held = analysis.timeline.memory().peak_bytes;
    let severity = match analysis.ran_out {
        true if bytes.saturating_mul(FILLED_PART) >= held => Severity::Warning,
        _ if bytes >= WORK_NOTE_BYTES => Severity::Note,
        _ => return Judgement::Nothing,
    };
    let cores = match analysis.machine().cores {
        0 => String::new(),
        cores => format!(" on {cores} cores"),
    };
    let sentence = format!(
        "{} of torch.compile held {} of the job's {} at once{cores}.",
        evidence::plural(number as u64, "compile worker", "compile workers"),
        evidence::bytes(bytes),
        evidence::bytes(held)
    );
    let source = "/proc/PID/cmdline and /proc/PID/status of each";
    let evidence = evidence::number("memory of compile workers", bytes, "bytes", source, at, sentence);
    let known = Proof::SeenOutside;
    let mut finding = of_job(&RULE, severity, known, vec![evidence], &analysis.remedy_context(None));
    let largest = pool
        .alive(at)
        .into_iter()
        .max_by_key(|worker| (worker.anonymous.peak().map_or(0, |p| p.1 as u64), worker.id));
    finding.process = largest.map(evidence::process_ref);
    Judgement::one(finding)
}

/// A compile worker, or a compiler of Inductor's.
fn compiles(analysis: &Analysis, process: &ProcessHistory) -> bool {
    let of_inductor = named(process, &["TORCH_INDUCTOR_", "torchinductor_"]);
    let is_main = analysis.main() == Some(process.id);
    !is_main
        && (is_worker(process)
            || (process.role == Role::Helper && of_inductor)
            || below_worker(analysis, process))
}

fn is_worker(process: &ProcessHistory) -> bool {
    named(process, &["_inductor/compile_worker", "_inductor.compile_worker"])
}

fn below_worker(analysis: &Analysis, process: &ProcessHistory) -> bool {
    let mut at = process;
    for _ in 0..4 {
        match analysis.timeline.by_pid(at.born_to()) {
            Some(parent) if parent.id != at.id && is_worker(parent) => return true,
            Some(parent) if parent.id != at.id => at = parent,
            _ => return false,
        }
    }
    false
}

fn named(process: &ProcessHistory, names: &[&str]) -> bool {
    let words = process.facts.as_ref().map_or(&[][..], |facts| &facts.command_line[..]);
    words.iter().any(|word| names.iter().any(|name| word.contains(name)))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Compile in fewer processes", "export TORCHINDUCTOR_COMPILE_THREADS=2"),
        Fix::new(
            "Compile once: all ranks and later runs then read the cache",
            "export TORCHINDUCTOR_CACHE_DIR=\"$HOME/.cache/inductor\" TORCHINDUCTOR_FX_GRAPH_CACHE=1",
        ),
    ]
}
