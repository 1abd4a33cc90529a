//! Small questions about the machine that several commands ask: is a process still alive, what does the
//! kernel remember of a run that ended without us.

use ullage_diagnosis::Timeline;
use ullage_kernel::KernelRoot;
use ullage_model::{Outcome, OutcomeKind, ProcessId, ProcessState, RunFacts};

/// True where the very process (pid and start time) still runs and is no zombie.
pub fn is_alive(id: ProcessId) -> bool {
    let mut buffer = Vec::new();
    let root = KernelRoot::live();
    let Ok(directory) = root.process(id.pid) else { return false };
    directory.stat(&mut buffer).is_ok_and(|stat| {
        stat.id == id && !matches!(stat.state, ProcessState::Zombie | ProcessState::Dead)
    })
}

/// The identity of a process of this moment.
pub fn identity(root: &KernelRoot, pid: i32) -> Option<ProcessId> {
    let mut buffer = Vec::new();
    let id = root.process(pid).ok()?.stat(&mut buffer).ok()?.id;
    Some(id)
}

/// The outcome of a run whose recorder is gone: its job may well go on.
pub fn outcome_without_end(run: &RunFacts) -> Outcome {
    Outcome::of(match run.main {
        Some(main) if is_alive(main) => OutcomeKind::StillRunning,
        _ => OutcomeKind::Unknown,
    })
}

/// Adds to the timeline of an unfinished run what can be read now: counters of its cgroups, and kills in the
/// kernel log since its last sample.
pub fn post_mortem(run: &RunFacts, timeline: &mut Timeline) {
    for item in ullage_sampler::post_mortem(&KernelRoot::live(), run, timeline) {
        timeline.push(item);
    }
}
