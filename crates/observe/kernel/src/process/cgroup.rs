//! `/proc/PID/cgroup`: which cgroups a process is in (cgroups(7)).
//!
//! ```text
//! 4:memory:/process_api/3675ab52      v1: hierarchy:controllers:path
//! 0::/user.slice/session-3.scope      v2: always 0, no controllers
//! ```
//! Paths are as the reader's cgroup namespace sees them: `/../x` is outside of it. ` (deleted)` follows the
//! path of a removed group that a zombie still belongs to.

use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::lines;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    /// v1 controllers; empty for v2.
    pub controllers: Vec<String>,
    /// Path in that hierarchy.
    pub path: String,
}

impl Membership {
    /// True for the unified hierarchy.
    pub fn is_v2(&self) -> bool {
        self.controllers.is_empty()
    }
}

/// Parses `cgroup`; lines that are not of the format are left out.
pub fn parse_cgroup(bytes: &[u8]) -> Vec<Membership> {
    lines(bytes)
        .filter_map(|line| {
            let mut parts = line.splitn(3, |&byte| byte == b':');
            let hierarchy = parts.next()?;
            let controllers = parts.next()?;
            let path = String::from_utf8_lossy(parts.next()?);
            let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
            // A v1 hierarchy without controller is "name=systemd": never an empty list.
            if !path.starts_with('/') || (controllers.is_empty() && hierarchy != b"0") {
                return None;
            }
            Some(Membership {
                controllers: controllers
                    .split(|&byte| byte == b',')
                    .filter(|name| !name.is_empty())
                    .map(|name| String::from_utf8_lossy(name).into_owned())
                    .collect(),
                path: path.to_owned(),
            })
        })
        .collect()
}

/// The lines as they are kept of a process: v2, and v1's memory and pids.
pub fn lines_of_interest(bytes: &[u8]) -> Vec<String> {
    lines(bytes)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .filter(|line| {
            let controllers = line.split(':').nth(1).unwrap_or_default();
            controllers.is_empty() || controllers.split(',').any(|c| c == "memory" || c == "pids")
        })
        .collect()
}

impl ProcessDir {
    /// Reads `cgroup` into `buffer`, for [`parse_cgroup`] and [`lines_of_interest`].
    pub fn cgroup(&self, buffer: &mut Vec<u8>) -> Result<(), KernelError> {
        self.record("cgroup", buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn v1_and_v2_lines_are_distinguished() {
        let groups = parse_cgroup(b"9:name=systemd:/\n4:cpu,memory:/a:b\n0::/x (deleted)\n");
        assert_eq!(groups.len(), 3);
        assert_eq!(groups[1].controllers, ["cpu", "memory"]);
        assert_eq!(groups[1].path, "/a:b", "a colon belongs to the path");
        assert!(groups[2].is_v2());
        assert_eq!(groups[2].path, "/x");
    }

    #[test]
    fn only_memory_pids_and_v2_are_read() {
        let lines = lines_of_interest(b"9:name=systemd:/\n8:pids:/\n4:cpu,memory:/a\n0::/\n");
        assert_eq!(lines, ["8:pids:/", "4:cpu,memory:/a", "0::/"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_cgroup(&bytes);
            lines_of_interest(&bytes);
        }
    }
}
