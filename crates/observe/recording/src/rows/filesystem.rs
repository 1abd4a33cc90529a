//! How does a filesystem's reading stand in its table?

use super::Placed;
use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, FILESYSTEMS};
use ullage_model::{FilesystemReading, FilesystemUse};

impl Record for Placed<FilesystemReading> {
    const TABLE: &'static Table = &FILESYSTEMS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        let filesystem = &self.what;
        row.u64(self.tick);
        row.u64(self.position);
        row.text(match filesystem.used_for {
            FilesystemUse::Shm => "shm",
            FilesystemUse::Temporary => "temporary",
            FilesystemUse::Work => "work",
        });
        row.text(&filesystem.path);
        row.u64(filesystem.device);
        row.bool(filesystem.tmpfs);
        row.limit("size_bytes", filesystem.size);
        row.bytes(filesystem.used);
        row.limit("inodes", filesystem.inodes);
        row.u64(filesystem.inodes_used);
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (tick, position) = (row.u64()?, row.u64()?);
        let used_for = match row.text()? {
            "shm" => FilesystemUse::Shm,
            "temporary" => FilesystemUse::Temporary,
            "work" => FilesystemUse::Work,
            _ => return Err(row.bad("is no use of a filesystem that this version knows")),
        };
        let what = FilesystemReading {
            used_for,
            path: row.text()?.to_owned(),
            device: row.u64()?,
            tmpfs: row.bool()?,
            size: row.limit("size_bytes")?,
            used: row.bytes()?,
            inodes: row.limit("inodes")?,
            inodes_used: row.u64()?,
        };
        Ok(Placed { tick, position, what })
    }
}
