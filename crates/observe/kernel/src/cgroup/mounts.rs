//! Where the cgroup hierarchies are mounted, and which groups (with every ancestor) a process is in.
//!
//! Source: `/proc/self/mountinfo`. The surprise: in a container without a cgroup namespace a membership is the
//! path on the host (`/docker/x`), while the mount shows that very group at its top (its root is `/docker/x`).

use super::{v1, v2};
use crate::host::mountinfo::{parse_mountinfo, Mount};
use crate::process::cgroup::Membership;
use crate::KernelRoot;
use ullage_model::{CgroupReading, CgroupVersion, Measured, Missing};

/// Where one hierarchy is visible.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Group that is visible at the mount point.
    root: String,
    mount_point: String,
}

/// The hierarchies that carry memory and pids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupMounts {
    v2: Option<Hierarchy>,
    memory_v1: Option<Hierarchy>,
    pids_v1: Option<Hierarchy>,
}

/// One group; on v1 the groups of equal path in the memory and the pids hierarchy count as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CgroupKey {
    /// True for v2.
    pub v2: bool,
    /// Path below the mount point, `/` for its top.
    pub path: String,
}

impl CgroupMounts {
    /// Finds them; on a system without cgroups all are none.
    pub fn find(root: &KernelRoot, buffer: &mut Vec<u8>) -> CgroupMounts {
        match root.read("/proc/self/mountinfo", buffer) {
            Ok(()) => CgroupMounts::from_mounts(&parse_mountinfo(buffer)),
            Err(_) => CgroupMounts::default(),
        }
    }

    fn from_mounts(mounts: &[Mount]) -> CgroupMounts {
        let hierarchy =
            |mount: &Mount| Hierarchy { root: mount.root.clone(), mount_point: mount.mount_point.clone() };
        let v1 = |name: &str| {
            let carries = |mount: &&Mount| mount.kind == "cgroup" && mount.options.iter().any(|o| o == name);
            mounts.iter().find(carries).map(hierarchy)
        };
        CgroupMounts {
            v2: mounts.iter().find(|mount| mount.kind == "cgroup2").map(hierarchy),
            memory_v1: v1("memory"),
            pids_v1: v1("pids"),
        }
    }

    /// True where the unified hierarchy carries the memory controller.
    pub fn v2_memory(&self, root: &KernelRoot, buffer: &mut Vec<u8>) -> bool {
        let Some(v2) = &self.v2 else { return false };
        root.read(format!("{}/cgroup.controllers", v2.mount_point), buffer).is_ok()
            && crate::scan::words(crate::scan::trim(buffer)).any(|word| word == b"memory")
    }

