//! Where the cgroup hierarchies are mounted, and which groups (with every ancestor) a process is in.
//!
//! Source: `/proc/self/mountinfo`. The surprise: in a container without a cgroup namespace a membership is the
//! path on the host (`/docker/x`), while the mount shows that very group at its top (its root is `/docker/x`).
//! With a namespace and the host's mount left in place the root is `/..` and the membership `/`, and the top of the
//! mount is not it (cgroup_namespaces(7)): see the module `namespace`.

use super::procs::parse_cgroup_procs;
use super::{namespace, v1, v2};
use crate::host::mountinfo::{is_visible, parse_mountinfo, Mount};
use crate::host::sysctl::parse_number;
use crate::process::cgroup::{parse_cgroup, Membership};
use crate::KernelRoot;
use ullage_model::{CgroupReading, CgroupVersion, Measured, Missing};

/// Where one hierarchy is visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Group that is visible at the mount point.
    root: String,
    mount_point: String,
    /// Path below the mount of the group that this cgroup namespace calls `/`, where the mount begins above it.
    inside: Option<String>,
}

impl Hierarchy {
    pub(super) fn mount_point(&self) -> &str {
        &self.mount_point
    }

    /// A membership as a path below the mount point; none where it is outside of what is mounted.
    pub(super) fn below(&self, membership: &str) -> Option<String> {
        match &self.inside {
            Some(inside) if stays_below(membership) => {
                Some(format!("{inside}{}", membership.trim_end_matches('/')))
            }
            _ => below_mount(&self.root, membership).map(str::to_owned),
        }
    }
}

/// The hierarchies that carry memory, pids and cpu.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupMounts {
    v2: Option<Hierarchy>,
    memory_v1: Option<Hierarchy>,
    pids_v1: Option<Hierarchy>,
    cpu_v1: Option<Hierarchy>,
}

/// One group; on v1 the groups of equal path in the memory and the pids hierarchy count as one, where the process
/// is in both.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CgroupKey {
    /// True for v2.
    pub v2: bool,
    /// Path below the mount point, `/` for its top.
    pub path: String,
    /// The memory controller of this path limits the process. On v1 a group of the same path may be a stranger's.
    pub memory: bool,
    /// The pids controller of this path does.
    pub pids: bool,
}

impl CgroupKey {
    /// True where both are the same group.
    pub fn is_same_group(&self, other: &CgroupKey) -> bool {
        self.v2 == other.v2 && self.path == other.path
    }
}

impl CgroupMounts {
    /// Finds them; on a system without cgroups all are none.
    pub fn find(root: &KernelRoot, buffer: &mut Vec<u8>) -> CgroupMounts {
        if root.read("/proc/self/mountinfo", buffer).is_err() {
            return CgroupMounts::default();
        }
        let mut mounts = CgroupMounts::from_mounts(&parse_mountinfo(buffer));
        let found = [&mounts.v2, &mounts.memory_v1, &mounts.pids_v1, &mounts.cpu_v1];
        if found.into_iter().flatten().any(|mount| namespace::levels_up(&mount.root).is_some()) {
            mounts.find_namespace(root, buffer);
        }
        mounts
    }

