//! `/proc/PID/maps` as areas: where memory of which kind may lie, and which file's pages are there.
//!
//! ```text
//! 7f68a4000000-7f68a4021000 rw-p 00000000 00:00 0                      an arena of malloc: at a multiple of 64 MiB,
//! 7f68a4021000-7f68a8000000 ---p 00000000 00:00 0                      and the rest of these 64 MiB kept free after it
//! 7f68b3fff000-7f68b4000000 ---p 00000000 00:00 0                      the guard of a thread's stack
//! 7f68b4000000-7f68b4800000 rw-p 00000000 00:00 0                      the stack
//! 7f6900000000-7f6900001000 rw-s 00000000 00:1b 4711                   /dev/shm/torch_8372_1207_0 (deleted)
//! ```
//! The surprise: neighbours of equal rights are one area, so that what Python's allocator and what malloc mapped for
//! large blocks cannot be told apart for sure, unless the program gave them names (`[anon:…]`) or has no Python in it.
//! Else only size tells: arenas of Python's heap are of 1 MiB at most, and those that lie together are mostly few.

use super::maps::is_torch_segment;
use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::{hex_prefix, number};
use rustix::io::Errno;
use std::ops::Range;
use ullage_model::{Counted, PageKind};

const PAGE: u64 = 4096;
/// Arenas of malloc begin at multiples of this (HEAP_MAX_SIZE of glibc on 64-bit machines).
const ARENA_PAGES: u64 = (64 << 20) / PAGE;
/// A guard below a stack: glibc's default is a page; musl's two.
const GUARD_PAGES: u64 = 2;
/// No thread's stack is larger, or it is no stack.
const STACK_PAGES: u64 = (64 << 20) / PAGE;

/// An area of this size is of large blocks: malloc maps a block of that each on its own, whatever it was set to or has
/// learned (DEFAULT_MMAP_THRESHOLD_MAX of glibc).
const LARGE_PAGES: u64 = (32 << 20) / PAGE;
/// Where nothing else can be in it, an area of this size is (M_MMAP_THRESHOLD at the start).
const BLOCK_PAGES: u64 = (128 << 10) / PAGE;

/// One area of address space that may hold pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Pages of address space.
    pub pages: Range<u64>,
    /// Page of the file at its start.
    pub offset: u64,
    /// The file: device as in st_dev, and inode. None for memory without a file.
    pub file: Option<(u64, u64)>,
    /// Of pages of the file.
    pub kind: PageKind,
    /// Of its own pages, where it may have some: memory without a file, and pages of a file that were written to.
    pub own: Option<PageKind>,
}

/// Areas out of a stream of chunks that may be cut anywhere.
#[derive(Debug, Default)]
pub struct AreaParser {
    areas: Vec<Area>,
    line: Vec<u8>,
    before: Option<Closed>,
    /// Where among the areas those without a name are.
    nameless: Vec<usize>,
    /// It has Python's files mapped.
    python: bool,
    /// An interpreter has named its heap.
    names_its_heap: bool,
}

/// An area without any right.
#[derive(Clone, Debug)]
struct Closed {
    pages: Range<u64>,
}

