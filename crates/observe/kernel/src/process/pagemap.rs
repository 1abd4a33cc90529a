//! `/proc/PID/pagemap`: what lies at a page of address space, and who else maps it (proc_pid_pagemap(5)).
//!
//! ```text
//! one u64 a page of address space, in the byte order of the machine:
//! bit 63 present   bit 62 swapped   bit 61 of a file or shared anonymous   bit 56 mapped by this process alone
//! ```
//! The surprise: it needs no privilege. Whoever may not see page frames reads zeros in their place, and the flags
//! as they are. To read it walks page tables under the target's lock as smaps does, but for the pages asked for only,
//! so that its cost is the number of pages picked and not the size of the process. Huge pages show 4 KiB at a time: a
//! page of one that a child has copied is exclusive in both, the rest of it is not. The page of zeros, which reads of
//! untouched memory map, is present and not exclusive, and counted in no resident size.

use crate::error::KernelError;
use crate::root::ProcessDir;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// Bytes of a page of address space, on every machine that this runs on.
pub const PAGE: u64 = 4096;

/// What lies at one page of address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageEntry(pub u64);

impl PageEntry {
    /// In memory, and the process's own since it has no file: what RssAnon counts.
    pub const fn is_anonymous(self) -> bool {
        self.0 & (1 << 63) != 0 && self.0 & (1 << 61) == 0
    }

    /// In memory, of a file or of shared memory.
    pub const fn is_of_a_file(self) -> bool {
        self.0 & (1 << 63) != 0 && self.0 & (1 << 61) != 0
    }

    /// No other process maps it.
    pub const fn is_exclusive(self) -> bool {
        self.0 & (1 << 56) != 0
    }

    /// The same entry, where something else tells whether another process maps the page.
    pub const fn with_exclusive(self, exclusive: bool) -> PageEntry {
        PageEntry(if exclusive { self.0 | 1 << 56 } else { self.0 & !(1 << 56) })
    }

    /// Swapped out.
    pub const fn is_swapped(self) -> bool {
        self.0 & (1 << 63) == 0 && self.0 & (1 << 62) != 0
    }
}

/// Parses entries; one that is cut is none.
pub fn parse_pagemap(bytes: &[u8]) -> impl Iterator<Item = PageEntry> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|entry| PageEntry(u64::from_ne_bytes(*entry)))
}

/// Entries read in one go: neighbours cost next to nothing.
pub const TOGETHER: usize = 16;

/// The pagemap of one process, held open.
#[derive(Debug)]
pub struct PageMap {
    file: OwnedFd,
}

impl PageMap {
    /// The entries of so many pages from `first` on, at most [`TOGETHER`]; what lies past the end of the address space
    /// is zero. ESRCH: the process has ended.
    pub fn read(&self, first: u64, entries: &mut [PageEntry]) -> Result<(), Errno> {
        let mut bytes = [0; 8 * TOGETHER];
        let count = entries.len().min(TOGETHER);
        let wanted = &mut bytes[..8 * count];
        let read = loop {
            crate::turns::short();
            match rustix::io::pread(&self.file, &mut *wanted, first.saturating_mul(8)) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        // Nothing at all: the address space is gone. Areas that are gone since the listing have no pages present.
        if read == 0 {
            return Err(Errno::SRCH);
        }
        entries.fill(PageEntry::default());
        for (entry, parsed) in entries.iter_mut().zip(parse_pagemap(&wanted[..read])) {
            *entry = parsed;
        }
        Ok(())
    }
}

impl ProcessDir {
    /// Opens the pagemap. EACCES: another user's process.
    pub fn page_map(&self) -> Result<PageMap, KernelError> {
        Ok(PageMap { file: self.open("pagemap")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;
    use proptest::prelude::*;

    const PRESENT: u64 = 1 << 63;
    const EXCLUSIVE: u64 = 1 << 56;

    #[test]
    fn a_page_is_anonymous_of_a_file_swapped_or_nothing() {
        let own = PageEntry(PRESENT | EXCLUSIVE);
        assert!(own.is_anonymous() && own.is_exclusive() && !own.is_of_a_file() && !own.is_swapped());
        let file = PageEntry(PRESENT | 1 << 61);
        assert!(file.is_of_a_file() && !file.is_anonymous() && !file.is_exclusive());
        assert!(PageEntry(1 << 62).is_swapped());
        assert!(!PageEntry(0).is_anonymous() && !PageEntry(0).is_swapped());
    }

    #[test]
    fn this_process_is_the_only_one_that_maps_what_it_has_just_written() {
        let process = KernelRoot::live().process(std::process::id() as i32).unwrap();
        let Ok(map) = process.page_map() else { return }; // not offered here
        let held = std::hint::black_box(vec![1u8; 1 << 20]);
        let mut entries = [PageEntry::default(); TOGETHER];
        map.read(held.as_ptr() as u64 / PAGE + 1, &mut entries).unwrap();
        assert!(entries.iter().all(|entry| entry.is_anonymous() && entry.is_exclusive()), "{entries:?}");
        assert_eq!(held[1 << 19], 1);
        map.read(1, &mut entries).unwrap();
        assert!(entries.iter().all(|entry| !entry.is_anonymous()), "nothing is mapped at the bottom");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_a_cut_entry_is_none(bytes: Vec<u8>) {
            prop_assert_eq!(parse_pagemap(&bytes).count(), bytes.len() / 8);
        }
    }
}