    fn find_namespace(&mut self, root: &KernelRoot, buffer: &mut Vec<u8>) {
        if root.read("/proc/self/cgroup", buffer).is_err() {
            return;
        }
        let memberships = parse_cgroup(buffer);
        let is_v1 = |name: &'static str| {
            move |one: &&Membership| one.controllers.iter().any(|controller| controller == name)
        };
        let own = [
            (&mut self.v2, memberships.iter().find(|one| one.is_v2())),
            (&mut self.memory_v1, memberships.iter().find(is_v1("memory"))),
            (&mut self.pids_v1, memberships.iter().find(is_v1("pids"))),
            (&mut self.cpu_v1, memberships.iter().find(is_v1("cpu"))),
        ];
        for (hierarchy, membership) in own {
            let (Some(hierarchy), Some(membership)) = (hierarchy, membership) else { continue };
            let Some(levels) = namespace::levels_up(&hierarchy.root) else { continue };
            hierarchy.inside =
                namespace::find(root, &hierarchy.mount_point, levels, &membership.path, buffer);
        }
    }

    fn from_mounts(mounts: &[Mount]) -> CgroupMounts {
        // Of several mounts, the one that shows most; one whose top lies above the namespace shows nothing of ours.
        let best = |is_one: &dyn Fn(&Mount) -> bool| {
            mounts
                .iter()
                .filter(|mount| is_one(mount) && is_visible(mounts, mount))
                .min_by_key(|mount| (mount.root.starts_with("/.."), mount.root.len()))
                .map(|mount| Hierarchy {
                    root: mount.root.clone(),
                    mount_point: mount.mount_point.clone(),
                    inside: None,
                })
        };
        let v1 =
            |name: &str| best(&|mount| mount.kind == "cgroup" && mount.options.iter().any(|o| o == name));
        CgroupMounts {
            v2: best(&|mount| mount.kind == "cgroup2"),
            memory_v1: v1("memory"),
            pids_v1: v1("pids"),
            cpu_v1: v1("cpu"),
        }
    }

    pub(super) fn v2(&self) -> Option<&Hierarchy> {
        self.v2.as_ref()
    }

    pub(super) fn cpu_v1(&self) -> Option<&Hierarchy> {
        self.cpu_v1.as_ref()
    }

    /// True where the unified hierarchy carries the memory controller.
    pub fn v2_memory(&self, root: &KernelRoot, buffer: &mut Vec<u8>) -> bool {
        let Some(v2) = &self.v2 else { return false };
        root.read(format!("{}/cgroup.controllers", v2.mount_point), buffer).is_ok()
            && crate::scan::words(crate::scan::trim(buffer)).any(|word| word == b"memory")
    }

    /// The groups of a process and every ancestor, the process's own first; those that limit memory before those that do
    /// not, in whatever order the kernel lists its hierarchies.
    pub fn groups(&self, memberships: &[Membership]) -> Vec<CgroupKey> {
        let mut keys: Vec<CgroupKey> = Vec::new();
        let mut ordered: Vec<&Membership> = memberships.iter().collect();
        ordered.sort_by_key(|one| (!controllers(one).0, one.is_v2()));
        for membership in ordered {
            let (memory, pids) = controllers(membership);
            let hierarchy = match membership {
                membership if membership.is_v2() => &self.v2,
                _ if memory => &self.memory_v1,
                _ if pids => &self.pids_v1,
                _ => continue,
            };
            let Some(hierarchy) = hierarchy else { continue };
            let Some(path) = hierarchy.below(&membership.path) else { continue };
            for path in with_ancestors(&path) {
                let key = CgroupKey { v2: membership.is_v2(), path: path.to_owned(), memory, pids };
                match keys.iter_mut().find(|other| other.is_same_group(&key)) {
                    Some(other) => (other.memory, other.pids) = (other.memory | memory, other.pids | pids),
                    None => keys.push(key),
                }
            }
        }
        keys
    }

    /// The process's own memory group, as `/proc/PID/cgroup` names it, where the kernel limits memory by a group that
    /// cannot be seen from here.
    pub fn memory_out_of_sight<'a>(&self, memberships: &'a [Membership]) -> Option<&'a str> {
        let v1 = memberships.iter().find(|membership| !membership.is_v2() && controllers(membership).0);
        let (membership, hierarchy) = match v1 {
            Some(membership) => (membership, &self.memory_v1),
            None => (memberships.iter().find(|membership| membership.is_v2())?, &self.v2),
        };
        let seen = hierarchy.as_ref().is_some_and(|mount| mount.below(&membership.path).is_some());
        (!seen).then_some(membership.path.as_str())
    }

    /// Where a controller (`memory`, `pids`) keeps a process's own group: (v2, directory, path as in
    /// `/proc/PID/cgroup`). At most one of each version.
    pub fn directories(&self, controller: &str, memberships: &[Membership]) -> Vec<(bool, String, String)> {
        let directory = |hierarchy: &Hierarchy, membership: &Membership| {
            let below = hierarchy.below(&membership.path)?;
            let directory = format!("{}{}", hierarchy.mount_point, below.trim_end_matches('/'));
            Some((membership.is_v2(), directory, membership.path.clone()))
        };
        let of_v1 = if controller == "pids" { &self.pids_v1 } else { &self.memory_v1 };
        let carries = |membership: &&Membership| {
            membership.is_v2() || membership.controllers.iter().any(|name| name == controller)
        };
        let hierarchy = |membership: &Membership| if membership.is_v2() { &self.v2 } else { of_v1 };
        memberships
            .iter()
            .filter(carries)
            .filter_map(|membership| directory(hierarchy(membership).as_ref()?, membership))
            .collect()
    }

    /// Which versions are mounted: `v1`, `v2`, `hybrid` (v1 with an empty or partly used v2), `none`.
    pub fn layout(&self) -> &'static str {
        let v1 = self.memory_v1.is_some() || self.pids_v1.is_some() || self.cpu_v1.is_some();
        match (v1, self.v2.is_some()) {
            (true, true) => "hybrid",
            (true, false) => "v1",
            (false, true) => "v2",
            (false, false) => "none",
        }
    }

    /// Reads one group.
    pub fn read(&self, root: &KernelRoot, key: &CgroupKey, buffer: &mut Vec<u8>) -> CgroupReading {
        let directory = |asked: bool, hierarchy: &Option<Hierarchy>| match hierarchy {
            _ if !asked => Err(Missing::NotAsked),
            None => Err(Missing::KernelTooOld),
            Some(hierarchy) => Ok(format!("{}{}", hierarchy.mount_point, key.path.trim_end_matches('/'))),
        };
        let (of_memory, of_pids) =
            if key.v2 { (&self.v2, &self.v2) } else { (&self.memory_v1, &self.pids_v1) };
        let memory = match directory(key.memory, of_memory) {
            Ok(directory) if key.v2 => v2::read_memory(root, &directory, buffer),
            Ok(directory) => v1::read_memory(root, &directory, buffer),
            Err(reason) => Measured::Missing(reason),
        };
        let pids = match directory(key.pids, of_pids) {
            Ok(directory) if key.v2 => v2::read_pids(root, &directory, buffer),
            Ok(directory) => v1::read_pids(root, &directory, buffer),
            Err(reason) => Measured::Missing(reason),
        };
        let version = if key.v2 { CgroupVersion::V2 } else { CgroupVersion::V1 };
        CgroupReading { version, path: key.path.clone(), memory, pids }
    }

    /// What a group holds, and nothing else of it.
    pub fn memory_in_use(&self, root: &KernelRoot, key: &CgroupKey, buffer: &mut Vec<u8>) -> Option<u64> {
        let (hierarchy, file) = match key.v2 {
            true => (&self.v2, "memory.current"),
            false => (&self.memory_v1, "memory.usage_in_bytes"),
        };
        let mount = hierarchy.as_ref().filter(|_| key.memory)?;
        let path = format!("{}{}/{file}", mount.mount_point, key.path.trim_end_matches('/'));
        root.parsed(path, buffer, parse_number).ok()
    }

    /// Pids directly in a group, named as in `/proc/PID/cgroup`, from `cgroup.procs` (v2, or v1's memory or pids
    /// hierarchy).
    pub fn processes(&self, root: &KernelRoot, v2: bool, path: &str, buffer: &mut Vec<u8>) -> Vec<i32> {
        let hierarchy =
            if v2 { &self.v2 } else { self.memory_v1.as_ref().map_or(&self.pids_v1, |_| &self.memory_v1) };
        let Some(hierarchy) = hierarchy else { return Vec::new() };
        let Some(below) = hierarchy.below(path) else { return Vec::new() };
        let file = format!("{}{}/cgroup.procs", hierarchy.mount_point, below.trim_end_matches('/'));
        match root.read(file, buffer) {
            Ok(()) => parse_cgroup_procs(buffer),
            Err(_) => Vec::new(),
        }
    }
}

