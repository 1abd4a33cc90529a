//! A child cgroup of ullage's own, for one job: made, limited, and removed again.
//!
//! The surprise: on cgroup v2 a group with processes in it may not hand a controller to a child ("no internal
//! processes"), so an ordinary shell's group does not allow it.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use ullage_kernel::cgroup::CgroupMounts;
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::KernelRoot;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Bytes.
    Memory,
    /// Tasks.
    Pids,
}

impl Controller {
    fn file(self, v2: bool) -> &'static str {
        match (self, v2) {
            (Controller::Memory, true) => "memory.max",
            (Controller::Memory, false) => "memory.limit_in_bytes",
            (Controller::Pids, _) => "pids.max",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Pids => "pids",
        }
    }
}

/// The group. Dropped, it is removed where no process is left in it.
#[derive(Debug)]
pub struct OwnGroup {
    directory: PathBuf,
    name: String,
    v2: bool,
}

impl OwnGroup {
    /// Makes one below the group that this process is in.
    ///
    /// # Errors
    /// Where there is no such hierarchy, or the user may not.
    pub fn create(root: &KernelRoot, controller: Controller, limit: u64) -> io::Result<OwnGroup> {
        let mut buffer = Vec::new();
        let mounts = CgroupMounts::find(root, &mut buffer);
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        root.process(own).and_then(|process| process.cgroup(&mut buffer)).map_err(io::Error::other)?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no group with this controller is seen");
        for (v2, directory, name) in mounts.directories(controller.name(), &parse_cgroup(&buffer)) {
            let child = format!("ullage-{}-{}", std::process::id(), controller.name());
            let group = OwnGroup {
                directory: root.below(&directory).join(&child),
                name: format!("{}/{child}", name.trim_end_matches('/')),
                v2,
            };
            // The guard removes the directory again where the controller is not there.
            let limited = fs::create_dir(&group.directory)
                .and_then(|()| {
                    fs::OpenOptions::new().write(true).open(group.directory.join(controller.file(v2)))
                })
                .and_then(|mut file| file.write_all(limit.to_string().as_bytes()));
            match limited {
                Ok(()) => return Ok(group),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// `cgroup.procs`, into which a process writes 0 to enter.
    pub fn processes(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    /// Its path as `/proc/PID/cgroup` names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn oom_kills(&self) -> u64 {
        let file = if self.v2 { "memory.events" } else { "memory.oom_control" };
        fs::read_to_string(self.directory.join(file))
            .ok()
            .and_then(|text| {
                text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
            })
            .unwrap_or(0)
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        // Survivors keep it: a group with processes in it cannot be removed, and their limit stays.
        let _ = fs::remove_dir(&self.directory);
    }
}
