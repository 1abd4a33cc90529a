//! The part of the arena that one process carves blocks from.
//!
//! Free lists lie in that process's own memory; in the arena lie only the blocks' headers, one behind the other,
//! written in an order that leaves every region walkable at every instruction: a split writes the new header
//! before the old one shrinks, a join lets the first grow over the second. So the heap of a process that was
//! killed can be walked, and taken over with what is still leased in it.

use crate::error::ArenaError;
use crate::fail::{self, FailPoint};
use crate::free_list::{Free, FreeList};
use crate::layout::{
    round_up, Header, HeapEntry, RegionEntry, ALIGN, BLOCK_HEADER, BLOCK_MAGIC, HEAPS, LEFT, PAGE, REGIONS,
};
use crate::mapping::Mapping;
use crate::state::{self, State, Step, HELD, PRODUCER, RETURNING, SENT};
use crate::{heirs, returns, slots};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// From this size on blocks are whole pages, so that they can be given back as pages.
const WHOLE_PAGES: u64 = 32 << 10;
/// A rest smaller than this stays with its block.
const LEAST_REST: u64 = 2 * BLOCK_HEADER;
/// Ranges smaller than this are not worth a hole.
const LEAST_HOLE: u64 = 64 << 10;
/// Free memory beyond half of what was in use at once that is always kept.
const SLACK: u64 = 16 << 20;
const LEAST_REGION: u64 = 4 << 20;
const MOST_REGION: u64 = 1 << 30;

/// Asked before memory is taken: bytes more, bytes that the arena has. An error is the reason why not.
pub(crate) type Guard = dyn Fn(u64, u64) -> Result<(), String> + Send + Sync;

#[derive(Debug)]
struct Region {
    index: usize,
    start: u64,
    length: u64,
    used: u64,
    committed: u64,
}

impl Region {
    fn used_end(&self) -> u64 {
        self.start + self.used
    }
}

/// A block just made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) offset: u64,
    pub(crate) generation: u32,
}

/// A free range that was taken out of the list.
struct Range {
    free: Free,
    /// Bytes of it without memory.
    lost: u64,
    /// Whether its end has none.
    rest_punched: bool,
}

impl Range {
    fn of(free: Free) -> Range {
        Range { free, lost: if free.punched { free.size } else { 0 }, rest_punched: free.punched }
    }
}

#[derive(Debug)]
pub(crate) struct Heap {
    index: usize,
    slot: u16,
    free: FreeList,
    regions: Vec<Region>,
    /// Most bytes that were in use at once.
    most: u64,
    /// Most bytes that had memory behind them.
    granted: u64,
}

impl Heap {
    /// A heap for the process in `slot`: one that its owner left behind, else a new one.
    pub(crate) fn claim(map: &Mapping, slot: u16) -> Result<Heap, ArenaError> {
        let header = map.header();
        for (index, entry) in header.heaps.iter().enumerate() {
            let owner = entry.owner.load(Ordering::Acquire);
            if owner == 0 || is_left(header, owner) {
                if let Some(mut heap) = Heap::take(map, slot, index, entry, owner) {
                    // Which of its free ranges lost their memory, only its owner knew: it is asked for anew.
                    let _ = heap.free.give_back(LEAST_HOLE);
                    return Ok(heap);
                }
            }
        }
        Err(ArenaError::TableFull { what: "heap", most: HEAPS })
    }

