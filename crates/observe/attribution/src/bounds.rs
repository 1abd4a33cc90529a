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

/// The group that counts the memory of all processes of the job, and perhaps that of others.
fn common_group<'a>(sample: &'a Sample, lives: &Lives) -> Option<&'a CgroupReading> {
    // On v1 the groups of other controllers are among them, and first: they say nothing of the job's memory.
    let (version, path) = lives.memory_group(sample)?;
    sample.cgroups.iter().find(|group| group.version == version && group.path == path)
}

/// What that group counts by kind, unless it is the whole machine's.
pub(crate) fn counted(sample: &Sample, lives: &Lives) -> Option<CgroupMemoryParts> {
    let group = common_group(sample, lives).filter(|group| group.path != "/")?;
    group.memory.as_known()?.parts.known()
}

/// What the tree cannot exceed.
pub(crate) fn most(sample: &Sample, lives: &Lives) -> Option<u64> {
    let in_use = |group: &CgroupReading| {
        let memory = group.memory.as_known()?;
        let swap = memory.swap.known().map_or(0, |swap| swap.0);
        Some(memory.current.0.saturating_add(swap)).filter(|used| *used > 0)
    };
    let group = common_group(sample, lives).and_then(in_use);
    let machine = sample.host.memory.as_known().map(|memory| {
        let swap = memory.swap_total.saturating_sub(memory.swap_free);
        memory.total.saturating_sub(memory.free).saturating_add(swap).0
    });
    group.into_iter().chain(machine.filter(|used| *used > 0)).min()
}
