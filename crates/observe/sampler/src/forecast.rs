//! How soon a figure meets its limit, and how many mappings a process has since they were last counted.

use ullage_model::{At, Limit};

/// Growth that paused for longer has ended, seconds.
const PAUSE_S: f64 = 2.0;

/// A figure at two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trend {
    last: Option<(At, u64)>,
    per_second: f64,
    grown_at: At,
}

impl Trend {
    /// Takes the figure of this tick. Readings closer than 20 ms to the last one change no slope.
    pub fn push(&mut self, at: At, value: u64) {
        match self.last {
            Some((before, _)) if at.since(before) < 0.02 => {}
            Some((before, old)) => {
                let now = (value as f64 - old as f64) / at.since(before);
                // A pause between two batches is no end of the growth: it fades, by half a tick.
                let faded = if at.since(self.grown_at) < PAUSE_S { self.per_second / 2.0 } else { 0.0 };
                self.per_second = now.max(faded);
                if now > 0.0 {
                    self.grown_at = at;
                }
                self.last = Some((at, value));
            }
            None => self.last = Some((at, value)),
        }
    }

    /// Growth a second between the last two readings, or half of what it was before, if that is more.
    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Seconds until the limit at this slope; none while it does not grow or has no limit.
    pub fn time_left(&self, limit: Limit) -> Option<f64> {
        let (_, value) = self.last?;
        let headroom = limit.headroom(value)? as f64;
        (self.per_second > 0.0).then(|| headroom / self.per_second)
    }
}

/// The cheap signs that mappings move with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Inodes in use in the process's /dev/shm.
    pub shm_inodes: u64,
    /// RssShmem, pages.
    pub shared_pages: u64,
    /// VmSize, pages.
    pub virtual_pages: u64,
    /// Open descriptors.
    pub descriptors: u64,
}

/// A complete count, the signs at that moment, and what one more mapping took of address space since the count before.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// When.
    pub at: At,
    /// Mappings.
    pub count: u64,
    /// Signs then.
    pub signs: Signs,
    /// Pages of address space for each new mapping between the last two counts, where both grew.
    pub pages_each: Option<f64>,
    /// New mappings for each new shared page between the last two counts: 1 until it was seen. Far less where
    /// large segments are filled.
    pub per_shared_page: f64,
}

impl Counted {
    /// The first count of a process.
    pub fn first(at: At, count: u64, signs: Signs) -> Counted {
        Counted { at, count, signs, pages_each: None, per_shared_page: 1.0 }
    }

    /// The next count, which knows how large the mappings between the two were.
    pub fn next(&self, at: At, count: u64, signs: Signs) -> Counted {
        let pages = signs.virtual_pages.saturating_sub(self.signs.virtual_pages);
        let shared = signs.shared_pages.saturating_sub(self.signs.shared_pages);
        let grown = count.saturating_sub(self.count);
        // A size that foretold four times too many was of another kind of mapping.
        let misled = grown < self.estimate(signs).saturating_sub(self.count) / 4;
        let pages_each = match self.pages_each {
            _ if grown >= 16 && pages > 0 => Some(pages as f64 / grown as f64),
            _ if misled => None,
            before => before,
        };
        let per_shared_page =
            if shared >= 64 { (grown as f64 / shared as f64).clamp(0.01, 2.0) } else { self.per_shared_page };
        Counted { at, count, signs, pages_each, per_shared_page }
    }

    /// Mappings now, estimated: a shared tensor is one inode (file_system) or one descriptor (file_descriptor),
    /// and one shared page once it is written or read. The inodes may be another process's, and descriptors may
    /// be sockets, so that some growth of this process's own memory has to go with them; not a page each,
    /// because the heap shrinks while its tensors move to shared memory.
    pub fn estimate(&self, now: Signs) -> u64 {
        let grown = |field: fn(&Signs) -> u64| field(&now).saturating_sub(field(&self.signs));
        let (pages, shared) = (grown(|signs| signs.virtual_pages), grown(|signs| signs.shared_pages));
        let own = pages.max(shared).saturating_mul(4);
        let named = grown(|signs| signs.shm_inodes).max(grown(|signs| signs.descriptors)).min(own);
        let touched = (shared as f64 * self.per_shared_page) as u64;
        // Only for small mappings: one large allocation says nothing about their number.
        let by_size = self
            .pages_each
            .filter(|&each| each <= 64.0)
            .map_or(0, |each| (pages as f64 / each.max(0.25)) as u64);
        self.count.saturating_add(named.max(touched).max(by_size))
    }

