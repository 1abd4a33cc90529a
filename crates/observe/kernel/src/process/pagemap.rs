//! `/proc/PID/pagemap`: which pages of a process no other process maps (proc_pid_pagemap(5)).
//!
//! ```text
//! one u64 a page of address space, in the byte order of the machine:
//! bit 63 present   bit 62 swapped   bit 61 of a file or shared anonymous   bit 56 mapped by this process alone
//! ```
//! The surprise: it needs no privilege. Whoever may not see page frames reads zeros in their place, and the flags
//! as they are. To read it walks page tables under the target's lock as smaps does, but for the pages asked for only,
//! so that its cost is the number of pages picked and not the size of the process.

use crate::error::KernelError;
use crate::root::ProcessDir;
use crate::scan::{hex_prefix, lines};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::ops::Range;
use ullage_model::{Bytes, Exclusive};

const PRESENT: u64 = 1 << 63;
const OF_A_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
/// Pages read at each place: neighbours cost next to nothing.
const TOGETHER: u64 = 16;
/// Places at which pages are looked at.
pub const PLACES: u64 = 512;
const PAGE: u64 = 4096;

/// Anonymous pages among those that these entries are of, and how many of them no other process maps.
pub fn parse_pagemap(bytes: &[u8]) -> (u64, u64) {
    let (mut anonymous, mut exclusive) = (0, 0);
    for entry in bytes.as_chunks::<8>().0 {
        let entry = u64::from_ne_bytes(*entry);
        if entry & PRESENT != 0 && entry & OF_A_FILE == 0 {
            anonymous += 1;
            exclusive += u64::from(entry & EXCLUSIVE != 0);
        }
    }
    (anonymous, exclusive)
}

/// Pages of the private areas of a `maps` file that the process may write to: where its heap is. Libraries are left
/// out, but for their variables.
pub fn parse_private_areas(maps: &[u8]) -> Vec<Range<u64>> {
    lines(maps).filter_map(private_area).collect()
}

fn private_area(line: &[u8]) -> Option<Range<u64>> {
    let (start, rest) = hex_prefix(line)?;
    let (end, rest) = hex_prefix(rest.strip_prefix(b"-")?)?;
    let permissions = rest.strip_prefix(b" ")?.get(..4)?;
    let writable = permissions[1] == b'w' && permissions[3] == b'p';
    (writable && start < end && !line.ends_with(b"[vsyscall]")).then_some(start / PAGE..end / PAGE)
}

/// Places of the areas at which pages are looked at. Each lies somewhere in its own share of the areas, so that large runs of
/// one kind count as what they are.
struct Places<'a> {
    areas: &'a [Range<u64>],
    total: u64,
    number: u64,
}

impl<'a> Places<'a> {
    fn of(areas: &'a [Range<u64>]) -> Places<'a> {
        let total = areas.iter().map(|area| area.end - area.start).fold(0, u64::saturating_add);
        Places { areas, total, number: PLACES.min(total.div_ceil(TOGETHER)) }
    }

    /// The pages of place `index`, of `random` bits: at most `TOGETHER` of one area.
    fn pick(&self, index: u64, random: u64) -> Option<Range<u64>> {
        let at = |index: u64| (u128::from(self.total) * u128::from(index) / u128::from(self.number)) as u64;
        let (low, high) = (at(index), at(index + 1));
        let room = (high - low).saturating_sub(TOGETHER) + 1;
        let mut offset = low + random % room;
        for area in self.areas {
            let length = area.end - area.start;
            if offset < length {
                let start = area.start + offset;
                return Some(start..(start + TOGETHER.min(high - low)).min(area.end));
            }
            offset -= length;
        }
        None
    }
}

/// The estimate from what each place showed: (pages looked at, of them exclusive). Places are in order of address, and
/// neighbours are alike, so that their differences say how far the whole may be off.
fn estimate(seen: &[(u64, u64)], total_pages: u64) -> Exclusive {
    let shares: Vec<f64> =
        seen.iter().filter(|(pages, _)| *pages > 0).map(|(pages, own)| *own as f64 / *pages as f64).collect();
    if shares.is_empty() {
        return Exclusive::default();
    }
    let (number, whole) = (shares.len() as f64, total_pages as f64 * PAGE as f64);
    let mean = shares.iter().sum::<f64>() / number;
    let differences: f64 = shares.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let variance = differences / (2.0 * (number - 1.0).max(1.0)) / number;
    let looked_at: u64 = seen.iter().map(|(pages, _)| pages).sum();
    // All pages were looked at: nothing is left to chance.
    let error = if looked_at >= total_pages { 0.0 } else { 1.96 * variance.sqrt() * whole };
    Exclusive { bytes: Bytes((mean * whole) as u64), error: Bytes(error as u64) }
}

impl ProcessDir {
    /// Estimates the anonymous memory that no other process maps, from `PLACES` places: about 1 microsecond each, and the
    /// listing of the mappings. `random` gives new bits at each call.
    pub fn exclusive(
        &self,
        buffer: &mut Vec<u8>,
        mut random: impl FnMut() -> u64,
    ) -> Result<Exclusive, KernelError> {
        self.read("maps", buffer)?;
        let areas = parse_private_areas(buffer);
        if areas.is_empty() {
            // It is ending, and its address space is gone already.
            return Err(self.error("maps", Errno::SRCH));
        }
        let pagemap = self.open("pagemap")?;
        let places = Places::of(&areas);
        let mut seen = Vec::with_capacity(places.number as usize);
        for index in 0..places.number {
            let Some(pages) = places.pick(index, random()) else { continue };
            seen.push(self.look(&pagemap, pages)?);
        }
        Ok(estimate(&seen, places.total))
    }

