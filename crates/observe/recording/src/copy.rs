//! How does a recording reach a second place, so that it can be read there at every moment?
//!
//! Each file is written under another name, given the time of the original, and renamed. The order is that in which readers
//! rely on each other's files: parts before the tails that they come from, both before `run.json`, and `verdict.json` last. What was
//! merged away goes when what it was merged into is there. Tails travel as pieces (`tail_archive`), appended a frame at a time.
//!
//! The surprise: the recorder is at work meanwhile. Tails are read before the names of the parts are, as readers do, and a
//! file that vanishes in between means that all is read anew.

use crate::error::WriteError;
use crate::store::{self, Store};
use crate::table::{Table, ALL};
use crate::tail_archive::{frame, Piece};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use ullage_model::names::{FILE_RUN, FILE_TAILS, FILE_VERDICT};

/// An archive of tails is begun anew where it is this much longer than twice what it began with; bytes.
const MOST_APPENDED: u64 = 256 << 10;
/// How often all is read anew where files vanish meanwhile.
const PASSES: u32 = 4;
/// No file of a recording is larger, bytes.
const MOST_FILE_BYTES: u64 = 1 << 30;

/// What was written to the second place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files and pieces of files, each by one write.
    pub writes: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Copies one recording into a directory, again and again.
#[derive(Debug)]
pub struct RecordingCopy {
    from: PathBuf,
    to: PathBuf,
    /// What stands there, by name: length and time of the original. None while that is not known.
    there: Option<BTreeMap<String, Stamp>>,
    archive: Archive,
}

type Stamp = (u64, Option<SystemTime>);

/// Something vanished while it was to be read, or the disk failed.
enum Trouble {
    Moved,
    Failed(WriteError),
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Trouble {
        Trouble::Failed(error)
    }
}

impl RecordingCopy {
    /// From one directory, which holds a recording in whatever state, to another, which is there: empty, or with an earlier
    /// copy of the same recording.
    pub fn new(from: &Path, to: &Path) -> RecordingCopy {
        RecordingCopy { from: from.to_owned(), to: to.to_owned(), there: None, archive: Archive::default() }
    }

    /// Brings the copy to where the recording is now. `file_done` is called after each file. What was copied before a
    /// failure need not be copied again.
    ///
    /// # Errors
    /// Where something cannot be read here or written there; what stands there is readable.
    pub fn update(&mut self, file_done: &mut dyn FnMut()) -> Result<Copied, WriteError> {
        let mut copied = Copied::default();
        for _ in 0..PASSES {
            match self.pass(&mut copied, file_done) {
                Err(Trouble::Moved) => {}
                Err(Trouble::Failed(error)) => return Err(error),
                Ok(()) => break,
            }
        }
        Ok(copied)
    }

    fn pass(&mut self, copied: &mut Copied, file_done: &mut dyn FnMut()) -> Result<(), Trouble> {
        let tails = read_tails(&self.from)?;
        let store = Store::Directory(self.from.clone());
        let names = store.names().map_err(|e| WriteError::new("read", &self.from, e))?;
        self.learn_what_is_there()?;
        let mut parts: Vec<&String> = names.iter().filter(|name| is_part(name)).collect();
        parts.sort_unstable();
        for name in parts {
            self.file(name, copied, file_done)?;
        }
        if let Some(bytes) = self.archive.update(&self.to, &tails)? {
            copied.add(bytes);
            file_done();
        }
        for name in self.merged_away(&names) {
            remove(&self.to.join(&name))?;
            self.there.iter_mut().for_each(|there| {
                there.remove(&name);
            });
        }
        for name in [FILE_RUN, FILE_VERDICT] {
            if names.iter().any(|there| there == name) {
                self.file(name, copied, file_done)?;
            }
        }
        Ok(())
    }

    /// Copies a file that is new or changed.
    fn file(&mut self, name: &str, copied: &mut Copied, file_done: &mut dyn FnMut()) -> Result<(), Trouble> {
        let path = self.from.join(name);
        let failed = |e: io::Error| match e {
            e if e.kind() == io::ErrorKind::NotFound => Trouble::Moved,
            e => WriteError::new("read", &path, e).into(),
        };
        let file = store::open(&path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        let stamp: Stamp = (facts.len(), facts.modified().ok());
        let there = self.there.get_or_insert_default();
        if there.get(name) == Some(&stamp) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.take(MOST_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
        appear(&self.to, name, &bytes, stamp.1)?;
        there.insert(name.to_owned(), stamp);
        copied.add(bytes.len() as u64);
        file_done();
        Ok(())
    }

    /// An earlier copy is taken up; what a copier left half done goes.
    fn learn_what_is_there(&mut self) -> Result<(), WriteError> {
        if self.there.is_some() {
            return Ok(());
        }
        let failed = |e| WriteError::new("read", &self.to, e);
        let mut there = BTreeMap::new();
        for entry in std::fs::read_dir(&self.to).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".tmp") {
                remove(&entry.path())?;
            } else if let Ok(facts) = entry.metadata() {
                there.insert(name, (facts.len(), facts.modified().ok()));
            }
        }
        self.archive.is_there = there.contains_key(FILE_TAILS);
        self.there = Some(there);
        Ok(())
    }

    /// Parts that stand there and no more here.
    fn merged_away(&self, names: &[String]) -> Vec<String> {
        let there = self.there.iter().flat_map(BTreeMap::keys);
        there.filter(|name| is_part(name) && !names.contains(name)).cloned().collect()
    }
}

