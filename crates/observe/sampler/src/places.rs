//! The job's /dev/shm, one for each mount namespace in it, and its temporary and working directories.

use std::collections::HashMap;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{FilesystemReading, FilesystemUse};

/// Where to look.
#[derive(Debug)]
pub(crate) struct Places {
    temporary: Vec<String>,
    /// Working directory of main, in its own mount namespace.
    work: Option<String>,
    /// Inodes in use in /dev/shm, by mount namespace (none: not readable, taken as main's).
    inodes: HashMap<Option<u64>, u64>,
}

impl Places {
    pub(crate) fn new(temporary: Vec<String>) -> Places {
        Places { temporary, work: None, inodes: HashMap::new() }
    }

    /// Inodes in use in the /dev/shm of this namespace at the last reading.
    pub(crate) fn shm_inodes(&self, namespace: Option<u64>) -> u64 {
        self.inodes.get(&namespace).or_else(|| self.inodes.get(&None)).copied().unwrap_or(0)
    }

    /// Reads them through one process of each namespace; the first is the one whose directories count as the
    /// job's. `through` holds pids in that order.
    pub(crate) fn read(
        &mut self,
        root: &KernelRoot,
        through: &[(Option<u64>, i32)],
    ) -> Vec<FilesystemReading> {
        let mut found: Vec<FilesystemReading> = Vec::new();
        for (index, (namespace, pid)) in through.iter().enumerate() {
            let Ok(process) = root.process(*pid) else { continue };
            if let Ok(shm) = process.filesystem("/dev/shm", FilesystemUse::Shm) {
                self.inodes.insert(*namespace, shm.inodes_used);
                if !found.iter().any(|other| other.device == shm.device) {
                    found.push(shm);
                }
            }
            if index == 0 {
                self.directories(&process, &mut found);
            }
        }
        found
    }

    fn directories(&mut self, process: &ProcessDir, found: &mut Vec<FilesystemReading>) {
        for path in &self.temporary {
            found.extend(process.filesystem(path, FilesystemUse::Temporary));
        }
        if let Ok(work) = process.working_directory() {
            // A removed directory reads as "/path (deleted)" and has no filesystem to ask.
            self.work = Some(work);
        }
        if let Some(work) = &self.work {
            found.extend(process.filesystem(work, FilesystemUse::Work));
        }
    }
}
