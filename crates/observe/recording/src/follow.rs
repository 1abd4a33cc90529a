//! What is new in a recording that grows? Each sample and event once, without reading again what was read.
//!
//! Tails are read from where they ended before; closed parts, only those with numbers that were not given yet. The
//! surprise: at any moment a tail's rows move into a part, and the tail begins anew and may grow to the same length. So
//! a record that was read is looked at again after each reading: where it is not there any more, the tail is read from
//! its beginning, and rows that were given are dropped by their numbers.

use crate::batch::Batch;
use crate::columns::Columns;
use crate::error::OpenError;
use crate::files::{Files, TableFiles};
use crate::given::Given;
use crate::part_read::{last_number, MOST_PART_BYTES};
use crate::replay::Replay;
use crate::run_file;
use crate::store::Store;
use crate::table::{Table, ALL};
use crate::tail_read::{complete_length, first_length, read_tail, MOST_TAIL_BYTES};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use ullage_model::names::FILE_RUN;
use ullage_model::{Item, RunFacts};

/// How often a tail that began anew while it was read is read once more, before the rest waits for the next time.
const ATTEMPTS: u32 = 4;

/// Reads a recording as it grows.
#[derive(Debug)]
pub struct Follower {
    dir: PathBuf,
    /// Facts of the run, as last read.
    pub run: RunFacts,
    run_written: Option<(u64, SystemTime)>,
    tails: Vec<FollowedTail>,
    given: Given,
    live: bool,
}

/// How far a table's tail was read.
#[derive(Debug)]
struct FollowedTail {
    table: &'static Table,
    /// The schema message that the file begins with.
    head: Vec<u8>,
    /// Bytes that were read.
    read: u64,
    /// The last record of these, without the schema.
    last: Vec<u8>,
    /// Numbers of the parts that were there.
    parts: Vec<u32>,
    /// One of them, and the largest number in it.
    newest: Option<(u32, u64)>,
    /// Rows that belong to a sample that was not given yet.
    waiting: Vec<Batch>,
}

impl Follower {
    /// Follows the recording in `dir` from its beginning.
    ///
    /// # Errors
    /// Where there is no recording, it may not be read, or it is of a newer format.
    pub fn open(dir: impl AsRef<Path>) -> Result<Follower, OpenError> {
        let dir = dir.as_ref().to_owned();
        let (run, _) = run_file::read(&Store::Directory(dir.clone()), &dir)?;
        let tail = |table: &&'static Table| FollowedTail {
            table,
            head: Vec::new(),
            read: 0,
            last: Vec::new(),
            parts: Vec::new(),
            newest: None,
            waiting: Vec::new(),
        };
        let run_written = written(&dir);
        let tails = ALL.iter().map(tail).collect();
        Ok(Follower { dir, run, run_written, tails, given: Given::default(), live: true })
    }

    /// True while a tail is there: the run goes on, or ullage was killed.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Gives `take` what was written since the last time, in order of time, until it says false. What it did not take
    /// is given the next time, when the part that it stands in is read anew.
    ///
    /// # Errors
    /// Where the directory cannot be read any more.
    pub fn news(&mut self, mut take: impl FnMut(Item) -> bool) -> Result<(), OpenError> {
        let now = written(&self.dir);
        if now != self.run_written {
            // A run.json that is damaged now was whole before.
            if let Ok((run, None)) = run_file::read(&Store::Directory(self.dir.clone()), &self.dir) {
                self.run = run;
                self.run_written = now;
            }
        }
        let Some((files, before)) = self.files()? else { return Ok(()) };
        self.live = files.live;
        let mut replay = Replay::between(Arc::new(files), self.given, before);
        while let Some(item) = replay.next() {
            self.given = replay.given();
            if !take(item) {
                break;
            }
        }
        self.given = replay.given();
        for tail in &mut self.tails {
            let given = self.given.of(tail.table);
            tail.waiting.retain(|batch| newest(tail.table, batch).is_some_and(|number| Some(number) > given));
        }
        Ok(())
    }

    /// The files, and the first tick whose rows they may not hold (none: they hold all). Nothing where the tails begin
    /// anew faster than they can be read.
    fn files(&mut self) -> Result<Option<(Files, Option<u64>)>, OpenError> {
        let store = Store::Directory(self.dir.clone());
        let names =
            || store.names().map_err(|source| OpenError::Unreadable { path: self.dir.clone(), source });
        let given = self.given;
        // As `Files::read`: that of the ticks before the others, so that no tick is met before its rows; and tails
        // before parts, so that what moves is met twice and not never. A part may hold ticks that came after that.
        let Some((ticks, others)) = self.tails.split_last_mut() else { return Ok(None) };
        if !ticks.read(&self.dir) {
            return Ok(None);
        }
        let before = match ticks.waiting.iter().filter_map(|batch| newest(ticks.table, batch)).max() {
            Some(newest) => Some(newest + 1),
            None => ticks.end_of_parts(&store, &names()?, given),
        };
        if !others.iter_mut().rev().all(|tail| tail.read(&self.dir)) {
            return Ok(None);
        }
        let names = names()?;
        let tables = self.tails.iter_mut().map(|tail| tail.files(&store, &names, given)).collect();
        let live = self.tails.iter().any(|tail| names.contains(&tail.table.tail_name()));
        // What came after that is still to be read.
        let live = live || before.is_some_and(|before| before > 0);
        Ok(Some((Files { store, tables, live }, before)))
    }
}

