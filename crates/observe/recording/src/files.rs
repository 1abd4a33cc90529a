//! Which files of a recording can be read? Its parts by name, and what its live tail holds.

use crate::batch::Batch;
use crate::columns::Columns;
use crate::error::{Damage, OpenError};
use crate::part_read::{check_part, read_part, MOST_PART_BYTES};
use crate::store::Store;
use crate::table::{Table, ALL, TICKS};
use crate::tail_read::{read_tail, MOST_TAIL_BYTES};
use std::io;
use std::path::Path;

/// The readable files of a recording.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) store: Store,
    pub(crate) tables: Vec<TableFiles>,
    /// True where a live tail is there: the run goes on, or ullage was killed.
    pub(crate) live: bool,
}

/// The files of one table.
#[derive(Debug)]
pub(crate) struct TableFiles {
    pub(crate) table: &'static Table,
    /// Names of the closed parts, oldest first.
    pub(crate) parts: Vec<String>,
    /// Number of the newest part that is there, readable or not.
    pub(crate) last_part: u32,
    pub(crate) tail: Columns,
    /// The batches of the tail, for whoever makes a part of them.
    pub(crate) batches: Vec<Batch>,
}

impl Files {
    /// What is there; the files that cannot be read are added to `damage`. `path` is for errors.
    pub(crate) fn read(store: Store, path: &Path, damage: &mut Vec<Damage>) -> Result<Files, OpenError> {
        // Tails before parts, and that of the ticks before the others: where the recording still runs, rows may
        // move into parts meanwhile, and rows seen twice can be dropped, rows never seen could not be found.
        let tails: Vec<_> =
            ALL.iter().rev().map(|table| (*table, read_tail_of(table, &store, damage))).collect();
        let names =
            store.names().map_err(|source| OpenError::Unreadable { path: path.to_owned(), source })?;
        let live = tails.iter().any(|(table, _)| names.contains(&table.tail_name()));
        let tables = tails
            .into_iter()
            .map(|(table, batches)| {
                let tail = Columns::of_batches(table, &batches);
                let (parts, last_part) = parts_of(table, &names, &store, damage);
                TableFiles { table, parts, last_part, tail, batches }
            })
            .collect();
        Ok(Files { store, tables, live })
    }

    /// True where no row can be read.
    pub(crate) fn are_empty(&self) -> bool {
        self.tables.iter().all(|table| table.parts.is_empty() && table.tail.rows == 0)
    }

    pub(crate) fn of(&self, table: &'static Table) -> Option<&TableFiles> {
        self.tables.iter().find(|files| std::ptr::eq(files.table, table))
    }

    /// The newest tick or event number that stands in the closed parts of a table.
    pub(crate) fn last_number_of_parts(&self, table: &TableFiles) -> Option<u64> {
        table.parts.iter().rev().find_map(|name| {
            let bytes = self.store.read(name, MOST_PART_BYTES).ok()?;
            read_part(table.table, bytes).ok()?.last_number()
        })
    }

    /// A sample whose rows are there, but not the row that would make it count.
    pub(crate) fn unfinished_sample(&self) -> Option<Damage> {
        let last = self.of(&TICKS)?.tail.last_number()?;
        let children = self
            .tables
            .iter()
            .filter(|t| t.table.columns[0].name == "tick" && !std::ptr::eq(t.table, &TICKS));
        let newest = children.filter_map(|child| child.tail.last_number()).max()?;
        (newest > last).then(|| {
            let what =
                format!("sample {newest} was being written when the recording stopped; it is left out");
            Damage::new(TICKS.tail_name(), None, what)
        })
    }
}

fn read_tail_of(table: &'static Table, store: &Store, damage: &mut Vec<Damage>) -> Vec<Batch> {
    match store.read(&table.tail_name(), MOST_TAIL_BYTES) {
        Ok(bytes) => {
            let (batches, wrong) = read_tail(table, bytes);
            damage.extend(wrong);
            batches
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => {
            damage.push(Damage::new(table.tail_name(), None, format!("cannot be read: {e}")));
            Vec::new()
        }
    }
}

fn parts_of(
    table: &'static Table,
    names: &[String],
    store: &Store,
    damage: &mut Vec<Damage>,
) -> (Vec<String>, u32) {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| table.part_number(name)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let last = numbers.last().copied().unwrap_or(0);
    let mut readable = Vec::new();
    for number in numbers {
        let name = table.part_name(number);
        let bytes = match store.read(&name, MOST_PART_BYTES) {
            // Merged since the names were read: its rows are in an older part, which stands in the list.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            read => read.map_err(|e| e.to_string()),
        };
        match bytes.and_then(check_part) {
            Ok(()) => readable.push(name),
            Err(why) => {
                damage.push(Damage::new(name, None, format!("cannot be read ({why}); its rows are lost")))
            }
        }
    }
    (readable, last)
}
