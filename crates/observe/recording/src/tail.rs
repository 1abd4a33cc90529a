//! How is the live tail of a table written? As an Arrow IPC stream, one record batch a sample (or event), each
//! given to the kernel by one write: what was written survives a SIGKILL of ullage, because it is the kernel's.

use crate::error::WriteError;
use crate::message;
use crate::row::{Record, TableBuilder};
use crate::table::Table;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The live tail of one table.
pub(crate) struct Tail {
    pub(crate) table: &'static Table,
    path: PathBuf,
    file: File,
    rows: TableBuilder,
    /// Length of the schema message, where the first batch begins.
    schema_length: u64,
    /// Length of what was written completely.
    length: u64,
}

impl Tail {
    pub(crate) fn create(dir: &Path, table: &'static Table) -> Result<Tail, WriteError> {
        let path = dir.join(table.tail_name());
        let wrong = |e: &dyn std::fmt::Display| WriteError::new("create", &path, e);
        let schema = message::schema(table.columns.iter().map(|column| (column.name, column.kind)));
        let mut open = OpenOptions::new();
        open.read(true).append(true).create_new(true).mode(0o600);
        let mut file = open.open(&path).map_err(|e| wrong(&e))?;
        file.write_all(&schema).map_err(|e| {
            // Without its head it would be in the way of the next attempt.
            let _ = std::fs::remove_file(&path);
            wrong(&e)
        })?;
        let schema_length = schema.len() as u64;
        let rows = TableBuilder::new(table);
        Ok(Tail { table, path, file, rows, schema_length, length: schema_length })
    }

    /// Adds a row to the batch that [`Tail::write`] writes.
    pub(crate) fn push(&mut self, record: &impl Record) {
        self.rows.push(record);
    }

    /// Writes the rows pushed since the last time as one batch. On an error the file ends where it did before.
    pub(crate) fn write(&mut self) -> Result<(), WriteError> {
        if self.rows.rows() == 0 {
            return Ok(());
        }
        let encoded = message::batch(self.rows.columns());
        self.rows.clear();
        let encoded = encoded.map_err(|why| WriteError::new("encode a sample for", &self.path, why))?;
        if let Err(e) = self.file.write_all(&encoded) {
            // A torn batch would be dropped on reading, too; this is tidier where it works.
            let _ = self.file.set_len(self.length);
            return Err(WriteError::new("write", &self.path, e));
        }
        self.length += encoded.len() as u64;
        Ok(())
    }

    /// Where the next batch begins.
    pub(crate) fn end(&self) -> u64 {
        self.length
    }

    /// Takes back what was written behind `end`: of a sample that did not find room in all tables.
    pub(crate) fn take_back(&mut self, end: u64) -> Result<(), WriteError> {
        let end = end.max(self.schema_length);
        if end < self.length {
            self.file.set_len(end).map_err(|e| WriteError::new("shorten", &self.path, e))?;
            self.length = end;
        }
        Ok(())
    }

    /// Bytes of batches in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.length - self.schema_length
    }

    /// What the file holds.
    pub(crate) fn read_back(&self) -> Result<Vec<u8>, WriteError> {
        let mut bytes = vec![0; self.length as usize];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(bytes),
            Err(e) => Err(WriteError::new("read", &self.path, e)),
        }
    }

    /// Empties the tail, after its rows went into a part.
    pub(crate) fn restart(&mut self) -> Result<(), WriteError> {
        self.file.set_len(self.schema_length).map_err(|e| WriteError::new("empty", &self.path, e))?;
        self.length = self.schema_length;
        Ok(())
    }

    /// Removes the file, after its rows went into a part.
    pub(crate) fn remove(self) -> Result<(), WriteError> {
        std::fs::remove_file(&self.path).map_err(|e| WriteError::new("remove", &self.path, e))
    }
}
