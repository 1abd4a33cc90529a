//! What is new in a recording that grows? Each sample and event once, without reading again what was read.
//!
//! Tails are read from where they ended before; closed parts, only those with numbers that were not given yet. The
//! surprise: a tail's rows move into a part while it is read, and the tail begins anew. So the names of the parts are
//! listed before and after reading, and where they changed, or the bytes do not continue, the tail is read from its
//! beginning: rows that were given are dropped by their numbers.

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
use arrow_array::RecordBatch;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use ullage_model::names::FILE_RUN;
use ullage_model::{Item, RunFacts};

/// How often a tail is read once more where its rows moved meanwhile.
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
    /// Numbers of the parts that were there.
    parts: Vec<u32>,
    /// One of them, and the largest number in it.
    newest: Option<(u32, u64)>,
    /// Rows that belong to a sample that was not given yet.
    waiting: Vec<RecordBatch>,
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
        let files = self.files()?;
        self.live = files.live;
        let mut replay = Replay::after(Arc::new(files), self.given);
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

    fn files(&mut self) -> Result<Files, OpenError> {
        let store = Store::Directory(self.dir.clone());
        let unreadable = |source| OpenError::Unreadable { path: self.dir.clone(), source };
        let mut names = store.names().map_err(unreadable)?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            // As `Files::read`: that of the ticks before the others, so that no tick is met before its rows.
            for tail in self.tails.iter_mut().rev() {
                tail.read(&self.dir, &names);
            }
            let after = store.names().map_err(unreadable)?;
            let moved = self.tails.iter().any(|tail| tail.parts != parts_of(tail.table, &after));
            names = after;
            if !moved || attempt == ATTEMPTS {
                break;
            }
        }
        let given = self.given;
        let tables = self.tails.iter_mut().map(|tail| tail.files(&store, &names, given)).collect();
        let live = self.tails.iter().any(|tail| names.contains(&tail.table.tail_name()));
        Ok(Files { store, tables, live })
    }
}

impl FollowedTail {
    /// Reads what was appended.
    fn read(&mut self, dir: &Path, names: &[String]) {
        let parts = parts_of(self.table, names);
        if parts != self.parts {
            self.parts = parts;
            self.newest = None;
            self.begin_anew();
        }
        let path = dir.join(self.table.tail_name());
        let Ok(file) = crate::store::open(&path) else { return };
        let length = file.metadata().map_or(0, |facts| facts.len());
        if length < self.read {
            self.begin_anew();
        }
        if length == self.read {
            return;
        }
        let continues = self.append(&file, length).unwrap_or(true);
        if !continues {
            self.begin_anew();
            let _ = self.append(&file, length);
        }
    }

    fn begin_anew(&mut self) {
        self.read = 0;
        self.head.clear();
        self.waiting.clear();
    }

    /// False where what stands there is not the beginning of a record.
    fn append(&mut self, file: &std::fs::File, length: u64) -> io::Result<bool> {
        use std::os::unix::fs::FileExt;
        let new = (length - self.read).min(MOST_TAIL_BYTES) as usize;
        let mut bytes = self.head.clone();
        let known = bytes.len();
        bytes.resize(known + new, 0);
        let mut filled = known;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], self.read + (filled - known) as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        bytes.truncate(filled);
        let complete = complete_length(&bytes);
        let from_the_beginning = self.read == 0;
        let stuck = complete < bytes.len() && !begins_a_record(&bytes[complete..]);
        if !from_the_beginning && stuck {
            return Ok(false);
        }
        if from_the_beginning {
            let head = first_length(&bytes);
            self.head = bytes[..head].to_vec();
        }
        self.read += (complete - known.min(complete)) as u64;
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

fn newest(table: &'static Table, batch: &RecordBatch) -> Option<u64> {
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
