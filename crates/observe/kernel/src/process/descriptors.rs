//! `/proc/PID/fd`: how many descriptors a process has open, and what they point to (proc_pid_fd(5)).
//!
//! ```text
//! 0 -> /dev/pts/0      3 -> socket:[12345]     4 -> pipe:[678]     5 -> /memfd:x (deleted)
//! 6 -> /dev/shm/torch_8372_1207_0 (deleted)    7 -> anon_inode:[eventpoll]
//! ```
//! Of files also: in which folder most are, and one of them.
//!
//! The surprise: from kernel 6.2 on the count is the directory's st_size, which needs no right to read the
//! links; before, every entry has to be listed. Whether it is, was probed on ullage's own (`KernelRoot::live`).

use super::maps::is_torch_segment;
use crate::error::KernelError;
use crate::root::{for_each_entry, ProcessDir};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::HashMap;
use ullage_model::process::{DescriptorKinds, FilesIn};

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

/// Open files by folder: how many, and the one with the highest number.
#[derive(Default)]
struct Folders(HashMap<Vec<u8>, (u64, u64, Vec<u8>)>);

impl Folders {
    /// Adds the file that descriptor `number` leads to.
    fn add(&mut self, file: &[u8], number: &[u8]) {
        let Some(slash) = file.iter().rposition(|byte| *byte == b'/') else { return };
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
        if !self.0.contains_key(&file[..slash]) {
            self.0.insert(file[..slash].to_vec(), Default::default());
        }
        let Some((count, newest, path)) = self.0.get_mut(&file[..slash]) else { return };
        *count += 1;
        if path.is_empty() || number > *newest {
            *newest = number;
            path.clear();
            path.extend_from_slice(file);
        }
    }

    /// The deepest folder that has more than half of `files`.
    fn most(mut self, files: u64) -> Option<FilesIn> {
        loop {
            let (folder, (count, _, newest)) = self.0.iter().max_by_key(|(_, (count, ..))| *count)?;
            if folder.is_empty() {
                return None;
            }
            if *count > files / 2 {
                let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
                return Some(FilesIn { folder: text(folder) + "/", count: *count, example: text(newest) });
            }
            let mut above = Folders::default();
            let deepest = self.0.keys().map(|folder| depth(folder)).max()?;
            for (mut folder, (count, newest, path)) in self.0.drain() {
                if depth(&folder) == deepest {
                    folder.truncate(folder.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                }
                let whole = above.0.entry(folder).or_default();
                whole.0 += count;
                if whole.2.is_empty() || newest > whole.1 {
                    (whole.1, whole.2) = (newest, path);
                }
            }
            self = above;
        }
    }
}

fn depth(folder: &[u8]) -> usize {
    folder.iter().filter(|byte| **byte == b'/').count()
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
        let mut folders = Folders::default();
        // Longer targets are cut by the kernel: their kind is known from their beginning, their folder by most of it.
        let mut target = [0u8; 512];
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
                let before = kinds.files;
                parse_descriptor_link(&target[..length], &mut kinds);
                if kinds.files > before {
                    folders.add(&target[..length], entry);
                }
            }
        })
        .map_err(|errno| self.error("fd", errno))?;
        kinds.most_files = folders.most(kinds.files).map(Box::new);
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
        let all =
            DescriptorKinds { torch_shared: 2, files: 2, sockets: 1, pipes: 1, other: 4, most_files: None };
        assert_eq!(kinds, all);
    }

    fn most_of(files: &[&str]) -> Option<(String, u64, String)> {
        let mut folders = Folders::default();
        for (number, file) in files.iter().enumerate() {
            folders.add(file.as_bytes(), number.to_string().as_bytes());
        }
        let most = folders.most(files.len() as u64)?;
        Some((most.folder, most.count, most.example))
    }

    #[test]
    fn the_folder_of_most_files_is_the_deepest_that_has_them() {
        let of = |folder: &str, count, newest: &str| Some((folder.to_owned(), count, newest.to_owned()));
        assert_eq!(most_of(&["/w/a", "/w/b", "/usr/lib/x"]), of("/w/", 2, "/w/b"));
        // A folder for each run: what they have in common.
        let runs = ["/w/runs/1/log", "/w/runs/2/log", "/w/runs/3/log", "/usr/lib/x", "/etc/y"];
        assert_eq!(most_of(&runs), of("/w/runs/", 3, "/w/runs/3/log"));
        // By number, not by name: the tenth is newer than the ninth.
        let many: Vec<String> = (0..12).map(|number| format!("/w/{number}")).collect();
        assert_eq!(most_of(&many.iter().map(String::as_str).collect::<Vec<_>>()), of("/w/", 12, "/w/11"));
    }

    #[test]
    fn files_everywhere_have_no_folder() {
        assert_eq!(most_of(&[]), None);
        assert_eq!(most_of(&["/a/1", "/b/1", "/c/1", "/d/1"]), None);
        assert_eq!(most_of(&["/x"]), None, "the root is no answer");
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
