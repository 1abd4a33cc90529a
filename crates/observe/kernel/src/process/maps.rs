//! `/proc/PID/maps`: how many mappings a process has, and of which kind (proc_pid_maps(5)).
//!
//! ```text
//! 7f680afa9000-7f680afab000 rw-p 00033000 fe:00 325843             /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
//! 7f680b000000-7f680b001000 rw-s 00000000 00:1b 4711               /dev/shm/torch_8372_1207_0 (deleted)
//! ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]
//! ```
//! The surprise: `[vsyscall]` is listed, but is not a mapping of the process and does not count against
//! `vm.max_map_count`. The kernel escapes newlines in paths (`\012`), so a line is always a mapping. At the
//! limit the file has 6 MB; it is counted in chunks, in parts where it is dear, and nothing is allocated.

use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::{find, hex_prefix};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::path::PathBuf;
use ullage_model::{Bytes, Mappings, Measured};

/// What a line needs to be told by: the fields before the path take at most 101 bytes, and the end of a path tells a
/// library.
const HEAD: usize = 320;

/// Data files kept by path of one process.
const DATA_FILES: usize = 16;

/// A data file that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// As `maps` shows it.
    pub path: String,
    /// Where its furthest mapping ends in it, bytes.
    pub end: u64,
}

/// Counts mappings in a stream of chunks that may be cut anywhere.
#[derive(Clone, Debug)]
pub struct MapsCounter {
    mappings: Mappings,
    data_files: Vec<DataFile>,
    head: [u8; HEAD],
    filled: usize,
}

impl Default for MapsCounter {
    fn default() -> Self {
        MapsCounter { mappings: Mappings::default(), data_files: Vec::new(), head: [0; HEAD], filled: 0 }
    }
}

impl MapsCounter {
    /// Takes the next bytes of the file.
    pub fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = newline(chunk) {
            if self.filled == 0 {
                // Cut as a line in two chunks is, so that both count the same.
                count_line(&mut self.mappings, &mut self.data_files, &chunk[..end.min(HEAD)]);
            } else {
                self.keep(&chunk[..end]);
                count_line(&mut self.mappings, &mut self.data_files, &self.head[..self.filled]);
                self.filled = 0;
            }
            chunk = &chunk[end + 1..];
        }
        self.keep(chunk);
    }

    /// The counts; a last line without newline is counted.
    pub fn finish(mut self) -> Mappings {
        if self.filled > 0 {
            count_line(&mut self.mappings, &mut self.data_files, &self.head[..self.filled]);
        }
        // Counted to the end: none of them is none, and not unknown.
        let executable = self.mappings.executable_bytes.known().unwrap_or_default();
        self.mappings.executable_bytes = Measured::Known(executable);
        self.mappings
    }

    fn keep(&mut self, part: &[u8]) {
        let taken = part.len().min(HEAD - self.filled);
        self.head[self.filled..self.filled + taken].copy_from_slice(&part[..taken]);
        self.filled += taken;
    }
}

