//! What the agent reported of the private memory of one Python, over time: what allocators have handed out and what is free
//! in them.

use crate::policy::given::READ_AHEAD;
use std::collections::BTreeMap;
use ullage_model::{figure, At, MallocFigures};

/// Readings kept of one process; beyond it, every second one is forgotten.
const MOST_READINGS: usize = 64;

/// An allocator that may retain memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocator {
    /// Arenas of threads, of glibc's malloc.
    Arenas,
    /// Its first heap.
    Heap,
    /// Python's allocator of small pieces.
    Pymalloc,
    /// In malloc's place.
    Jemalloc,
    /// Likewise.
    Tcmalloc,
    /// Arrow's pool, with an allocator of its own.
    Arrow,
}

impl Allocator {
    pub(crate) const ALL: [Allocator; 6] = [
        Allocator::Arenas,
        Allocator::Heap,
        Allocator::Pymalloc,
        Allocator::Jemalloc,
        Allocator::Tcmalloc,
        Allocator::Arrow,
    ];
}

/// One reading, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MemoryReading {
    pub(crate) at: f64,
    pub(crate) anonymous: f64,
    /// Pieces of memory that Python has handed out.
    pub(crate) blocks: f64,
    pub(crate) malloc: Option<MallocFigures>,
    /// Another allocator in malloc's place: in use, and kept beside that.
    pub(crate) other: Option<(Allocator, f64, f64)>,
    /// Arrow's pool: in use, and the most that it ever was.
    pub(crate) arrow: Option<(f64, f64)>,
    pub(crate) walk: Option<Walk>,
    io_disk: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Walk {
    pub(crate) tensors: f64,
    /// Of Python's objects, what lies in malloc.
    pub(crate) python: f64,
}

impl MemoryReading {
    /// Handed out by whichever malloc there is.
    pub(crate) fn in_use(&self) -> f64 {
        let glibc = self.malloc.map_or(0.0, |malloc| malloc.used + malloc.mapped);
        glibc + self.other.map_or(0.0, |(_, used, _)| used)
    }

    /// Kept by it beside that.
    pub(crate) fn free(&self) -> f64 {
        self.malloc.map_or(0.0, |malloc| malloc.free) + self.other.map_or(0.0, |(.., free)| free)
    }

    /// Private memory that is in no malloc: Python's small pieces, Arrow's pool, other mappings.
    pub(crate) fn outside(&self) -> f64 {
        (self.anonymous - self.in_use() - self.free()).max(0.0)
    }
}

/// All of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryReadings {
    pub(crate) all: Vec<MemoryReading>,
    /// Bytes that came from or went to a disk, as told at its end.
    io_at_end: Option<f64>,
}

impl MemoryReadings {
    pub(crate) fn add(&mut self, at: At, figures: &BTreeMap<String, f64>) {
        let get = |name: &str| figure(figures, name);
        let Some(anonymous) = get("anonymous") else { return };
        let walk = get("tensors").zip(get("python_large"));
        if self.all.len() >= MOST_READINGS {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.all.push(MemoryReading {
            at: at.seconds(),
            anonymous,
            blocks: get("blocks").unwrap_or(0.0),
            malloc: MallocFigures::of(figures),
            other: [(Allocator::Jemalloc, "jemalloc"), (Allocator::Tcmalloc, "tcmalloc")]
                .into_iter()
                .find_map(|(allocator, name)| {
                    Some((allocator, get(&format!("{name}_used"))?, get(&format!("{name}_free"))?))
                }),
            arrow: get("arrow_used").zip(get("arrow_peak")),
            walk: walk.map(|(tensors, python)| Walk { tensors, python }),
            io_disk: get("io_disk"),
        });
    }

    /// The process says its last word.
    pub(crate) fn end(&mut self, figures: &BTreeMap<String, f64>) {
        self.io_at_end = figures.get("io_disk").copied();
    }

    /// Bytes from and to a disk since this moment, or its first reading after it. Where no reading was made: without those of its
    /// `libraries`, bytes of mapped files, and what the kernel read ahead in them.
    pub(crate) fn disk(&self, since: f64, libraries: f64) -> Option<f64> {
        let with_disk = || self.all.iter().filter(|reading| reading.io_disk.is_some());
        let first = with_disk().rfind(|reading| reading.at <= since).or(with_disk().next());
        let first = first.and_then(|reading| reading.io_disk).unwrap_or(READ_AHEAD * libraries);
        let last = self.io_at_end.or_else(|| self.all.last().and_then(|reading| reading.io_disk))?;
        Some((last - first).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_went_through_a_disk_is_reported_at_the_end() {
        let mut readings = readings(&[(1.0, &[("anonymous", 200.0), ("io_disk", 15.0)])]);
        assert_eq!(readings.disk(2.0, 0.0), Some(0.0));
        let end = BTreeMap::from([("io_disk".to_owned(), 75.0 * MIB)]);
        readings.end(&end);
        assert_eq!(readings.disk(2.0, 0.0), Some(60.0 * MIB));
        let mut unseen = MemoryReadings::default();
        unseen.end(&end);
        assert_eq!(unseen.disk(2.0, 20.0 * MIB), Some(45.0 * MIB));
    }
}
