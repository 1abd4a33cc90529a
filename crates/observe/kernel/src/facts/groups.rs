//! Cgroups of the process as facts: which version, and what its groups and their ancestors allow.

use super::collector::Collector;
use crate::cgroup::CgroupMounts;
use crate::process::cgroup::parse_cgroup;
use crate::ProcessDir;
use ullage_model::{cgroup_facts, CgroupReading, Fact};

pub(super) fn collect(collector: &mut Collector<'_>, process: &ProcessDir) {
    let mounts = CgroupMounts::find(collector.root, &mut collector.buffer);
    collector.set("cgroup.layout", mounts.layout());
    if let Err(error) = process.cgroup(&mut collector.buffer) {
        return collector.set("cgroup.memory.max", error.missing());
    }
    let memberships = parse_cgroup(&collector.buffer);
    let groups: Vec<CgroupReading> = mounts
        .groups(&memberships)
        .iter()
        .map(|key| mounts.read(collector.root, key, &mut collector.buffer))
        .collect();
    cgroup_facts(&groups, &mut collector.facts);
    if mounts.memory_out_of_sight(&memberships).is_some() {
        collector.set("cgroup.memory.max", Fact::missing("its group is outside the mounts here"));
    }
}
