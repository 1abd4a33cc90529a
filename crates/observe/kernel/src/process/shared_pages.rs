//! `/proc/PID/pagemap` once more: which pages of a shared segment a process has in its page tables
//! (proc_pid_pagemap(5)).
//!
//! The surprise: a page of shared memory that this process has not touched yet reads as zero although it is there,
//! and so does one that was swapped out. So the pages of all mappers together are what the segment holds at least.
//! Reads are cut in pieces of 2 MiB of address space at most, and of as much less as they took too long, so that none
//! holds the target's lock for long.

use crate::error::KernelError;
use crate::root::ProcessDir;
use rustix::io::Errno;
use std::ops::Range;
use std::time::Instant;

const PRESENT: u64 = 1 << 63;
const PAGE: u64 = 4096;
/// Pages read at once: of more, the kernel lets go of the lock and takes it again in between.
const TOGETHER: usize = 512;
/// And where they are dear.
const LEAST_TOGETHER: usize = 16;

/// Pages of a segment that somebody was seen with.
#[derive(Clone, Debug)]
pub struct PagesSeen {
    bits: Vec<u64>,
    pages: u64,
}

impl PagesSeen {
    /// None yet, of a segment of so many bytes.
    pub fn new(bytes: u64) -> PagesSeen {
        let pages = bytes.div_ceil(PAGE);
        PagesSeen { bits: vec![0; pages.div_ceil(64) as usize], pages }
    }

    /// Takes entries of pagemap, the first of which is of page `first`.
    pub fn push(&mut self, first: u64, entries: &[u8]) {
        for (page, entry) in (first..self.pages).zip(entries.as_chunks::<8>().0) {
            if u64::from_ne_bytes(*entry) & PRESENT != 0 {
                self.bits[(page / 64) as usize] |= 1 << (page % 64);
            }
        }
    }

    /// Bytes of the pages seen.
    pub fn bytes(&self) -> u64 {
        self.bits.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>() * PAGE
    }
}

impl ProcessDir {
    /// Adds the pages that this process has of a segment: it maps it at `range`, from `offset` bytes on.
    pub fn shared_pages(
        &self,
        range: &Range<u64>,
        offset: u64,
        seen: &mut PagesSeen,
    ) -> Result<(), KernelError> {
        let file = self.open("pagemap")?;
        let mut entries = [0u8; 8 * TOGETHER];
        let (mut page, end) = (range.start / PAGE, range.end / PAGE);
        let first = offset / PAGE;
        let mut together = TOGETHER / 4;
        while page < end {
            let wanted = usize::try_from(end - page).map_or(together, |left| left.min(together));
            crate::turns::short();
            let begun = Instant::now();
            match rustix::io::pread(&file, &mut entries[..8 * wanted], page * 8) {
                Ok(0) => return Err(self.error("pagemap", Errno::SRCH)),
                Ok(read) => {
                    if wanted == together {
                        together = crate::turns::piece(together, begun.elapsed(), LEAST_TOGETHER, TOGETHER);
                    }
                    seen.push(first + (page - range.start / PAGE), &entries[..read]);
                    page += (read / 8).max(1) as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("pagemap", errno)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_two_mappers_are_counted_once() {
        let entries =
            |pages: &[u64]| -> Vec<u8> { pages.iter().flat_map(|entry| entry.to_ne_bytes()).collect() };
        let mut seen = PagesSeen::new(5 * PAGE - 1);
        seen.push(0, &entries(&[PRESENT, 0, PRESENT | 7]));
        seen.push(2, &entries(&[PRESENT, PRESENT, 0, PRESENT]));
        assert_eq!(seen.bytes(), 3 * PAGE, "pages 0, 2 and 3; what lies behind the end is none of it");
        seen.push(9, &entries(&[PRESENT]));
        assert_eq!(seen.bytes(), 3 * PAGE);
    }
}
