//! May the arena take so much more memory? Every ancestor cgroup and the machine are asked before it grows.
//!
//! From memory.max and memory.current (cgroup v1: limit_in_bytes and usage_in_bytes) and /proc/meminfo. Page cache
//! counts as used in a cgroup although the kernel gives it back: only the part that cannot be given back is held
//! against the arena.

use crate::error::arena_error;
use pyo3::prelude::*;
use ullage_kernel::cgroup::CgroupMounts;
use ullage_kernel::host::meminfo::parse_meminfo;
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::KernelRoot;
use ullage_model::Limit;

/// Left for all others.
const MARGIN: u64 = 16 << 20;

/// Address space to set aside: `ULLAGE_ARENA_RESERVE` bytes, else twice the machine's memory, and never more than a
/// quarter of what `ulimit -v` leaves.
pub(crate) fn reserve() -> u64 {
    let wanted = std::env::var("ULLAGE_ARENA_RESERVE").ok().and_then(|text| text.parse::<u64>().ok());
    let total = meminfo().map_or(64 << 30, |memory| memory.0);
    let reserve = wanted.unwrap_or_else(|| (2 * total).clamp(16 << 30, 1 << 40));
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    limit.map_or(reserve, |limit| reserve.min(limit / 4))
}

/// Bytes from which on the arena says who holds them: `ULLAGE_ARENA_SOFT_CAP`, else a quarter of what the machine has
/// available now.
pub(crate) fn soft_cap() -> u64 {
    let wanted = std::env::var("ULLAGE_ARENA_SOFT_CAP").ok().and_then(|text| text.parse::<u64>().ok());
    wanted.unwrap_or_else(|| meminfo().map_or(u64::MAX - 1, |memory| memory.1 / 4))
}

/// MemTotal and MemAvailable.
fn meminfo() -> Option<(u64, u64)> {
    let mut buffer = Vec::new();
    KernelRoot::live().read("/proc/meminfo", &mut buffer).ok()?;
    let memory = parse_meminfo(&buffer).ok()?;
    Some((memory.total.0, memory.available.0))
}

/// Raises ArenaError, which says what is in the way, where so many bytes more do not fit into memory.
#[pyfunction]
pub(crate) fn check_headroom(py: Python<'_>, nbytes: u64) -> PyResult<()> {
    py.detach(|| guard()(nbytes, 0)).map_err(arena_error)
}

/// The question as the arena asks it.
pub(crate) fn guard() -> Box<dyn Fn(u64, u64) -> Result<(), String> + Send + Sync> {
    Box::new(|more, _| {
        let needed = more.saturating_add(MARGIN);
        if let Some((_, available)) = meminfo() {
            if needed > available {
                return Err(format!("the machine has {available} bytes left (MemAvailable)"));
            }
        }
        let root = KernelRoot::live();
        let mut buffer = Vec::new();
        let mounts = CgroupMounts::find(&root, &mut buffer);
        let own = i32::try_from(std::process::id()).ok().and_then(|pid| root.process(pid).ok());
        let Some(Ok(())) = own.map(|own| own.cgroup(&mut buffer)) else { return Ok(()) };
        let memberships = parse_cgroup(&buffer);
        for key in mounts.groups(&memberships) {
            let reading = mounts.read(&root, &key, &mut buffer);
            let Some(memory) = reading.memory.as_known() else { continue };
            let Limit::At(limit) = memory.limit else { continue };
            let used = memory.in_use().0;
            if used.saturating_add(needed) > limit {
                return Err(format!(
                    "the cgroup {} uses {used} of the {limit} bytes that it may (memory.max)",
                    reading.path
                ));
            }
        }
        Ok(())
    })
}
