//! Where the kernel's files are: the live machine, or a folder with `proc/` and `sys/` in it.
//!
//! The surprise: a process is read through one open directory ([`ProcessDir`]), so that `stat`, `status` and
//! `fd` of one reading belong to the same process even if its pid is reused in between. Most of these files are one
//! record, which the kernel gives whole to a read that has room for it: a read that comes back short was the last.

use crate::error::KernelError;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The machine, or a folder that looks like it.
#[derive(Clone, Debug)]
pub struct KernelRoot {
    base: PathBuf,
    live: bool,
    /// From kernel 6.2 on, st_size of `/proc/PID/fd` is the number of descriptors; before, it is zero.
    descriptor_count_by_size: bool,
}

impl KernelRoot {
    /// The machine that this program runs on.
    pub fn live() -> KernelRoot {
        // This program has descriptors open, so that a size of zero means: not counted.
        let counted = rustix::fs::stat("/proc/self/fd").is_ok_and(|stat| stat.st_size > 0);
        KernelRoot { base: PathBuf::from("/"), live: true, descriptor_count_by_size: counted }
    }

    /// A folder holding `proc/` and `sys/` (a fixture, or a container's root seen from outside).
    pub fn at(base: impl Into<PathBuf>) -> KernelRoot {
        KernelRoot { base: base.into(), live: false, descriptor_count_by_size: false }
    }

    /// True for the live machine.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// An absolute path of the machine, below this root.
    pub fn below(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens `/proc/PID`. ENOENT: there is no such process, or hidepid hides it.
    pub fn process(&self, pid: i32) -> Result<ProcessDir, KernelError> {
        let path = self.below(format!("proc/{pid}"));
        let dir = open_dir(&path).map_err(|errno| KernelError::read(&path, errno))?;
        Ok(ProcessDir { dir, path, count_by_size: self.descriptor_count_by_size, open_files: None })
    }

    /// Pids in `/proc` with the inode of their directory, in no order that may be relied on, into `pids` (cleared
    /// first). One pass over the directory. A pid that was reused has another inode.
    pub fn pids(&self, pids: &mut Vec<(i32, u64)>) -> Result<(), KernelError> {
        pids.clear();
        let path = self.below("proc");
        let dir =
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| KernelError::read(&path, errno))?;
        for_each_entry(&dir, |name, inode| {
            if let Some(pid) = crate::scan::number(name).and_then(|pid| i32::try_from(pid).ok()) {
                pids.push((pid, inode));
            }
        })
        .map_err(|errno| KernelError::read(&path, errno))
    }

    /// Length of a regular file, by the path that the reader's own mount namespace knows it by.
    pub fn file_length(&self, path: &str) -> Result<u64, KernelError> {
        let path = self.below(path);
        let stat = rustix::fs::stat(&path).map_err(|errno| KernelError::read(&path, errno))?;
        match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
            rustix::fs::FileType::RegularFile => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
            _ => Err(KernelError::read(&path, Errno::INVAL)),
        }
    }

    /// Reads a whole file of the machine, replacing what is in `buffer`.
    pub fn read(&self, path: impl AsRef<Path>, buffer: &mut Vec<u8>) -> Result<(), KernelError> {
        let path = self.below(path);
        let file = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| KernelError::read(&path, errno))?;
        read_all(&file, buffer).map_err(|errno| KernelError::read(path, errno))
    }

    /// Reads a file of one record and parses it.
    pub(crate) fn parsed<T>(
        &self,
        path: impl AsRef<Path>,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&[u8]) -> Result<T, crate::ParseError>,
    ) -> Result<T, KernelError> {
        let path = self.below(path);
        rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|file| read_record(&file, buffer))
            .map_err(|errno| KernelError::read(&path, errno))?;
        parse(buffer).map_err(|source| KernelError::Parse { path, source })
    }
}

/// One process's directory, held open: every read through it is of the same process, or ESRCH.
#[derive(Debug)]
pub struct ProcessDir {
    dir: OwnedFd,
    path: PathBuf,
    pub(crate) count_by_size: bool,
    open_files: Option<OpenFiles>,
}

/// Files of one process that stay open between readings: a read of an open one costs a third of opening, reading and
/// closing it. They hold neither the process nor its memory; once it has ended, reads of them say so (ESRCH).
#[derive(Debug, Default)]
struct OpenFiles {
    stat: OnceCell<OwnedFd>,
    status: OnceCell<OwnedFd>,
    descriptors: OnceCell<OwnedFd>,
}

/// Descriptors that a process held open takes: its directory, and those of [`OpenFiles`].
pub const OPEN_DESCRIPTORS: u64 = 4;

impl ProcessDir {
    /// Keeps the files that are read at every tick open, from their first reading on.
    pub fn keep_open(mut self) -> ProcessDir {
        self.open_files = Some(OpenFiles::default());
        self
    }

    /// Reads a file of one record, replacing what is in `buffer`.
    pub(crate) fn record(&self, name: &str, buffer: &mut Vec<u8>) -> Result<(), KernelError> {
        let stored = self.open_files.as_ref().and_then(|files| match name {
            "stat" => Some(&files.stat),
            "status" => Some(&files.status),
            _ => None,
        });
        let read = |file: &OwnedFd, buffer: &mut Vec<u8>| {
            read_record(file, buffer).map_err(|errno| self.error(name, errno))
        };
        match stored {
            Some(cell) => read(self.opened(cell, || self.open(name))?, buffer),
            None => read(&self.open(name)?, buffer),
        }
    }

    /// `fd`, for its size only: kept open where the others are.
    pub(crate) fn open_descriptors(&self) -> Option<Result<&OwnedFd, KernelError>> {
        let cell = &self.open_files.as_ref()?.descriptors;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || {
            rustix::fs::openat(&self.dir, "fd", flags, Mode::empty()).map_err(|errno| self.error("fd", errno))
        };
        Some(self.opened(cell, open))
    }