    /// Makes the heap this process's own, unless another was quicker.
    fn take(map: &Mapping, slot: u16, index: usize, entry: &HeapEntry, owner: u32) -> Option<Heap> {
        entry
            .owner
            .compare_exchange(owner, u32::from(slot), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then(|| {
                let mut heap =
                    Heap { index, slot, free: FreeList::default(), regions: Vec::new(), most: 0, granted: 0 };
                if owner != 0 {
                    heap.take_over(map);
                }
                heap
            })
    }

    /// Gives back the memory of heaps whose owners are gone; returns how many bytes.
    pub(crate) fn trim_left(map: &Mapping, slot: u16) -> u64 {
        let header = map.header();
        let mut given = 0;
        for (index, entry) in header.heaps.iter().enumerate() {
            let owner = entry.owner.load(Ordering::Acquire);
            if owner == 0 || owner == u32::from(slot) || !is_left(header, owner) {
                continue;
            }
            if let Some(mut heap) = Heap::take(map, slot, index, entry, owner) {
                given += heap.trim(map);
                entry.owner.store(LEFT, Ordering::Release);
            }
        }
        given
    }

    /// What a killed owner left: its own parts end, what others hold stays.
    fn take_over(&mut self, map: &Mapping) {
        for (index, entry) in own_regions(map.header(), self.index) {
            let (start, length) = (entry.start.load(Ordering::Acquire), entry.length.load(Ordering::Acquire));
            let used = entry.used.load(Ordering::Acquire);
            self.regions.push(Region { index, start, length, used, committed: used });
        }
        for region in 0..self.regions.len() {
            let blocks: Vec<(u64, u64)> = self.blocks(map, region).collect();
            for (offset, _) in blocks {
                let Some(block) = map.true_block(offset) else { continue };
                let found = State::of(block.state.load(Ordering::Acquire));
                let ended = found.has(PRODUCER)
                    && state::end_producer(&block.state, found.generation, self.slot) == Step::Last;
                if found.flags == 0 || ended {
                    self.free_block(map, offset);
                }
            }
        }
        self.sweep(map);
    }

    /// A block with room for `bytes`.
    pub(crate) fn alloc(&mut self, map: &Mapping, guard: &Guard, bytes: u64) -> Result<Made, ArenaError> {
        let size = block_size(bytes);
        self.drain(map);
        let used: u64 = self.regions.iter().map(|region| region.used).sum();
        self.most = self.most.max(used.saturating_sub(self.free.bytes()) + size);
        if let Some(free) = self.free.take(size) {
            return self.carve(map, guard, Range::of(free), size);
        }
        if let Some(range) = self.take_run(map, size) {
            return self.carve(map, guard, range, size);
        }
        match self.bump(map, guard, size)? {
            Some(offset) => Ok(self.begin(map, offset)),
            None => {
                self.grow(map, size)?;
                let offset = self.bump(map, guard, size)?;
                offset
                    .map(|offset| self.begin(map, offset))
                    .ok_or(ArenaError::ReserveUsedUp { reserve: map.reserve() })
            }
        }
    }

    /// Neighbours with and without memory, made one range.
    fn take_run(&mut self, map: &Mapping, size: u64) -> Option<Range> {
        let run =
            self.free.take_run(size, |offset| self.regions.iter().any(|region| region.start == offset))?;
        let (first, total) = (run.first()?.offset, run.iter().map(|free| free.size).sum());
        if let Some(block) = map.block(first) {
            block.size.store(total, Ordering::Release);
        }
        for free in &run[1..] {
            if let Some(block) = map.block(free.offset) {
                block.magic.store(0, Ordering::Release);
            }
        }
        Some(Range {
            free: Free { offset: first, size: total, punched: true },
            lost: run.iter().filter(|free| free.punched).map(|free| free.size).sum(),
            rest_punched: run.last()?.punched,
        })
    }

    /// Takes back all that was returned.
    pub(crate) fn drain(&mut self, map: &Mapping) {
        let mut offset = returns::take_all(&map.header().heaps[self.index].returned);
        while offset != 0 {
            fail::at(FailPoint::Drained);
            let Some(block) = map.true_block(offset) else { return };
            let next = block.next.load(Ordering::Relaxed);
            let found = State::of(block.state.load(Ordering::Acquire));
            if found.has(RETURNING) && block.heap.load(Ordering::Relaxed) as usize == self.index {
                self.free_block(map, offset);
            }
            offset = next;
        }
    }

    /// Gives memory behind free ranges back to the kernel; returns how many bytes.
    pub(crate) fn trim(&mut self, map: &Mapping) -> u64 {
        self.drain(map);
        let ranges = self.free.give_back(LEAST_HOLE);
        let mut given = punch_behind(map, &ranges);
        for region in &mut self.regions {
            given += punch(map, region.used_end(), region.start + region.committed);
            region.committed = region.used;
        }
        self.granted = 0; // it may be another's by now
        given
    }

    /// Ends the parts of the dead, and of tickets to closed channels; returns the bytes that came free.
    pub(crate) fn sweep(&mut self, map: &Mapping) -> u64 {
        let header = map.header();
        let before = self.free.bytes();
        let mut alive: HashMap<u16, bool> = HashMap::new();
        let mut gone = Vec::new();
        for region in 0..self.regions.len() {
            for (offset, _) in self.blocks(map, region) {
                let Some(block) = map.block(offset) else { continue };
                let found = State::of(block.state.load(Ordering::Acquire));
                let ended = if found.has(SENT) {
                    header
                        .channels
                        .get(usize::from(found.retainer))
                        .is_some_and(|channel| channel.state.load(Ordering::Acquire) == 2)
                } else if found.has(HELD | RETURNING) {
                    // Its heirs see the block as it did.
                    !*alive.entry(found.retainer).or_insert_with(|| {
                        slots::is_alive(header, found.retainer) || heirs::has_heirs(header, found.retainer)
                    })
                } else {
                    false
                };
                if ended {
                    gone.push((offset, found));
                }
            }
        }
        // The dead push no more: what they did push is drained now, the rest of theirs is on no stack.
        self.drain(map);
        for (offset, found) in gone {
            let Some(block) = map.block(offset) else { continue };
            let now = State::of(block.state.load(Ordering::Acquire));
            if now != found {
                continue;
            }
            let last = found.has(RETURNING)
                || state::end_consumer(&block.state, found.generation, self.slot) == Step::Last;
            if last {
                self.free_block(map, offset);
            }
        }
        self.free.bytes().saturating_sub(before)
    }

    fn blocks<'a>(&'a self, map: &'a Mapping, region: usize) -> impl Iterator<Item = (u64, u64)> + 'a {
        let region = &self.regions[region];
        walk(map, region.start, region.used_end())
    }

    fn begin(&self, map: &Mapping, offset: u64) -> Made {
        let entry = &map.header().heaps[self.index];
        let generation = entry.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        fail::at(FailPoint::Found);
        if let Some(block) = map.block(offset) {
            block.since.store(0, Ordering::Relaxed);
            block.state.store(State { generation, retainer: 0, flags: PRODUCER }.word(), Ordering::Release);
        }
        fail::at(FailPoint::Allocated);
        Made { offset, generation }
    }

    fn write_header(&self, map: &Mapping, offset: u64, size: u64) {
        if let Some(block) = map.block(offset) {
            block.state.store(0, Ordering::Relaxed);
            block.heap.store(self.index as u32, Ordering::Relaxed);
            block.size.store(size, Ordering::Relaxed);
            block.magic.store(BLOCK_MAGIC, Ordering::Release);
        }
    }

    /// A block of `size` from a range that is in no list; its rest goes back to one.
    fn carve(&mut self, map: &Mapping, guard: &Guard, range: Range, size: u64) -> Result<Made, ArenaError> {
        let Range { free, lost, rest_punched } = range;
        let rest = free.size - size;
        let taken = if rest < LEAST_REST { free.size } else { size };
        if lost > 0 {
            let more = lost.min(taken);
            self.make_up_for(map, lost, more);
            let ready = self
                .afford(map, guard, lost, more)
                .and_then(|()| map.commit(free.offset & !(PAGE - 1), round_up(free.offset + taken, PAGE)));
            if let Err(error) = ready {
                self.put_back(map, free);
                return Err(error);
            }
        }
        if taken < free.size {
            let rest = Free { offset: free.offset + taken, size: free.size - taken, punched: rest_punched };
            self.write_header(map, rest.offset, rest.size);
            fail::at(FailPoint::Divided);
            if let Some(block) = map.block(free.offset) {
                block.size.store(taken, Ordering::Release);
            }
            self.put_back(map, rest);
        }
        Ok(self.begin(map, free.offset))
    }

    /// The range that it is part of now has its size in its header: it may be taken whole.
    fn put_back(&mut self, map: &Mapping, free: Free) -> Free {
        let (start, end) = self
            .regions
            .iter()
            .find(|region| (region.start..region.start + region.length).contains(&free.offset))
            .map_or((free.offset, free.offset + free.size), |region| (region.start, region.used_end()));
        let joined = self.free.put(free, start, end);
        if let Some(first) = map.block(joined.offset) {
            first.size.store(joined.size, Ordering::Release);
        }
        joined
    }

    fn free_block(&mut self, map: &Mapping, offset: u64) {
        let Some(block) = map.true_block(offset) else { return };
        if self.free.contains(offset) {
            return;
        }
        let found = State::of(block.state.load(Ordering::Acquire));
        // The generation stays: a late ticket to this place is refused by its flags.
        block.state.store(State { retainer: 0, flags: 0, ..found }.word(), Ordering::Release);
        let size = block.size.load(Ordering::Acquire);
        let joined = self.put_back(map, Free { offset, size, punched: false });
        if joined.offset != offset {
            block.magic.store(0, Ordering::Release);
        }
    }

    /// A block from the undivided end of a region.
    fn bump(&mut self, map: &Mapping, guard: &Guard, size: u64) -> Result<Option<u64>, ArenaError> {
        for number in (0..self.regions.len()).rev() {
            let region = &self.regions[number];
            let (end, room) = (region.used_end(), region.length - region.used);
            let tail = self.free.take_tail(end).filter(|tail| tail.offset >= region.start);
            let offset = tail.map_or(end, |tail| tail.offset);
            let more = size.saturating_sub(end - offset);
            if more > room {
                if let Some(tail) = tail {
                    self.put_back(map, tail);
                }
                continue;
            }
            if end + more > self.regions[number].start + self.regions[number].committed
                || tail.is_some_and(|tail| tail.punched)
            {
                // Before more memory is taken, what the dead held is looked for.
                if let Some(tail) = tail {
                    self.put_back(map, tail);
                }
                if self.sweep(map) > 0 {
                    if let Some(free) = self.free.take(size) {
                        return self.carve(map, guard, Range::of(free), size).map(|made| Some(made.offset));
                    }
                }
                self.commit_to(map, guard, number, end + more)?;
                let tail = self.free.take_tail(end).filter(|tail| tail.offset >= self.regions[number].start);
                if tail.map_or(end, |tail| tail.offset) != offset {
                    // The sweep freed what lies before: less is needed than was committed.
                    if let Some(tail) = tail {
                        self.put_back(map, tail);
                    }
                    return self.bump(map, guard, size);
                }
                if let Some(tail) = tail.filter(|tail| tail.punched) {
                    map.commit(tail.offset & !(PAGE - 1), round_up(end, PAGE))?;
                }
            }
            self.write_header(map, offset, size);
            let region = &mut self.regions[number];
            region.used += more;
            map.header().regions[region.index].used.store(region.used, Ordering::Release);
            return Ok(Some(offset));
        }
        Ok(None)
    }

    /// Not asked again for as much as this heap has had: reading the limits takes longer than most copies.
    fn afford(&mut self, map: &Mapping, guard: &Guard, lost: u64, more: u64) -> Result<(), ArenaError> {
        let wanted = self.committed().saturating_sub(lost) + more;
        if wanted > self.granted {
            guard(more, map.committed()).map_err(|because| ArenaError::NoRoom { wanted: more, because })?;
            self.granted = wanted;
        }
        Ok(())
    }

    fn commit_to(&mut self, map: &Mapping, guard: &Guard, number: usize, end: u64) -> Result<(), ArenaError> {
        let (start, length) = (self.regions[number].start, self.regions[number].length);
        let from = start + self.regions[number].committed;
        // In steps that grow with the heap, so that a long list of batches asks seldom.
        let step =
            (self.regions.iter().map(|region| region.committed).sum::<u64>() / 32).clamp(256 << 10, 16 << 20);
        let to = round_up(end, PAGE).max(from + step).min(start + length);
        if to > from {
            self.make_up_for(map, 0, to - from);
        }
        for to in [to, round_up(end, PAGE).min(start + length)] {
            if to <= from {
                return Ok(());
            }
            let done = self.afford(map, guard, 0, to - from).and_then(|()| map.commit(from, to));
            match done {
                Ok(()) => {
                    fail::at(FailPoint::Committed);
                    self.regions[number].committed = to - start;
                    return Ok(());
                }
                // The step was for speed only: once more with what is needed.
                Err(_) if to > round_up(end, PAGE) => continue,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Before memory is taken: free ranges that did not fit go back for it, so that fragments do not add up. Not where
    /// little more is had than was in use at once: a loader whose batches have two sizes is to have both.
    fn make_up_for(&mut self, map: &Mapping, lost: u64, more: u64) {
        let have = self.committed().saturating_sub(lost) + more;
        let wanted = have.saturating_sub(self.most + self.most / 2 + SLACK);
        punch_behind(map, &self.free.give_back_some(LEAST_HOLE, wanted));
    }

    /// Bytes of this heap with memory behind them.
    fn committed(&self) -> u64 {
        let committed: u64 = self.regions.iter().map(|region| region.committed).sum();
        committed.saturating_sub(self.free.punched())
    }

    /// Room for a block of `size`: the last region made longer where it ends at the top, else a new one.
    fn grow(&mut self, map: &Mapping, size: u64) -> Result<(), ArenaError> {
        let header = map.header();
        let total: u64 = self.regions.iter().map(|region| region.length).sum();
        let length = round_up(size, 1 << 20).max(total.clamp(LEAST_REGION, MOST_REGION));
        if let Some(last) = self.regions.last_mut() {
            let end = last.start + last.length;
            if end + length <= map.reserve()
                && header.top.compare_exchange(end, end + length, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                map.reach(end + length)?;
                last.length += length;
                header.regions[last.index].length.store(last.length, Ordering::Release);
                return Ok(());
            }
        }
        let start = header.top.fetch_add(length, Ordering::AcqRel);
        map.reach(start + length)?;
        let index = header.regions_used.fetch_add(1, Ordering::AcqRel) as usize;
        let entry =
            header.regions.get(index).ok_or(ArenaError::TableFull { what: "region", most: REGIONS })?;
        entry.start.store(start, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        fail::at(FailPoint::Region);
        entry.heap.store(self.index as u32 + 1, Ordering::Release);
        self.regions.push(Region { index, start, length, used: 0, committed: 0 });
        Ok(())
    }
}

/// Gives the whole pages between two offsets back; returns their bytes.
fn punch(map: &Mapping, start: u64, end: u64) -> u64 {
    let (start, end) = (round_up(start, PAGE), end & !(PAGE - 1));
    if start < end && map.punch(start, end) {
        end - start
    } else {
        0
    }
}

/// The same behind the headers of free ranges.
fn punch_behind(map: &Mapping, ranges: &[Free]) -> u64 {
    ranges.iter().map(|free| punch(map, free.offset + BLOCK_HEADER, free.offset + free.size)).sum()
}

/// True where nobody uses a heap with this owner any more.
fn is_left(header: &Header, owner: u32) -> bool {
    owner == LEFT || (!slots::is_alive(header, owner as u16) && !heirs::has_heirs(header, owner as u16))
}

/// Size of a block for so many bytes.
pub(crate) fn block_size(bytes: u64) -> u64 {
    let size = bytes.saturating_add(BLOCK_HEADER).min(u64::MAX / 2);
    round_up(size, if size >= WHOLE_PAGES { PAGE } else { ALIGN })
}

/// Regions that belong to a heap.
pub(crate) fn regions(header: &Header) -> impl Iterator<Item = (usize, &RegionEntry)> {
    let used = (header.regions_used.load(Ordering::Acquire) as usize).min(REGIONS);
    header.regions[..used].iter().enumerate().filter(|(_, entry)| entry.heap.load(Ordering::Acquire) != 0)
}

/// Regions of one heap.
fn own_regions(header: &Header, heap: usize) -> impl Iterator<Item = (usize, &RegionEntry)> {
    regions(header).filter(move |(_, entry)| entry.heap.load(Ordering::Acquire) as usize == heap + 1)
}

/// Offsets and sizes of the blocks of every heap.
pub(crate) fn all_blocks(map: &Mapping) -> impl Iterator<Item = (u64, u64)> + '_ {
    regions(map.header()).flat_map(|(_, entry)| {
        let start = entry.start.load(Ordering::Acquire);
        walk(map, start, start + entry.used.load(Ordering::Acquire))
    })
}

/// Offsets and sizes of the blocks from `start` to `end`.
pub(crate) fn walk(map: &Mapping, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut offset = start;
    std::iter::from_fn(move || {
        if offset >= end {
            return None;
        }
        let size = map.true_block(offset)?.size.load(Ordering::Acquire);
        let here = offset;
        offset += size;
        Some((here, size))
    })
}
