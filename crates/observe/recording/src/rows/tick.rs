//! How does a tick stand in its table: when, the machine, the cost, and how many rows elsewhere belong to it?

use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, TICKS};
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::{At, Cost, HostReading, Measured};

/// How many rows of the other tables belong to a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) processes: u64,
    pub(crate) mappings: u64,
    pub(crate) descriptors: u64,
    pub(crate) filesystems: u64,
    pub(crate) cgroups: u64,
    /// Missing where segments were not read, which is not the same as none.
    pub(crate) segments: Measured<u64>,
    pub(crate) pages: u64,
}

/// A sample without its lists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TickRow {
    pub(crate) tick: u64,
    pub(crate) at: At,
    pub(crate) rows: RowCounts,
    pub(crate) forks_since_last: u64,
    pub(crate) cost: Cost,
    pub(crate) host: HostReading,
}

impl Record for TickRow {
    const TABLE: &'static Table = &TICKS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        row.u64(self.tick);
        row.u64(self.at.0);
        row.u64(self.rows.processes);
        row.u64(self.rows.mappings);
        row.u64(self.rows.descriptors);
        row.u64(self.rows.filesystems);
        row.u64(self.rows.cgroups);
        row.u64(self.forks_since_last);
        row.u64(self.cost.cpu_ns);
        row.bytes(self.cost.peak_rss);
        match self.host.memory {
            Measured::Known(memory) => {
                row.bytes(memory.total);
                row.bytes(memory.free);
                row.bytes(memory.available);
                row.bytes(memory.swap_total);
                row.bytes(memory.swap_free);
                row.bytes(memory.shared);
                row.bytes(memory.cached);
                row.bytes(memory.anonymous);
                row.bytes(memory.commit_limit);
                row.bytes(memory.committed);
            }
            Measured::Missing(why) => {
                row.absent("memory", why);
                row.nulls(10);
            }
        }
        row.measured("oom_kills", self.host.oom_kills);
        row.measured("swap_in_pages", self.host.swap_in);
        row.measured("swap_out_pages", self.host.swap_out);
        row.measured("memory_stall_full_us", self.host.memory_stall_full_us);
        row.measured("memory_stall_some_us", self.host.memory_stall_some_us);
        match self.host.open_files {
            Measured::Known((used, limit)) => {
                row.u64(used);
                row.u64(limit);
            }
            Measured::Missing(why) => {
                row.absent("open_files", why);
                row.nulls(2);
            }
        }
        row.measured("segments", self.rows.segments);
        row.u64(self.rows.pages);
        match self.host.kernel {
            Measured::Known(kernel) => {
                row.bytes(kernel.buffers);
                row.bytes(kernel.slab_reclaimable);
                row.bytes(kernel.slab_unreclaimable);
                row.bytes(kernel.tables);
                row.bytes(kernel.hugetlb);
                row.bytes(kernel.hugetlb_free);
                row.bytes(kernel.anonymous_huge);
            }
            Measured::Missing(why) => {
                row.absent("kernel", why);
                row.nulls(7);
            }
        }
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, at) = (row.u64()?, At(row.u64()?));
        let mut rows = RowCounts {
            processes: row.u64()?,
            mappings: row.u64()?,
            descriptors: row.u64()?,
            filesystems: row.u64()?,
            cgroups: row.u64()?,
            segments: Measured::default(),
            pages: 0,
        };
        let forks_since_last = row.u64()?;
        let cost = Cost { cpu_ns: row.u64()?, peak_rss: row.bytes()? };
        let memory = match row.absent("memory") {
            Some(why) => {
                row.skip(10);
                Measured::Missing(why)
            }
            None => Measured::Known(HostMemory {
                total: row.bytes()?,
                free: row.bytes()?,
                available: row.bytes()?,
                swap_total: row.bytes()?,
                swap_free: row.bytes()?,
                shared: row.bytes()?,
                cached: row.bytes()?,
                anonymous: row.bytes()?,
                commit_limit: row.bytes()?,
                committed: row.bytes()?,
            }),
        };
        let mut host = HostReading {
            memory,
            kernel: Measured::default(),
            oom_kills: row.measured("oom_kills"),
            swap_in: row.measured("swap_in_pages"),
            swap_out: row.measured("swap_out_pages"),
            memory_stall_full_us: row.measured("memory_stall_full_us"),
            memory_stall_some_us: row.measured("memory_stall_some_us"),
            open_files: match row.absent("open_files") {
                Some(why) => {
                    row.skip(2);
                    Measured::Missing(why)
                }
                None => Measured::Known((row.u64()?, row.u64()?)),
            },
        };
        // A null without a reason: the recording is of a version that did not know this column.
        rows.segments = match (row.measured("segments"), row.absent("segments")) {
            (Measured::Missing(_), None) => Measured::default(),
            (rows, _) => rows,
        };
        // Null in recordings of versions that made no surveys.
        rows.pages = row.optional_bytes().map_or(0, |rows| rows.0);
        host.kernel = match (row.absent("kernel"), row.optional_bytes()) {
            (Some(why), _) => {
                row.skip(6);
                Measured::Missing(why)
            }
            (None, Some(buffers)) => Measured::Known(HostKernel {
                buffers,
                slab_reclaimable: row.bytes()?,
                slab_unreclaimable: row.bytes()?,
                tables: row.bytes()?,
                hugetlb: row.bytes()?,
                hugetlb_free: row.bytes()?,
                anonymous_huge: row.bytes()?,
            }),
            // Of a version that did not read them.
            (None, None) => Measured::default(),
        };
        Ok(TickRow { tick, at, rows, forks_since_last, cost, host })
    }
}
