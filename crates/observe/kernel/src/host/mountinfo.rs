//! `/proc/PID/mountinfo`: what is mounted where (proc_pid_mountinfo(5)).
//!
//! ```text
//! 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
//! id parent dev root mount-point options optional… - type source super-options
//! ```
//! The surprise: a later line hides an earlier one with the same mount point; blanks are `\040`.

use crate::scan::{find, lines, unescape, words};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
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
    let mut before = words(&line[..separator]).skip(3);
    let (root, mount_point) = (unescape(before.next()?), unescape(before.next()?));
    // The source may be empty, which words() would skip: count blanks here.
    let mut after = line[separator + 3..].split(|&byte| byte == b' ');
    let kind = unescape(after.next()?);
    let options = after.nth(1).unwrap_or_default();
    let options = options.split(|&byte| byte == b',').map(unescape).collect();
    Some(Mount { root, mount_point, kind, options })
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
        assert_eq!((mounts[0].root.as_str(), mounts[0].kind.as_str()), ("/docker/x", "cgroup"));
        assert_eq!(mounts[0].options, ["rw", "memory"]);
        assert_eq!(
            (mounts[1].mount_point.as_str(), mounts[1].options[1].as_str()),
            ("/dev/my shm", "size=4k")
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_mountinfo(&bytes);
        }
    }
}
