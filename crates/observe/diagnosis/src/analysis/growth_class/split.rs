//! How does the growth of one Python split: objects of Python, blocks of native code, tensors, and what is free inside the
//! allocator?
//!
//! The split is of differences between two readings, so that whatever the process held before the growth is in none of it.
//! The surprise: free bytes of malloc may have no pages any more, after a `malloc_trim`; so free memory explains no more than
//! what blocks in use leave of the growth.

use crate::history::{MemoryReading, MemoryReadings, Walk};
use crate::policy::given::LARGEST_PIECE_BYTES;
use crate::policy::growth::{BEFORE_GROWTH_S, SAW_ENOUGH, SAW_NOTHING};
use ullage_model::GrowthClass;

/// How growth of private memory by `by` bytes splits that began at `since`; none where nothing was said that tells.
/// `rests`: from when to when it is at rest. Blocks that come and go meanwhile are as a reading happens to find them: then
/// the median of that time stands for all of it.
pub(crate) fn split(
    readings: &MemoryReadings,
    since: f64,
    by: f64,
    rests: Option<(f64, f64)>,
) -> Option<Vec<(GrowthClass, f64)>> {
    let asked = || readings.all.iter().filter(|reading| reading.malloc.is_some());
    let saw = |before: &MemoryReading| {
        let seen = |reading: &&MemoryReading| {
            reading.at > before.at && reading.anonymous - before.anonymous >= SAW_ENOUGH * by
        };
        rests.and_then(|rests| median(asked().filter(seen), rests)).or_else(|| asked().rfind(seen))
    };
    let with_growth =
        |before: Option<&'_ MemoryReading>| before.and_then(|before| Some((*before, *saw(before)?)));
    let at_once =
        || with_growth(asked().rfind(|reading| reading.at <= since + BEFORE_GROWTH_S).or(asked().next()));
    // As long as a process is small, malloc is not asked.
    let small = || {
        with_growth(
            readings
                .all
                .iter()
                .rfind(|reading| reading.at <= since + BEFORE_GROWTH_S)
                .or(readings.all.first()),
        )
    };
    let (before, now) = at_once().or_else(small)?;
    let (before, now) = (&before, &now);
    let grown = now.anonymous - before.anonymous;
    // Of a small heap little is free: then what is free now came since.
    let room = if before.malloc.is_some() { grown } else { grown - now.free().clamp(0.0, grown) };
    let used = (now.in_use() - before.in_use()).clamp(0.0, room);
    let walked = walked(readings, before, now, grown);
    let tensors = walked.map_or(0.0, |walk| walk.tensors).clamp(0.0, used);
    let large = walked.map_or(0.0, |walk| walk.python).clamp(0.0, used - tensors);
    let native = used - tensors - large;
    let rest = grown - used;
    let free = (now.free() - before.free()).clamp(0.0, rest);
    let rest = rest - free;
    // Not in malloc: Python's small pieces, as many as there are, or such that it keeps; else mappings of native code.
    let pieces = ((now.blocks - before.blocks) * LARGEST_PIECE_BYTES).clamp(0.0, rest);
    let most = readings.all.iter().map(|reading| reading.blocks).fold(0.0, f64::max);
    let retained = ((most - now.blocks) * LARGEST_PIECE_BYTES).clamp(0.0, rest - pieces);
    let pool = |reading: &MemoryReading| reading.arrow.map_or(0.0, |(used, most)| most - used);
    let arrow = (pool(now) - pool(before)).clamp(0.0, rest - pieces - retained);
    let other = rest - pieces - retained - arrow;
    let unknown = if walked.is_none() { native + large } else { 0.0 };
    let scale = by / grown;
    let parts = [
        (GrowthClass::LiveTensors, tensors),
        (GrowthClass::LivePythonObjects, pieces + if walked.is_some() { large } else { 0.0 }),
        (GrowthClass::LiveNativeBlocks, other + if walked.is_some() { native } else { 0.0 }),
        (GrowthClass::LiveGrowth, unknown),
        (GrowthClass::FreedButHeld, free + retained + arrow),
    ];
    Some(parts.into_iter().filter(|part| part.1 > 0.0).map(|(class, bytes)| (class, bytes * scale)).collect())
}

/// What the walks say of so much growth: the latest one that saw some of it.
fn walked(
    readings: &MemoryReadings,
    before: &MemoryReading,
    now: &MemoryReading,
    grown: f64,
) -> Option<Walk> {
    let seen = |reading: &&MemoryReading| {
        reading.walk.is_some() && reading.anonymous - before.anonymous >= SAW_ENOUGH * grown
    };
    let last = readings.all.iter().filter(|reading| reading.at <= now.at).rfind(seen)?;
    let first = readings.all.iter().find(|reading| reading.walk.is_some() && reading.at < last.at);
    let held = first.filter(|first| first.anonymous <= before.anonymous + SAW_NOTHING * grown);
    let base = held.and_then(|reading| reading.walk).unwrap_or_default();
    let walk = last.walk?;
    let scale = grown / (last.anonymous - before.anonymous);
    Some(Walk { tensors: (walk.tensors - base.tensors) * scale, python: (walk.python - base.python) * scale })
}

