//! Files of a cgroup v1 group (Documentation/admin-guide/cgroup-v1/memory.rst).
//!
//! ```text
//! memory.limit_in_bytes: 9223372036854771712       memory.failcnt: 0
//! memory.oom_control:    oom_kill_disable 0\nunder_oom 0\noom_kill 0
//! memory.stat:           cache 9256960\nrss 12693504\n…\ntotal_cache 285052928\ntotal_rss 23437312\n…
//! ```
//! The surprise: `oom_kill` moves in the victim's own group; the ancestor whose limit was met shows only `failcnt`.

use super::limit::{parse_limit, parse_limit_v1};
use super::v2::{exists, huge, parse_event_count};
use crate::error::{measured, measured_feature, ParseError};
use crate::host::sysctl::parse_number;
use crate::scan::value_of;
use crate::KernelRoot;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::{Bytes, Limit, Measured, Missing};

/// Parses memory.stat of v1, the `total_` figures; kernel memory is not among them.
pub fn parse_memory_stat_v1(bytes: &[u8]) -> Result<CgroupMemoryParts, ParseError> {
    let value = |key: &'static str| value_of(bytes, key.as_bytes());
    Ok(CgroupMemoryParts {
        anonymous: Bytes(value("total_rss").ok_or(ParseError::at(0, "total_rss"))?),
        file: Bytes(value("total_cache").ok_or(ParseError::at(0, "total_cache"))?),
        shared: Bytes(value("total_shmem").unwrap_or(0)),
        inactive_file: Bytes(value("total_inactive_file").unwrap_or(0)),
        kernel: Bytes(0),
    })
}

pub(super) fn read_memory(
    root: &KernelRoot,
    directory: &str,
    buffer: &mut Vec<u8>,
) -> Measured<CgroupMemory> {
    let mut number = |file: &str| root.parsed(format!("{directory}/memory.{file}"), buffer, parse_number);
    let current = match number("usage_in_bytes") {
        Ok(current) => current,
        Err(error) => {
            return Measured::Missing(if exists(root, directory) {
                error.missing_feature()
            } else {
                error.missing()
            })
        }
    };
    let peak = measured_feature(number("max_usage_in_bytes")).map(Bytes);
    let limit_hits = measured_feature(number("failcnt"));
    // memsw is there only where swap accounting is on.
    let both = measured_feature(number("memsw.usage_in_bytes"));
    let kernel = number("kmem.usage_in_bytes").unwrap_or(0);
    let mut limit = |file: &str| root.parsed(format!("{directory}/memory.{file}"), buffer, parse_limit_v1);
    let max = match limit("limit_in_bytes") {
        Ok(max) => max,
        Err(error) => return Measured::Missing(error.missing()),
    };
    let swap_limit = measured_feature(limit("memsw.limit_in_bytes")).map(|both| swap_limit(both, max));
    let oom_kills =
        measured_feature(root.parsed(format!("{directory}/memory.oom_control"), buffer, |bytes| {
            parse_event_count(bytes, "oom_kill")
        }));
    // Kernels before 4.13 have the file without the line.
    let oom_kills = match oom_kills {
        Measured::Missing(Missing::Unreadable) => Measured::Missing(Missing::KernelTooOld),
        other => other,
    };
    let stat = measured(root.parsed(format!("{directory}/memory.stat"), buffer, |bytes| {
        let parts = CgroupMemoryParts { kernel: Bytes(kernel), ..parse_memory_stat_v1(bytes)? };
        Ok((parts, value_of(bytes, b"total_rss_huge")))
    }));
    Measured::Known(CgroupMemory {
        current: Bytes(current),
        limit: max,
        high: Limit::Unlimited,
        peak,
        swap: both.map(|both| Bytes(both.saturating_sub(current))),
        swap_limit,
        oom_kills,
        oom_kills_subtree: oom_kills,
        limit_hits,
        high_hits: Measured::Missing(Missing::KernelTooOld),
        anonymous_huge: huge(stat),
        oom_group: Measured::Missing(Missing::KernelTooOld),
        parts: stat.map(|(parts, _)| parts),
    })
}

/// memsw limits memory and swap together.
fn swap_limit(both: Limit, memory: Limit) -> Limit {
    match (both, memory) {
        (Limit::At(both), Limit::At(memory)) => Limit::At(both.saturating_sub(memory)),
        (limit, _) => limit,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_captured_stat_gives_the_figures_of_the_subtree() {
        let parts = parse_memory_stat_v1(include_bytes!("../../fixtures/cgroup-v1/memory.stat")).unwrap();
        assert_eq!(parts.file, Bytes(285052928));
        assert_eq!((parts.anonymous, parts.shared), (Bytes(23437312), Bytes(8998912)));
    }

    #[test]
    fn swap_is_what_memsw_allows_beyond_memory() {
        assert_eq!(swap_limit(Limit::At(9), Limit::At(5)), Limit::At(4));
        assert_eq!(swap_limit(Limit::Unlimited, Limit::At(5)), Limit::Unlimited);
        assert_eq!(swap_limit(Limit::At(9), Limit::Unlimited), Limit::At(9));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_memory_stat_v1(&bytes);
        }
    }
}
