//! `/proc/PID/mountinfo`: what is mounted where (proc_pid_mountinfo(5)).
//!
//! ```text
//! 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
//! id parent dev root mount-point options optional… - type source super-options
//! ```
//! The surprise: a later line hides an earlier one with the same mount point; blanks are `\040`.

use crate::scan::{find, lines, number, unescape, words};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u64,
    /// Number of the mount that it is mounted on.
    pub parent: u64,
    /// Directory of the filesystem that is visible at the mount point; not `/` for a bind mount.
    pub root: String,
    /// Where.
    pub mount_point: String,
    /// `cgroup2`, `tmpfs`, …
    pub kind: String,
    /// Options of the filesystem: v1 controllers stand here.
    pub options: Vec<String>,
}

/// Parses `mountinfo`; lines that are not of the format are left out.
pub fn parse_mountinfo(bytes: &[u8]) -> Vec<Mount> {
    lines(bytes).filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let separator = find(line, b" - ")?;
    let mut before = words(&line[..separator]);
    let (id, parent) = (number(before.next()?)?, number(before.next()?)?);
    let mut before = before.skip(1);
    let (root, mount_point) = (unescape(before.next()?), unescape(before.next()?));
    // The source may be empty, which words() would skip: count blanks here.
    let mut after = line[separator + 3..].split(|&byte| byte == b' ');
    let kind = unescape(after.next()?);
    let options = after.nth(1).unwrap_or_default();
    let options = options.split(|&byte| byte == b',').map(unescape).collect();
    Some(Mount { id, parent, root, mount_point, kind, options })
}

/// True where what is mounted there can be reached by its path: no other mount lies upon it or above it.
pub fn is_visible(mounts: &[Mount], mount: &Mount) -> bool {
    // A chain of parents is short; a file that says otherwise must not hold us up.
    let (mut current, mut from) = (mount, mount.id);
    for _ in 0..64 {
        // The first mount of all may be its own parent.
        let covers = |other: &Mount| {
            other.id != other.parent
                && ((other.parent == current.id && other.mount_point == current.mount_point)
                    || (other.parent == current.parent && is_above(&other.mount_point, &current.mount_point)))
        };
        if mounts.iter().any(|other| other.id != current.id && other.id != from && covers(other)) {
            return false;
        }
        match mounts.iter().find(|other| other.id == current.parent && other.id != current.id) {
            Some(parent) => (current, from) = (parent, current.id),
            None => return true,
        }
    }
    true
}

fn is_above(directory: &str, path: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/'))
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn optional_fields_blanks_and_empty_sources_are_understood() {
        let mounts = parse_mountinfo(
            b"35 31 0:32 /docker/x /sys/fs/cgroup/memory rw shared:9 master:1 - cgroup cgroup rw,memory\n\
              30 25 0:27 / /dev/my\\040shm rw - tmpfs  rw,size=4k\nnonsense\n",
        );
        assert_eq!(mounts.len(), 2);
        assert_eq!((mounts[0].id, mounts[0].parent), (35, 31));
        assert_eq!((mounts[0].root.as_str(), mounts[0].kind.as_str()), ("/docker/x", "cgroup"));
        assert_eq!(mounts[0].options, ["rw", "memory"]);
        assert_eq!(
            (mounts[1].mount_point.as_str(), mounts[1].options[1].as_str()),
            ("/dev/my shm", "size=4k")
        );
    }

    #[test]
    fn what_is_mounted_upon_or_above_hides_a_mount() {
        let mounts = parse_mountinfo(
            b"1 1 0:1 / / rw - rootfs x rw\n\
              2 1 0:2 / /sys rw - sysfs x rw\n\
              3 2 0:3 / /sys/fs/cgroup rw - cgroup2 x rw\n\
              4 1 0:2 / /mnt rw - sysfs x rw\n\
              5 4 0:3 / /mnt/fs/cgroup rw - cgroup2 x rw\n\
              6 5 0:4 / /mnt/fs/cgroup rw - tmpfs x rw\n\
              7 1 0:5 / /a/b rw - tmpfs x rw\n\
              8 1 0:6 / /a rw - tmpfs x rw\n\
              9 7 0:7 / /a/b/c rw - tmpfs x rw\n\
              10 10 0:8 / /loop rw - tmpfs x rw\n",
        );
        let visible: Vec<u64> = mounts.iter().filter(|m| is_visible(&mounts, m)).map(|m| m.id).collect();
        assert_eq!(visible, [1, 2, 3, 4, 6, 8, 10]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_mountinfo(&bytes);
        }
    }
}