impl AreaParser {
    /// Takes the next bytes of the file.
    pub fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
            if self.line.is_empty() {
                self.take(&chunk[..end]);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&chunk[..end]);
                self.take(&line);
                line.clear();
                self.line = line;
            }
            chunk = &chunk[end + 1..];
        }
        self.line.extend_from_slice(chunk);
    }

    /// The areas, in order of address.
    pub fn finish(mut self) -> Vec<Area> {
        let line = std::mem::take(&mut self.line);
        self.take(&line);
        let sure = self.names_its_heap || !self.python;
        let least = if sure { BLOCK_PAGES } else { LARGE_PAGES };
        for at in self.nameless {
            let Some(area) = self.areas.get_mut(at) else { continue };
            let pages = area.pages.end - area.pages.start;
            // Full ones keep nothing free after them; a block would be a page longer than what was asked for.
            let full = area.pages.start.is_multiple_of(ARENA_PAGES) && pages.is_multiple_of(ARENA_PAGES);
            if full && area.own == Some(PageKind::Anonymous) {
                (area.kind, area.own) = (PageKind::Malloc, Some(PageKind::Malloc));
            }
            // Not where it turned out to be an arena of malloc.
            if pages >= least && area.own == Some(PageKind::Anonymous) {
                (area.kind, area.own) = (PageKind::LargeBlocks, Some(PageKind::LargeBlocks));
            }
        }
        self.areas
    }

    fn take(&mut self, line: &[u8]) {
        let Some((pages, rights, offset, file, path)) = split(line) else { return };
        if rights[..3] == *b"---" {
            self.close_arena(&pages);
            self.before = Some(Closed { pages });
            return;
        }
        let guard = self.before.take();
        let private = rights[3] == b'p';
        let kind = kind_of(path, private);
        if path.starts_with(b"[v") {
            return; // [vdso], [vvar], [vsyscall]: pages of the kernel
        }
        let own = match (kind.counted(), private) {
            (Counted::Anonymous, _) if guarded(&pages, guard.as_ref(), kind) => Some(PageKind::Stacks),
            (Counted::Anonymous, _) => Some(kind),
            // Code is never written to, nor what is read from the head of a file; variables are, and what was relocated is
            // read-only afterwards.
            (Counted::File | Counted::Shared, true)
                if rights[2] != b'x' && (offset > 0 || rights[1] == b'w') =>
            {
                Some(PageKind::Anonymous)
            }
            _ => None,
        };
        self.names_its_heap |= kind == PageKind::PythonHeap;
        self.python |= file.is_some() && path.windows(6).any(|part| part == b"python" || part == b"libpyp");
        if path.is_empty() && private {
            self.nameless.push(self.areas.len());
        }
        self.areas.push(Area { pages, offset, file, kind, own });
    }

    /// The area before this one is an arena of malloc where both together fill 64 MiB, or several times that: full ones
    /// before it are one area with it.
    fn close_arena(&mut self, closed: &Range<u64>) {
        let Some(last) = self.areas.last_mut() else { return };
        if last.pages.end == closed.start
            && last.own == Some(PageKind::Anonymous)
            && last.file.is_none()
            && last.pages.start.is_multiple_of(ARENA_PAGES)
            && closed.end.is_multiple_of(ARENA_PAGES)
        {
            last.own = Some(PageKind::Malloc);
            last.kind = PageKind::Malloc;
        }
    }
}

fn guarded(pages: &Range<u64>, before: Option<&Closed>, kind: PageKind) -> bool {
    kind == PageKind::Anonymous
        && pages.end - pages.start <= STACK_PAGES
        && before.is_some_and(|closed| {
            closed.pages.end == pages.start && closed.pages.end - closed.pages.start <= GUARD_PAGES
        })
}

type Line<'a> = (Range<u64>, [u8; 4], u64, Option<(u64, u64)>, &'a [u8]);

