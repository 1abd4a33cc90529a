//! Who holds how much of an arena, and since when? Read from the blocks' headers; nothing is stopped for it.

use crate::layout::Header;
use crate::mapping::Mapping;
use crate::slots;
use crate::state::{State, HELD, PRODUCER, RETIRED, SENT};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Blocks of one retainer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// pid of the retainer; zero where tickets are on their way.
    pub pid: u32,
    /// Blocks.
    pub blocks: u64,
    /// Bytes, headers included.
    pub bytes: u64,
    /// Age of the oldest, in seconds; zero where it was not noted.
    pub oldest_s: u64,
}

/// How bytes of messages travelled, of all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Travelled {
    /// Copied into the arena by their sender.
    pub copied: u64,
    /// Made in the arena, and handed over in place.
    pub in_place: u64,
    /// In segments of another library, the arena passed by.
    pub passed_by: u64,
}

/// An arena at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes of the file with memory behind them.
    pub committed: u64,
    /// Bytes in blocks that somebody holds.
    pub in_use: u64,
    /// Bytes that were moved away under their readers.
    pub retired: u64,
    /// How the bytes of all messages so far travelled.
    pub travelled: Travelled,
    /// Largest first.
    pub holdings: Vec<Holding>,
}

/// Seconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> u64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_sec as u64
}

pub(crate) fn travelled(header: &Header) -> Travelled {
    let [copied, in_place, passed_by] = &header.travelled;
    let load = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Relaxed);
    Travelled { copied: load(copied), in_place: load(in_place), passed_by: load(passed_by) }
}

pub(crate) fn report(map: &Mapping) -> Report {
    let header = map.header();
    let mut report = Report { committed: map.committed(), travelled: travelled(header), ..Report::default() };
    let mut holdings: BTreeMap<u32, Holding> = BTreeMap::new();
    let now = now();
    for (_, entry) in crate::heap::regions(header) {
        let heap = entry.heap.load(Ordering::Acquire) as usize - 1;
        let owner = header.heaps.get(heap).map_or(0, |heap| heap.owner.load(Ordering::Relaxed));
        let (start, length) = (entry.start.load(Ordering::Acquire), entry.used.load(Ordering::Acquire));
        for (offset, size) in crate::heap::walk(map, start, start + length) {
            let Some(block) = map.block(offset) else { continue };
            let state = State::of(block.state.load(Ordering::Acquire));
            if state.has(RETIRED) {
                report.retired += size;
                continue;
            }
            let pid = if state.has(HELD) {
                slots::pid(header, state.retainer)
            } else if state.has(SENT) {
                0
            } else if state.has(PRODUCER) {
                slots::pid(header, owner as u16)
            } else {
                continue;
            };
            let since = block.since.load(Ordering::Relaxed);
            let holding = holdings.entry(pid).or_insert(Holding { pid, ..Holding::default() });
            holding.blocks += 1;
            holding.bytes += size;
            if since != 0 {
                holding.oldest_s = holding.oldest_s.max(now.saturating_sub(since));
            }
            report.in_use += size;
        }
    }
    report.holdings = holdings.into_values().collect();
    report.holdings.sort_by_key(|holding| std::cmp::Reverse(holding.bytes));
    report
}
