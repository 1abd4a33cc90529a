//! What is known of the machine: memory, swap and stalls over time.

use super::series::Series;
use ullage_model::{At, HostReading, Measured};

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct HostHistory {
    /// The newest reading.
    pub last: HostReading,
    /// MemTotal minus MemAvailable plus swap in use, bytes.
    pub used: Series,
    /// Committed_AS, bytes.
    pub committed: Series,
    /// MemAvailable, bytes.
    pub available: Series,
    /// Pages swapped in, and out, since boot.
    pub swap_in: Series,
    /// Pages swapped out, since boot.
    pub swap_out: Series,
    /// Microseconds in which all tasks waited for memory, since boot.
    pub stalled: Series,
    /// Microseconds in which some task waited for memory, since boot.
    pub waited: Series,
    /// In use and owned by nobody that the kernel names, bytes.
    pub unowned: Series,
    /// Page cache without shared memory, bytes.
    pub cache: Series,
    /// Least MemAvailable, and when.
    pub least_available: Option<(At, u64)>,
}

impl HostHistory {
    pub(crate) fn read(&mut self, at: At, reading: &HostReading) {
        if let Measured::Known(memory) = &reading.memory {
            let swap = memory.swap_total.saturating_sub(memory.swap_free);
            let used = memory.total.saturating_sub(memory.available).saturating_add(swap);
            self.used.push(at, used.0 as f64);
            self.committed.push(at, memory.committed.0 as f64);
            self.available.push(at, memory.available.0 as f64);
            self.cache.push(at, memory.cached.saturating_sub(memory.shared).0 as f64);
            if self.least_available.is_none_or(|(_, least)| memory.available.0 < least) {
                self.least_available = Some((at, memory.available.0));
            }
        }
        let counters = [
            (&mut self.swap_in, reading.swap_in),
            (&mut self.swap_out, reading.swap_out),
            (&mut self.stalled, reading.memory_stall_full_us),
            (&mut self.waited, reading.memory_stall_some_us),
        ];
        for (series, value) in counters {
            if let Measured::Known(value) = value {
                series.push(at, value as f64);
            }
        }
        if let (Measured::Known(memory), Measured::Known(kernel)) = (&reading.memory, &reading.kernel) {
            let owned = [
                memory.free,
                memory.cached,
                memory.anonymous,
                kernel.buffers,
                kernel.slab_reclaimable,
                kernel.slab_unreclaimable,
                kernel.tables,
                kernel.hugetlb,
            ];
            let unowned = owned.into_iter().fold(memory.total, |left, part| left.saturating_sub(part));
            self.unowned.push(at, unowned.0 as f64);
        }
        if reading.memory.as_known().is_some() || self.last.memory.as_known().is_none() {
            self.last = reading.clone();
        }
    }
}