impl Copied {
    fn add(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
    }
}

/// The tails in the copy.
#[derive(Debug, Default)]
struct Archive {
    /// A file is there, whoever wrote it.
    is_there: bool,
    /// What this copier has written of it; none where it is to be begun anew.
    length: Option<u64>,
    /// Bytes that it began with.
    began_with: u64,
    /// By position in [`ALL`]: how much of the tail stands in it, and a hash of that.
    sent: [Option<(u64, u64)>; ALL.len()],
}

impl Archive {
    /// Bytes that were written; none where nothing was to do.
    fn update(&mut self, to: &Path, tails: &[Option<Vec<u8>>; ALL.len()]) -> Result<Option<u64>, WriteError> {
        let path = to.join(FILE_TAILS);
        if tails.iter().all(Option::is_none) {
            if self.is_there {
                remove(&path)?;
            }
            *self = Archive::default();
            return Ok(None);
        }
        let pieces_beside = |sent: &[Option<(u64, u64)>]| -> Vec<Piece<'_>> {
            let all = ALL.iter().zip(tails).zip(sent);
            all.filter_map(|((table, tail), sent)| piece(table, tail.as_deref(), *sent)).collect()
        };
        let mut pieces = pieces_beside(&self.sent);
        let is_ours = self.is_ours(&path);
        if pieces.is_empty() && is_ours {
            return Ok(None);
        }
        let whole = !is_ours || self.length.is_none_or(|length| length > 2 * self.began_with + MOST_APPENDED);
        if whole {
            pieces = pieces_beside(&[None; ALL.len()]);
        }
        let frame = frame(&pieces).map_err(|e| WriteError::new("pack", &path, e))?;
        let bytes = frame.len() as u64;
        // Where it fails, nobody knows what stands there: it is begun anew.
        let before = self.length.take();
        match before.filter(|_| !whole) {
            Some(length) => {
                append(&path, &frame, length)?;
                self.length = Some(length + bytes);
            }
            None => {
                appear(to, FILE_TAILS, &frame, None)?;
                (self.length, self.began_with, self.is_there) = (Some(bytes), bytes, true);
            }
        }
        for (sent, tail) in self.sent.iter_mut().zip(tails) {
            *sent = tail.as_ref().map(|tail| (tail.len() as u64, hash(tail)));
        }
        Ok(Some(bytes))
    }

    /// Nobody else wrote it meanwhile.
    fn is_ours(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|facts| Some(facts.len()) == self.length)
    }
}

/// What of a tail is not in the archive; none where nothing is to be said.
fn piece<'a>(table: &'static Table, tail: Option<&'a [u8]>, sent: Option<(u64, u64)>) -> Option<Piece<'a>> {
    let Some(tail) = tail else {
        return sent.map(|_| Piece { table, offset: 0, bytes: &[] });
    };
    if let Some((length, of_sent)) = sent {
        let (before, new) = tail.split_at_checked(usize::try_from(length).ok()?).unwrap_or((&[], tail));
        if before.len() as u64 == length && hash(before) == of_sent {
            return (!new.is_empty()).then_some(Piece { table, offset: length, bytes: new });
        }
    }
    Some(Piece { table, offset: 0, bytes: tail })
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// As they are now, by position in [`ALL`]; that of the ticks is read first, so that the rows that it announces are there.
fn read_tails(from: &Path) -> Result<[Option<Vec<u8>>; ALL.len()], Trouble> {
    let mut tails = [const { None }; ALL.len()];
    for (at, table) in ALL.iter().enumerate().rev() {
        let path = from.join(table.tail_name());
        let read = || -> io::Result<(Vec<u8>, u64)> {
            let mut file = store::open(&path)?;
            let mut bytes = Vec::new();
            Read::by_ref(&mut file).take(MOST_FILE_BYTES).read_to_end(&mut bytes)?;
            Ok((bytes, file.metadata()?.len()))
        };
        match read() {
            // It became a part while it was read.
            Ok((bytes, length)) if length < bytes.len() as u64 => return Err(Trouble::Moved),
            Ok((bytes, _)) => tails[at] = Some(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(WriteError::new("read", &path, e).into()),
        }
    }
    Ok(tails)
}

/// Writes a file so that it appears whole, and where that fails leaves nothing of it. On a shared disk, only what was
/// synchronised is known to have found room.
fn appear(dir: &Path, name: &str, bytes: &[u8], time: Option<SystemTime>) -> Result<(), WriteError> {
    let unfinished = dir.join(format!("{name}.{}.tmp", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|file| filled(file, bytes, time))
        .and_then(|()| std::fs::rename(&unfinished, dir.join(name)));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&unfinished);
        WriteError::new("write", &dir.join(name), e)
    })
}

fn filled(mut file: File, bytes: &[u8], time: Option<SystemTime>) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()?;
    time.map_or(Ok(()), |time| file.set_modified(time))
}

/// Adds to a file that has this length; where that fails, cuts it to what it was.
fn append(path: &Path, bytes: &[u8], length: u64) -> Result<(), WriteError> {
    let failed = |e| WriteError::new("write", path, e);
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| {
        let _ = file.set_len(length);
        failed(e)
    })
}

fn remove(path: &Path) -> Result<(), WriteError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(WriteError::new("remove", path, e)),
        _ => Ok(()),
    }
}

fn is_part(name: &str) -> bool {
    ALL.iter().any(|table| table.part_number(name).is_some())
}