/// The reading of the median in use over a stretch of time. Nothing is told while nothing moves, so that each stands until the
/// next.
fn median<'a>(
    readings: impl Iterator<Item = &'a MemoryReading>,
    (from, to): (f64, f64),
) -> Option<&'a MemoryReading> {
    let readings: Vec<&MemoryReading> = readings.collect();
    let until = readings.iter().skip(1).map(|reading| reading.at).chain([to]);
    let stood =
        readings.iter().zip(until).map(|(reading, until)| (*reading, until.min(to) - reading.at.max(from)));
    let mut stood: Vec<(&MemoryReading, f64)> = stood.filter(|(_, seconds)| *seconds > 0.0).collect();
    stood.sort_by(|a, b| a.0.in_use().total_cmp(&b.0.in_use()));
    let half = stood.iter().map(|(_, seconds)| seconds).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    stood.into_iter().find_map(|(reading, seconds)| {
        passed += seconds;
        (passed >= half).then_some(reading)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::At;

    const MIB: f64 = (1 << 20) as f64;

    fn readings(all: &[(f64, &[(&str, f64)])]) -> MemoryReadings {
        let mut readings = MemoryReadings::default();
        for (at, figures) in all {
            let figures = figures.iter().map(|(name, value)| {
                ((*name).to_owned(), if *name == "blocks" { *value } else { value * MIB })
            });
            readings.add(At::from_seconds(*at), &figures.collect());
        }
        readings
    }

    fn shares(readings: &MemoryReadings, by: f64) -> Vec<(GrowthClass, f64)> {
        let parts = split(readings, 2.0, by * MIB, None).unwrap();
        parts.into_iter().map(|(class, bytes)| (class, (bytes / MIB).round())).collect()
    }

    const START: (f64, &[(&str, f64)]) =
        (1.0, &[("anonymous", 200.0), ("blocks", 600_000.0), ("malloc_used", 100.0), ("malloc_free", 2.0)]);

    #[test]
    fn tensors_are_what_the_walk_found_of_what_malloc_uses() {
        let end: &[_] = &[
            ("anonymous", 400.0),
            ("blocks", 600_500.0),
            ("malloc_used", 296.0),
            ("malloc_free", 4.0),
            ("tensors", 190.0),
            ("python_large", 1.0),
        ];
        let parts = shares(&readings(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts[0], (GrowthClass::LiveTensors, 190.0));
        assert_eq!(parts.iter().map(|part| part.1).sum::<f64>(), 200.0);
    }

    #[test]
    fn small_pieces_lie_outside_of_malloc() {
        let end: &[_] = &[
            ("anonymous", 400.0),
            ("blocks", 3_000_000.0),
            ("malloc_used", 102.0),
            ("malloc_free", 2.0),
            ("tensors", 0.0),
            ("python_large", 1.0),
        ];
        let parts = shares(&readings(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts[0], (GrowthClass::LivePythonObjects, 199.0));
    }

    #[test]
    fn a_process_that_was_too_small_to_be_asked_had_little_free() {
        let small: (f64, &[_]) = (1.0, &[("anonymous", 40.0), ("blocks", 100_000.0)]);
        let end = |used, free| {
            [("anonymous", 160.0), ("blocks", 100_000.0), ("malloc_used", used), ("malloc_free", free)]
        };
        let most = |parts: Vec<(GrowthClass, f64)>| parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let parts = |end: &[_]| most(shares(&readings(&[small, (30.0, end)]), 120.0)).unwrap();
        assert_eq!(parts(&end(30.0, 118.0)), (GrowthClass::FreedButHeld, 118.0));
        assert_eq!(parts(&end(150.0, 2.0)), (GrowthClass::LiveGrowth, 118.0));
    }

    #[test]
    fn free_memory_explains_no_more_than_what_is_resident() {
        let end: &[_] = &[("anonymous", 400.0), ("malloc_used", 110.0), ("malloc_free", 900.0)];
        let parts = shares(&readings(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts, [(GrowthClass::LiveGrowth, 10.0), (GrowthClass::FreedButHeld, 190.0)]);
    }

    #[test]
    fn without_a_reading_at_the_growth_nothing_is_said() {
        assert_eq!(split(&readings(&[START]), 2.0, 100.0 * MIB, None), None);
        assert_eq!(split(&MemoryReadings::default(), 2.0, 100.0 * MIB, None), None);
    }

    #[test]
    fn of_a_growth_at_rest_what_stood_for_most_of_the_time_stands_for_all() {
        let reading = |used: f64| {
            [
                ("anonymous", 400.0),
                ("blocks", 600_000.0),
                ("malloc_used", used),
                ("malloc_free", 300.0 - used),
            ]
        };
        let (busy, idle) = (reading(290.0), reading(100.0));
        let all = [(20.0, &busy), (24.0, &busy), (25.0, &busy), (26.0, &idle), (31.0, &busy), (32.0, &busy)];
        let all: Vec<(f64, &[_])> = all.iter().map(|(at, reading)| (*at, &reading[..])).collect();
        let all = readings(&[&[START], &all[..]].concat());
        let freed = |rests| {
            let parts = split(&all, 2.0, 200.0 * MIB, rests).unwrap();
            parts
                .into_iter()
                .find(|part| part.0 == GrowthClass::FreedButHeld)
                .map_or(0.0, |part| part.1 / MIB)
        };
        assert_eq!((freed(None), freed(Some((24.0, 33.0))), freed(Some((24.0, 37.0)))), (8.0, 198.0, 8.0));
    }
}
