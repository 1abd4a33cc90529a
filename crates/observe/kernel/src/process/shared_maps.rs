//! `/proc/PID/maps` once more: which shared segments a process maps (proc_pid_maps(5)).
//!
//! ```text
//! address                   perms offset   device inode                     path
//! 7f680b000000-7f680b001000 rw-s 00000000 00:1b 4711                       /dev/shm/torch_8372_1207_0 (deleted)
//! 7f680b001000-7f680b002000 rw-s 00000000 00:01 32                         /memfd:ullage-arena (deleted)
//! 7f680b002000-7f680b003000 rw-s 00000000 00:01 5                          /SYSV00001234 (deleted)
//! 7f680b003000-7f680b004000 rw-s 00000000 00:01 1032                       /dev/zero (deleted)
//! ```
//! The surprise: the inode of a System V segment is its shmid, so that it may equal the inode of a memfd on the
//! same device; and a path whose mount the reader cannot reach stands there without its directory, so that files
//! of /dev/shm are told by their device.

use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::{hex_prefix, number};
use rustix::fs::makedev;
use rustix::io::Errno;
use std::ops::Range;
use ullage_model::{names, SegmentKind};

/// Where the path of a line with the longest name in /dev/shm ends, and more.
const LINE: usize = 512;
const DELETED: &[u8] = b" (deleted)";

/// A mapping of a shared segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMapping<'a> {
    /// Kind, by path and device.
    pub kind: SegmentKind,
    /// Addresses.
    pub range: Range<u64>,
    /// Where in the segment it begins, bytes.
    pub offset: u64,
    /// st_dev.
    pub device: u64,
    /// Inode, or shmid.
    pub inode: u64,
    /// Without its directory and without ` (deleted)`.
    pub name: &'a [u8],
    /// It has no name any more (memfds and the like never had one).
    pub deleted: bool,
}

/// Finds mappings of shared segments in a stream of chunks that may be cut anywhere.
#[derive(Debug)]
pub struct SharedMaps<'a> {
    /// Devices of the job's /dev/shm.
    devices: &'a [u64],
    line: Vec<u8>,
    any: bool,
}

