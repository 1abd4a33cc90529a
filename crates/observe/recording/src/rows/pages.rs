//! How does a row of a survey of pages stand in its table? One without a pid is of the whole job.

use super::Placed;
use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, PAGES};
use ullage_model::{ClockTicks, PageKind, Pages, ProcessId};

impl Record for Placed<Pages> {
    const TABLE: &'static Table = &PAGES;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let pages = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.optional_i32(pages.of.map(|id| id.pid));
        match pages.of {
            Some(id) => row.u64(id.start.0),
            None => row.nulls(1),
        }
        row.text(pages.kind.id());
        row.bytes(pages.bytes);
        row.bytes(pages.error);
        row.bytes(pages.exclusive);
        row.bytes(pages.shared);
        row.bytes(pages.outside);
        row.bytes(pages.proportional);
        row.bytes(pages.beside_shared);
        row.bytes(pages.beside_own);
        row.bytes(pages.swapped);
        row.bytes(pages.unexplained);
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let of = match (row.optional_i32(), row.optional_bytes()) {
            (Some(pid), Some(start)) => Some(ProcessId { pid, start: ClockTicks(start.0) }),
            _ => None,
        };
        let kind = PageKind::of_id(row.text()?)
            .ok_or_else(|| row.bad("is no kind of memory that this version knows"))?;
        let what = Pages {
            of,
            kind,
            bytes: row.bytes()?,
            error: row.bytes()?,
            exclusive: row.bytes()?,
            shared: row.bytes()?,
            outside: row.bytes()?,
            proportional: row.bytes()?,
            beside_shared: row.bytes()?,
            beside_own: row.bytes()?,
            swapped: row.bytes()?,
            unexplained: row.bytes()?,
        };
        Ok(Placed { tick, position, what })
    }
}
