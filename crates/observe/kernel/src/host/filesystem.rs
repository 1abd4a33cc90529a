//! Room of a filesystem as a process of the job sees it: statfs(2) below `/proc/PID/root`.
//!
//! The surprise: an absolute symbolic link met on the way would be followed from *this* program's root; openat2
//! with RESOLVE_IN_ROOT keeps it inside the process's. A kernel without it (before 5.6) gets a plain walk.

use crate::error::KernelError;
use crate::root::ProcessDir;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use ullage_model::{Bytes, FilesystemReading, FilesystemUse, Limit};

/// f_type of tmpfs (linux/magic.h).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The figures of statfs(2) that a reading needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statfs {
    /// f_type.
    pub kind: u64,
    /// f_bsize.
    pub block: u64,
    /// f_blocks.
    pub blocks: u64,
    /// f_bfree.
    pub free: u64,
    /// f_bavail: free to users without privilege.
    pub available: u64,
    /// f_files.
    pub files: u64,
    /// f_ffree.
    pub files_free: u64,
}

/// Size, use and inodes. `size` is what this user may fill: used + available, as df(1) reckons; a tmpfs
/// mounted with size=0 has no blocks at all and is unlimited, and then its use is not told (0).
pub fn filesystem_figures(statfs: &Statfs, privileged: bool) -> (Limit, Bytes, Limit, u64) {
    let used = statfs.blocks.saturating_sub(statfs.free).saturating_mul(statfs.block);
    let left = if privileged { statfs.free } else { statfs.available };
    let size = match statfs.blocks {
        0 => Limit::Unlimited,
        _ => Limit::At(used.saturating_add(left.saturating_mul(statfs.block))),
    };
    let inodes = match statfs.files {
        0 => Limit::Unlimited,
        files => Limit::At(files),
    };
    (size, Bytes(used), inodes, statfs.files.saturating_sub(statfs.files_free))
}

impl ProcessDir {
    /// Room of the filesystem that holds `path` (absolute, in the process's own mount namespace).
    pub fn filesystem(&self, path: &str, used_for: FilesystemUse) -> Result<FilesystemReading, KernelError> {
        let place = format!("root{path}");
        let fd = self.inside(path).map_err(|errno| self.error(&place, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.error(&place, errno))?;
        let raw = rustix::fs::fstatfs(&fd).map_err(|errno| self.error(&place, errno))?;
        let statfs = Statfs {
            kind: raw.f_type as u64,
            block: raw.f_bsize as u64,
            blocks: raw.f_blocks,
            free: raw.f_bfree,
            available: raw.f_bavail,
            files: raw.f_files,
            files_free: raw.f_ffree,
        };
        let privileged = rustix::process::geteuid().is_root();
        let (size, used, inodes, inodes_used) = filesystem_figures(&statfs, privileged);
        Ok(FilesystemReading {
            used_for,
            path: path.to_owned(),
            device: stat.st_dev,
            tmpfs: statfs.kind == TMPFS_MAGIC,
            size,
            used,
            inodes,
            inodes_used,
        })
    }

    pub(crate) fn inside(&self, path: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::openat(self.dir(), "root", flags | OFlags::DIRECTORY, Mode::empty())?;
        let below = match path.trim_start_matches('/') {
            "" => ".",
            rest => rest,
        };
        match rustix::fs::openat2(&root, below, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
            // EPERM: a seccomp filter that does not know openat2.
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&root, below, flags, Mode::empty()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;

    #[test]
    fn a_tmpfs_without_size_is_unlimited() {
        let statfs = Statfs { kind: TMPFS_MAGIC, block: 4096, ..Statfs::default() };
        assert_eq!(filesystem_figures(&statfs, true), (Limit::Unlimited, Bytes(0), Limit::Unlimited, 0));
    }

    #[test]
    fn what_is_reserved_for_root_is_no_room_for_others() {
        let statfs =
            Statfs { kind: 0xef53, block: 10, blocks: 100, free: 30, available: 25, files: 8, files_free: 3 };
        assert_eq!(filesystem_figures(&statfs, false), (Limit::At(950), Bytes(700), Limit::At(8), 5));
        assert_eq!(filesystem_figures(&statfs, true).0, Limit::At(1000));
    }

    #[test]
    fn an_absolute_link_stays_inside_the_process_root() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("proc/5/root");
        std::fs::create_dir_all(inside.join("run/shm")).unwrap();
        std::fs::create_dir_all(inside.join("dev")).unwrap();
        std::os::unix::fs::symlink("/run/shm", inside.join("dev/shm")).unwrap();
        let process = KernelRoot::at(folder.path()).process(5).unwrap();
        let reading = process.filesystem("/dev/shm", FilesystemUse::Shm).unwrap();
        let expected = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(inside).unwrap());
        assert_eq!(reading.device, expected);
        assert!(process.filesystem("/nowhere", FilesystemUse::Shm).is_err());
    }
}
