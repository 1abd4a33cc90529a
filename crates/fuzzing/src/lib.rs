//! Every function that takes bytes from outside, by name: what the fuzzer calls (`make fuzz`), and what the
//! tests feed the kept corpus and all regressions to.
//!
//! An entry takes any bytes, returns nothing and must not panic. Some hold more: two ways to one answer agree.
#![forbid(unsafe_code)]

mod kernel;
mod recording;
mod text;

/// One entry: its name, which is its folder in `fuzz/corpus` and `fuzz/regressions`, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("process-stat", kernel::process_stat),
    ("process-status", kernel::process_status),
    ("process-maps", kernel::process_maps),
    ("process-limits", kernel::process_limits),
    ("process-cgroup", kernel::process_cgroup),
    ("process-links", kernel::process_links),
    ("process-command-line", kernel::process_command_line),
    ("cgroup-v1", kernel::cgroup_v1),
    ("cgroup-v2", kernel::cgroup_v2),
    ("cgroup-procs", kernel::cgroup_procs),
    ("host-meminfo", kernel::host_meminfo),
    ("host-vmstat", kernel::host_vmstat),
    ("host-pressure", kernel::host_pressure),
    ("host-stat", kernel::host_stat),
    ("host-sysctl", kernel::host_sysctl),
    ("host-mountinfo", kernel::host_mountinfo),
    ("host-sysvipc", kernel::host_sysvipc),
    ("host-kmsg", kernel::host_kmsg),
    ("agent-message", text::agent_message),
    ("size", text::size),
    ("page", text::page),
    ("log", text::log),
    ("run-json", recording::run_json),
    ("recording-tail", recording::tail),
    ("recording-image", recording::image),
];

/// The entry of this name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

pub use recording::pack;
