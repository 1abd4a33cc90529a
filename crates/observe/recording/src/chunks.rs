//! Which rows does a table have? Its parts, one at a time, so that a long recording needs little memory; the tail last.
//!
//! Rows can be met twice: a kill, or a recording that goes on meanwhile, leaves them in a tail and in a part, or in two
//! parts that were being merged. Those that were met before are not given again.

use crate::columns::Columns;
use crate::error::Damage;
use crate::files::Files;
use crate::part_read::{read_part, MOST_PART_BYTES};
use crate::table::Table;
use std::io;

/// A walk through the files of one table.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    next_part: usize,
    tail_done: bool,
    /// Largest number met so far.
    seen: Option<u64>,
}

/// What one file holds.
pub(crate) struct Chunk<'a> {
    pub(crate) file: &'a str,
    pub(crate) columns: &'a Columns,
    seen: Option<u64>,
}

impl Chunk<'_> {
    /// The rows that no older file had.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let met = |number: u64| self.seen.is_some_and(|seen| number <= seen);
        (0..self.columns.rows).filter(move |row| !self.columns.u64(0, *row).is_some_and(met))
    }
}

impl Chunks {
    /// A walk that leaves out the rows up to this number.
    pub(crate) fn after(seen: Option<u64>) -> Chunks {
        Chunks { seen, ..Chunks::default() }
    }

    /// What `take` makes of the next file; none after the last. A part that cannot be read is told and passed over.
    pub(crate) fn next<T>(
        &mut self,
        table: &'static Table,
        files: &Files,
        damage: &mut Vec<Damage>,
        take: impl FnOnce(Chunk<'_>) -> T,
    ) -> Option<T> {
        let of_table = files.of(table)?;
        while let Some(file) = of_table.parts.get(self.next_part) {
            self.next_part += 1;
            match read(files, table, file) {
                Ok(columns) => return Some(self.give(file, &columns, take)),
                Err(why) => {
                    let what = format!("cannot be read ({why}); its rows are lost");
                    damage.push(Damage::new(file, None, what));
                }
            }
        }
        if self.tail_done {
            return None;
        }
        self.tail_done = true;
        Some(self.give(&table.tail_name(), &of_table.tail, take))
    }

    fn give<T>(&mut self, file: &str, columns: &Columns, take: impl FnOnce(Chunk<'_>) -> T) -> T {
        let taken = take(Chunk { file, columns, seen: self.seen });
        self.seen = self.seen.max(columns.last_number());
        taken
    }
}

/// A part, or the one that it went into since the files were listed.
fn read(files: &Files, table: &'static Table, file: &str) -> Result<Columns, String> {
    let bytes = match files.store.read(file, MOST_PART_BYTES) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let names = files.store.names().map_err(|e| e.to_string())?;
            let older = names.iter().filter_map(|name| table.part_number(name));
            let older = older.filter(|number| table.part_number(file).is_some_and(|gone| *number < gone));
            let into = older.max().ok_or_else(|| e.to_string())?;
            files.store.read(&table.part_name(into), MOST_PART_BYTES)
        }
        read => read,
    };
    read_part(table, bytes.map_err(|e| e.to_string())?)
}