impl<'a> SharedMaps<'a> {
    /// `devices`: those of the job's /dev/shm.
    pub fn new(devices: &'a [u64]) -> SharedMaps<'a> {
        SharedMaps { devices, line: Vec::new(), any: false }
    }

    /// Takes the next bytes of the file, and tells each mapping whose line is complete.
    pub fn push(&mut self, mut chunk: &[u8], each: &mut impl FnMut(SharedMapping<'_>)) {
        while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
            if self.line.is_empty() {
                self.take(&chunk[..end.min(LINE)], each);
            } else {
                self.keep(&chunk[..end]);
                let line = std::mem::take(&mut self.line);
                self.take(&line, each);
                self.line = line;
                self.line.clear();
            }
            chunk = &chunk[end + 1..];
        }
        self.keep(chunk);
    }

    fn keep(&mut self, part: &[u8]) {
        let taken = part.len().min(LINE - self.line.len());
        self.line.extend_from_slice(&part[..taken]);
    }

    fn take(&mut self, line: &[u8], each: &mut impl FnMut(SharedMapping<'_>)) {
        self.any = true;
        if let Some(mapping) = shared_mapping(line, self.devices) {
            each(mapping);
        }
    }
}

/// The shared segment that one line maps; none for all other mappings.
pub fn shared_mapping<'a>(line: &'a [u8], devices: &[u64]) -> Option<SharedMapping<'a>> {
    // Most lines end with a library's path or with nothing: told apart before their numbers are read.
    let path = line.iter().position(|&byte| byte == b'/').map(|at| &line[at..])?;
    let (start, rest) = hex_prefix(line)?;
    let (end, rest) = hex_prefix(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let (offset, rest) = hex_prefix(rest.get(4..)?.strip_prefix(b" ")?)?;
    let (major, rest) = hex_prefix(rest.strip_prefix(b" ")?)?;
    let (minor, rest) = hex_prefix(rest.strip_prefix(b":")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let inode = number(&rest[..rest.iter().position(|&byte| byte == b' ')?])?;
    let device = makedev(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    let (kind, name, deleted) = segment_of_path(path, devices.contains(&device))?;
    Some(SharedMapping { kind, range: start..end, offset, device, inode, name, deleted })
}

/// Kind, name and whether it is deleted, of a path as `maps` and the links in `fd` show it.
pub(crate) fn segment_of_path(path: &[u8], in_shm: bool) -> Option<(SegmentKind, &[u8], bool)> {
    let (path, deleted) = match path.strip_suffix(DELETED) {
        Some(path) => (path, true),
        None => (path, false),
    };
    if let Some(name) = path.strip_prefix(b"/memfd:") {
        return Some((memfd_kind(name), &path[1..], true));
    }
    if path.starts_with(b"/SYSV") && deleted {
        return Some((SegmentKind::Sysv, &path[1..], true));
    }
    if path == b"/dev/zero" && deleted {
        return Some((SegmentKind::SharedAnonymous, b"shared anonymous", true));
    }
    let name = match path.strip_prefix(b"/dev/shm/") {
        Some(name) => name,
        // Its mount lies elsewhere, or out of the reader's sight.
        None if in_shm || path.starts_with(b"/torch_") => &path[path.iter().rposition(|&b| b == b'/')? + 1..],
        None => return None,
    };
    Some((file_kind(name), name, deleted))
}

/// Kind of a file in /dev/shm.
pub fn file_kind(name: &[u8]) -> SegmentKind {
    if name.starts_with(b"torch_") {
        SegmentKind::Torch
    } else {
        SegmentKind::PosixShm
    }
}

fn memfd_kind(name: &[u8]) -> SegmentKind {
    if name == names::MEMFD_ARENA.as_bytes() {
        SegmentKind::UllageArena
    } else if names::MEMFD_SHARES.iter().any(|share| name == share.as_bytes()) {
        SegmentKind::UllageShare
    } else {
        SegmentKind::Memfd
    }
}

impl ProcessDir {
    /// Tells every mapping of a shared segment; `devices` are those of the job's /dev/shm. Costs what counting the
    /// mappings costs.
    pub fn shared_mappings(
        &self,
        devices: &[u64],
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(SharedMapping<'_>),
    ) -> Result<(), KernelError> {
        let file = self.open("maps")?;
        buffer.resize(buffer.capacity().max(64 * 1024), 0);
        let mut found = SharedMaps::new(devices);
        loop {
            crate::turns::short();
            match rustix::io::read(&file, &mut buffer[..]) {
                Ok(0) if !found.any => return Err(self.error("maps", Errno::SRCH)),
                Ok(0) => return Ok(()),
                Ok(count) => found.push(&buffer[..count], &mut each),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("maps", errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TORCH: &[u8] = include_bytes!("../../fixtures/process/maps-torch");

    fn all(bytes: &[u8], cut: usize, devices: &[u64]) -> Vec<(SegmentKind, u64, String, bool)> {
        let mut found = Vec::new();
        let mut maps = SharedMaps::new(devices);
        for chunk in bytes.chunks(cut.max(1)) {
            maps.push(chunk, &mut |m: SharedMapping<'_>| {
                found.push((m.kind, m.inode, String::from_utf8_lossy(m.name).into_owned(), m.deleted));
            });
        }
        found
    }

    #[test]
    fn the_fixture_holds_every_kind() {
        let found = all(TORCH, usize::MAX, &[]);
        let kinds: Vec<SegmentKind> = found.iter().map(|(kind, ..)| *kind).collect();
        for kind in [SegmentKind::Torch, SegmentKind::Memfd, SegmentKind::Sysv, SegmentKind::SharedAnonymous]
        {
            assert!(kinds.contains(&kind), "{kind:?} in {found:?}");
        }
        assert_eq!(kinds.iter().filter(|kind| **kind == SegmentKind::Torch).count(), 3);
    }

    #[test]
    fn a_line_is_taken_apart() {
        let line = b"7f680b000000-7f680b003000 rw-s 00002000 00:1b 4711                       /dev/shm/a b (deleted)";
        let mapping = shared_mapping(line, &[]).unwrap();
        assert_eq!(mapping.range, 0x7f680b000000..0x7f680b003000);
        assert_eq!((mapping.offset, mapping.device, mapping.inode), (0x2000, makedev(0, 0x1b), 4711));
        assert_eq!((mapping.name, mapping.deleted), (&b"a b"[..], true));
        assert_eq!(mapping.kind, SegmentKind::PosixShm);
    }

    #[test]
    fn a_file_of_a_mount_out_of_sight_is_recognised_by_its_device() {
        let line = b"1000-2000 rw-s 00000000 00:1b 9                  /psm_1234";
        assert_eq!(shared_mapping(line, &[]), None);
        assert_eq!(shared_mapping(line, &[makedev(0, 0x1b)]).unwrap().name, b"psm_1234");
        let library = b"1000-2000 r-xp 00000000 fe:00 9                  /usr/lib/dev/shm/x.so";
        assert_eq!(shared_mapping(library, &[]), None);
    }

    #[test]
    fn memfds_of_ullage_are_recognised_by_their_names() {
        let kind =
            |name: &str| segment_of_path(format!("/memfd:{name} (deleted)").as_bytes(), false).unwrap().0;
        assert_eq!(kind("ullage-arena"), SegmentKind::UllageArena);
        assert_eq!(kind("ullage-shared"), SegmentKind::UllageShare);
        assert_eq!(kind("ullage-dataset"), SegmentKind::UllageShare);
        assert_eq!(kind("ullage-arenas"), SegmentKind::Memfd);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            all(&bytes, 7, &[]);
        }

        #[test]
        fn where_the_stream_is_cut_does_not_matter(cut in 1usize..400) {
            prop_assert_eq!(all(TORCH, cut, &[]), all(TORCH, usize::MAX, &[]));
        }
    }
}
