//! Which bytes of a heap are free? Best fit, neighbours joined at once; all of it in the owner's own memory.
//!
//! Pure: offsets and sizes only. Of equal fits the lowest offset wins, so that a steady stream of batches gets the
//! same bytes again and again.

use std::collections::{BTreeMap, BTreeSet};

/// A free range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Part of it was given back to the kernel.
    pub(crate) punched: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FreeList {
    by_offset: BTreeMap<u64, (u64, bool)>,
    by_size: BTreeSet<(u64, u64)>,
    bytes: u64,
}

impl FreeList {
    /// Free bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, free: Free) {
        self.by_offset.insert(free.offset, (free.size, free.punched));
        self.by_size.insert((free.size, free.offset));
        self.bytes += free.size;
    }

    fn remove(&mut self, offset: u64) -> Option<Free> {
        let (size, punched) = self.by_offset.remove(&offset)?;
        self.by_size.remove(&(size, offset));
        self.bytes -= size;
        Some(Free { offset, size, punched })
    }

    /// The smallest range of at least `size`.
    pub(crate) fn take(&mut self, size: u64) -> Option<Free> {
        let (_, offset) = *self.by_size.range((size, 0)..).next()?;
        self.remove(offset)
    }

    /// Takes the range that ends at `end`, if one does.
    pub(crate) fn take_ending_at(&mut self, end: u64) -> Option<Free> {
        let (offset, (size, _)) = self.by_offset.range(..end).next_back()?;
        let offset = *offset;
        (offset + size == end).then(|| self.remove(offset)).flatten()
    }

    /// Puts a range back; returns the one that it is part of now. `border`: a neighbour that begins or ends there
    /// belongs to another region and is not joined.
    pub(crate) fn put(&mut self, free: Free, region_start: u64, region_end: u64) -> Free {
        let mut whole = free;
        if whole.offset > region_start {
            if let Some(before) = self.take_ending_at(whole.offset) {
                whole = Free {
                    offset: before.offset,
                    size: before.size + whole.size,
                    punched: before.punched || whole.punched,
                };
            }
        }
        let end = whole.offset + whole.size;
        if end < region_end {
            if let Some(after) = self.remove(end) {
                whole.size += after.size;
                whole.punched |= after.punched;
            }
        }
        self.add(whole);
        whole
    }

    pub(crate) fn contains(&self, offset: u64) -> bool {
        self.by_offset.range(..=offset).next_back().is_some_and(|(start, (size, _))| offset < start + size)
    }

    /// Ranges of at least `size` with memory behind all of them; from now on noted as given back.
    pub(crate) fn give_back(&mut self, size: u64) -> Vec<Free> {
        let ranges: Vec<Free> = self
            .by_size
            .range((size, 0)..)
            .map(|(size, offset)| (*offset, *size))
            .filter_map(|(offset, size)| {
                let (_, punched) = self.by_offset.get(&offset)?;
                (!punched).then_some(Free { offset, size, punched: false })
            })
            .collect();
        for range in &ranges {
            self.by_offset.insert(range.offset, (range.size, true));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn free(offset: u64, size: u64) -> Free {
        Free { offset, size, punched: false }
    }

    #[test]
    fn the_smallest_fit_at_the_lowest_offset_is_taken() {
        let mut list = FreeList::default();
        for range in [free(0, 640), free(1000, 128), free(2000, 128), free(3000, 64)] {
            list.put(range, 0, 10_000);
        }
        assert_eq!(list.take(100), Some(free(1000, 128)));
        assert_eq!(list.take(100), Some(free(2000, 128)));
        assert_eq!(list.take(100), Some(free(0, 640)));
        assert_eq!(list.take(100), None);
        assert_eq!(list.bytes(), 64);
    }

    #[test]
    fn neighbours_are_joined_but_not_across_regions() {
        let mut list = FreeList::default();
        list.put(free(0, 64), 0, 192);
        list.put(free(128, 64), 0, 192);
        assert_eq!(list.put(free(64, 64), 0, 192), free(0, 192));
        assert_eq!(list.put(free(192, 64), 192, 256), free(192, 64), "another region begins there");
        assert!(list.contains(191) && list.contains(255) && !list.contains(256));
    }

    #[test]
    fn what_was_given_back_is_noted_and_not_given_back_twice() {
        let mut list = FreeList::default();
        list.put(free(0, 4096), 0, 10_000);
        assert_eq!(list.give_back(4096).len(), 1);
        assert_eq!(list.give_back(4096).len(), 0);
        let joined = list.put(free(4096, 64), 0, 10_000);
        assert!(joined.punched);
    }

    proptest! {
        #[test]
        fn taken_ranges_never_overlap_and_all_comes_back(steps in proptest::collection::vec((1u64..40, any::<u8>()), 1..200)) {
            const END: u64 = 64 * 512;
            let mut list = FreeList::default();
            list.put(free(0, END), 0, END);
            let mut held: Vec<Free> = Vec::new();
            for (units, pick) in steps {
                let size = units * 64;
                if pick % 3 == 0 && !held.is_empty() {
                    let back = held.swap_remove(usize::from(pick) % held.len());
                    list.put(back, 0, END);
                } else if let Some(found) = list.take(size) {
                    if found.size > size {
                        list.put(Free { offset: found.offset + size, size: found.size - size, punched: false }, 0, END);
                    }
                    held.push(free(found.offset, size));
                }
                let mut sorted = held.clone();
                sorted.sort_by_key(|range| range.offset);
                prop_assert!(sorted.windows(2).all(|pair| pair[0].offset + pair[0].size <= pair[1].offset));
                prop_assert_eq!(list.bytes() + held.iter().map(|range| range.size).sum::<u64>(), END);
            }
            for range in held {
                list.put(range, 0, END);
            }
            prop_assert_eq!(list.take(END), Some(free(0, END)));
        }
    }
}
