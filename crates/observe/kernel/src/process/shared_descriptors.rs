//! `/proc/PID/fd` once more: which shared segments a process holds open, and how many pages they hold
//! (proc_pid_fd(5), stat(2)).
//!
//! ```text
//! 5 -> /memfd:x (deleted)      6 -> /dev/shm/psm_1a2b (deleted)
//! ```
//! The surprise: stat(2) through such a link reaches the file itself, deleted or not; st_blocks of a tmpfs are its
//! pages in memory and in swap. It is the only way to the pages of what has no name that needs no privilege.

use super::segment_stat::SegmentStat;
use super::shared_maps::segment_of_path;
use crate::error::KernelError;
use crate::root::{for_each_entry, ProcessDir};
use rustix::fs::{Mode, OFlags};
use std::ops::Range;
use ullage_model::SegmentKind;

impl ProcessDir {
    /// Tells every open descriptor of a shared segment. At most `most` links are read; true where that was all.
    pub fn shared_descriptors(
        &self,
        devices: &[u64],
        most: u64,
        mut each: impl FnMut(SegmentKind, &[u8], SegmentStat),
    ) -> Result<bool, KernelError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let list =
            rustix::fs::openat(self.dir(), "fd", flags, Mode::empty()).map_err(|e| self.error("fd", e))?;
        let (mut left, mut complete) = (most, true);
        let mut target = [0u8; 320];
        let mut name = [0u8; 24];
        for_each_entry(&list, |entry, _| {
            if entry.len() >= name.len() {
                return;
            }
            if left == 0 {
                complete = false;
                return;
            }
            left -= 1;
            name[..entry.len()].copy_from_slice(entry);
            name[entry.len()] = 0;
            let Ok(path) = std::ffi::CStr::from_bytes_until_nul(&name) else { return };
            // A descriptor that was closed meanwhile is not open.
            let Ok(length) = rustix::fs::readlinkat_raw(&list, path, &mut target[..]) else { return };
            let target = &target[..length];
            // Without the device, only what may lie in a /dev/shm out of sight is worth a stat.
            let rooted = target.first() == Some(&b'/') && target.iter().skip(1).all(|&byte| byte != b'/');
            let Some((kind, segment, _)) = segment_of_path(target, rooted) else { return };
            let Ok(stat) = SegmentStat::read(&list, path, true) else { return };
            let known = !rooted || target.starts_with(b"/memfd:") || devices.contains(&stat.device);
            if known && kind != SegmentKind::SharedAnonymous {
                each(kind, segment, stat);
            }
        })
        .map_err(|errno| self.error("fd", errno))?;
        Ok(complete)
    }

    /// What lies behind a mapping, through `/proc/PID/map_files`: needs CAP_CHECKPOINT_RESTORE.
    pub fn mapped_file(&self, range: &Range<u64>) -> Result<SegmentStat, KernelError> {
        let name = format!("map_files/{:x}-{:x}", range.start, range.end);
        SegmentStat::read(self.dir(), name.as_str(), true).map_err(|errno| self.error(&name, errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;
    use rustix::fs::MemfdFlags;
    use ullage_model::Bytes;

    #[test]
    fn a_memfd_of_this_process_is_found_with_its_pages() {
        let fd = rustix::fs::memfd_create("found-here", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 100 * 4096).unwrap();
        rustix::io::pwrite(&fd, &[1; 5 * 4096], 8192).unwrap();
        let own = KernelRoot::live().process(std::process::id() as i32).unwrap();
        let mut found = Vec::new();
        let all = own.shared_descriptors(&[], u64::MAX, |kind, name, stat| {
            if name == b"memfd:found-here" {
                found.push((kind, stat));
            }
        });
        assert!(all.unwrap());
        let [(kind, stat)] = found[..] else { panic!("{found:?}") };
        assert_eq!(kind, SegmentKind::Memfd);
        assert_eq!((stat.size, stat.allocated), (Bytes(100 * 4096), Bytes(5 * 4096)));
        assert!(stat.unlinked);
    }

    #[test]
    fn links_beyond_the_most_are_reported_missing() {
        let own = KernelRoot::live().process(std::process::id() as i32).unwrap();
        assert!(!own.shared_descriptors(&[], 1, |_, _, _| {}).unwrap());
    }
}