/// Whether this line of `/proc/PID/cgroup` is of the memory and of the pids controller; v2 may carry both.
fn controllers(membership: &Membership) -> (bool, bool) {
    let carries = |name: &str| membership.controllers.iter().any(|controller| controller == name);
    match membership.is_v2() {
        true => (true, true),
        false => (carries("memory"), carries("pids")),
    }
}

/// The membership's path as seen below the mount; none where it is outside of what is mounted.
fn below_mount<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    let rest = match path.strip_prefix(root.trim_end_matches('/'))? {
        "" => "/",
        rest if rest.starts_with('/') => rest,
        _ => return None,
    };
    stays_below(rest).then_some(rest)
}

fn stays_below(path: &str) -> bool {
    path.split('/').all(|part| part != "..")
}

/// `/a/b`, `/a`, `/`.
pub(super) fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
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
    fn a_group_outside_of_what_is_mounted_is_not_read() {
        assert_eq!(paths(b"0::/../other\n"), []);
        assert_eq!(paths(b"4:memory:/docker/x\n"), [(false, "/".to_owned())]);
        assert_eq!(paths(b"4:memory:/docker/xy\n"), [], "no prefix by half a name");
        assert_eq!(paths(b"4:memory:/\n"), [], "the top of the mount is another group");
    }

    #[test]
    fn v1_groups_of_equal_path_are_one_only_where_the_process_is_in_both() {
        let mounts = CgroupMounts::from_mounts(&parse_mountinfo(MOUNTS));
        let groups = |file: &[u8]| {
            let keys = mounts.groups(&parse_cgroup(file));
            keys.into_iter().map(|key| (key.path, key.memory, key.pids)).collect::<Vec<_>>()
        };
        let of = |path: &str, memory, pids| (path.to_owned(), memory, pids);
        assert_eq!(
            groups(b"8:pids:/docker/x/b\n4:memory:/docker/x/a\n"),
            [of("/a", true, false), of("/", true, true), of("/b", false, true)]
        );
        assert_eq!(
            groups(b"4:memory:/docker/x/a\n8:pids:/docker/x/a\n"),
            [of("/a", true, true), of("/", true, true)]
        );
    }

    /// A namespace of its own, and the host's mount still in place: the root says how far up the mount begins.
    #[test]
    fn the_top_of_the_hosts_mount_is_not_taken_for_the_groups_own() {
        let find = |file: &[u8]| CgroupMounts::from_mounts(&parse_mountinfo(file));
        let host = b"41 31 0:38 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let own = b"41 31 0:38 /../.. /host/cgroup rw - cgroup2 cgroup2 rw\n\
                    42 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let member = parse_cgroup(b"0::/\n");
        assert_eq!(find(host).groups(&member), []);
        assert_eq!(find(host).memory_out_of_sight(&member), Some("/"));
        assert_eq!(find(host).groups(&parse_cgroup(b"0::/../../a\n")).len(), 2, "that group is visible");
        assert_eq!(find(own).v2.as_ref().unwrap().mount_point, "/sys/fs/cgroup");
        let mut found = find(host);
        found.v2.as_mut().unwrap().inside = Some("/pods/a".into());
        let paths: Vec<String> = found.groups(&member).into_iter().map(|key| key.path).collect();
        assert_eq!(paths, ["/pods/a", "/pods", "/"]);
        assert_eq!(find(own).memory_out_of_sight(&member), None);
    }

    #[test]
    fn of_several_mounts_the_one_that_shows_most_and_is_not_hidden_counts() {
        let find = |file: &[u8]| CgroupMounts::from_mounts(&parse_mountinfo(file)).memory_v1.unwrap();
        let two = b"35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                    36 31 0:32 / /host/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(find(two).mount_point, "/host/memory");
        let hidden = b"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                       36 31 0:40 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                       37 31 0:32 /docker/x /run/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(find(hidden).mount_point, "/run/memory");
    }

    #[test]
    fn a_memory_group_without_a_mount_is_out_of_sight_and_one_on_hybrid_is_not() {
        let none = CgroupMounts::default();
        assert_eq!(none.memory_out_of_sight(&parse_cgroup(b"4:memory:/x\n0::/\n")), Some("/x"));
        assert_eq!(none.memory_out_of_sight(&[]), None);
        let hybrid = CgroupMounts::from_mounts(&parse_mountinfo(MOUNTS));
        assert_eq!(hybrid.memory_out_of_sight(&parse_cgroup(b"4:memory:/docker/x\n0::/s\n")), None);
    }
}
