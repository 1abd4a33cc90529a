//! How does a cgroup's reading stand in its table?

use super::Placed;
use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, CGROUPS};
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::{Bytes, CgroupReading, CgroupVersion, Measured};

impl Record for Placed<CgroupReading> {
    const TABLE: &'static Table = &CGROUPS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        row.u64(self.tick);
        row.u64(self.position);
        row.text(match self.what.version {
            CgroupVersion::V1 => "v1",
            CgroupVersion::V2 => "v2",
        });
        row.text(&self.what.path);
        match &self.what.memory {
            Measured::Known(memory) => encode_memory(memory, row),
            Measured::Missing(why) => {
                row.absent("memory", *why);
                row.nulls(15);
            }
        }
        match self.what.pids {
            Measured::Known(pids) => {
                row.u64(pids.current);
                row.limit("pids_limit", pids.limit);
                row.measured("pids_refused", pids.refused);
            }
            Measured::Missing(why) => {
                row.absent("pids", why);
                row.nulls(3);
            }
        }
        match &self.what.memory {
            Measured::Known(memory) => {
                row.measured("high_hits", memory.high_hits);
                row.measured("anonymous_huge_bytes", memory.anonymous_huge.map(|bytes| bytes.0));
            }
            Measured::Missing(_) => row.nulls(2),
        }
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let version = match row.text()? {
            "v1" => CgroupVersion::V1,
            "v2" => CgroupVersion::V2,
            _ => return Err(row.bad("is neither v1 nor v2")),
        };
        let path = row.text()?.to_owned();
        let mut memory = match row.absent("memory") {
            Some(why) => {
                row.skip(15);
                Measured::Missing(why)
            }
            None => Measured::Known(decode_memory(row)?),
        };
        let pids = match row.absent("pids") {
            Some(why) => {
                row.skip(3);
                Measured::Missing(why)
            }
            None => Measured::Known(CgroupPids {
                current: row.u64()?,
                limit: row.limit("pids_limit")?,
                refused: row.measured("pids_refused"),
            }),
        };
        if let Measured::Known(memory) = &mut memory {
            memory.high_hits = later(row, "high_hits");
            memory.anonymous_huge = later(row, "anonymous_huge_bytes").map(Bytes);
        }
        Ok(Placed { tick, position, what: CgroupReading { version, path, memory, pids } })
    }
}

/// A null without a reason: the recording is of a version that did not know this column.
fn later(row: &mut RowReader<'_>, name: &str) -> Measured<u64> {
    match (row.measured(name), row.absent(name)) {
        (Measured::Missing(_), None) => Measured::default(),
        (value, _) => value,
    }
}

fn encode_memory(memory: &CgroupMemory, row: &mut RowWriter<'_>) {
    row.bytes(memory.current);
    row.limit("limit_bytes", memory.limit);
    row.limit("high_bytes", memory.high);
    row.measured("peak_bytes", memory.peak.map(|bytes| bytes.0));
    row.measured("swap_bytes", memory.swap.map(|bytes| bytes.0));
    row.measured_limit("swap_limit_bytes", memory.swap_limit);
    row.measured("oom_kills", memory.oom_kills);
    row.measured("oom_kills_subtree", memory.oom_kills_subtree);
    row.measured("limit_hits", memory.limit_hits);
    row.measured_bool("oom_group", memory.oom_group);
    match memory.parts {
        Measured::Known(parts) => {
            row.bytes(parts.anonymous);
            row.bytes(parts.file);
            row.bytes(parts.shared);
            row.bytes(parts.inactive_file);
            row.bytes(parts.kernel);
        }
        Measured::Missing(why) => {
            row.absent("parts", why);
            row.nulls(5);
        }
    }
}

fn decode_memory(row: &mut RowReader<'_>) -> Result<CgroupMemory, BadRow> {
    Ok(CgroupMemory {
        current: row.bytes()?,
        limit: row.limit("limit_bytes")?,
        high: row.limit("high_bytes")?,
        peak: row.measured("peak_bytes").map(Bytes),
        swap: row.measured("swap_bytes").map(Bytes),
        swap_limit: row.measured_limit("swap_limit_bytes"),
        oom_kills: row.measured("oom_kills"),
        oom_kills_subtree: row.measured("oom_kills_subtree"),
        limit_hits: row.measured("limit_hits"),
        high_hits: Measured::default(),
        anonymous_huge: Measured::default(),
        oom_group: row.measured_bool("oom_group"),
        parts: match row.absent("parts") {
            Some(why) => {
                row.skip(5);
                Measured::Missing(why)
            }
            None => Measured::Known(CgroupMemoryParts {
                anonymous: row.bytes()?,
                file: row.bytes()?,
                shared: row.bytes()?,
                inactive_file: row.bytes()?,
                kernel: row.bytes()?,
            }),
        },
    })
}