    fn opened<'a>(
        &self,
        cell: &'a OnceCell<OwnedFd>,
        open: impl FnOnce() -> Result<OwnedFd, KernelError>,
    ) -> Result<&'a OwnedFd, KernelError> {
        if let Some(file) = cell.get() {
            return Ok(file);
        }
        let file = open()?;
        Ok(cell.get_or_init(|| file))
    }

    /// Reads a file of the process, replacing what is in `buffer`.
    pub fn read(&self, name: &str, buffer: &mut Vec<u8>) -> Result<(), KernelError> {
        let file = self.open(name)?;
        read_all(&file, buffer).map_err(|errno| self.error(name, errno))
    }

    /// Reads a file of one record and parses it.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&[u8]) -> Result<T, crate::ParseError>,
    ) -> Result<T, KernelError> {
        self.record(name, buffer)?;
        parse(buffer).map_err(|source| KernelError::Parse { path: self.path.join(name), source })
    }

    pub(crate) fn open(&self, name: &str) -> Result<OwnedFd, KernelError> {
        rustix::fs::openat(&self.dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| self.error(name, errno))
    }

    pub(crate) fn dir(&self) -> rustix::fd::BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn error(&self, name: &str, errno: Errno) -> KernelError {
        KernelError::read(self.path.join(name), errno)
    }
}

/// Reads until the end. Kernel files have no size worth trusting, so the buffer grows as needed.
pub(crate) fn read_all(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    buffer.resize(buffer.capacity().max(4096), 0);
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        match rustix::io::read(file, &mut buffer[filled..]) {
            Ok(0) => {
                buffer.truncate(filled);
                return Ok(());
            }
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => {
                buffer.clear();
                return Err(errno);
            }
        }
    }
}

/// Reads a file of one record from its start: a read that did not fill the buffer gave all of it, so that none has to follow
/// it. From the start each time, so that a record is never made of two moments.
pub(crate) fn read_record(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    let mut room = buffer.capacity().max(4096);
    loop {
        buffer.clear();
        buffer.reserve(room);
        room = buffer.capacity();
        match rustix::io::pread(file, spare_capacity(buffer), 0) {
            Ok(count) if count < room => return Ok(()),
            Ok(_) => room *= 2,
            Err(Errno::INTR) => {}
            Err(errno) => {
                buffer.clear();
                return Err(errno);
            }
        }
    }
}

/// Calls `each` with every name and inode of a directory but `.` and `..`.
pub(crate) fn for_each_entry(dir: &OwnedFd, mut each: impl FnMut(&[u8], u64)) -> Result<(), Errno> {
    let mut space = [std::mem::MaybeUninit::<u8>::uninit(); 8192];
    let mut entries = rustix::fs::RawDir::new(dir, &mut space);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            each(name, entry.ino());
        }
    }
    Ok(())
}

fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::Missing;

    #[test]
    fn a_folder_is_a_root_and_only_numbers_are_pids() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["proc/1", "proc/77", "proc/self", "proc/sys", "proc/99999999999"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let root = KernelRoot::at(folder.path());
        let mut found = vec![(5, 0)];
        root.pids(&mut found).unwrap();
        let mut pids: Vec<i32> = found.into_iter().map(|(pid, _)| pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [1, 77]);
        assert_eq!(root.below("/sys/x"), folder.path().join("sys/x"));
    }

    #[test]
    fn a_process_that_is_not_there_has_vanished() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/1")).unwrap();
        let root = KernelRoot::at(folder.path());
        assert_eq!(root.process(2).unwrap_err().missing(), Missing::Vanished);
        let mut buffer = Vec::new();
        assert_eq!(
            root.process(1).unwrap().read("stat", &mut buffer).unwrap_err().missing(),
            Missing::Vanished
        );
    }

    #[test]
    fn a_file_larger_than_the_buffer_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("big"), vec![b'x'; 100_001]).unwrap();
        let mut buffer = vec![1, 2, 3];
        let root = KernelRoot::at(folder.path());
        root.read("/big", &mut buffer).unwrap();
        assert_eq!(buffer.len(), 100_001);
        let length = root.parsed("/big", &mut Vec::new(), |bytes| Ok(bytes.len()));
        assert_eq!(length.unwrap(), 100_001);
    }

    #[test]
    fn files_held_open_report_what_is_there_now_and_that_the_process_ended() {
        use std::io::{Read, Write};
        use std::process::{Command, Stdio};
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It has answered: its libraries are loaded, and it waits.
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        input.write_all(b"x").unwrap();
        output.read_exact(&mut [0]).unwrap();
        let process = KernelRoot::live().process(child.id() as i32).unwrap().keep_open();
        let mut buffer = Vec::new();
        let first = process.stat(&mut buffer).unwrap().id;
        assert!(process.status(&mut buffer).unwrap().memory.is_some());
        assert!(process.descriptor_count().unwrap() >= 3);
        assert_eq!(process.stat(&mut buffer).unwrap().id, first);
        let again = KernelRoot::live().process(child.id() as i32).unwrap();
        let size = |status: crate::process::status::Status| (status.uid, status.memory.unwrap().virtual_size);
        assert_eq!(size(process.status(&mut buffer).unwrap()), size(again.status(&mut buffer).unwrap()));
        assert_eq!(process.descriptor_count().unwrap(), again.descriptor_count().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.stat(&mut buffer).unwrap_err().missing(), Missing::Vanished);
        assert_eq!(process.status(&mut buffer).unwrap_err().missing(), Missing::Vanished);
        assert_eq!(process.descriptor_count().unwrap_err().missing(), Missing::Vanished);
    }
}
