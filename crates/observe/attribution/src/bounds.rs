//! More than this the tree cannot hold: what its cgroup uses, and what the machine does.
//!
//! A cgroup that ullage made for the job alone (`ullage-PID`) says exactly what the tree holds; any other that all of its
//! processes are in may hold more. Page cache that nobody maps is in the cgroup's figure, and not in the tree's.

use crate::lives::Lives;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts};
use ullage_model::{CgroupReading, Sample};

/// The memory of a cgroup that holds this job and nothing else.
pub(crate) fn own_group(sample: &Sample) -> Option<(&CgroupMemory, CgroupMemoryParts)> {
    let own = sample.cgroups.iter().find(|group| is_own(group))?;
    let memory = own.memory.as_known()?;
    Some((memory, memory.parts.known()?)).filter(|(memory, _)| memory.current.0 > 0)
}

fn is_own(group: &CgroupReading) -> bool {
    let name = group.path.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("ullage-").is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

/// What the tree cannot exceed.
pub(crate) fn most(sample: &Sample, lives: &Lives) -> Option<u64> {
    let in_use = |group: &CgroupReading| {
        let memory = group.memory.as_known()?;
        let swap = memory.swap.known().map_or(0, |swap| swap.0);
        Some(memory.current.0.saturating_add(swap)).filter(|used| *used > 0)
    };
    // On v1 the groups of other controllers are among them, and first: they say nothing of the job's memory.
    let group = lives.memory_group(sample).and_then(|(version, path)| {
        sample.cgroups.iter().find(|group| group.version == version && group.path == path).and_then(in_use)
    });
    let machine = sample.host.memory.as_known().map(|memory| {
        let swap = memory.swap_total.saturating_sub(memory.swap_free);
        memory.total.saturating_sub(memory.free).saturating_add(swap).0
    });
    group.into_iter().chain(machine.filter(|used| *used > 0)).min()
}
