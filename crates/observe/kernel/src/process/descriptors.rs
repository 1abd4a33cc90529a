//! `/proc/PID/fd`: how many descriptors a process has open, and what they point to (proc_pid_fd(5)).
//!
//! ```text
//! 0 -> /dev/pts/0      3 -> socket:[12345]     4 -> pipe:[678]     5 -> /memfd:x (deleted)
//! 6 -> /dev/shm/torch_8372_1207_0 (deleted)    7 -> anon_inode:[eventpoll]
//! ```
//! The surprise: from kernel 6.2 on the count is the directory's st_size, which needs no right to read the
//! links; before, every entry has to be listed. Whether it is, was probed on ullage's own (`KernelRoot::live`).

use super::maps::is_torch_segment;
use crate::error::KernelError;
use crate::root::{for_each_entry, ProcessDir};
use rustix::fs::{AtFlags, Mode, OFlags};
use ullage_model::process::DescriptorKinds;

/// Adds one link target to `kinds`.
pub fn parse_descriptor_link(target: &[u8], kinds: &mut DescriptorKinds) {
    if is_torch_segment(target) {
        kinds.torch_shared += 1;
    } else if target.starts_with(b"socket:[") {
        kinds.sockets += 1;
    } else if target.starts_with(b"pipe:[") {
        kinds.pipes += 1;
    } else if target.starts_with(b"/") && !target.starts_with(b"/memfd:") && !is_device(target) {
        kinds.files += 1;
    } else {
        kinds.other += 1;
    }
}

fn is_device(target: &[u8]) -> bool {
    target.starts_with(b"/dev/") && !target.starts_with(b"/dev/shm/")
}

impl ProcessDir {
    /// Number of open descriptors.
    pub fn descriptor_count(&self) -> Result<u64, KernelError> {
        if self.count_by_size {
            let stat = match self.open_descriptors() {
                Some(folder) => rustix::fs::fstat(folder?),
                None => rustix::fs::statat(self.dir(), "fd", AtFlags::empty()),
            };
            return Ok(stat.map_err(|errno| self.error("fd", errno))?.st_size.max(0) as u64);
        }
        let mut count = 0;
        let list = self.open_list()?;
        for_each_entry(&list, |_, _| count += 1).map_err(|errno| self.error("fd", errno))?;
        Ok(count)
    }

    /// Descriptors by kind: one readlink each, at most `most` of them.
    pub fn descriptor_kinds(&self, most: u64) -> Result<DescriptorKinds, KernelError> {
        let list = self.open_list()?;
        let mut kinds = DescriptorKinds::default();
        let mut left = most;
        // Long enough for every prefix that tells the kinds apart; longer targets are cut by the kernel.
        let mut target = [0u8; 64];
        let mut name = [0u8; 24];
        for_each_entry(&list, |entry, _| {
            if left == 0 || entry.len() >= name.len() {
                return;
            }
            left -= 1;
            name[..entry.len()].copy_from_slice(entry);
            name[entry.len()] = 0;
            let Ok(path) = std::ffi::CStr::from_bytes_until_nul(&name) else { return };
            // A descriptor that was closed meanwhile is not open.
            if let Ok(length) = rustix::fs::readlinkat_raw(&list, path, &mut target[..]) {
                parse_descriptor_link(&target[..length], &mut kinds);
            }
        })
        .map_err(|errno| self.error("fd", errno))?;
        Ok(kinds)
    }

    fn open_list(&self) -> Result<rustix::fd::OwnedFd, KernelError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(self.dir(), "fd", flags, Mode::empty()).map_err(|errno| self.error("fd", errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;

    #[test]
    fn links_are_distinguished_by_their_beginning() {
        let mut kinds = DescriptorKinds::default();
        for target in [
            &b"/dev/shm/torch_1_2_3 (deleted)"[..],
            b"/torch_1_2_3",
            b"/dev/shm/other",
            b"/home/a b",
            b"socket:[1]",
            b"pipe:[2]",
            b"anon_inode:[eventfd]",
            b"/memfd:x (deleted)",
            b"/dev/null",
            b"",
        ] {
            parse_descriptor_link(target, &mut kinds);
        }
        assert_eq!(kinds, DescriptorKinds { torch_shared: 2, files: 2, sockets: 1, pipes: 1, other: 4 });
    }

    #[test]
    fn the_count_by_size_is_the_count_by_list_on_the_live_kernel() {
        use std::io::{Read, Write};
        use std::process::{Command, Stdio};
        // It answers once its libraries are loaded, and opens nothing afterwards.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id() as i32;
        let mut dir = KernelRoot::live().process(pid).unwrap();
        let by_size = dir.descriptor_count();
        dir.count_by_size = false;
        let by_list = dir.descriptor_count();
        let kinds = dir.descriptor_kinds(u64::MAX);
        child.kill().unwrap();
        child.wait().unwrap();
        let by_list = by_list.unwrap();
        assert_eq!(by_size.unwrap(), by_list);
        let kinds = kinds.unwrap();
        assert_eq!(kinds.files + kinds.sockets + kinds.pipes + kinds.other + kinds.torch_shared, by_list);
    }
}
