//! Memory of the whole tree at its peak: each shared byte once, as far as cheap readings can tell.
//!
//! Resident anonymous memory of forked processes is counted in each of them although they may share pages;
//! where the job's own cgroup holds less than that sum, the cgroup is right and its figures are taken.

use std::collections::BTreeMap;
use ullage_model::{Bytes, FilesystemUse, MemorySummary, Sample};

/// Keeps `summary` at the sample in which the tree was largest.
pub(crate) fn note_peak(summary: &mut MemorySummary, sample: &Sample, shm_at_start: u64) {
    if sample.processes.is_empty() {
        return;
    }
    let now = of_sample(sample, shm_at_start);
    if now.peak_bytes > summary.peak_bytes {
        *summary = now;
    }
}

/// Bytes that the whole tree uses at this moment, each shared one once, as far as cheap readings can tell.
pub fn tree_bytes(sample: &Sample) -> u64 {
    // What others keep in /dev/shm is not the job's: only what its processes map is counted.
    of_sample(sample, u64::MAX).peak_bytes
}

fn of_sample(sample: &Sample, shm_at_start: u64) -> MemorySummary {
    let sizes = || sample.processes.iter().filter_map(|reading| reading.memory.as_known());
    let sum = |pick: fn(&ullage_model::ProcessMemory) -> Bytes| {
        sizes().map(|m| pick(m).0).fold(0, u64::saturating_add)
    };
    let largest =
        |pick: fn(&ullage_model::ProcessMemory) -> Bytes| sizes().map(|m| pick(m).0).max().unwrap_or(0);
    let shm = sample
        .filesystems
        .iter()
        .find(|reading| reading.used_for == FilesystemUse::Shm)
        .map_or(0, |reading| reading.used.0.saturating_sub(shm_at_start));
    let parts = [
        ("anonymous", sum(|m| m.anonymous)),
        ("file", largest(|m| m.file)),
        ("shared", largest(|m| m.shared).max(shm)),
        ("page-tables", sum(|m| m.page_tables)),
        ("swap", sum(|m| m.swap)),
    ];
    let total: u64 = parts.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    if let Some(group) = of_cgroup(sample, total) {
        return group;
    }
    MemorySummary {
        peak_bytes: total,
        source: "sum over processes: anonymous in each, shared and file-mapped once".into(),
        unexplained_share: 0.0,
        categories: named(&parts),
    }
}

fn of_cgroup(sample: &Sample, sum: u64) -> Option<MemorySummary> {
    let own = sample.cgroups.iter().find_map(|group| group.memory.as_known())?;
    let parts = own.parts.known()?;
    if own.current.0 == 0 || own.current.0 >= sum {
        return None;
    }
    let categories = [
        ("anonymous", parts.anonymous.0),
        ("file", parts.file.saturating_sub(parts.shared).0),
        ("shared", parts.shared.0),
        ("kernel", parts.kernel.0),
    ];
    let explained: u64 = categories.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    Some(MemorySummary {
        peak_bytes: own.current.0,
        source: "cgroup".into(),
        unexplained_share: own.current.0.saturating_sub(explained) as f64 / own.current.0 as f64,
        categories: named(&categories),
    })
}

fn named(parts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    parts.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
}
