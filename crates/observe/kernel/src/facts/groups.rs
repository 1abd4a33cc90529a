//! Cgroups of the process as facts: which version, what its groups and their ancestors allow, and how much CPU.
//!
//! ```text
//! cpu.max (v2):  150000 100000     quota and period in microseconds, or max
//! cpu.cfs_quota_us, cpu.cfs_period_us (v1):  -1, 100000
//! ```

use super::Collector;
use crate::cgroup::CgroupMounts;
use crate::process::cgroup::parse_cgroup;
use crate::ProcessDir;
use ullage_model::{cgroup_facts, CgroupReading, Fact, Limit};

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
        collector.set("cgroup.memory.max", Fact::missing("its group lies outside of what is mounted here"));
    }
    let quota = mounts
        .cpu_directories(&memberships)
        .into_iter()
        .filter_map(|(v2, directory)| quota(collector, v2, &directory))
        .fold(None, |least: Option<Limit>, limit| Some(least.map_or(limit, |least| least.tighter(limit))));
    match quota {
        Some(limit) => collector.set("cores.quota_percent", limit),
        None => {
            collector.set("cores.quota_percent", Fact::missing("no group with the cpu controller is seen"))
        }
    }
}

/// Of one core, in per cent.
fn quota(collector: &mut Collector<'_>, v2: bool, directory: &str) -> Option<Limit> {
    let text = match v2 {
        true => collector.text(&format!("{directory}/cpu.max")).known()?,
        false => {
            let quota = collector.text(&format!("{directory}/cpu.cfs_quota_us")).known()?;
            let period = collector.text(&format!("{directory}/cpu.cfs_period_us")).known()?;
            format!("{quota} {period}")
        }
    };
    parse_quota(&text)
}

fn parse_quota(text: &str) -> Option<Limit> {
    let (quota, period) = text.split_once(' ')?;
    match (quota, period.trim().parse::<u64>().ok()?) {
        (_, 0) => None,
        ("max" | "-1", _) => Some(Limit::Unlimited),
        (quota, period) => Some(Limit::At(quota.parse::<u64>().ok()?.saturating_mul(100) / period)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_both_versions_are_per_cent_of_a_core() {
        assert_eq!(parse_quota("150000 100000"), Some(Limit::At(150)));
        assert_eq!(parse_quota("max 100000"), Some(Limit::Unlimited));
        assert_eq!(parse_quota("-1 100000"), Some(Limit::Unlimited));
        assert_eq!(parse_quota("5 0"), None);
        assert_eq!(parse_quota(""), None);
    }
}