    /// The groups of a process and every ancestor, the process's own first.
    pub fn groups(&self, memberships: &[Membership]) -> Vec<CgroupKey> {
        let mut keys = Vec::new();
        for membership in memberships {
            let carries = |name: &str| membership.controllers.iter().any(|controller| controller == name);
            let hierarchy = match membership {
                membership if membership.is_v2() => &self.v2,
                _ if carries("memory") => &self.memory_v1,
                _ if carries("pids") => &self.pids_v1,
                _ => continue,
            };
            let Some(hierarchy) = hierarchy else { continue };
            let Some(path) = below_mount(&hierarchy.root, &membership.path) else { continue };
            for path in with_ancestors(path) {
                let key = CgroupKey { v2: membership.is_v2(), path: path.to_owned() };
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    /// Where the memory controller keeps a process's own group: (v2, directory, path as in `/proc/PID/cgroup`).
    /// At most one of each version.
    pub fn memory_directories(&self, memberships: &[Membership]) -> Vec<(bool, String, String)> {
        let directory = |hierarchy: &Hierarchy, membership: &Membership| {
            let below = below_mount(&hierarchy.root, &membership.path)?;
            let directory = format!("{}{}", hierarchy.mount_point, below.trim_end_matches('/'));
            Some((membership.is_v2(), directory, membership.path.clone()))
        };
        let carries = |membership: &&Membership| {
            membership.is_v2() || membership.controllers.iter().any(|controller| controller == "memory")
        };
        let hierarchy = |membership: &Membership| if membership.is_v2() { &self.v2 } else { &self.memory_v1 };
        memberships
            .iter()
            .filter(carries)
            .filter_map(|membership| directory(hierarchy(membership).as_ref()?, membership))
            .collect()
    }

    /// Reads one group.
    pub fn read(&self, root: &KernelRoot, key: &CgroupKey, buffer: &mut Vec<u8>) -> CgroupReading {
        let absent = Measured::Missing(Missing::KernelTooOld);
        let directory = |hierarchy: &Option<Hierarchy>| {
            hierarchy
                .as_ref()
                .map(|hierarchy| format!("{}{}", hierarchy.mount_point, key.path.trim_end_matches('/')))
        };
        let (memory, pids) = if key.v2 {
            let directory = directory(&self.v2);
            let directory = directory.as_deref();
            (
                directory.map_or(absent, |directory| v2::read_memory(root, directory, buffer)),
                directory
                    .map_or(Measured::Missing(Missing::KernelTooOld), |d| v2::read_pids(root, d, buffer)),
            )
        } else {
            (
                directory(&self.memory_v1)
                    .map_or(absent, |directory| v1::read_memory(root, &directory, buffer)),
                directory(&self.pids_v1)
                    .map_or(Measured::Missing(Missing::KernelTooOld), |d| v1::read_pids(root, &d, buffer)),
            )
        };
        let version = if key.v2 { CgroupVersion::V2 } else { CgroupVersion::V1 };
        CgroupReading { version, path: key.path.clone(), memory, pids }
    }

    /// Pids directly in a group, from `cgroup.procs` (v2, or v1's memory or pids hierarchy).
    pub fn processes(&self, root: &KernelRoot, key: &CgroupKey, buffer: &mut Vec<u8>) -> Vec<i32> {
        let hierarchy = if key.v2 {
            &self.v2
        } else {
            self.memory_v1.as_ref().map_or(&self.pids_v1, |_| &self.memory_v1)
        };
        let Some(hierarchy) = hierarchy else { return Vec::new() };
        let file = format!("{}{}/cgroup.procs", hierarchy.mount_point, key.path.trim_end_matches('/'));
        match root.read(file, buffer) {
            Ok(()) => parse_cgroup_procs(buffer),
            Err(_) => Vec::new(),
        }
    }
}

/// Parses `cgroup.procs`; 0 stands for a process of another pid namespace and is left out.
pub fn parse_cgroup_procs(bytes: &[u8]) -> Vec<i32> {
    crate::scan::lines(bytes)
        .filter_map(|line| crate::scan::number(line).and_then(|pid| i32::try_from(pid).ok()))
        .filter(|&pid| pid > 0)
        .collect()
}

/// The membership's path as seen below the mount; none where it is outside of what is mounted.
fn below_mount<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let root = root.trim_end_matches('/');
    match path.strip_prefix(root) {
        Some("") => Some("/"),
        Some(rest) if rest.starts_with('/') => Some(rest),
        // A cgroup namespace: membership and mount are both relative to it already.
        _ => Some(path),
    }
}

/// `/a/b`, `/a`, `/`.
fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rfind('/') {
        _ if *path == "/" => None,
        Some(0) => Some("/"),
        Some(slash) => Some(&path[..slash]),
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::cgroup::parse_cgroup;

    const MOUNTS: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        39 31 0:36 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn paths(cgroup: &[u8]) -> Vec<(bool, String)> {
        let mounts = CgroupMounts::from_mounts(&parse_mountinfo(MOUNTS));
        mounts.groups(&parse_cgroup(cgroup)).into_iter().map(|key| (key.v2, key.path)).collect()
    }

    #[test]
    fn every_ancestor_is_named_once_own_group_first() {
        let found = paths(b"4:memory:/docker/x/a/b\n8:pids:/docker/x/a/b\n0::/s\n");
        let v1 = ["/a/b", "/a", "/"].map(|path| (false, path.to_owned()));
        assert_eq!(found[..3], v1);
        assert_eq!(found[3..], ["/s", "/"].map(|path| (true, path.to_owned())));
    }

    #[test]
    fn a_group_outside_the_namespace_is_not_read() {
        assert_eq!(paths(b"0::/../other\n"), []);
        assert_eq!(paths(b"4:memory:/docker/x\n"), [(false, "/".to_owned())]);
        assert_eq!(paths(b"4:memory:/docker/xy\n")[0].1, "/docker/xy", "no prefix by half a name");
    }

    #[test]
    fn processes_of_other_namespaces_are_left_out() {
        assert_eq!(parse_cgroup_procs(b"12\n0\n99\nx\n"), [12, 99]);
    }
}
