//! Files of a cgroup v2 group (Documentation/admin-guide/cgroup-v2.rst).
//!
//! ```text
//! memory.current: 4096     memory.max: max     memory.events: low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0
//! memory.stat:    anon 1\nfile 2\nkernel 3\nshmem 4\n…\ninactive_file 5
//! ```
//! The surprise: memory.events counts the whole subtree, memory.events.local (5.2) the group itself; the top of
//! the hierarchy has none of these files.

use super::limit::parse_limit;
use crate::error::{measured, measured_feature, ParseError};
use crate::host::sysctl::parse_number;
use crate::scan::value_of;
use crate::KernelRoot;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::{Bytes, Limit, Measured, Missing};

/// Parses memory.stat of v2. `kernel` is there since 5.18; before, its largest parts are summed.
pub fn parse_memory_stat_v2(bytes: &[u8]) -> Result<CgroupMemoryParts, ParseError> {
    let value = |key: &'static str| value_of(bytes, key.as_bytes());
    let kernel = value("kernel").unwrap_or_else(|| {
        ["slab", "kernel_stack", "pagetables"]
            .iter()
            .fold(0, |sum: u64, key| sum.saturating_add(value(key).unwrap_or(0)))
    });
    Ok(CgroupMemoryParts {
        anonymous: Bytes(value("anon").ok_or(ParseError::at(0, "anon"))?),
        file: Bytes(value("file").ok_or(ParseError::at(0, "file"))?),
        shared: Bytes(value("shmem").unwrap_or(0)),
        inactive_file: Bytes(value("inactive_file").unwrap_or(0)),
        kernel: Bytes(kernel),
    })
}

/// Parses one key of memory.events or pids.events.
pub fn parse_event_count(bytes: &[u8], key: &'static str) -> Result<u64, ParseError> {
    value_of(bytes, key.as_bytes()).ok_or(ParseError::at(0, key))
}

pub(super) fn read_memory(
    root: &KernelRoot,
    directory: &str,
    buffer: &mut Vec<u8>,
) -> Measured<CgroupMemory> {
    let mut events = |file: &str, key| {
        measured_feature(
            root.parsed(format!("{directory}/{file}"), buffer, |bytes| parse_event_count(bytes, key)),
        )
    };
    let subtree = events("memory.events", "oom_kill");
    let local = match events("memory.events.local", "oom_kill") {
        Measured::Missing(Missing::KernelTooOld) => subtree,
        local => local,
    };
    let limit_hits = events("memory.events", "max");
    let high_hits = events("memory.events", "high");
    let mut number = |file: &str| root.parsed(format!("{directory}/{file}"), buffer, parse_number);
    let current = match number("memory.current") {
        Ok(current) => Bytes(current),
        Err(error) => {
            return Measured::Missing(if exists(root, directory) {
                error.missing_feature()
            } else {
                error.missing()
            })
        }
    };
    let peak = measured_feature(number("memory.peak")).map(Bytes);
    let swap = measured_feature(number("memory.swap.current")).map(Bytes);
    let oom_group = measured_feature(number("memory.oom.group")).map(|group| group == 1);
    let mut limit = |file: &str| root.parsed(format!("{directory}/{file}"), buffer, parse_limit);
    let (max, high) = match (limit("memory.max"), limit("memory.high")) {
        (Ok(max), high) => (max, high.unwrap_or(Limit::Unlimited)),
        (Err(error), _) => return Measured::Missing(error.missing()),
    };
    let swap_limit = measured_feature(limit("memory.swap.max"));
    let stat = measured(root.parsed(format!("{directory}/memory.stat"), buffer, |bytes| {
        Ok((parse_memory_stat_v2(bytes)?, value_of(bytes, b"anon_thp")))
    }));
    Measured::Known(CgroupMemory {
        current,
        limit: max,
        high,
        peak,
        swap,
        swap_limit,
        oom_kills: local,
        oom_kills_subtree: subtree,
        limit_hits,
        high_hits,
        anonymous_huge: huge(stat),
        oom_group,
        parts: stat.map(|(parts, _)| parts),
    })
}

/// The second figure of a reading of memory.stat, which kernels without transparent huge pages do not print.
pub(super) fn huge(stat: Measured<(CgroupMemoryParts, Option<u64>)>) -> Measured<Bytes> {
    match stat {
        Measured::Known((_, Some(huge))) => Measured::Known(Bytes(huge)),
        Measured::Known((_, None)) => Measured::Missing(Missing::KernelTooOld),
        Measured::Missing(why) => Measured::Missing(why),
    }
}

pub(super) fn read_pids(root: &KernelRoot, directory: &str, buffer: &mut Vec<u8>) -> Measured<CgroupPids> {
    let current = match root.parsed(format!("{directory}/pids.current"), buffer, parse_number) {
        Ok(current) => current,
        Err(error) => {
            return Measured::Missing(if exists(root, directory) {
                error.missing_feature()
            } else {
                error.missing()
            })
        }
    };
    let limit = match root.parsed(format!("{directory}/pids.max"), buffer, parse_limit) {
        Ok(limit) => limit,
        Err(error) => return Measured::Missing(error.missing()),
    };
    let refused =
        root.parsed(format!("{directory}/pids.events"), buffer, |bytes| parse_event_count(bytes, "max"));
    Measured::Known(CgroupPids { current, limit, refused: measured_feature(refused) })
}

/// Tells "the group is gone" from "this group does not have that controller".
pub(super) fn exists(root: &KernelRoot, directory: &str) -> bool {
    root.below(directory).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kernel_memory_is_summed_where_no_total_is_printed() {
        let new =
            parse_memory_stat_v2(b"anon 1\nfile 2\nkernel 3\nslab 9\nshmem 4\ninactive_file 5\n").unwrap();
        assert_eq!(new.kernel, Bytes(3));
        let old = parse_memory_stat_v2(b"anon 1\nfile 2\nkernel_stack 3\nslab 9\npagetables 1\n").unwrap();
        assert_eq!(old.kernel, Bytes(13));
    }

    #[test]
    fn oom_kill_is_not_oom_group_kill() {
        let events = b"low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 7\n";
        assert_eq!(parse_event_count(events, "oom_kill"), Ok(2));
        assert_eq!(parse_event_count(events, "max"), Ok(3));
        assert_eq!(parse_event_count(b"max\n", "max").unwrap_err().item, "max");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (parse_memory_stat_v2(&bytes), parse_event_count(&bytes, "max"));
        }
    }
}
