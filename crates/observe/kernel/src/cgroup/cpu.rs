//! How much CPU time do the own cgroups allow? `cpu.max` of v2, `cpu.cfs_quota_us` and `cpu.cfs_period_us` of v1.
//!
//! ```text
//! cpu.max: 200000 100000        or: max 100000          microseconds, of each period of so many
//! ```
//! The surprise: nobody inside sees it. `nproc` and the affinity count cores, and a quota takes none of them away.

use super::mounts::with_ancestors;
use super::CgroupMounts;
use crate::host::sysctl::parse_number;
use crate::process::cgroup::parse_cgroup;
use crate::scan::{number, trim, words};
use crate::KernelRoot;
use ullage_model::{Limit, Measured, Missing};

/// Thousandths of a core; unlimited for `max`, none where it is not the format.
pub fn parse_cpu_max(bytes: &[u8]) -> Option<Limit> {
    let mut words = words(trim(bytes));
    let (quota, period) = (words.next()?, number(words.next()?)?);
    match quota {
        b"max" => Some(Limit::Unlimited),
        quota => Some(Limit::At(number(quota)?.saturating_mul(1000) / period.max(1))),
    }
}

impl CgroupMounts {
    /// The tightest of the own groups, thousandths of a core.
    pub fn cpu_quota(&self, root: &KernelRoot, buffer: &mut Vec<u8>) -> Measured<Limit> {
        if let Err(error) = root.read("/proc/self/cgroup", buffer) {
            return Measured::Missing(error.missing());
        }
        let memberships = parse_cgroup(buffer);
        let mut tightest = None;
        for membership in &memberships {
            let of_cpu = membership.controllers.iter().any(|controller| controller == "cpu");
            let hierarchy = match membership.is_v2() {
                true => self.v2(),
                false if of_cpu => self.cpu_v1(),
                false => continue,
            };
            let Some((mount, Some(below))) =
                hierarchy.map(|one| (one.mount_point(), one.below(&membership.path)))
            else {
                continue;
            };
            for path in with_ancestors(&below) {
                let directory = format!("{mount}{}", path.trim_end_matches('/'));
                let limit = match membership.is_v2() {
                    true => root
                        .read(format!("{directory}/cpu.max"), buffer)
                        .ok()
                        .and_then(|()| parse_cpu_max(buffer)),
                    false => quota_v1(root, &directory, buffer),
                };
                if let Some(limit) = limit {
                    tightest = Some(tightest.map_or(limit, |other: Limit| other.tighter(limit)));
                }
            }
        }
        // The top of v2 has no such file, and nothing limits a process there; no controller at all is not known.
        tightest.map_or(Measured::Missing(Missing::KernelTooOld), Measured::Known)
    }
}

/// -1 is unlimited.
fn quota_v1(root: &KernelRoot, directory: &str, buffer: &mut Vec<u8>) -> Option<Limit> {
    root.read(format!("{directory}/cpu.cfs_quota_us"), buffer).ok()?;
    if trim(buffer) == b"-1" {
        return Some(Limit::Unlimited);
    }
    let quota = number(trim(buffer))?;
    let period = root.parsed(format!("{directory}/cpu.cfs_period_us"), buffer, parse_number).ok()?;
    Some(Limit::At(quota.saturating_mul(1000) / period.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quota_is_a_share_of_its_period() {
        assert_eq!(parse_cpu_max(b"150000 100000\n"), Some(Limit::At(1500)));
        assert_eq!(parse_cpu_max(b"max 100000\n"), Some(Limit::Unlimited));
        assert_eq!(parse_cpu_max(b"max\n"), None);
    }

    #[test]
    fn the_tightest_of_the_own_group_and_its_ancestors_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("proc/self/cgroup", "0::/pod/job\n");
        write("sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
        write("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
        let root = KernelRoot::at(folder.path());
        let mounts = CgroupMounts::find(&root, &mut Vec::new());
        assert_eq!(mounts.cpu_quota(&root, &mut Vec::new()), Measured::Known(Limit::At(2000)));
        write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
        write("proc/self/cgroup", "3:cpu,cpuacct:/a\n");
        write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
        write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
        write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        let mounts = CgroupMounts::find(&root, &mut Vec::new());
        assert_eq!(mounts.cpu_quota(&root, &mut Vec::new()), Measured::Known(Limit::At(500)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_cpu_max(&bytes);
        }
    }
}
