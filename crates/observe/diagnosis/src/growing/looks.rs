//! What the agent said of the private memory of one Python over time, and how that splits growth: objects of Python, blocks
//! of native code, tensors, and what is free inside the allocator.
//!
//! The split is of differences between two looks, so that whatever the process held before the growth is in none of it. The
//! surprise: free bytes of malloc may have no pages any more, after a `malloc_trim`; so free memory explains no more than
//! what blocks in use leave of the growth.

use std::collections::BTreeMap;
use ullage_model::{At, GrowthClass};

/// Looks kept of one process; beyond it, every second one is forgotten.
const MOST: usize = 64;
/// Python's own allocator hands out pieces of at most this.
const SMALL: f64 = 512.0;
/// A first look that came so late, seconds, is no beginning.
const SOON: f64 = 3.0;
/// A look that saw this share of the growth stands for all of it.
const ENOUGH: f64 = 0.4;

/// One look, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Look {
    at: f64,
    anonymous: f64,
    /// Pieces of memory that Python has handed out.
    blocks: f64,
    malloc: Option<Malloc>,
    walk: Option<Walk>,
    io_disk: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Malloc {
    /// In use, those that are mappings of their own too.
    used: f64,
    free: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Walk {
    tensors: f64,
    /// Of Python's objects, what lies in malloc.
    python: f64,
}

/// All of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    all: Vec<Look>,
    /// Bytes that came from or went to a disk, as told at its end.
    io_at_end: Option<f64>,
}

impl Looks {
    pub(crate) fn add(&mut self, at: At, figures: &BTreeMap<String, f64>) {
        let get = |name: &str| figures.get(name).copied().filter(|value| value.is_finite() && *value >= 0.0);
        let Some(anonymous) = get("anonymous") else { return };
        let malloc = get("malloc_used").zip(get("malloc_free"));
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
            malloc: malloc
                .map(|(used, free)| Malloc { used: used + get("malloc_mapped").unwrap_or(0.0), free }),
            walk: walk.map(|(tensors, python)| Walk { tensors, python }),
            io_disk: get("io_disk"),
        });
    }

    /// The process says its last word.
    pub(crate) fn end(&mut self, figures: &BTreeMap<String, f64>) {
        self.io_at_end = figures.get("io_disk").copied();
    }

    /// Bytes from and to a disk since this moment, or its first look after it: not those of the libraries it loaded.
    pub(crate) fn disk(&self, since: f64) -> Option<f64> {
        let told = || self.all.iter().filter(|look| look.io_disk.is_some());
        let first =
            told().rfind(|look| look.at <= since).or(told().next().filter(|look| look.at < since + SOON));
        let first = first.and_then(|look| look.io_disk).unwrap_or(0.0);
        let last = self.io_at_end.or_else(|| self.all.last().and_then(|look| look.io_disk))?;
        Some((last - first).max(0.0))
    }

    /// How growth of private memory by `by` bytes between two moments splits; none where nothing was said that tells.
    pub(crate) fn split(&self, since: f64, by: f64) -> Option<Vec<(GrowthClass, f64)>> {
        let asked = || self.all.iter().filter(|look| look.malloc.is_some());
        let before = asked().rfind(|look| look.at <= since + 0.5).or(asked().next())?;
        let now =
            asked().rfind(|look| look.at > before.at && look.anonymous - before.anonymous >= ENOUGH * by)?;
        let grown = now.anonymous - before.anonymous;
        let (m0, m1) = (before.malloc?, now.malloc?);
        let used = (m1.used - m0.used).clamp(0.0, grown);
        let walked = self.walked(before, now, grown);
        let tensors = walked.map_or(0.0, |walk| walk.tensors).clamp(0.0, used);
        let large = walked.map_or(0.0, |walk| walk.python).clamp(0.0, used - tensors);
        let native = used - tensors - large;
        let rest = grown - used;
        let free = (m1.free - m0.free).clamp(0.0, rest);
        let rest = rest - free;
        // Not in malloc: Python's small pieces, as many as there are, or such that it keeps; else mappings of native code.
        let pieces = ((now.blocks - before.blocks) * SMALL).clamp(0.0, rest);
        let most = self.all.iter().map(|look| look.blocks).fold(0.0, f64::max);
        let kept = ((most - now.blocks) * SMALL).clamp(0.0, rest - pieces);
        let other = rest - pieces - kept;
        let unknown = if walked.is_none() { native + large } else { 0.0 };
        let scale = by / grown;
        let parts = [
            (GrowthClass::LiveTensors, tensors),
            (GrowthClass::LivePythonObjects, pieces + if walked.is_some() { large } else { 0.0 }),
            (GrowthClass::LiveNativeBlocks, other + if walked.is_some() { native } else { 0.0 }),
            (GrowthClass::LiveGrowth, unknown),
            (GrowthClass::FreedButHeld, free + kept),
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
        let parts = looks.split(2.0, by * MIB).unwrap();
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
    fn free_memory_explains_no_more_than_what_is_resident() {
        let end: &[_] = &[("anonymous", 400.0), ("malloc_used", 110.0), ("malloc_free", 900.0)];
        let parts = shares(&looks(&[START, (30.0, end)]), 200.0);
        assert_eq!(parts, [(GrowthClass::LiveGrowth, 10.0), (GrowthClass::FreedButHeld, 190.0)]);
    }

    #[test]
    fn without_a_look_at_the_growth_nothing_is_said() {
        assert_eq!(looks(&[START]).split(2.0, 100.0 * MIB), None);
        assert_eq!(Looks::default().split(2.0, 100.0 * MIB), None);
    }

    #[test]
    fn what_went_through_a_disk_is_told_at_the_end() {
        let mut looks = looks(&[(1.0, &[("anonymous", 200.0), ("io_disk", 15.0)])]);
        assert_eq!(looks.disk(2.0), Some(0.0));
        looks.end(&BTreeMap::from([("io_disk".to_owned(), 75.0 * MIB)]));
        assert_eq!(looks.disk(2.0), Some(60.0 * MIB));
    }
}