impl FollowedTail {
    /// Reads what was appended. False where it began anew each time that it was read.
    fn read(&mut self, dir: &Path) -> bool {
        // One that is gone has become a part.
        let Ok(file) = crate::store::open(&dir.join(self.table.tail_name())) else { return true };
        (0..ATTEMPTS).any(|_| {
            let continues = self.append(&file);
            if matches!(continues, Ok(false)) {
                self.begin_anew();
            }
            // What cannot be read is told where the recording is opened.
            continues.unwrap_or(true)
        })
    }

    /// For the ticks, where none waits in the tail: the one after the last that is there, or none where all are.
    fn end_of_parts(&mut self, store: &Store, names: &[String], given: Given) -> Option<u64> {
        let has_tail = |table: &Table| names.contains(&table.tail_name());
        let next = given.tick.map_or(0, |tick| tick + 1);
        match parts_of(self.table, names).last() {
            // Tails go when all is in parts.
            Some(_) if !has_tail(self.table) => None,
            Some(&number) => {
                // Read anew: it may have been merged with others.
                self.newest = None;
                let newest = self.newest_of(store, number, &self.table.part_name(number));
                Some(newest.map_or(next, |newest| newest + 1))
            }
            // Without a sample; the first may be written while the others are read.
            None => Some(next),
        }
    }

    fn begin_anew(&mut self) {
        self.read = 0;
        self.last.clear();
        self.head.clear();
        self.waiting.clear();
    }

    /// False where the tail began anew since what was read of it.
    fn append(&mut self, file: &File) -> io::Result<bool> {
        let length = file.metadata()?.len();
        if length <= self.read {
            return Ok(length == self.read && stands(file, self.read, &self.last)?);
        }
        let mut bytes = self.head.clone();
        let known = bytes.len();
        bytes.extend(read_at(file, self.read, (length - self.read).min(MOST_TAIL_BYTES))?);
        let (complete, last) = complete_length(&bytes);
        let from_the_beginning = self.read == 0;
        let head = if from_the_beginning { first_length(&bytes) } else { known };
        let last = bytes[last.max(head).min(complete)..complete].to_vec();
        let end = self.read + (complete - known.min(complete)) as u64;
        let stuck = complete < bytes.len() && !begins_a_record(&bytes[complete..]);
        // What was read before, or just now, must stand there still: else these bytes are of two tails.
        let same = if from_the_beginning {
            stands(file, end, &last)?
        } else {
            !stuck && stands(file, self.read, &self.last)?
        };
        if !same {
            return Ok(false);
        }
        if from_the_beginning {
            self.head = bytes[..head].to_vec();
        }
        self.read = end;
        if !last.is_empty() {
            self.last = last;
        }
        if !stuck {
            bytes.truncate(complete);
        }
        // What is damaged is read past, as on opening.
        let (batches, _) = read_tail(self.table, bytes);
        self.waiting.extend(batches);
        Ok(true)
    }

    /// Parts with numbers that were not given yet, and the rows that wait.
    fn files(&mut self, store: &Store, names: &[String], given: Given) -> TableFiles {
        let given = given.of(self.table);
        let numbers = parts_of(self.table, names);
        if numbers != self.parts {
            self.parts.clone_from(&numbers);
            self.newest = None;
        }
        let mut parts = Vec::new();
        for number in numbers.iter().rev() {
            let name = self.table.part_name(*number);
            // Older parts hold lower numbers.
            let mut met =
                |given: u64| self.newest_of(store, *number, &name).is_some_and(|newest| newest <= given);
            if given.is_some_and(&mut met) {
                break;
            }
            parts.push(name);
        }
        parts.reverse();
        TableFiles {
            table: self.table,
            parts,
            last_part: numbers.last().copied().unwrap_or(0),
            tail: Columns::of_batches(self.table, &self.waiting),
            batches: Vec::new(),
        }
    }

    /// The largest number in a part, read once as long as the parts stay the same.
    fn newest_of(&mut self, store: &Store, number: u32, name: &str) -> Option<u64> {
        if let Some((_, newest)) = self.newest.filter(|(known, _)| *known == number) {
            return Some(newest);
        }
        let newest = last_number(self.table, store.read(name, MOST_PART_BYTES).ok()?).ok()??;
        self.newest = Some((number, newest));
        Some(newest)
    }
}

/// Whether this record, which holds its number, ends there.
fn stands(file: &File, end: u64, record: &[u8]) -> io::Result<bool> {
    let length = record.len() as u64;
    Ok(read_at(file, end.saturating_sub(length), length)? == record)
}

/// At most so many bytes from there on.
fn read_at(file: &File, from: u64, most: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; most as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Whether more bytes can make a whole record of these.
fn begins_a_record(bytes: &[u8]) -> bool {
    let marker = [0xff; 4];
    bytes.len() < marker.len() || bytes.starts_with(&marker)
}

fn parts_of(table: &Table, names: &[String]) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| table.part_number(name)).collect();
    numbers.sort_unstable();
    numbers
}

fn newest(table: &'static Table, batch: &Batch) -> Option<u64> {
    use crate::columns::Cells;
    let column = table.columns.first()?;
    match Cells::of_batches(column.kind, column.name, std::slice::from_ref(batch)) {
        Cells::U64(numbers) => numbers.into_iter().flatten().max(),
        _ => None,
    }
}

/// What tells one `run.json` from the next: clocks of file systems are coarse, but it is replaced by a rename.
fn written(dir: &Path) -> Option<(u64, SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let facts = std::fs::metadata(dir.join(FILE_RUN)).ok()?;
    Some((facts.ino(), facts.modified().ok()?))
}