/// Counts a whole file at once. Allocates nothing; lines that are no mappings are left out.
pub fn parse_maps(bytes: &[u8]) -> Mappings {
    let mut counter = MapsCounter::default();
    counter.push(bytes);
    counter.finish()
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

fn count_line(mappings: &mut Mappings, data_files: &mut Vec<DataFile>, line: &[u8]) {
    let Some((length, executable, path)) = split_line(line) else { return };
    if path == b"[vsyscall]" {
        return;
    }
    mappings.count += 1;
    if is_torch_segment(path) {
        mappings.torch_shared += 1;
        mappings.torch_shared_bytes = mappings.torch_shared_bytes.saturating_add(length);
    } else if is_other_shared(path) {
        mappings.other_shared += 1;
    } else if path.first() == Some(&b'/') {
        mappings.file += 1;
        mappings.file_bytes = mappings.file_bytes.saturating_add(length);
        if is_data(line, path, length) {
            mappings.data_file_bytes = mappings.data_file_bytes.saturating_add(length);
            keep(data_files, line, path, length);
        }
    } else {
        mappings.anonymous += 1;
        // The kernel's own `[vdso]` has a name.
        if executable && path.is_empty() {
            let before = mappings.executable_bytes.known().unwrap_or_default();
            mappings.executable_bytes = Measured::Known(before.saturating_add(length));
        }
    }
}

/// A file that somebody mapped to read or write it. The loader maps programs and libraries in parts, one of them
/// executable, and the C library a few tables of its own.
fn is_data(line: &[u8], path: &[u8], length: Bytes) -> bool {
    let permissions = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let contains = |part: &[u8]| find(path, part).is_some();
    let code = permissions.get(2) == Some(&b'x') || contains(b".so") || contains(b"/bin/");
    let tables = contains(b"/locale") || contains(b"gconv") || path.starts_with(b"/dev/");
    length >= Bytes(4096) && !code && !tables
}

/// A path that was cut, or that is no file's name any more, names nothing that could be looked at.
fn keep(data_files: &mut Vec<DataFile>, line: &[u8], path: &[u8], length: Bytes) {
    let offset = line.split(|&byte| byte == b' ').nth(2).and_then(hex_prefix).map(|(offset, _)| offset);
    let (Some(offset), Ok(path)) = (offset, std::str::from_utf8(path)) else { return };
    if line.len() >= HEAD || path.ends_with(" (deleted)") || path.contains('\\') {
        return;
    }
    let end = offset.saturating_add(length.0);
    if let Some(file) = data_files.iter_mut().find(|file| file.path == path) {
        file.end = file.end.max(end);
    } else if data_files.len() < DATA_FILES {
        data_files.push(DataFile { path: path.to_owned(), end });
    }
}

/// Length of the mapping, whether it may be executed, and its path (empty for anonymous memory).
fn split_line(line: &[u8]) -> Option<(Bytes, bool, &[u8])> {
    let (start, rest) = hex_prefix(line)?;
    let (end, mut rest) = hex_prefix(rest.strip_prefix(b"-")?)?;
    let executable = rest.get(3) == Some(&b'x');
    // After the addresses: permissions, offset, device, inode; then the path after padding.
    for _ in 0..4 {
        rest = rest.strip_prefix(b" ")?;
        let field = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        if field == 0 {
            return None;
        }
        rest = &rest[field..];
    }
    let path = rest.iter().position(|&byte| byte != b' ').map_or(&rest[..0], |at| &rest[at..]);
    Some((Bytes(end.saturating_sub(start)), executable, path))
}

/// torch names its segments `torch_PID_RANDOM_N` in /dev/shm; the mapping of a segment whose mount the reader
/// cannot reach is shown without the directory.
pub(crate) fn is_torch_segment(path: &[u8]) -> bool {
    path.starts_with(b"/dev/shm/torch_") || path.starts_with(b"/torch_")
}

/// Other named or anonymous shared memory. `/dev/zero (deleted)` is a shared anonymous mapping.
fn is_other_shared(path: &[u8]) -> bool {
    path.starts_with(b"/dev/shm/")
        || path.starts_with(b"/memfd:")
        || path.starts_with(b"/SYSV")
        || path == b"/dev/zero (deleted)"
}

/// A count of one process's mappings, which may be made in parts: the file goes on at the address where it was left. Mappings
/// that come and go in between may be counted or not, as in a count made at once.
#[derive(Debug)]
pub struct MapsCount {
    file: OwnedFd,
    path: PathBuf,
    counter: MapsCounter,
    data_files: Vec<DataFile>,
}

impl MapsCount {
    /// Data files that were met, once the count is done.
    pub fn data_files(self) -> Vec<DataFile> {
        self.data_files
    }

    /// Mappings counted by now.
    pub fn so_far(&self) -> u64 {
        self.counter.mappings.count
    }

    /// Goes on while there are mappings and `more` allows it: it is asked after each read, of some 50 mappings. None where
    /// it is not done yet. `buffer` is used as it is, and made 64 KiB where it is smaller.
    pub fn go_on(
        &mut self,
        buffer: &mut Vec<u8>,
        mut more: impl FnMut() -> bool,
    ) -> Result<Option<Mappings>, KernelError> {
        let error = |errno| KernelError::read(&self.path, errno);
        buffer.resize(buffer.capacity().max(64 * 1024), 0);
        loop {
            crate::turns::short();
            match rustix::io::read(&self.file, &mut buffer[..]) {
                // Without a single line: it is ending, and its address space is gone already.
                Ok(0) => {
                    let mut counter = std::mem::take(&mut self.counter);
                    self.data_files = std::mem::take(&mut counter.data_files);
                    match counter.finish() {
                        mappings if mappings.count == 0 => return Err(error(Errno::SRCH)),
                        mappings => return Ok(Some(mappings)),
                    }
                }
                Ok(count) => self.counter.push(&buffer[..count]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(error(errno)),
            }
            if !more() {
                return Ok(None);
            }
        }
    }
}

impl ProcessDir {
    /// Begins a count of the mappings: about 1 microsecond of kernel time each. The kernel hands out a page of text a read and
    /// holds the address space no longer than for that, however large the buffer.
    pub fn count_mappings(&self) -> Result<MapsCount, KernelError> {
        let file = self.open("maps")?;
        let (path, counter) = (self.path_of("maps"), MapsCounter::default());
        Ok(MapsCount { file, path, counter, data_files: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/process/maps");
    const TORCH: &[u8] = include_bytes!("../../fixtures/process/maps-torch");

    #[test]
    fn vsyscall_is_listed_but_not_counted() {
        let lines = REAL.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let mappings = parse_maps(REAL);
        assert!(REAL.ends_with(b"[vsyscall]\n"));
        assert_eq!(mappings.count, lines - 1);
        assert_eq!(mappings.count, mappings.anonymous + mappings.file + mappings.other_shared);
        assert_eq!(mappings.torch_shared, 0);
    }

    #[test]
    fn torch_segments_are_distinguished_from_other_shared_memory() {
        let mappings = parse_maps(TORCH);
        assert_eq!(mappings.torch_shared, 3, "named, deleted, and with its mount out of sight");
        assert_eq!(mappings.torch_shared_bytes, Bytes(3 * 4096));
        assert_eq!(mappings.other_shared, 4, "/dev/shm, memfd, SysV, shared anonymous");
        assert_eq!(mappings.file, 2);
        assert_eq!(mappings.anonymous, 2);
    }

    #[test]
    fn generated_code_is_anonymous_and_may_be_executed() {
        let lines = b"1000-3000 r-xp 00000000 00:00 0 \n3000-9000 rw-p 00000000 00:00 0 \n\
                      a000-b000 rwxp 00000000 00:00 0\nb000-d000 r-xp 00000000 00:00 0      [vdso]\n\
                      d000-e000 r-xp 00000000 fe:00 12      /lib/x.so\n";
        let mappings = parse_maps(lines);
        assert_eq!((mappings.anonymous, mappings.file), (4, 1));
        assert_eq!(mappings.executable_bytes, Measured::Known(Bytes(0x3000)));
        assert_eq!(parse_maps(b"").executable_bytes, Measured::Known(Bytes(0)));
    }

    #[test]
    fn data_files_are_distinguished_from_programs_and_libraries_with_their_furthest_end() {
        let maps = b"1000-5000 r--s 00001000 fe:00 12   /data/x.npy\n\
            5000-9000 r--s 00000000 fe:00 12   /data/x.npy\n\
            9000-d000 rw-p 00000000 fe:00 13   /data/gone (deleted)\n\
            10000-20000 r--p 00000000 fe:00 14   /usr/lib/libtorch_cpu.so\n\
            20000-30000 r-xp 00000000 fe:00 15   /opt/program\n\
            30000-40000 r--p 00000000 fe:00 16   /usr/lib/locale/locale-archive\n";
        let mut counter = MapsCounter::default();
        counter.push(maps);
        assert_eq!(counter.data_files, [DataFile { path: "/data/x.npy".into(), end: 0x5000 }]);
        assert_eq!(counter.finish().data_file_bytes, Bytes(0xc000), "deleted ones count as well");
    }

    #[test]
    fn a_path_with_blanks_or_an_escaped_newline_is_one_mapping() {
        let line = b"1000-2000 r--p 00000000 fe:00 12                         /a b\\012[vsyscall]\n";
        assert_eq!(parse_maps(line).file, 1);
    }

    #[test]
    fn a_count_in_parts_is_the_count_at_once() {
        use std::io::{Read, Write};
        let pipe = std::process::Stdio::piped;
        let mut child = std::process::Command::new("cat").stdin(pipe()).stdout(pipe()).spawn().unwrap();
        // Once it echoes, nothing is loaded any more.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let process = crate::KernelRoot::live().process(child.id() as i32).unwrap();
        let mut buffer = Vec::new();
        let mut count = process.count_mappings().unwrap();
        let whole = count.go_on(&mut buffer, || true).unwrap().unwrap();
        assert!(whole.file > 4, "{whole:?}");
        let mut parts = process.count_mappings().unwrap();
        let mut reads = 0;
        let in_parts = loop {
            reads += 1;
            if let Some(mappings) = parts.go_on(&mut Vec::new(), || false).unwrap() {
                break mappings;
            }
            assert!(parts.so_far() > 0);
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(reads >= 2, "one of text, one of its end");
        assert_eq!(in_parts, whole);
        assert!(
            process.count_mappings().is_err() || parts.go_on(&mut buffer, || true).is_err(),
            "it has ended"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_maps(&bytes);
        }

        #[test]
        fn where_the_stream_is_cut_does_not_matter(first in 0..TORCH.len(), second in 0..TORCH.len()) {
            let (a, b) = (first.min(second), first.max(second));
            let mut counter = MapsCounter::default();
            counter.push(&TORCH[..a]);
            counter.push(&TORCH[a..b]);
            counter.push(&TORCH[b..]);
            prop_assert_eq!(counter.finish(), parse_maps(TORCH));
        }
    }
}
