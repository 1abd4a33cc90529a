//! How much does an allocator of a process retain of what the program has let go of? By the agent's last reading.
//!
//! malloc says itself what is free in it. Of Python's small pieces only their number is known: what they took at their
//! most, and the memory that is still there, tell what is kept. So does the most that Arrow's pool ever held.
//!
//! The surprise: free memory may have no pages any more (after a `malloc_trim`), so that no more is kept than what
//! blocks in use leave of the private memory.

use crate::history::{Allocator, MemoryReading, MemoryReadings};
use crate::policy::given::{LARGEST_PIECE_BYTES, SMALLEST_PIECE_BYTES};
use crate::policy::growth::{PIECES_MORE, PIECE_BYTES};
use ullage_model::At;

/// What one allocator retains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Retained {
    /// When it was asked, seconds.
    pub(crate) at: At,
    pub(crate) bytes: f64,
    /// Private memory then, and what was handed out in it by this allocator.
    pub(crate) anonymous: f64,
    pub(crate) used: f64,
    /// What `malloc_trim(0)` would give back, of all heaps.
    pub(crate) trimmable: f64,
    /// Heaps of malloc, the first too.
    pub(crate) arenas: u64,
}

/// What this allocator retained at the last reading; none where it was not asked, or is not there.
pub(crate) fn retained(readings: &MemoryReadings, allocator: Allocator) -> Option<Retained> {
    let reading = readings.all.iter().rfind(|reading| reading.malloc.is_some())?;
    let malloc = reading.malloc?;
    let room = (reading.anonymous - reading.in_use()).max(0.0);
    let free = malloc.free.min(room);
    let (bytes, used) = match allocator {
        Allocator::Arenas | Allocator::Heap => {
            let (first, _) = malloc.arenas?;
            let of_it = if allocator == Allocator::Heap { first } else { malloc.free - first };
            (free * of_it / malloc.free.max(1.0), malloc.used)
        }
        Allocator::Jemalloc | Allocator::Tcmalloc => {
            let (_, used, unused) = reading.other.filter(|other| other.0 == allocator)?;
            (unused.min(room), used)
        }
        Allocator::Pymalloc => (pieces(readings, reading), reading.blocks * PIECE_BYTES),
        Allocator::Arrow => {
            let (used, most) = reading.arrow?;
            let room = outside_more(readings, reading, |before| {
                before.arrow.map_or(0.0, |pool| pool.1) < most / 2.0
            });
            ((most - used).clamp(0.0, (room - pieces(readings, reading)).max(0.0)), used)
        }
    };
    Some(Retained {
        at: At::from_seconds(reading.at),
        bytes: bytes.max(0.0),
        anonymous: reading.anonymous,
        used,
        trimmable: malloc.trimmable.min(free),
        arenas: malloc.arenas.map_or(0, |(_, number)| number as u64),
    })
}

/// What allocators have had from the kernel, touched or not, and the private memory, at the last reading before a moment, in
/// seconds, and when it was made; none where none came in time.
pub(crate) fn taken(readings: &MemoryReadings, before: f64) -> Option<(f64, f64, f64)> {
    readings.all.iter().filter(|reading| reading.at <= before).filter_map(taken_at).next_back()
}