fn split(line: &[u8]) -> Option<Line<'_>> {
    let (start, rest) = hex_prefix(line)?;
    let (end, rest) = hex_prefix(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let rights: [u8; 4] = rest.get(..4)?.try_into().ok()?;
    let (offset, rest) = hex_prefix(rest[4..].strip_prefix(b" ")?)?;
    let (major, rest) = hex_prefix(rest.strip_prefix(b" ")?)?;
    let (minor, rest) = hex_prefix(rest.strip_prefix(b":")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let inode = number(&rest[..digits])?;
    let path = rest[digits..].trim_ascii_start();
    let device = rustix::fs::makedev(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    let file = (inode != 0).then_some((device, inode));
    (start < end).then_some((start / PAGE..end / PAGE, rights, offset / PAGE, file, path))
}

fn kind_of(path: &[u8], private: bool) -> PageKind {
    let begins = |with: &[u8]| path.starts_with(with);
    match path {
        b"" if private => PageKind::Anonymous,
        b"[heap]" => PageKind::Malloc,
        b"[stack]" => PageKind::Stacks,
        b"" | b"/dev/zero (deleted)" => PageKind::OtherShared,
        _ if begins(b"[anon_shmem:") => PageKind::OtherShared,
        _ if begins(b"[anon:cpython") || begins(b"[anon: cpython") => PageKind::PythonHeap,
        _ if begins(b"[anon: glibc: malloc") => PageKind::Malloc,
        _ if begins(b"[anon: glibc: pthread stack") || begins(b"[stack:") => PageKind::Stacks,
        _ if begins(b"[") => PageKind::Anonymous,
        _ if is_torch_segment(path) => PageKind::TorchShared,
        _ if begins(b"/memfd:ullage-arena") => PageKind::UllageArena,
        _ if begins(b"/memfd:ullage-") => PageKind::UllageShare,
        _ if begins(b"/memfd:") => PageKind::Memfd,
        _ if begins(b"/SYSV") => PageKind::Sysv,
        _ if begins(b"/dev/shm/") => PageKind::OtherShared,
        _ if begins(b"/dev/nvidia") || begins(b"/dev/dri/") || begins(b"/dev/kfd") => PageKind::GpuMappings,
        _ => PageKind::MappedFiles,
    }
}

impl ProcessDir {
    /// The areas of the process, in order of address: about a microsecond each. The kernel hands them out 4 KiB of text
    /// at a time, and holds the address space no longer than for that.
    pub fn areas(&self, buffer: &mut Vec<u8>) -> Result<Vec<Area>, KernelError> {
        let file = self.open("maps")?;
        buffer.resize(buffer.capacity().max(4096), 0);
        let mut parser = AreaParser::default();
        loop {
            crate::turns::short();
            match rustix::io::read(&file, &mut buffer[..]) {
                Ok(0) => break,
                Ok(count) => parser.push(&buffer[..count]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("maps", errno)),
            }
        }
        let areas = parser.finish();
        // Without a single one: it is ending, and its address space is gone already.
        if areas.is_empty() {
            return Err(self.error("maps", Errno::SRCH));
        }
        Ok(areas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn areas(text: &str) -> Vec<Area> {
        let mut parser = AreaParser::default();
        parser.push(text.as_bytes());
        parser.finish()
    }

    fn kinds(text: &str) -> Vec<(PageKind, Option<PageKind>)> {
        areas(text).into_iter().map(|area| (area.kind, area.own)).collect()
    }

    #[test]
    fn shared_memory_is_recognised_by_its_path() {
        let of = |path: &str| kinds(&format!("1000-2000 rw-s 00000000 00:01 7   {path}\n"))[0];
        assert_eq!(of("/dev/shm/torch_1_2_3 (deleted)"), (PageKind::TorchShared, None));
        assert_eq!(of("/memfd:ullage-arena (deleted)"), (PageKind::UllageArena, None));
        assert_eq!(of("/memfd:ullage-shared (deleted)"), (PageKind::UllageShare, None));
        assert_eq!(of("/memfd:x (deleted)"), (PageKind::Memfd, None));
        assert_eq!(of("/SYSV00000000 (deleted)"), (PageKind::Sysv, None));
        assert_eq!(of("/dev/zero (deleted)"), (PageKind::OtherShared, None));
        assert_eq!(of("/dev/shm/psm_1"), (PageKind::OtherShared, None));
        assert_eq!(of("/dev/nvidiactl"), (PageKind::GpuMappings, None));
        assert_eq!(of("/data/x.bin"), (PageKind::MappedFiles, None));
    }

    #[test]
    fn a_file_has_a_device_and_an_inode_and_private_pages_of_it_may_be_the_process_s_own() {
        let text = "1000-3000 rw-p 00005000 fe:10 325843             /usr/lib/x y.so\n\
                    3000-4000 r-xp 00007000 fe:10 325843             /usr/lib/x y.so\n\
                    4000-5000 r--p 00000000 fe:10 325844             /usr/lib/z.so\n\
                    5000-6000 r--p 00003000 fe:10 325844             /usr/lib/z.so\n\
                    6000-7000 rw-p 00000000 fe:10 325845             /data/x.bin\n";
        let found = areas(text);
        assert_eq!(found[0].file, Some((rustix::fs::makedev(0xfe, 0x10), 325_843)));
        assert_eq!((found[0].pages.clone(), found[0].offset), (1..3, 5));
        assert_eq!(found[0].own, Some(PageKind::Anonymous));
        assert_eq!(found[1].own, None, "code");
        assert_eq!(found[2].own, None, "the head of a library");
        assert_eq!(found[3].own, Some(PageKind::Anonymous), "what may have been relocated");
        assert_eq!(found[4].own, Some(PageKind::Anonymous), "a private mapping of data");
        assert_eq!(
            kinds("1000-3000 rw-p 00000000 00:01 7  /memfd:ullage-shared (deleted)\n")[0].1,
            Some(PageKind::Anonymous)
        );
    }

    #[test]
    fn stacks_and_arenas_are_recognised_by_what_lies_beside_them() {
        let text = "7f68a4000000-7f68a4021000 rw-p 00000000 00:00 0 \n\
                    7f68a4021000-7f68a8000000 ---p 00000000 00:00 0 \n\
                    7f68b3fff000-7f68b4000000 ---p 00000000 00:00 0 \n\
                    7f68b4000000-7f68b4800000 rw-p 00000000 00:00 0 \n\
                    7f68b5000000-7f68b5800000 rw-p 00000000 00:00 0 \n\
                    7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n\
                    7ffc00100000-7ffc00104000 r--p 00000000 00:00 0 [vvar]\n\
                    7ffd00100000-7ffd00104000 rw-p 00000000 00:00 0 [anon: glibc: malloc]\n";
        let own: Vec<_> = areas(text).into_iter().filter_map(|area| area.own).collect();
        use PageKind::*;
        assert_eq!(own, [Malloc, Stacks, LargeBlocks, Stacks, Malloc]);
    }

    #[test]
    fn full_arenas_are_one_area_with_the_next_and_keep_nothing_free() {
        use PageKind::*;
        let text = "7f68a0000000-7f68a4021000 rw-p 00000000 00:00 0 \n\
                    7f68a4021000-7f68a8000000 ---p 00000000 00:00 0 \n\
                    7f68b0000000-7f68b4000000 rw-p 00000000 00:00 0 \n\
                    7f68c0000000-7f68c4001000 rw-p 00000000 00:00 0 \n\
                    7f68d0001000-7f68d4000000 rw-p 00000000 00:00 0 \n\
                    7f68d4000000-7f68d5000000 ---p 00000000 00:00 0 \n";
        let own: Vec<_> = areas(text).into_iter().filter_map(|area| area.own).collect();
        assert_eq!(own, [Malloc, Malloc, LargeBlocks, LargeBlocks]);
    }

    #[test]
    fn large_areas_without_a_name_are_blocks_and_in_a_python_only_those_that_no_heap_has_room_for() {
        use PageKind::*;
        let text = |more: &str| {
            format!(
                "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
                 7f0001000000-7f0003000000 rw-p 00000000 00:00 0 \n\
                 7f0010000000-7f0010010000 rw-p 00000000 00:00 0 \n\
                 7f0010010000-7f0014000000 ---p 00000000 00:00 0 \n{more}"
            )
        };
        let own = |more: &str| -> Vec<_> {
            areas(&text(more)).into_iter().filter(|a| a.file.is_none()).filter_map(|a| a.own).collect()
        };
        assert_eq!(own(""), [LargeBlocks, LargeBlocks, Malloc], "no Python");
        let python = "7f0020000000-7f0020001000 r-xp 00000000 fe:10 7 /usr/lib/libpython3.12.so.1.0\n";
        assert_eq!(own(python), [Anonymous, LargeBlocks, Malloc], "2 MiB may be its heap");
        let named =
            format!("{python}7f0030000000-7f0030100000 rw-p 00000000 00:00 0 [anon:cpython:pymalloc]\n");
        assert_eq!(own(&named), [LargeBlocks, LargeBlocks, Malloc, PythonHeap]);
    }

    #[test]
    fn real_files_are_areas_but_for_what_nobody_may_touch() {
        let mut parser = AreaParser::default();
        parser.push(include_bytes!("../../fixtures/process/maps"));
        let found = parser.finish();
        assert!(found.iter().any(|area| area.kind == PageKind::Stacks));
        assert!(found.iter().any(|area| area.kind == PageKind::MappedFiles && area.own.is_some()));
        assert!(found.windows(2).all(|pair| pair[0].pages.end <= pair[1].pages.start));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_the_cut_does_not_matter(bytes: Vec<u8>, cut in 1..50usize) {
            let mut parser = AreaParser::default();
            parser.push(&bytes);
            let whole = parser.finish();
            let mut parser = AreaParser::default();
            bytes.chunks(cut).for_each(|chunk| parser.push(chunk));
            prop_assert_eq!(parser.finish(), whole);
        }
    }
}
