//! How much does an allocator of a process keep of what the program has let go of? By the agent's last look.
//!
//! malloc says itself what is free in it. Of Python's small pieces only their number is known: what they took at their
//! most, and the memory that is still there, tell what is kept. So does the most that Arrow's pool ever held.
//!
//! The surprise: free memory may have no pages any more (after a `malloc_trim`), so that no more is kept than what
//! blocks in use leave of the private memory.

use super::looks::{Look, Looks};
use ullage_model::At;

/// What a piece of Python takes, where looks came too late to say.
const PIECE: f64 = 64.0;
/// So many more pieces tell what one takes.
const PIECES: f64 = 100_000.0;
/// Python's own allocator hands out pieces of 16 to 512 bytes.
const SMALLEST: f64 = 16.0;
const LARGEST: f64 = 512.0;

/// Who keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
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

impl Keeper {
    pub(crate) const ALL: [Keeper; 6] =
        [Keeper::Arenas, Keeper::Heap, Keeper::Pymalloc, Keeper::Jemalloc, Keeper::Tcmalloc, Keeper::Arrow];
}

/// What one of them keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hoard {
    /// When it was asked, seconds.
    pub(crate) at: At,
    pub(crate) bytes: f64,
    /// Private memory then, and what was handed out in it by the one who keeps.
    pub(crate) anonymous: f64,
    pub(crate) used: f64,
    /// What `malloc_trim(0)` would give back, of all heaps.
    pub(crate) trimmable: f64,
    /// Heaps of malloc, the first too.
    pub(crate) arenas: u64,
}

impl Looks {
    /// What this keeper had at the last look; none where it was not asked, or is not there.
    pub(crate) fn hoard(&self, keeper: Keeper) -> Option<Hoard> {
        let look = self.all.iter().rfind(|look| look.malloc.is_some())?;
        let malloc = look.malloc?;
        let room = (look.anonymous - look.in_use()).max(0.0);
        let free = malloc.free.min(room);
        let (bytes, used) = match keeper {
            Keeper::Arenas | Keeper::Heap => {
                let (first, _) = malloc.arenas?;
                let of_it = if keeper == Keeper::Heap { first } else { malloc.free - first };
                (free * of_it / malloc.free.max(1.0), malloc.used)
            }
            Keeper::Jemalloc | Keeper::Tcmalloc => {
                let (_, used, kept) = look.other.filter(|other| other.0 == keeper)?;
                (kept.min(room), used)
            }
            Keeper::Pymalloc => (self.pieces(look), look.blocks * PIECE),
            Keeper::Arrow => {
                let (used, most) = look.arrow?;
                let room =
                    self.outside_more(look, |before| before.arrow.map_or(0.0, |pool| pool.1) < most / 2.0);
                ((most - used).clamp(0.0, (room - self.pieces(look)).max(0.0)), used)
            }
        };
        Some(Hoard {
            at: At::from_seconds(look.at),
            bytes: bytes.max(0.0),
            anonymous: look.anonymous,
            used,
            trimmable: malloc.trimmable.min(free),
            arenas: malloc.arenas.map_or(0, |(_, number)| number as u64),
        })
    }

    /// What allocators have had from the kernel, touched or not, and the private memory, at the last look before a moment, in
    /// seconds; none where none came in time.
    pub(crate) fn taken(&self, before: f64) -> Option<(f64, f64)> {
        let look = self.all.iter().rfind(|look| look.malloc.is_some() && look.at <= before)?;
        let pool = look.arrow.map_or(0.0, |(_, most)| most);
        Some((look.in_use() + look.free() + pool, look.anonymous))
    }

    /// Whether Arrow's memory pool, which has an allocator of its own, was ever seen in it.
    pub(crate) fn has_arrow(&self) -> bool {
        self.all.iter().any(|look| look.arrow.is_some())
    }

    /// Private memory that is in no malloc, and was not there at the first look; that one must have come in time.
    fn outside_more(&self, look: &Look, in_time: impl Fn(&Look) -> bool) -> f64 {
        let first = self.all.first().filter(|first| in_time(first));
        first.map_or(0.0, |first| look.outside() - first.outside())
    }

