//! `cgroup.procs`: a pid a line, as many as processes are in the group.

use crate::scan::{lines, number};

/// Parses `cgroup.procs`; 0 stands for a process of another pid namespace and is left out.
pub fn parse_cgroup_procs(bytes: &[u8]) -> Vec<i32> {
    lines(bytes)
        .filter_map(|line| number(line).and_then(|pid| i32::try_from(pid).ok()))
        .filter(|&pid| pid > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_other_namespaces_are_left_out() {
        assert_eq!(parse_cgroup_procs(b"12\n0\n99\nx\n"), [12, 99]);
    }
}
