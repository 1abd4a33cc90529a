//! Facts of the machine that change how memory behaves, read once.

use super::meminfo::parse_meminfo;
use super::sysctl::parse_choice;
use crate::cgroup::CgroupMounts;
use crate::error::measured_feature;
use crate::KernelRoot;
use ullage_model::{MachineFacts, Measured};

/// Parses a kernel release, `6.1.0-18-amd64`, into its first two numbers.
pub fn parse_kernel_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Parses a list of cores, `0-3,8`, into their number.
pub fn parse_core_list(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

impl KernelRoot {
    /// What names this boot of the machine: `/proc/sys/kernel/random/boot_id`.
    pub fn boot_id(&self) -> Option<String> {
        let mut buffer = Vec::new();
        self.read("proc/sys/kernel/random/boot_id", &mut buffer).ok()?;
        Some(std::str::from_utf8(&buffer).ok()?.trim().to_owned()).filter(|id| !id.is_empty())
    }

    /// Reads them all; each may be missing.
    pub fn machine_facts(&self) -> MachineFacts {
        let mut buffer = Vec::new();
        let mut line = |path: &str| {
            self.read(path, &mut buffer).ok().map(|()| String::from_utf8_lossy(&buffer).trim().to_owned())
        };
        let kernel = line("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = line("/sys/devices/system/cpu/online").as_deref().and_then(parse_core_list);
        let mut small = |name: &str| {
            let value = self.sysctl(name, &mut buffer);
            value.map(|value| u8::try_from(value).unwrap_or(u8::MAX))
        };
        let (overcommit_memory, overcommit_ratio) =
            (small("vm/overcommit_memory"), small("vm/overcommit_ratio"));
        let sysv_limits =
            match (self.sysctl("kernel/shmmax", &mut buffer), self.sysctl("kernel/shmmni", &mut buffer)) {
                (Measured::Known(largest), Measured::Known(number)) => Measured::Known((largest, number)),
                (Measured::Missing(why), _) | (_, Measured::Missing(why)) => Measured::Missing(why),
            };
        let mounts = CgroupMounts::find(self, &mut buffer);
        MachineFacts {
            // PIDFD_GET_INFO tells the exit status from 6.15 on; before, only while the zombie is there.
            exit_status_of_others: parse_kernel_release(&kernel).map(|version| version >= (6, 15)).into(),
            kernel,
            page_size: rustix::param::page_size() as u64,
            clock_ticks_per_second: rustix::param::clock_ticks_per_second(),
            cores: cores.or_else(available_cores).unwrap_or(1),
            memory_total: measured_feature(self.parsed("/proc/meminfo", &mut buffer, parse_meminfo))
                .map(|memory| memory.total),
            max_map_count: self.sysctl("vm/max_map_count", &mut buffer),
            overcommit_memory,
            overcommit_ratio,
            pid_max: self.sysctl("kernel/pid_max", &mut buffer),
            threads_max: self.sysctl("kernel/threads-max", &mut buffer),
            file_max: self.sysctl("fs/file-max", &mut buffer),
            nr_open: self.sysctl("fs/nr_open", &mut buffer),
            transparent_hugepages: self.transparent_hugepages(&mut buffer),
            cpu_quota: mounts.cpu_quota(self, &mut buffer),
            memory_daemons: self.memory_daemons(&mut buffer),
            sysv_limits,
            cgroup_v2_memory: mounts.v2_memory(self, &mut buffer),
            // As one process meets them: see the module `facts`.
            others: ullage_model::Facts::new(),
        }
    }

    fn transparent_hugepages(&self, buffer: &mut Vec<u8>) -> Measured<String> {
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        measured_feature(self.parsed(path, buffer, parse_choice))
    }
}

/// Programs that end others when memory is short. The kernel keeps 15 letters of a name.
const MEMORY_DAEMONS: [&str; 5] = ["earlyoom", "systemd-oomd", "oomd", "nohang", "below-oomd"];

impl KernelRoot {
    fn memory_daemons(&self, buffer: &mut Vec<u8>) -> Measured<Vec<String>> {
        let mut pids = Vec::new();
        if let Err(error) = self.pids(&mut pids) {
            return Measured::Missing(error.missing());
        }
        let mut found: Vec<String> = Vec::new();
        for (pid, _) in pids {
            if self.read(format!("/proc/{pid}/comm"), buffer).is_err() {
                continue;
            }
            let name = String::from_utf8_lossy(buffer).trim().to_owned();
            if MEMORY_DAEMONS.contains(&name.as_str()) && !found.contains(&name) {
                found.push(name);
            }
        }
        Measured::Known(found)
    }
}

fn available_cores() -> Option<u32> {
    std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_core_lists_are_read() {
        assert_eq!(parse_kernel_release("6.18.44-fc"), Some((6, 18)));
        assert_eq!(parse_kernel_release("five"), None);
        assert_eq!(parse_core_list("0-3,8\n"), Some(5));
        assert_eq!(parse_core_list("3-0"), None);
        assert_eq!(parse_core_list(""), None);
    }

    #[test]
    fn the_live_machine_has_its_basic_facts() {
        let facts = KernelRoot::live().machine_facts();
        assert!(facts.page_size >= 4096 && facts.clock_ticks_per_second > 0 && facts.cores > 0);
        assert!(facts.max_map_count.known().is_some() && facts.memory_total.known().is_some());
    }

    #[test]
    fn an_empty_root_is_all_missing_and_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let facts = KernelRoot::at(folder.path()).machine_facts();
        assert_eq!(facts.max_map_count, Measured::Missing(ullage_model::Missing::KernelTooOld));
        assert!(!facts.cgroup_v2_memory);
    }
}
