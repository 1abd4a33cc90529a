//! What is readable of a recording, and what is damaged in it?

use crate::columns::Columns;
use crate::error::{Damage, OpenError};
use crate::part_read::{check_part, read_part};
use crate::replay::Replay;
use crate::run_file;
use crate::store::Store;
use crate::table::{Table, ALL, TICKS};
use crate::tail_read::read_tail;
use arrow_array::RecordBatch;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use ullage_model::RunFacts;

/// A tail is at most 5 MB, or one sample of a machine with very many processes; bytes.
pub(crate) const MOST_TAIL_BYTES: u64 = 64 << 20;
/// A part is smaller than the tails it was made of; bytes.
pub(crate) const MOST_PART_BYTES: u64 = 64 << 20;

/// A recording, open for reading. It may still be running: then this is how far it was.
#[derive(Debug)]
pub struct Recording {
    /// Facts of the run.
    pub run: RunFacts,
    /// What is wrong with it as far as opening showed; [`Replay::damage`] adds what reading everything shows.
    pub damage: Vec<Damage>,
    pub(crate) files: Arc<Files>,
}

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
    pub(crate) batches: Vec<RecordBatch>,
}

impl Recording {
    /// Opens the recording in `dir`. Damage inside it is no error: what is readable is returned, with
    /// [`Recording::damage`] saying what is not.
    ///
    /// # Errors
    /// Where there is no recording, it may not be read, or it is of a newer format.
    pub fn open(dir: impl AsRef<Path>) -> Result<Recording, OpenError> {
        let dir = dir.as_ref();
        match std::fs::metadata(dir) {
            Ok(what) if what.is_dir() => Recording::read(Store::Directory(dir.to_owned()), dir),
            Ok(_) => Err(OpenError::NotARecording { path: dir.to_owned() }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::NotFound { path: dir.to_owned() })
            }
            Err(source) => Err(OpenError::Unreadable { path: dir.to_owned(), source }),
        }
    }

    /// The same, from the bytes of the files by name. Never panics, whatever the bytes are.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_image(files: BTreeMap<String, Vec<u8>>) -> Result<Recording, OpenError> {
        Recording::read(Store::Image(files), &run_file::image_path())
    }

    /// Whether it was closed in order. If not, it still runs, or ullage was killed.
    pub fn is_closed(&self) -> bool {
        !self.files.live
    }

    /// All samples and events, in order of time.
    pub fn replay(&self) -> Replay {
        Replay::new(Arc::clone(&self.files))
    }

    fn read(store: Store, path: &Path) -> Result<Recording, OpenError> {
        let (run, wrong) = run_file::read(&store, path)?;
        let mut damage: Vec<Damage> = wrong.into_iter().collect();
        let run_is_damaged = !damage.is_empty();
        // Tails before parts, and that of the ticks before the others: where the recording still runs, rows may
        // move into parts meanwhile, and rows seen twice can be dropped, rows never seen could not be found.
        let mut tails: Vec<_> =
            ALL.iter().rev().map(|table| (*table, read_tail_of(table, &store, &mut damage))).collect();
        let names =
            store.names().map_err(|source| OpenError::Unreadable { path: path.to_owned(), source })?;
        let live = tails.iter().any(|(table, _)| names.contains(&table.tail_name()));
        let tables = tails
            .drain(..)
            .map(|(table, batches)| {
                let tail = Columns::of_batches(table, &batches);
                let (parts, last_part) = parts_of(table, &names, &store, &mut damage);
                TableFiles { table, parts, last_part, tail, batches }
            })
            .collect::<Vec<_>>();
        let empty = tables.iter().all(|table| table.parts.is_empty() && table.tail.rows == 0);
        if run_is_damaged && empty {
            return Err(OpenError::NotARecording { path: path.to_owned() });
        }
        let files = Files { store, tables, live };
        damage.extend(unfinished_sample(&files));
        Ok(Recording { run, damage, files: Arc::new(files) })
    }
}

impl Files {
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
}

fn read_tail_of(table: &'static Table, store: &Store, damage: &mut Vec<Damage>) -> Vec<RecordBatch> {
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

/// A sample whose rows are there, but not the row that would make it count.
fn unfinished_sample(files: &Files) -> Option<Damage> {
    let last = files.of(&TICKS)?.tail.last_number()?;
    let children =
        files.tables.iter().filter(|t| t.table.columns[0].name == "tick" && !std::ptr::eq(t.table, &TICKS));
    let newest = children.filter_map(|child| child.tail.last_number()).max()?;
    (newest > last).then(|| {
        let what = format!("sample {newest} was being written when the recording stopped; it is left out");
        Damage::new(TICKS.tail_name(), None, what)
    })
}
