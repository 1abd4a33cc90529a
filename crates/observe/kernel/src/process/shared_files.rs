//! Files of /dev/shm as a process of the job sees it, below `/proc/PID/root`, those in folders too (shm_overview(7)).
//!
//! ```text
//! torch_8372_1207_0     psm_1a2b3c4d     pym-4711-x1y2     sem.mp-x1y2     dask/part-7
//! ```
//! The surprise: a folder may be closed to this user, and its files still count against the filesystem's room.

use super::segment_stat::SegmentStat;
use crate::error::KernelError;
use crate::root::{for_each_entry, ProcessDir};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Folders below folders that are looked into.
const DEPTH: usize = 8;

/// What a scan left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Folders that this user may not read, or that lie too deep.
    pub folders: u64,
    /// More entries were there than asked for.
    pub entries: bool,
}

impl ProcessDir {
    /// Tells every file below `path` (absolute, in the process's own mount namespace) with its name from there on. At
    /// most `most` entries are looked at.
    pub fn shared_files(
        &self,
        path: &str,
        most: u64,
        mut each: impl FnMut(&[u8], SegmentStat),
    ) -> Result<LeftOut, KernelError> {
        let place = format!("root{path}");
        let fd = self.inside(path).map_err(|errno| self.error(&place, errno))?;
        let list = open_list(&fd, ".").map_err(|errno| self.error(&place, errno))?;
        let device = SegmentStat::read(&list, ".", false).map_err(|errno| self.error(&place, errno))?.device;
        let mut scan = Scan { device, left: most, out: LeftOut::default(), prefix: Vec::new() };
        scan.folder(&list, 0, &mut each).map_err(|errno| self.error(&place, errno))?;
        Ok(scan.out)
    }
}

struct Scan {
    device: u64,
    left: u64,
    out: LeftOut,
    prefix: Vec<u8>,
}

impl Scan {
    fn folder(
        &mut self,
        list: &OwnedFd,
        depth: usize,
        each: &mut dyn FnMut(&[u8], SegmentStat),
    ) -> Result<(), Errno> {
        let mut folders: Vec<Vec<u8>> = Vec::new();
        let length = self.prefix.len();
        for_each_entry(list, |name, _| {
            if self.left == 0 {
                self.out.entries = true;
                return;
            }
            self.left -= 1;
            // What was removed meanwhile is not there; what another filesystem is mounted on is not of this one.
            let Ok(stat) = SegmentStat::read(list, name, false) else { return };
            if stat.device != self.device {
                return;
            }
            if stat.folder {
                folders.push(name.to_vec());
            } else if stat.file {
                self.prefix.truncate(length);
                self.prefix.extend_from_slice(name);
                each(&self.prefix, stat);
            }
        })?;
        for name in folders {
            match open_list(list, name.as_slice()) {
                Ok(below) if depth < DEPTH => {
                    self.prefix.truncate(length);
                    self.prefix.extend_from_slice(&name);
                    self.prefix.push(b'/');
                    self.folder(&below, depth + 1, each)?;
                }
                Err(Errno::NOENT) => {}
                _ => self.out.folders += 1,
            }
        }
        self.prefix.truncate(length);
        Ok(())
    }
}

fn open_list(dir: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;
    use ullage_model::Bytes;

    fn scanned(most: u64) -> (Vec<(String, Bytes)>, LeftOut) {
        let folder = tempfile::tempdir().unwrap();
        let shm = folder.path().join("proc/5/root/dev/shm");
        std::fs::create_dir_all(shm.join("dask/deep")).unwrap();
        std::fs::write(shm.join("torch_1_2_3"), [1; 5000]).unwrap();
        std::fs::write(shm.join("dask/deep/part"), [1; 10]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", shm.join("link")).unwrap();
        let process = KernelRoot::at(folder.path()).process(5).unwrap();
        let mut found = Vec::new();
        let out = process.shared_files("/dev/shm", most, |name, stat| {
            found.push((String::from_utf8_lossy(name).into_owned(), stat.size));
        });
        found.sort();
        (found, out.unwrap())
    }

    #[test]
    fn files_are_found_in_folders_and_links_are_not_followed() {
        let (found, out) = scanned(100);
        assert_eq!(found, [("dask/deep/part".into(), Bytes(10)), ("torch_1_2_3".into(), Bytes(5000))]);
        assert_eq!(out, LeftOut::default());
    }

    #[test]
    fn entries_beyond_the_most_are_reported_missing() {
        assert!(scanned(1).1.entries);
    }
}