/// The same at the reading between two moments that saw most private memory: the last one may come after it was given back.
pub(crate) fn taken_at_peak(readings: &MemoryReadings, after: f64, before: f64) -> Option<(f64, f64, f64)> {
    let then = after..=before;
    let read = readings.all.iter().filter(|reading| then.contains(&reading.at)).filter_map(taken_at);
    read.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn taken_at(reading: &MemoryReading) -> Option<(f64, f64, f64)> {
    reading.malloc.as_ref()?;
    let pool = reading.arrow.map_or(0.0, |(_, most)| most);
    Some((reading.in_use() + reading.free() + pool, reading.anonymous, reading.at))
}

/// Whether Arrow's memory pool, which has an allocator of its own, was ever seen in it.
pub(crate) fn has_arrow(readings: &MemoryReadings) -> bool {
    readings.all.iter().any(|reading| reading.arrow.is_some())
}

/// Private memory that is in no malloc, and was not there at the first reading; that one must have come in time.
fn outside_more(
    readings: &MemoryReadings,
    reading: &MemoryReading,
    in_time: impl Fn(&MemoryReading) -> bool,
) -> f64 {
    let first = readings.all.first().filter(|first| in_time(first));
    first.map_or(0.0, |first| reading.outside() - first.outside())
}

/// What Python's small pieces took that are no more, as far as it is still there.
fn pieces(readings: &MemoryReadings, reading: &MemoryReading) -> f64 {
    let before = readings.all.iter().take_while(|before| before.at < reading.at);
    let Some(most) = before.max_by(|a, b| a.blocks.total_cmp(&b.blocks)) else { return 0.0 };
    let gone = most.blocks - reading.blocks;
    let (Some(first), true) = (readings.all.first(), gone >= PIECES_MORE) else { return 0.0 };
    let (more, room) = match most.blocks - first.blocks {
        more if more >= PIECES_MORE => {
            let each = (most.outside() - first.outside()) / more;
            (each, reading.outside() - first.outside() - (reading.blocks - first.blocks).max(0.0) * each)
        }
        _ => (PIECE_BYTES, reading.outside() - reading.blocks * PIECE_BYTES),
    };
    (gone * more.clamp(SMALLEST_PIECE_BYTES, LARGEST_PIECE_BYTES)).min(room).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MIB: f64 = (1 << 20) as f64;

    fn readings(all: &[&[(&str, f64)]]) -> MemoryReadings {
        let mut readings = MemoryReadings::default();
        for (number, figures) in all.iter().enumerate() {
            let plain = |name: &str| name == "blocks" || name == "malloc_arenas";
            let figures: BTreeMap<String, f64> = figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), if plain(name) { *value } else { value * MIB }))
                .collect();
            readings.add(At::from_seconds(number as f64), &figures);
        }
        readings
    }

    fn retained_mib(readings: &MemoryReadings, allocator: Allocator) -> Option<f64> {
        retained(readings, allocator).map(|retained| (retained.bytes / MIB).round())
    }

    #[test]
    fn what_is_free_in_malloc_is_split_by_heap_and_no_more_than_there_is_room_for() {
        let figures = |anonymous| {
            readings(&[&[
                ("anonymous", anonymous),
                ("malloc_used", 100.0),
                ("malloc_mapped", 50.0),
                ("malloc_free", 400.0),
                ("malloc_free_main", 100.0),
                ("malloc_arenas", 9.0),
                ("malloc_trimmable", 350.0),
            ]])
        };
        let all = figures(700.0);
        assert_eq!(
            (retained_mib(&all, Allocator::Heap), retained_mib(&all, Allocator::Arenas)),
            (Some(100.0), Some(300.0))
        );
        assert_eq!(retained(&all, Allocator::Arenas).map(|retained| retained.arenas), Some(9));
        let trimmed = figures(250.0);
        assert_eq!(
            (retained_mib(&trimmed, Allocator::Heap), retained_mib(&trimmed, Allocator::Arenas)),
            (Some(25.0), Some(75.0))
        );
        assert_eq!(retained_mib(&all, Allocator::Jemalloc), None);
    }

    #[test]
    fn pieces_of_python_that_are_gone_are_retained_where_their_memory_is_still_there() {
        let start: &[_] =
            &[("anonymous", 80.0), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 1e5)];
        let most: &[_] =
            &[("anonymous", 280.0), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 2.1e6)];
        let after = |anonymous| {
            [("anonymous", anonymous), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 1.2e5)]
        };
        assert_eq!(retained_mib(&readings(&[start, most, &after(270.0)]), Allocator::Pymalloc), Some(188.0));
        assert_eq!(
            retained_mib(&readings(&[start, most, &after(82.0)]), Allocator::Pymalloc),
            Some(0.0),
            "given back"
        );
        assert_eq!(retained_mib(&readings(&[start, most]), Allocator::Pymalloc), Some(0.0), "in use");
    }

    #[test]
    fn arrow_retains_what_its_pool_had_and_what_is_still_there() {
        let reading = |anonymous, used, peak| {
            [
                ("anonymous", anonymous),
                ("malloc_used", 50.0),
                ("malloc_free", 0.0),
                ("arrow_used", used),
                ("arrow_peak", peak),
            ]
        };
        let retained_mib = |anonymous, used| {
            let all =
                [reading(100.0, 0.0, 0.0), reading(600.0, 500.0, 500.0), reading(anonymous, used, 500.0)];
            retained_mib(&readings(&[&all[0], &all[1], &all[2]]), Allocator::Arrow)
        };
        assert_eq!(retained_mib(500.0, 10.0), Some(400.0));
        assert_eq!(retained_mib(110.0, 10.0), Some(10.0));
        assert_eq!(retained_mib(600.0, 500.0), Some(0.0));
    }
}