    /// What Python's small pieces took that are no more, as far as it is still there.
    fn pieces(&self, look: &Look) -> f64 {
        let before = self.all.iter().take_while(|before| before.at < look.at);
        let Some(most) = before.max_by(|a, b| a.blocks.total_cmp(&b.blocks)) else { return 0.0 };
        let gone = most.blocks - look.blocks;
        let (Some(first), true) = (self.all.first(), gone >= PIECES) else { return 0.0 };
        let (more, room) = match most.blocks - first.blocks {
            more if more >= PIECES => {
                let each = (most.outside() - first.outside()) / more;
                (each, look.outside() - first.outside() - (look.blocks - first.blocks).max(0.0) * each)
            }
            _ => (PIECE, look.outside() - look.blocks * PIECE),
        };
        (gone * more.clamp(SMALLEST, LARGEST)).min(room).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MIB: f64 = (1 << 20) as f64;

    fn looks(all: &[&[(&str, f64)]]) -> Looks {
        let mut looks = Looks::default();
        for (number, figures) in all.iter().enumerate() {
            let plain = |name: &str| name == "blocks" || name == "malloc_arenas";
            let figures: BTreeMap<String, f64> = figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), if plain(name) { *value } else { value * MIB }))
                .collect();
            looks.add(At::from_seconds(number as f64), &figures);
        }
        looks
    }

    fn kept(looks: &Looks, keeper: Keeper) -> Option<f64> {
        looks.hoard(keeper).map(|hoard| (hoard.bytes / MIB).round())
    }

    #[test]
    fn what_is_free_in_malloc_is_told_by_heap_and_no_more_than_there_is_room_for() {
        let figures = |anonymous| {
            looks(&[&[
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
        assert_eq!((kept(&all, Keeper::Heap), kept(&all, Keeper::Arenas)), (Some(100.0), Some(300.0)));
        assert_eq!(all.hoard(Keeper::Arenas).map(|hoard| hoard.arenas), Some(9));
        let trimmed = figures(250.0);
        assert_eq!((kept(&trimmed, Keeper::Heap), kept(&trimmed, Keeper::Arenas)), (Some(25.0), Some(75.0)));
        assert_eq!(kept(&all, Keeper::Jemalloc), None);
    }

    #[test]
    fn pieces_of_python_that_are_gone_are_kept_where_their_memory_is_still_there() {
        let start: &[_] =
            &[("anonymous", 80.0), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 1e5)];
        let most: &[_] =
            &[("anonymous", 280.0), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 2.1e6)];
        let after = |anonymous| {
            [("anonymous", anonymous), ("malloc_used", 20.0), ("malloc_free", 1.0), ("blocks", 1.2e5)]
        };
        assert_eq!(kept(&looks(&[start, most, &after(270.0)]), Keeper::Pymalloc), Some(188.0));
        assert_eq!(kept(&looks(&[start, most, &after(82.0)]), Keeper::Pymalloc), Some(0.0), "given back");
        assert_eq!(kept(&looks(&[start, most]), Keeper::Pymalloc), Some(0.0), "in use");
    }

    #[test]
    fn arrow_keeps_what_its_pool_had_and_what_is_still_there() {
        let look = |anonymous, used, peak| {
            [
                ("anonymous", anonymous),
                ("malloc_used", 50.0),
                ("malloc_free", 0.0),
                ("arrow_used", used),
                ("arrow_peak", peak),
            ]
        };
        let kept = |anonymous, used| {
            let all = [look(100.0, 0.0, 0.0), look(600.0, 500.0, 500.0), look(anonymous, used, 500.0)];
            kept(&looks(&[&all[0], &all[1], &all[2]]), Keeper::Arrow)
        };
        assert_eq!(kept(500.0, 10.0), Some(400.0));
        assert_eq!(kept(110.0, 10.0), Some(10.0));
        assert_eq!(kept(600.0, 500.0), Some(0.0));
    }
}
