//! Groups and filesystems as facts by name, the same way for a snapshot (which reads them of itself) and for a
//! recording (whose job may have been put into others).

use crate::{CgroupReading, CgroupVersion, Fact, Facts, FilesystemReading, Limit, Missing};

/// A filesystem: `NAME.size`, `NAME.inodes`, `NAME.tmpfs`.
pub fn filesystem_facts(name: &str, reading: &FilesystemReading, facts: &mut Facts) {
    facts.insert(format!("{name}.size"), reading.size.into());
    facts.insert(format!("{name}.inodes"), reading.inodes.into());
    facts.insert(format!("{name}.tmpfs"), reading.tmpfs.into());
}

/// What the groups of a process, its own first and then every ancestor, allow: for each figure the tightest of them
/// (`cgroup.memory.max`), in which it stands (`cgroup.memory.max.where`), and one by one (`cgroup.0.memory.max`).
pub fn cgroup_facts(groups: &[CgroupReading], facts: &mut Facts) {
    let mut tightest: [(&str, Option<(Limit, usize)>); 4] =
        [("memory.max", None), ("memory.high", None), ("swap.max", None), ("pids.max", None)];
    for (level, group) in groups.iter().enumerate() {
        facts.insert(format!("cgroup.{level}.path"), group.path.as_str().into());
        let version = if group.version == CgroupVersion::V2 { "v2" } else { "v1" };
        facts.insert(format!("cgroup.{level}.version"), version.into());
        let memory = group.memory.as_known();
        let limits = [
            memory.map(|memory| memory.limit),
            memory.map(|memory| memory.high),
            memory.and_then(|memory| memory.swap_limit.known()),
            group.pids.as_known().map(|pids| pids.limit),
        ];
        // The top of a hierarchy has no file for what it cannot limit.
        let top = |reason: Option<Missing>| {
            let absent =
                reason.is_some_and(|reason| !matches!(reason, Missing::NotAsked | Missing::NoPermission));
            (group.path == "/" && absent).then_some(Limit::Unlimited)
        };
        let (of_memory, of_pids) = (top(group.memory.missing()), top(group.pids.missing()));
        for ((name, least), limit) in tightest.iter_mut().zip(limits) {
            let at_top = if *name == "pids.max" { of_pids } else { of_memory };
            let Some(limit) = limit.or(at_top) else { continue };
            facts.insert(format!("cgroup.{level}.{name}"), limit.into());
            let tighter = |(before, _): (Limit, usize)| limit != before && limit.tighter(before) == limit;
            if least.is_none_or(tighter) {
                *least = Some((limit, level));
            }
        }
        if let Some(whole) = memory.and_then(|memory| memory.oom_group.known()) {
            facts.insert(format!("cgroup.{level}.oom_group"), whole.into());
        }
    }
    for (name, least) in tightest {
        let Some((limit, level)) = least else {
            facts.insert(format!("cgroup.{name}"), Fact::missing("no group with this controller is seen"));
            continue;
        };
        facts.insert(format!("cgroup.{name}"), limit.into());
        if limit != Limit::Unlimited {
            let place = match level {
                0 => "own group".to_owned(),
                _ => format!("ancestor {level}"),
            };
            facts.insert(format!("cgroup.{name}.where"), place.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::CgroupPids;
    use crate::Measured;

    fn group(path: &str, limit: Limit) -> CgroupReading {
        CgroupReading {
            version: CgroupVersion::V2,
            path: path.into(),
            memory: Measured::Missing(Missing::KernelTooOld),
            pids: Measured::Known(CgroupPids { current: 1, limit, refused: Measured::Known(0) }),
        }
    }

    #[test]
    fn the_tightest_of_all_ancestors_counts_and_is_placed() {
        let mut facts = Facts::new();
        let groups =
            [group("/a/b", Limit::Unlimited), group("/a", Limit::At(40)), group("/", Limit::At(400))];
        cgroup_facts(&groups, &mut facts);
        assert_eq!(facts["cgroup.pids.max"], Fact::Number(40));
        assert_eq!(facts["cgroup.pids.max.where"], "ancestor 1".into());
        assert_eq!(facts["cgroup.2.pids.max"], Fact::Number(400));
        assert_eq!(facts["cgroup.memory.max"], Fact::UNLIMITED, "the top has no file to limit memory");
    }

    #[test]
    fn what_is_not_seen_is_not_unlimited() {
        let mut facts = Facts::new();
        let hidden =
            CgroupReading { memory: Measured::Missing(Missing::NotAsked), ..group("/", Limit::At(3)) };
        cgroup_facts(&[hidden], &mut facts);
        assert!(facts["cgroup.memory.max"].is_missing());
    }
}