    fn look(&self, pagemap: &OwnedFd, pages: Range<u64>) -> Result<(u64, u64), KernelError> {
        let mut entries = [0; 8 * TOGETHER as usize];
        let wanted = &mut entries[..8 * (pages.end - pages.start).min(TOGETHER) as usize];
        let read = loop {
            crate::turns::short();
            match rustix::io::pread(pagemap, &mut *wanted, pages.start * 8) {
                Err(Errno::INTR) => {}
                other => break other.map_err(|errno| self.error("pagemap", errno))?,
            }
        };
        // Nothing at all: the process has ended. Areas that are gone since the listing have no pages present.
        if read == 0 {
            return Err(self.error("pagemap", Errno::SRCH));
        }
        Ok(((read / 8) as u64, parse_pagemap(&wanted[..read]).1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRoot;
    use proptest::prelude::*;

    const OWN: u64 = PRESENT | EXCLUSIVE;

    fn entries(of: &[u64]) -> Vec<u8> {
        of.iter().flat_map(|entry| entry.to_ne_bytes()).collect()
    }

    #[test]
    fn pages_that_are_absent_swapped_or_of_a_file_are_not_counted() {
        let entries = entries(&[OWN, PRESENT, OWN | OF_A_FILE, EXCLUSIVE, 1 << 62, 0]);
        assert_eq!(parse_pagemap(&entries), (2, 1));
        assert_eq!(parse_pagemap(&entries[..15]), (1, 1), "an entry that is cut is none");
    }

    #[test]
    fn private_areas_are_those_that_can_be_written() {
        let maps = b"1000-3000 rw-p 00000000 00:00 0 [heap]\n\
                     4000-5000 r-xp 00000000 fe:00 12 /lib/x.so\n\
                     5000-6000 rw-p 00001000 fe:00 12 /lib/x.so\n\
                     7000-8000 rw-s 00000000 00:1b 12 /dev/shm/torch_1_2_3\n\
                     9000-b000 ---p 00000000 00:00 0 \n\
                     junk\n";
        assert_eq!(parse_private_areas(maps), [1..3, 5..6]);
    }

    #[test]
    fn few_pages_are_all_looked_at_and_the_places_of_many_are_spread() {
        let few = 100..124;
        let places = Places::of(std::slice::from_ref(&few));
        let seen: Vec<u64> = (0..places.number).flat_map(|index| places.pick(index, 77).unwrap()).collect();
        assert_eq!(seen, (100..124).collect::<Vec<u64>>());
        let many = 0..1_000_000;
        let places = Places::of(std::slice::from_ref(&many));
        for index in [0, 1, 300, 511] {
            let pages = places.pick(index, u64::MAX / 3).unwrap();
            let share = 1_000_000 * index / 512..=1_000_000 * (index + 1) / 512;
            assert!(share.contains(&pages.start) && share.contains(&(pages.end - 1)), "{index}: {pages:?}");
        }
    }

    #[test]
    fn the_estimate_is_exact_where_all_was_seen_and_says_its_error_elsewhere() {
        let half: Vec<(u64, u64)> = (0..512).map(|place| (16, if place < 256 { 16 } else { 0 })).collect();
        assert_eq!(estimate(&half, 512 * 16), Exclusive { bytes: Bytes(256 * 16 * PAGE), error: Bytes(0) });
        let large = estimate(&half, 1 << 20);
        assert_eq!(large.bytes, Bytes(1 << 31));
        assert!(large.error.0 < large.bytes.0 / 100, "one border in a run of alike places: {large:?}");
        let mixed: Vec<(u64, u64)> =
            (0..512).map(|place| (16, if place % 2 == 0 { 16 } else { 0 })).collect();
        let error = estimate(&mixed, 1 << 20).error.0;
        assert!((200 << 20..400 << 20).contains(&error), "{error}");
        assert_eq!(estimate(&[], 7), Exclusive::default());
    }

    #[test]
    fn this_process_is_the_only_one_that_maps_what_it_has_just_written() {
        let process = KernelRoot::live().process(std::process::id() as i32).unwrap();
        if process.open("pagemap").is_err() {
            return; // not offered here
        }
        let (mut buffer, mut bits) = (Vec::new(), 1u64);
        let mut random = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bits >> 20
        };
        let before = process.exclusive(&mut buffer, &mut random).unwrap();
        let held = std::hint::black_box(vec![1u8; 256 << 20]);
        let after = process.exclusive(&mut buffer, &mut random).unwrap();
        let grown = after.bytes.0.saturating_sub(before.bytes.0);
        assert!((230 << 20..282 << 20).contains(&grown), "{before:?} {after:?}");
        assert_eq!(held[1 << 20], 1);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, random: u64) {
            parse_pagemap(&bytes);
            let areas = parse_private_areas(&bytes);
            let places = Places::of(&areas);
            for index in 0..places.number {
                let _ = places.pick(index, random);
            }
        }

        #[test]
        fn a_place_is_never_outside_of_the_areas(
            lengths in proptest::collection::vec(1..100_000u64, 1..20), random: u64
        ) {
            let mut at = 10;
            let areas: Vec<Range<u64>> = lengths.iter().map(|length| {
                at += length + 3;
                at - length..at
            }).collect();
            let places = Places::of(&areas);
            for index in 0..places.number {
                let pages = places.pick(index, random).unwrap();
                prop_assert!(pages.start < pages.end && pages.end - pages.start <= TOGETHER);
                prop_assert!(areas.iter().any(|area| area.start <= pages.start && pages.end <= area.end));
            }
        }
    }
}
