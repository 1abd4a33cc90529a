//! Which bytes of a heap are free? Best fit, like neighbours joined at once; all of it in the owner's own memory.
//!
//! Pure: offsets and sizes only. Of equal fits the lowest offset wins, so that a steady stream of batches gets the
//! same bytes again and again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A free range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Its memory was given back to the kernel.
    pub(crate) punched: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FreeList {
    by_offset: BTreeMap<u64, (u64, bool)>,
    by_size: BTreeSet<(u64, u64)>,
    bytes: u64,
    punched: u64,
}

impl FreeList {
    /// Free bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Free bytes without memory behind them.
    pub(crate) fn punched(&self) -> u64 {
        self.punched
    }

    fn add(&mut self, free: Free) {
        self.by_offset.insert(free.offset, (free.size, free.punched));
        self.by_size.insert((free.size, free.offset));
        self.bytes += free.size;
        self.punched += if free.punched { free.size } else { 0 };
    }

    fn remove(&mut self, offset: u64) -> Option<Free> {
        let (size, punched) = self.by_offset.remove(&offset)?;
        self.by_size.remove(&(size, offset));
        self.bytes -= size;
        self.punched -= if punched { size } else { 0 };
        Some(Free { offset, size, punched })
    }

    /// The smallest range of at least `size`.
    pub(crate) fn take(&mut self, size: u64) -> Option<Free> {
        let (_, offset) = *self.by_size.range((size, 0)..).next()?;
        self.remove(offset)
    }

    /// Takes the range that ends at `end`, if one of this kind does.
    fn take_ending_at(&mut self, end: u64, punched: bool) -> Option<Free> {
        let (offset, (size, found)) = self.by_offset.range(..end).next_back()?;
        let offset = *offset;
        (offset + size == end && *found == punched).then(|| self.remove(offset)).flatten()
    }

    /// Takes the range that ends at `end`, if one does.
    pub(crate) fn take_tail(&mut self, end: u64) -> Option<Free> {
        self.take_ending_at(end, false).or_else(|| self.take_ending_at(end, true))
    }

    /// Puts a range back; returns the one that it is part of now. `border`: a neighbour that begins or ends there
    /// belongs to another region and is not joined.
    pub(crate) fn put(&mut self, free: Free, region_start: u64, region_end: u64) -> Free {
        let mut whole = free;
        if whole.offset > region_start {
            if let Some(before) = self.take_ending_at(whole.offset, free.punched) {
                whole = Free { offset: before.offset, size: before.size + whole.size, ..whole };
            }
        }
        let end = whole.offset + whole.size;
        if end < region_end && self.by_offset.get(&end).is_some_and(|(_, punched)| *punched == free.punched) {
            if let Some(after) = self.remove(end) {
                whole.size += after.size;
            }
        }
        self.add(whole);
        whole
    }

    pub(crate) fn contains(&self, offset: u64) -> bool {
        self.by_offset.range(..=offset).next_back().is_some_and(|(start, (size, _))| offset < start + size)
    }

    /// About `wanted` bytes in ranges of at least `size` with memory behind all of them, in as few ranges as can be; from
    /// now on noted as given back.
    pub(crate) fn give_back_some(&mut self, size: u64, wanted: u64) -> Vec<Free> {
        let (mut ranges, mut left) = (Vec::new(), wanted);
        while left > 0 {
            let enough = self.by_size.range((left.max(size), 0)..);
            let largest_first = self.by_size.range((size, 0)..).rev();
            let found = enough
                .chain(largest_first)
                .find(|(_, offset)| self.by_offset.get(offset).is_some_and(|(_, punched)| !punched));
            let Some((size, offset)) = found.copied() else { break };
            self.by_offset.insert(offset, (size, true));
            self.punched += size;
            ranges.push(Free { offset, size, punched: false });
            left = left.saturating_sub(size);
        }
        ranges
    }

    /// Takes neighbours that are `size` together, with and without memory behind them; `begins` says where a range is not
    /// to be joined with what lies before it. The fewest bytes win.
    pub(crate) fn take_run(&mut self, size: u64, begins: impl Fn(u64) -> bool) -> Option<Vec<Free>> {
        let mut best: Option<(u64, usize, u64)> = None;
        let mut run: VecDeque<(u64, u64)> = VecDeque::new();
        let mut bytes = 0;
        for (offset, (length, _)) in &self.by_offset {
            let joins =
                run.back().is_some_and(|(start, length)| start + length == *offset) && !begins(*offset);
            if !joins {
                run.clear();
                bytes = 0;
            }
            run.push_back((*offset, *length));
            bytes += length;
            while let Some((_, first)) = run.front().filter(|(_, first)| bytes - first >= size) {
                bytes -= first;
                run.pop_front();
            }
            if let Some((start, _)) = run.front().filter(|_| bytes >= size) {
                if best.is_none_or(|(least, ..)| bytes < least) {
                    best = Some((bytes, run.len(), *start));
                }
            }
        }
        let (_, count, start) = best?;
        let offsets: Vec<u64> =
            self.by_offset.range(start..).take(count).map(|(offset, _)| *offset).collect();
        Some(offsets.into_iter().filter_map(|offset| self.remove(offset)).collect())
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
            self.punched += range.size;
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
    fn what_lost_its_memory_is_joined_only_where_it_must_be() {
        let mut list = FreeList::default();
        list.put(free(0, 64), 0, 1000);
        list.put(Free { punched: true, ..free(64, 64) }, 0, 1000);
        list.put(free(128, 128), 0, 1000);
        list.put(free(256, 512), 256, 1000);
        assert_eq!(list.take(65), Some(free(128, 128)));
        list.put(free(128, 128), 0, 256);
        let sizes =
            |run: Option<Vec<Free>>| run.map(|run| run.iter().map(|free| free.size).collect::<Vec<_>>());
        assert_eq!(sizes(list.take_run(1000, |offset| offset == 256)), None);
        assert_eq!(
            sizes(list.take_run(130, |offset| offset == 256)),
            Some(vec![64, 128]),
            "the fewest bytes"
        );
        assert_eq!(sizes(list.take_run(600, |_| false)), None);
        assert_eq!(list.bytes(), 64 + 512);
    }

    #[test]
    fn what_is_given_back_is_as_little_as_can_be() {
        let mut list = FreeList::default();
        for range in [free(0, 640), free(1000, 128), free(2000, 256), free(3000, 64)] {
            list.put(range, 0, 10_000);
        }
        let sizes = |ranges: Vec<Free>| ranges.iter().map(|range| range.size).collect::<Vec<_>>();
        assert_eq!(sizes(list.give_back_some(100, 120)), [128], "the smallest that is enough");
        assert_eq!(sizes(list.give_back_some(100, 700)), [640, 256], "else the largest first");
        assert_eq!(sizes(list.give_back_some(100, 1)), [0; 0], "nothing twice, and none too small");
        assert_eq!(list.bytes(), 640 + 128 + 256 + 64, "they stay free");
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
        assert_eq!(list.put(free(4096, 64), 0, 10_000), free(4096, 64), "what has its memory stays as it is");
        assert_eq!((list.bytes(), list.punched()), (4160, 4096));
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
