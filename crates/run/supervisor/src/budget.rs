//! Carries out the budget of `--memory-max`: an own child cgroup with a hard limit where that is allowed,
//! else what polling sees; signals to the job's processes as [`crate::policy`] decides.
//!
//! The surprise: on cgroup v2 a group with processes in it may not hand the memory controller to a child
//! ("no internal processes"), so an ordinary shell's group does not allow it; then polling alone holds the
//! budget, and one process can overshoot it by hundreds of megabytes within a second.

use crate::children::is_running;
use crate::own_group::{Controller, OwnGroup};
use crate::policy::{Action, Policy, GRACE};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::time::Instant;
use ullage_kernel::KernelRoot;
use ullage_model::{EventKind, ProcessId};

/// A budget over the whole job.
#[derive(Debug)]
pub struct Budget {
    bytes: u64,
    policy: Policy,
    started: Instant,
    group: Option<OwnGroup>,
    root: KernelRoot,
    kernel_killed: bool,
}

impl Budget {
    /// Sets up a budget of `bytes`, in an own cgroup where one can be made.
    pub fn prepare(bytes: u64, root: &KernelRoot) -> Budget {
        Budget {
            bytes,
            policy: Policy::new(bytes, GRACE),
            started: Instant::now(),
            group: OwnGroup::create(root, Controller::Memory, bytes).ok(),
            root: root.clone(),
            kernel_killed: false,
        }
    }

    /// What it allows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `cgroup.procs` of the own group, for the spawn.
    pub fn cgroup(&self) -> Option<PathBuf> {
        self.group.as_ref().map(OwnGroup::processes)
    }

    /// Path of the own group as `/proc/PID/cgroup` names it.
    pub fn cgroup_name(&self) -> Option<String> {
        self.group.as_ref().map(|group| group.name().to_owned())
    }

    /// Takes what the tree uses (each shared byte once); does what the policy says, and tells it.
    pub fn observe(&mut self, tree_bytes: u64, alive: &[ProcessId]) -> Option<EventKind> {
        // Never the group's own usage: page cache is in it, which the kernel gives back before it kills.
        let used = tree_bytes;
        let action = self.policy.decide(used, self.started.elapsed());
        let what = match action {
            Action::Nothing => return None,
            Action::Warn => "warn",
            Action::Terminate => {
                self.signal_all(alive, Signal::SIGTERM);
                "terminate"
            }
            Action::Kill => {
                self.signal_all(alive, Signal::SIGKILL);
                "kill"
            }
        };
        Some(EventKind::Budget { action: what.into(), used, budget: self.bytes })
    }

    /// After COMMAND's end: what is left of a job over its budget is ended with it; and where the kernel enforced the
    /// own group's limit, that is told.
    pub fn finish(&mut self, survivors: &[ProcessId]) -> Option<EventKind> {
        if self.policy.ended_the_job() {
            self.signal_all(survivors, Signal::SIGKILL);
            return None;
        }
        if self.group.as_ref().map_or(0, OwnGroup::oom_kills) == 0 {
            return None;
        }
        self.kernel_killed = true;
        Some(EventKind::Budget { action: "kernel-kill".into(), used: self.bytes, budget: self.bytes })
    }

    fn signal_all(&self, processes: &[ProcessId], signal: Signal) {
        for process in processes.iter().filter(|process| is_running(&self.root, **process)) {
            // Gone already is as good as done; another user's process cannot be ended by us.
            let _ = kill(Pid::from_raw(process.pid), signal);
        }
    }

    /// True where the job was ended for this budget, by ullage or by the kernel at its limit.
    pub fn ended_the_job(&self) -> bool {
        self.kernel_killed || self.policy.ended_the_job()
    }
}
