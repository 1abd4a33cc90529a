//! Where a cgroup namespace begins below a mount that shows the machine's groups, as the host's does in a container.
//!
//! Source: `cgroup.procs` of the groups below the mount. The surprise: nothing names the group. Inside, it is called `/`;
//! mountinfo only tells how many levels up the mount begins (`/../..`). It is the one, that many levels down, in which
//! this process is listed.

use super::procs::parse_cgroup_procs;
use crate::KernelRoot;

/// Groups looked at before it is given up.
const MOST: usize = 4096;

/// How many levels above the namespace a mount begins, from its root in mountinfo; none where it begins elsewhere.
pub(super) fn levels_up(mount_root: &str) -> Option<usize> {
    let parts: Vec<&str> = mount_root.split('/').skip(1).collect();
    (!parts.is_empty() && parts.iter().all(|&part| part == "..")).then_some(parts.len())
}

/// The path below the mount of the group that is called `/` in this namespace. `own` is the membership of this process.
pub(super) fn find(
    root: &KernelRoot,
    mount_point: &str,
    levels: usize,
    own: &str,
    buffer: &mut Vec<u8>,
) -> Option<String> {
    root.read("/proc/self/stat", buffer).ok()?;
    let pid = crate::process::stat::parse_stat(buffer).ok()?.id.pid;
    let mut groups = vec![String::new()];
    let mut visited = 0;
    for _ in 0..levels {
        let mut below = Vec::new();
        for group in &groups {
            for entry in std::fs::read_dir(root.below(format!("{mount_point}{group}"))).ok()?.flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    below.push(format!("{group}/{}", entry.file_name().to_str()?));
                }
            }
            visited += 1;
            if visited + below.len() > MOST {
                return None;
            }
        }
        groups = below;
    }
    groups.into_iter().find(|group| {
        let file = format!("{mount_point}{group}{}/cgroup.procs", own.trim_end_matches('/'));
        root.read(file, buffer).is_ok() && parse_cgroup_procs(buffer).contains(&pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mount_that_begins_straight_above_is_searched() {
        assert_eq!(levels_up("/.."), Some(1));
        assert_eq!(levels_up("/../../.."), Some(3));
        assert_eq!(levels_up("/../sibling"), None);
        assert_eq!(levels_up("/"), None);
        assert_eq!(levels_up(""), None);
    }

    #[test]
    fn the_group_that_lists_this_process_is_the_namespaces_top() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        let zeros = ["0"; 30].join(" ");
        file("proc/self/stat", &format!("77 (x) S 1 {zeros} {zeros}\n"));
        for (group, pids) in
            [("pods/a", "5\n"), ("pods/b", "0\n"), ("pods/b/inner", "7\n77\n"), ("slice", "77\n")]
        {
            file(&format!("sys/cg/{group}/cgroup.procs"), pids);
        }
        let (root, mut buffer) = (KernelRoot::at(folder.path()), Vec::new());
        let mut at = |levels, own| find(&root, "/sys/cg", levels, own, &mut buffer);
        assert_eq!(at(2, "/inner").as_deref(), Some("/pods/b"));
        assert_eq!(at(1, "/").as_deref(), Some("/slice"));
        assert_eq!(at(2, "/"), None, "listed nowhere: another pid namespace's");
    }
}
