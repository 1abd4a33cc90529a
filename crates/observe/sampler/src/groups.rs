//! The job's cgroups and every ancestor: which, and their readings. A group stays on the list after its
//! processes ended, because that is where the kernel counts their OOM kills.
//!
//! The surprise: what they hold is read before the processes and after them, and the lower figure is kept. Their parts are
//! read one after the other in between, and a peak of milliseconds at one end says nothing of them.

use ullage_kernel::cgroup::{CgroupKey, CgroupMounts};
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::KernelRoot;
use ullage_model::{Bytes, CgroupReading, Measured, Missing};

/// Groups read at most in one tick.
const MOST: usize = 64;

#[derive(Debug)]
pub(crate) struct Groups {
    mounts: CgroupMounts,
    keys: Vec<CgroupKey>,
    /// What the first ones held when this tick began.
    before: Vec<Option<u64>>,
}

impl Groups {
    pub(crate) fn find(root: &KernelRoot, buffer: &mut Vec<u8>) -> Groups {
        Groups { mounts: CgroupMounts::find(root, buffer), keys: Vec::new(), before: Vec::new() }
    }

    /// Takes in the groups of a process, as `/proc/PID/cgroup` lists them. Returns what is not seen of them, in words.
    pub(crate) fn watch(&mut self, lines: &[String]) -> Option<String> {
        let memberships = parse_cgroup(lines.join("\n").as_bytes());
        for key in self.mounts.groups(&memberships) {
            match self.keys.iter().position(|other| other.is_same_group(&key)) {
                Some(index) => {
                    let known = &mut self.keys[index];
                    (known.memory, known.pids) = (known.memory | key.memory, known.pids | key.pids);
                }
                None if self.keys.len() < MOST => self.keys.push(key),
                None => {}
            }
        }
        let hidden = self.mounts.memory_out_of_sight(&memberships)?;
        Some(format!(
            "The job's memory cgroup ({hidden}) is outside the mounts here: its limit and its OOM kills \
             are unknown."
        ))
    }

    /// Before the processes are read.
    pub(crate) fn begin(&mut self, root: &KernelRoot, buffer: &mut Vec<u8>) {
        let mounts = &self.mounts;
        self.before = self.keys.iter().map(|key| mounts.memory_in_use(root, key, buffer)).collect();
    }

    /// Reads them; groups that were removed are read no more, groups without both controllers left out.
    pub(crate) fn read(&mut self, root: &KernelRoot, buffer: &mut Vec<u8>) -> Vec<CgroupReading> {
        let mut readings = Vec::with_capacity(self.keys.len());
        let mounts = &self.mounts;
        let mut before = std::mem::take(&mut self.before).into_iter();
        self.keys.retain(|key| {
            let mut reading = mounts.read(root, key, buffer);
            if let (Some(Some(before)), Measured::Known(memory)) = (before.next(), &mut reading.memory) {
                memory.current = memory.current.min(Bytes(before));
            }
            let (memory, pids) = (reading.memory.missing(), reading.pids.missing());
            if memory.is_none() || pids.is_none() {
                readings.push(reading);
                return true;
            }
            memory != Some(Missing::Vanished) && pids != Some(Missing::Vanished)
        });
        readings
    }

    /// Pids directly in a group of the unified or memory hierarchy, by path.
    pub(crate) fn processes(&self, root: &KernelRoot, path: &str, buffer: &mut Vec<u8>) -> Vec<i32> {
        [true, false].into_iter().flat_map(|v2| self.mounts.processes(root, v2, path, buffer)).collect()
    }
}
