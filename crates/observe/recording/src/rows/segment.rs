//! How does a shared segment stand in its table? Its mappers and holders are one text each, `pid/start pid/start …`:
//! a list column would be the only one, and every tool splits a text.

use super::Placed;
use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, SEGMENTS};
use ullage_model::{
    ClockTicks, Creator, CreatorSource, Maker, Measured, Missing, ProcessId, Segment, SegmentKind,
};

impl Record for Placed<Segment> {
    const TABLE: &'static Table = &SEGMENTS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let segment = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.text(segment.kind.word());
        row.text(&segment.name);
        row.u64(segment.count);
        row.u64(segment.device);
        row.u64(segment.inode);
        row.bytes(segment.size);
        row.measured("allocated_bytes", segment.allocated.map(|bytes| bytes.0));
        row.bool(segment.at_least);
        row.bool(segment.deleted);
        row.bool(segment.before);
        match segment.creator {
            Measured::Known(Creator { maker, by }) => {
                match maker {
                    Maker::Process(id) => {
                        row.i32(id.pid);
                        row.u64(id.start.0);
                    }
                    Maker::Gone(pid) => {
                        row.i32(pid);
                        row.optional_u64(None);
                        row.absent("creator_start_ticks", Missing::Vanished);
                    }
                }
                row.text(by.word());
            }
            Measured::Missing(why) => {
                row.absent("creator", why);
                row.nulls(3);
            }
        }
        row.text(&list(&segment.mappers));
        row.text(&list(&segment.openers));
        row.measured_bool("outsiders", segment.outsiders);
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let kind = SegmentKind::of_word(row.text()?)
            .ok_or_else(|| row.bad("is no kind of segment that this version knows"))?;
        let name = row.text()?.to_owned();
        let count = row.u64()?;
        let (device, inode) = (row.u64()?, row.u64()?);
        let size = row.bytes()?;
        let allocated = row.measured("allocated_bytes").map(ullage_model::Bytes);
        let (at_least, deleted, before) = (row.bool()?, row.bool()?, row.bool()?);
        let (pid, start, by) = (row.optional_i32(), row.optional_u64(), row.optional_text());
        let creator = match (pid, by) {
            (Some(pid), Some(by)) => Measured::Known(Creator {
                maker: match start {
                    Some(start) => Maker::Process(ProcessId { pid, start: ClockTicks(start) }),
                    None => Maker::Gone(pid),
                },
                by: CreatorSource::of_word(by)
                    .ok_or_else(|| row.bad("is no source of a creator that this version knows"))?,
            }),
            _ => Measured::Missing(row.absent("creator").unwrap_or(Missing::Unreadable)),
        };
        let mappers = row.text().map(read_list)?.ok_or_else(|| row.bad("is no list of processes"))?;
        let openers = row.text().map(read_list)?.ok_or_else(|| row.bad("is no list of processes"))?;
        let outsiders = row.measured_bool("outsiders");
        let what = Segment {
            kind,
            name,
            count,
            device,
            inode,
            size,
            allocated,
            at_least,
            deleted,
            before,
            creator,
            mappers,
            openers,
            outsiders,
        };
        Ok(Placed { tick, position, what })
    }
}

fn list(ids: &[ProcessId]) -> String {
    let words: Vec<String> = ids.iter().map(|id| format!("{}/{}", id.pid, id.start.0)).collect();
    words.join(" ")
}

fn read_list(text: &str) -> Option<Vec<ProcessId>> {
    text.split_ascii_whitespace()
        .map(|word| {
            let (pid, start) = word.split_once('/')?;
            Some(ProcessId { pid: pid.parse().ok()?, start: ClockTicks(start.parse().ok()?) })
        })
        .collect()
}
