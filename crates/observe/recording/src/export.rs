//! How do the tables of a recording become files for other tools: one a table, sorted as the samples were taken?
//!
//! What is exported is what a replay shows: whole samples only, each row once, whatever state the recording is in. So it is
//! replayed first, to learn which samples are whole, and then copied, a part at a time: memory stays that of one part.
//! Columns that other tools would have to join for are there already (`derived`).

use crate::chunks::{Chunk, Chunks};
use crate::columns::Cells;
use crate::csv::CsvFile;
use crate::derived::{exported, Derived};
use crate::error::{Damage, WriteError};
use crate::part::{appear, order, TableFile};
use crate::recording::Recording;
use crate::replay::Whole;
use crate::table::{Table, ALL};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use ullage_model::names::FILE_RUN;

/// Kinds of files that tables are exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Columns with their types, compressed.
    Parquet,
    /// A header and a line a row; an empty field is a null.
    Csv,
}

/// What was exported.
#[derive(Debug)]
pub struct Exported {
    /// The files, with the number of rows in each.
    pub files: Vec<(PathBuf, u64)>,
    /// What could not be read, beyond what [`Recording::damage`] says.
    pub damage: Vec<Damage>,
}

/// Why nothing, or not everything, was exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A file of that name is there.
    #[error("{} is there already; give another directory, or --force to replace it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Files that no recording has would make it one that cannot be removed any more.
    #[error("{} is a recording; export into another directory", path.display())]
    IntoRecording {
        /// The directory.
        path: PathBuf,
    },
    /// Usually a full disk, or no right to the directory.
    #[error("cannot {} {}: {}", .0.doing, .0.path.display(), .0.why)]
    Write(WriteError),
}

impl TableFormat {
    /// How names of its files end.
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Csv => "csv",
        }
    }
}

impl Recording {
    /// Writes each table into a file of its own in `dir`, which is made where it is not there. A table without rows
    /// becomes a file without rows. A file that is there already is replaced only where `replace` says so.
    ///
    /// # Errors
    /// Where a file is there, or cannot be written. Files that were finished before stay.
    pub fn export(&self, dir: &Path, format: TableFormat, replace: bool) -> Result<Exported, ExportError> {
        let name = |table: &Table| format!("{}.{}", table.name, format.extension());
        prepare(dir, &ALL.map(name), replace)?;
        let mut replay = self.replay();
        let mut derived = Derived::default();
        replay.by_ref().for_each(|item| derived.item(&item));
        let whole = replay.whole();
        let mut done = Exported { files: Vec::new(), damage: replay.damage().to_vec() };
        // As the documents list them.
        for table in ALL.iter().rev() {
            let path = dir.join(name(table));
            let rows = appear(&path, |unfinished| {
                let mut out = Out::create(unfinished, exported(table), format)?;
                self.copy(table, whole, &mut derived, &mut out)
                    .and_then(|rows| out.finish().map(|()| Some(rows)))
            });
            let rows = rows.map_err(ExportError::Write)?.unwrap_or(0);
            done.files.push((path, rows));
        }
        Ok(done)
    }

    fn copy(
        &self,
        table: &'static Table,
        whole: &Whole,
        derived: &mut Derived,
        out: &mut Out,
    ) -> Result<u64, String> {
        let (mut chunks, mut rows, mut reported_before) = (Chunks::default(), 0, Vec::new());
        while let Some(written) = chunks.next(table, &self.files, &mut reported_before, |chunk| {
            derived.times(chunk.columns);
            copy_chunk(table, &chunk, whole, derived, out)
        }) {
            rows += written?;
        }
        Ok(rows)
    }
}

fn copy_chunk(
    table: &'static Table,
    chunk: &Chunk<'_>,
    whole: &Whole,
    derived: &Derived,
    out: &mut Out,
) -> Result<u64, String> {
    let mut is_new = vec![false; chunk.columns.rows];
    chunk.rows().for_each(|row| is_new[row] = true);
    let has_ticks = table.columns[0].name == "tick";
    let by: &[usize] = if table.columns[1].name == "position" { &[0, 1] } else { &[0] };
    let cells = |column: usize| -> Result<Cells, String> { Ok(chunk.columns.cells[column].clone()) };
    let order = order(table, by, cells, |row, number| is_new[row] && (!has_ticks || whole.has(number)))?;
    if order.is_empty() {
        return Ok(0);
    }
    let more = derived.cells(chunk.columns);
    let all: Vec<&Cells> = chunk.columns.cells.iter().chain(&more).collect();
    match out {
        Out::Parquet(file) => file.group(&order, |column| Ok(all[column].clone()))?,
        Out::Csv(file) => file.rows(&order, &all)?,
    }
    Ok(order.len() as u64)
}

enum Out {
    Parquet(TableFile),
    Csv(CsvFile),
}

impl Out {
    fn create(path: &Path, table: &'static Table, format: TableFormat) -> Result<Out, String> {
        match format {
            TableFormat::Parquet => TableFile::create(path, table).map(Out::Parquet),
            TableFormat::Csv => CsvFile::create(path, table).map(Out::Csv),
        }
    }

    fn finish(self) -> Result<(), String> {
        match self {
            Out::Parquet(file) => file.finish().map(drop),
            Out::Csv(file) => file.finish(),
        }
    }
}

/// Makes `dir` ready to take files of these names.
///
/// # Errors
/// Where it is a recording, cannot be made, or holds one of them and `replace` does not allow that.
pub fn prepare(dir: &Path, names: &[String], replace: bool) -> Result<(), ExportError> {
    if dir.join(FILE_RUN).exists() {
        return Err(ExportError::IntoRecording { path: dir.to_owned() });
    }
    if let Some(path) = names.iter().map(|name| dir.join(name)).find(|path| !replace && path.exists()) {
        return Err(ExportError::Exists { path });
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|e| ExportError::Write(WriteError::new("create", dir, e)))
}
