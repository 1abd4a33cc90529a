//! What the sampler is told by whoever wires it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ullage_model::Cost;

/// Settings of a [`crate::Sampler`].
#[derive(Clone, Debug)]
pub struct SamplerSettings {
    /// Between two ticks while nothing moves.
    pub interval: Duration,
    /// Share of one core that watching may cost on average.
    pub cpu_share: f64,
    /// CPU time of all threads of this process counts as the cost of watching; else only that of the thread that calls the
    /// sampler, where others have something else to do.
    pub whole_process: bool,
    /// Pid of the subreaper that inherits the job's orphans (ullage itself): its children are of the job.
    pub reaper: Option<i32>,
    /// A cgroup that holds the job and nothing else but the reaper, as `/proc/PID/cgroup` names it.
    pub own_cgroup: Option<String>,
    /// The job's temporary directories: $TMPDIR, or /tmp.
    pub temporary: Vec<String>,
    /// Read /dev/kmsg from now on.
    pub kernel_log: bool,
    /// Wall clock when the run began, seconds since 1970: what was made before is not the job's.
    pub started_unix: f64,
}

impl Default for SamplerSettings {
    fn default() -> Self {
        let temporary = std::env::var("TMPDIR").ok().filter(|path| path.starts_with('/'));
        SamplerSettings {
            interval: Duration::from_secs(1),
            cpu_share: Cost::SHARE,
            whole_process: true,
            reaper: None,
            own_cgroup: None,
            temporary: vec![temporary.unwrap_or_else(|| "/tmp".into())],
            kernel_log: true,
            started_unix: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
        }
    }
}
