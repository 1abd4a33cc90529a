//! What the agent said of the private memory of one Python over time, and how that splits growth: objects of Python, blocks
//! of native code, tensors, and what is free inside the allocator.
//!
//! The split is of differences between two looks, so that whatever the process held before the growth is in none of it. The
//! surprise: free bytes of malloc may have no pages any more, after a `malloc_trim`; so free memory explains no more than
//! what blocks in use leave of the growth.

use super::hoard::Keeper;
use std::collections::BTreeMap;
use ullage_model::{figure, At, GrowthClass, MallocFigures};

/// Looks kept of one process; beyond it, every second one is forgotten.
const MOST: usize = 64;
/// Python's own allocator hands out pieces of at most this.
const SMALL: f64 = 512.0;
/// Bytes that are read from a disk for a byte of a mapped library.
const READ_AHEAD: f64 = 1.5;
/// A look that saw this share of the growth stands for all of it.
const ENOUGH: f64 = 0.4;

/// One look, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    pub(super) at: f64,
    pub(super) anonymous: f64,
    /// Pieces of memory that Python has handed out.
    pub(super) blocks: f64,
    pub(super) malloc: Option<MallocFigures>,
    /// Another allocator in malloc's place: in use, and kept beside that.
    pub(super) other: Option<(Keeper, f64, f64)>,
    /// Arrow's pool: in use, and the most that it ever was.
    pub(super) arrow: Option<(f64, f64)>,
    walk: Option<Walk>,
    io_disk: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Walk {
    tensors: f64,
    /// Of Python's objects, what lies in malloc.
    python: f64,
}

impl Look {
    /// Handed out by whichever malloc there is.
    pub(super) fn in_use(&self) -> f64 {
        let glibc = self.malloc.map_or(0.0, |malloc| malloc.used + malloc.mapped);
        glibc + self.other.map_or(0.0, |(_, used, _)| used)
    }

    /// Kept by it beside that.
    pub(super) fn free(&self) -> f64 {
        self.malloc.map_or(0.0, |malloc| malloc.free) + self.other.map_or(0.0, |(.., free)| free)
    }

    /// Private memory that is in no malloc: Python's small pieces, Arrow's pool, other mappings.
    pub(super) fn outside(&self) -> f64 {
        (self.anonymous - self.in_use() - self.free()).max(0.0)
    }
}

/// All of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    pub(super) all: Vec<Look>,
    /// Bytes that came from or went to a disk, as told at its end.
    io_at_end: Option<f64>,
}

