//! Small questions about the machine that several commands ask: is a process still alive, what does the
//! kernel remember of a run that ended without us.

use ullage_diagnosis::Timeline;
use ullage_kernel::KernelRoot;
use ullage_model::{ProcessId, RunFacts};

/// True where the very process (pid and start time) still runs and is no zombie.
pub fn is_alive(id: ProcessId) -> bool {
    ullage_kernel::process::is_alive(&KernelRoot::live(), id)
}

/// Adds to the timeline of an unfinished run what can be read now: counters of its cgroups, and kills in the
/// kernel log since its last sample.
pub fn post_mortem(run: &RunFacts, timeline: &mut Timeline) {
    for item in ullage_sampler::post_mortem(&KernelRoot::live(), run, timeline.cgroup_paths()) {
        timeline.push(item);
    }
}
