//! One reading of the machine: meminfo, vmstat, PSI and file-nr together.

use super::meminfo::{parse_kernel_memory, parse_meminfo};
use super::pressure::parse_pressure;
use super::stat::{parse_forks, parse_newest_pid};
use super::sysctl::parse_file_nr;
use super::vmstat::{parse_vmstat, Vmstat};
use crate::error::measured_feature;
use crate::KernelRoot;
use ullage_model::{HostReading, Measured, Missing};

impl KernelRoot {
    /// Reads the machine's counters.
    pub fn host(&self, buffer: &mut Vec<u8>) -> HostReading {
        let meminfo = measured_feature(self.parsed("/proc/meminfo", buffer, |bytes| {
            Ok((parse_meminfo(bytes)?, parse_kernel_memory(bytes)))
        }));
        let vmstat = measured_feature(self.parsed("/proc/vmstat", buffer, |bytes| Ok(parse_vmstat(bytes))));
        let pressure = measured_feature(self.parsed("/proc/pressure/memory", buffer, parse_pressure));
        HostReading {
            memory: meminfo.map(|(memory, _)| memory),
            kernel: meminfo.map(|(_, kernel)| kernel),
            oom_kills: field(vmstat, |vmstat| vmstat.oom_kills),
            swap_in: field(vmstat, |vmstat| vmstat.swap_in),
            swap_out: field(vmstat, |vmstat| vmstat.swap_out),
            memory_stall_full_us: pressure.map(|pressure| pressure.full_us),
            memory_stall_some_us: pressure.map(|pressure| pressure.some_us),
            open_files: measured_feature(self.parsed("/proc/sys/fs/file-nr", buffer, parse_file_nr)),
        }
    }

    /// The pid that was given last in this pid namespace, to a process or a thread.
    pub fn newest_pid(&self, buffer: &mut Vec<u8>) -> Measured<u64> {
        measured_feature(self.parsed("/proc/loadavg", buffer, parse_newest_pid))
    }

    /// Processes and threads created since boot.
    pub fn forks(&self, buffer: &mut Vec<u8>) -> Measured<u64> {
        measured_feature(self.parsed("/proc/stat", buffer, parse_forks))
    }
}

fn field(vmstat: Measured<Vmstat>, get: fn(&Vmstat) -> Option<u64>) -> Measured<u64> {
    match vmstat {
        Measured::Known(vmstat) => {
            get(&vmstat).map_or(Measured::Missing(Missing::KernelTooOld), Measured::Known)
        }
        Measured::Missing(reason) => Measured::Missing(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_machine_is_read() {
        let host = KernelRoot::live().host(&mut Vec::new());
        assert!(host.memory.known().is_some());
        assert!(KernelRoot::live().forks(&mut Vec::new()).known().is_some());
        assert!(KernelRoot::live().newest_pid(&mut Vec::new()).known().is_some());
    }

    #[test]
    fn what_a_kernel_does_not_offer_is_missing_not_zero() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/vmstat"), "pswpin 1\n").unwrap();
        let host = KernelRoot::at(folder.path()).host(&mut Vec::new());
        assert_eq!(host.oom_kills, Measured::Missing(Missing::KernelTooOld));
        assert_eq!(host.swap_in, Measured::Known(1));
        assert_eq!(host.memory_stall_full_us, Measured::Missing(Missing::KernelTooOld));
    }
}