impl Looks {
    pub(crate) fn add(&mut self, at: At, figures: &BTreeMap<String, f64>) {
        let get = |name: &str| figure(figures, name);
        let Some(anonymous) = get("anonymous") else { return };
        let walk = get("tensors").zip(get("python_large"));
        if self.all.len() >= MOST {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.all.push(Look {
            at: at.seconds(),
            anonymous,
            blocks: get("blocks").unwrap_or(0.0),
            malloc: MallocFigures::of(figures),
            other: [(Keeper::Jemalloc, "jemalloc"), (Keeper::Tcmalloc, "tcmalloc")].into_iter().find_map(
                |(keeper, name)| Some((keeper, get(&format!("{name}_used"))?, get(&format!("{name}_free"))?)),
            ),
            arrow: get("arrow_used").zip(get("arrow_peak")),
            walk: walk.map(|(tensors, python)| Walk { tensors, python }),
            io_disk: get("io_disk"),
        });
    }

    /// The process says its last word.
    pub(crate) fn end(&mut self, figures: &BTreeMap<String, f64>) {
        self.io_at_end = figures.get("io_disk").copied();
    }

    /// Bytes from and to a disk since this moment, or its first look after it. Where no look was made: without those of its
    /// `libraries`, bytes of mapped files, and what the kernel read ahead in them.
    pub(crate) fn disk(&self, since: f64, libraries: f64) -> Option<f64> {
        let told = || self.all.iter().filter(|look| look.io_disk.is_some());
        let first = told().rfind(|look| look.at <= since).or(told().next());
        let first = first.and_then(|look| look.io_disk).unwrap_or(READ_AHEAD * libraries);
        let last = self.io_at_end.or_else(|| self.all.last().and_then(|look| look.io_disk))?;
        Some((last - first).max(0.0))
    }

    /// How growth of private memory by `by` bytes splits that began at `since`; none where nothing was said that tells.
    /// `rests`: from when to when it is at rest. Blocks that come and go meanwhile are as a look happens to find them: then
    /// the median of that time stands for all of it.
    pub(crate) fn split(
        &self,
        since: f64,
        by: f64,
        rests: Option<(f64, f64)>,
    ) -> Option<Vec<(GrowthClass, f64)>> {
        let asked = || self.all.iter().filter(|look| look.malloc.is_some());
        let saw = |before: &Look| {
            let seen = |look: &&Look| look.at > before.at && look.anonymous - before.anonymous >= ENOUGH * by;
            rests.and_then(|rests| median(asked().filter(seen), rests)).or_else(|| asked().rfind(seen))
        };
        let with_growth = |before: Option<&'_ Look>| before.and_then(|before| Some((*before, *saw(before)?)));
        let at_once = || with_growth(asked().rfind(|look| look.at <= since + 0.5).or(asked().next()));
        // As long as a process is small, malloc is not asked.
        let small = || with_growth(self.all.iter().rfind(|look| look.at <= since + 0.5).or(self.all.first()));
        let (before, now) = at_once().or_else(small)?;
        let (before, now) = (&before, &now);
        let grown = now.anonymous - before.anonymous;
        // Of a small heap little is free: then what is free now came since.
        let room = if before.malloc.is_some() { grown } else { grown - now.free().clamp(0.0, grown) };
        let used = (now.in_use() - before.in_use()).clamp(0.0, room);
        let walked = self.walked(before, now, grown);
        let tensors = walked.map_or(0.0, |walk| walk.tensors).clamp(0.0, used);
        let large = walked.map_or(0.0, |walk| walk.python).clamp(0.0, used - tensors);
        let native = used - tensors - large;
        let rest = grown - used;
        let free = (now.free() - before.free()).clamp(0.0, rest);
        let rest = rest - free;
        // Not in malloc: Python's small pieces, as many as there are, or such that it keeps; else mappings of native code.
        let pieces = ((now.blocks - before.blocks) * SMALL).clamp(0.0, rest);
        let most = self.all.iter().map(|look| look.blocks).fold(0.0, f64::max);
        let kept = ((most - now.blocks) * SMALL).clamp(0.0, rest - pieces);
        let pool = |look: &Look| look.arrow.map_or(0.0, |(used, most)| most - used);
        let arrow = (pool(now) - pool(before)).clamp(0.0, rest - pieces - kept);
        let other = rest - pieces - kept - arrow;
        let unknown = if walked.is_none() { native + large } else { 0.0 };
        let scale = by / grown;
        let parts = [
            (GrowthClass::LiveTensors, tensors),
            (GrowthClass::LivePythonObjects, pieces + if walked.is_some() { large } else { 0.0 }),
            (GrowthClass::LiveNativeBlocks, other + if walked.is_some() { native } else { 0.0 }),
            (GrowthClass::LiveGrowth, unknown),
            (GrowthClass::FreedButHeld, free + kept + arrow),
        ];
        Some(
            parts
                .into_iter()
                .filter(|part| part.1 > 0.0)
                .map(|(class, bytes)| (class, bytes * scale))
                .collect(),
        )
    }

    /// What the walks say of so much growth: the latest one that saw some of it.
    fn walked(&self, before: &Look, now: &Look, grown: f64) -> Option<Walk> {
        let seen = |look: &&Look| look.walk.is_some() && look.anonymous - before.anonymous >= ENOUGH * grown;
        let last = self.all.iter().filter(|look| look.at <= now.at).rfind(seen)?;
        let first = self.all.iter().find(|look| look.walk.is_some() && look.at < last.at);
        let held = first.filter(|first| first.anonymous <= before.anonymous + 0.1 * grown);
        let base = held.and_then(|look| look.walk).unwrap_or_default();
        let walk = last.walk?;
        let scale = grown / (last.anonymous - before.anonymous);
        Some(Walk {
            tensors: (walk.tensors - base.tensors) * scale,
            python: (walk.python - base.python) * scale,
        })
    }
}

/// The look of the median in use over a stretch of time. Nothing is told while nothing moves, so that each stands until the
/// next.
fn median<'a>(looks: impl Iterator<Item = &'a Look>, (from, to): (f64, f64)) -> Option<&'a Look> {
    let looks: Vec<&Look> = looks.collect();
    let until = looks.iter().skip(1).map(|look| look.at).chain([to]);
    let stood = looks.iter().zip(until).map(|(look, until)| (*look, until.min(to) - look.at.max(from)));
    let mut stood: Vec<(&Look, f64)> = stood.filter(|(_, seconds)| *seconds > 0.0).collect();
    stood.sort_by(|a, b| a.0.in_use().total_cmp(&b.0.in_use()));
    let half = stood.iter().map(|(_, seconds)| seconds).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    stood.into_iter().find_map(|(look, seconds)| {
        passed += seconds;
        (passed >= half).then_some(look)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    fn looks(all: &[(f64, &[(&str, f64)])]) -> Looks {
        let mut looks = Looks::default();
        for (at, figures) in all {
            let figures = figures.iter().map(|(name, value)| {
                ((*name).to_owned(), if *name == "blocks" { *value } else { value * MIB })
            });
            looks.add(At::from_seconds(*at), &figures.collect());
        }
        looks
    }

    fn shares(looks: &Looks, by: f64) -> Vec<(GrowthClass, f64)> {
        let parts = looks.split(2.0, by * MIB, None).unwrap();
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
        let parts = shares(&looks(&[START, (30.0, end)]), 200.0);
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
        let parts = shares(&looks(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts[0], (GrowthClass::LivePythonObjects, 199.0));
    }

    #[test]
    fn a_process_that_was_too_small_to_be_asked_had_little_free() {
        let small: (f64, &[_]) = (1.0, &[("anonymous", 40.0), ("blocks", 100_000.0)]);
        let end = |used, free| {
            [("anonymous", 160.0), ("blocks", 100_000.0), ("malloc_used", used), ("malloc_free", free)]
        };
        let most = |parts: Vec<(GrowthClass, f64)>| parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let parts = |end: &[_]| most(shares(&looks(&[small, (30.0, end)]), 120.0)).unwrap();
        assert_eq!(parts(&end(30.0, 118.0)), (GrowthClass::FreedButHeld, 118.0));
        assert_eq!(parts(&end(150.0, 2.0)), (GrowthClass::LiveGrowth, 118.0));
    }

    #[test]
    fn free_memory_explains_no_more_than_what_is_resident() {
        let end: &[_] = &[("anonymous", 400.0), ("malloc_used", 110.0), ("malloc_free", 900.0)];
        let parts = shares(&looks(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts, [(GrowthClass::LiveGrowth, 10.0), (GrowthClass::FreedButHeld, 190.0)]);
    }

    #[test]
    fn without_a_look_at_the_growth_nothing_is_said() {
        assert_eq!(looks(&[START]).split(2.0, 100.0 * MIB, None), None);
        assert_eq!(Looks::default().split(2.0, 100.0 * MIB, None), None);
    }

    #[test]
    fn of_a_growth_at_rest_what_stood_for_most_of_the_time_stands_for_all() {
        let look = |used: f64| {
            [
                ("anonymous", 400.0),
                ("blocks", 600_000.0),
                ("malloc_used", used),
                ("malloc_free", 300.0 - used),
            ]
        };
        let (busy, idle) = (look(290.0), look(100.0));
        let all = [(20.0, &busy), (24.0, &busy), (25.0, &busy), (26.0, &idle), (31.0, &busy), (32.0, &busy)];
        let all: Vec<(f64, &[_])> = all.iter().map(|(at, look)| (*at, &look[..])).collect();
        let all = looks(&[&[START], &all[..]].concat());
        let freed = |rests| {
            let parts = all.split(2.0, 200.0 * MIB, rests).unwrap();
            parts
                .into_iter()
                .find(|part| part.0 == GrowthClass::FreedButHeld)
                .map_or(0.0, |part| part.1 / MIB)
        };
        assert_eq!((freed(None), freed(Some((24.0, 33.0))), freed(Some((24.0, 37.0)))), (8.0, 198.0, 8.0));
    }

    #[test]
    fn what_went_through_a_disk_is_told_at_the_end() {
        let mut looks = looks(&[(1.0, &[("anonymous", 200.0), ("io_disk", 15.0)])]);
        assert_eq!(looks.disk(2.0, 0.0), Some(0.0));
        let end = BTreeMap::from([("io_disk".to_owned(), 75.0 * MIB)]);
        looks.end(&end);
        assert_eq!(looks.disk(2.0, 0.0), Some(60.0 * MIB));
        let mut unseen = Looks::default();
        unseen.end(&end);
        assert_eq!(unseen.disk(2.0, 20.0 * MIB), Some(45.0 * MIB));
    }
}
