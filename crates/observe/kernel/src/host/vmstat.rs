//! `/proc/vmstat`: OOM kills and swapping of the machine since boot.
//!
//! ```text
//! pswpin 0
//! oom_kill 3
//! ```
//! The surprise: `oom_kill` (since 4.13) counts the kills of every cgroup too.

use crate::scan::value_of;

/// The lines used. None: this kernel does not print it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vmstat {
    /// Kills of the OOM killer.
    pub oom_kills: Option<u64>,
    /// Pages swapped in.
    pub swap_in: Option<u64>,
    /// Pages swapped out.
    pub swap_out: Option<u64>,
}

/// Parses `vmstat`.
pub fn parse_vmstat(bytes: &[u8]) -> Vmstat {
    Vmstat {
        oom_kills: value_of(bytes, b"oom_kill"),
        swap_in: value_of(bytes, b"pswpin"),
        swap_out: value_of(bytes, b"pswpout"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_has_no_count() {
        let vmstat = parse_vmstat(b"pswpin 4\npswpout 5\n");
        assert_eq!(vmstat, Vmstat { oom_kills: None, swap_in: Some(4), swap_out: Some(5) });
        assert_eq!(parse_vmstat(include_bytes!("../../fixtures/host/vmstat")).oom_kills, Some(0));
    }
}