    /// True where a new count is worth its cost: half of the headroom may be gone, or the number doubled.
    pub fn stale(&self, estimate: u64, limit: u64) -> bool {
        if estimate <= self.count {
            return false;
        }
        let (before, left) = (limit.saturating_sub(self.count), limit.saturating_sub(estimate));
        left <= before / 2 || estimate >= self.count.saturating_mul(2).max(self.count + 2000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: Signs = Signs { shm_inodes: 10, shared_pages: 100, virtual_pages: 100_000, descriptors: 20 };

    fn counted(count: u64) -> Counted {
        Counted::first(At(0), count, SIGNS)
    }

    #[test]
    fn time_left_is_headroom_by_slope() {
        let mut trend = Trend::default();
        trend.push(At::from_seconds(1.0), 100);
        assert_eq!(trend.time_left(Limit::At(1000)), None, "one reading has no slope");
        trend.push(At::from_seconds(2.0), 400);
        assert_eq!(trend.time_left(Limit::At(1000)), Some(2.0));
        assert_eq!(trend.time_left(Limit::Unlimited), None);
        trend.push(At::from_seconds(2.001), 900);
        assert_eq!(trend.per_second(), 300.0, "too close to tell");
        trend.push(At::from_seconds(3.0), 400);
        assert_eq!(trend.per_second(), 150.0, "a pause");
        trend.push(At::from_seconds(4.5), 400);
        assert_eq!(trend.time_left(Limit::At(1000)), None, "the end of the growth");
    }

    #[test]
    fn each_shared_tensor_counts_once() {
        let now = Signs { shm_inodes: 5010, shared_pages: 5100, virtual_pages: 106_000, descriptors: 20 };
        assert_eq!(counted(1000).estimate(now), 6000);
    }

    #[test]
    fn inodes_of_other_processes_are_bounded_by_the_own_address_space() {
        let now = Signs { shm_inodes: 50_010, virtual_pages: 100_003, ..SIGNS };
        assert_eq!(counted(1000).estimate(now), 1012);
        assert_eq!(counted(1000).estimate(Signs { shm_inodes: 50_010, ..SIGNS }), 1000);
    }

    #[test]
    fn a_heap_that_shrinks_meanwhile_does_not_hide_new_mappings() {
        let now = Signs { shm_inodes: 5010, shared_pages: 5100, virtual_pages: 102_000, descriptors: 20 };
        assert_eq!(counted(1000).estimate(now), 6000);
    }

    #[test]
    fn filling_a_large_segment_is_learned_not_to_be_many_mappings() {
        let filled = Signs { shared_pages: 100_100, ..SIGNS };
        let later = counted(1000).next(At(1), 1001, filled);
        assert_eq!(later.estimate(Signs { shared_pages: 110_100, ..SIGNS }), 1101);
    }

    #[test]
    fn a_large_allocation_is_no_sign_but_repeated_small_ones_are() {
        let now = Signs { virtual_pages: 900_000, ..SIGNS };
        assert_eq!(counted(1000).estimate(now), 1000);
        let later = counted(1000).next(At(1), 3000, Signs { virtual_pages: 108_000, ..SIGNS });
        assert_eq!(later.pages_each, Some(4.0));
        assert_eq!(later.estimate(Signs { virtual_pages: 112_000, ..SIGNS }), 4000);
    }

    #[test]
    fn a_size_that_misled_is_forgotten() {
        let small = Counted { pages_each: Some(1.0), ..counted(60_000) };
        let large = Signs { virtual_pages: 125_000, ..SIGNS };
        assert!(small.stale(small.estimate(large), 65_530));
        let after = small.next(At(1), 60_001, large);
        assert_eq!(after.estimate(Signs { virtual_pages: 150_000, ..SIGNS }), 60_001);
    }

    #[test]
    fn counts_come_at_every_halving_of_the_headroom() {
        let mut last = counted(1000);
        let mut counts = 0;
        for estimate in (1000..=65_530).step_by(100) {
            if last.stale(estimate, 65_530) {
                last.count = estimate;
                counts += 1;
            }
        }
        assert!((8..=20).contains(&counts), "{counts}");
        assert!(last.count > 65_000);
        assert!(!last.stale(last.count, 65_530), "nothing moves, nothing is counted");
    }
}
