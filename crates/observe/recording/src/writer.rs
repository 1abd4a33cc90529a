//! How do samples and events reach the disk, so that a SIGKILL loses at most the one being written?
//!
//! Everything of a tick is written before its row in `ticks`, which says how many rows there must be elsewhere:
//! a tick counts only when it is complete. Nothing is fsynced: a killed process's writes are safe with the
//! kernel, and a machine that loses power may lose the last seconds.

use crate::error::{CreateError, WriteError};
use crate::merge::{merge, Small};
use crate::part::write_part;
use crate::row::Record;
use crate::rows::event::EventRow;
use crate::rows::tick::{RowCounts, TickRow};
use crate::rows::Placed;
use crate::run_file;
use crate::table::{Table, ALL};
use crate::tail::Tail;
use crate::tail_read::read_tail;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use ullage_model::figures::{duration, plural};
use ullage_model::names::FILE_RUN;
use ullage_model::{At, Descriptors, Event, EventKind, Measured, RunFacts, Sample};

/// All tails together are kept below this, bytes; the largest becomes a part when they meet it. The promise is
/// 5 MB; the rest is room for one more sample.
pub const TAIL_BYTES: u64 = 4_500_000;

/// The parts of one table.
struct Parts {
    next: u32,
    small: Small,
}

/// Gaps told one by one; a disk that is full now and then makes many.
const MOST_GAPS: usize = 8;

/// What could not be recorded.
#[derive(Debug)]
struct Lost {
    since: At,
    samples: u64,
    events: u64,
    why: String,
}

impl Lost {
    /// `until` is the time from which on there was room again; none where there was none to the end.
    fn sentence(&self, until: Option<At>) -> String {
        let since = duration(self.since.seconds());
        let until = until.map_or("on".to_owned(), |at| format!("to {}", duration(at.seconds())));
        let samples = plural(self.samples, "sample", "samples");
        let events = plural(self.events, "event", "events");
        format!("Not recorded, from {since} after the start {until}: {samples} and {events} ({})", self.why)
    }
}

/// Writes one recording. What cannot be written is left out, and what comes after it is tried again: a full disk may get
/// room. See [`Writer::lost`].
pub struct Writer {
    dir: PathBuf,
    tails: Vec<Tail>,
    /// By position in [`ALL`].
    parts: [Parts; ALL.len()],
    ticks: u64,
    events: u64,
    most_tail_bytes: u64,
    /// What is being lost now.
    losing: Option<Lost>,
    /// What was lost, a sentence each.
    lost: Vec<String>,
}

impl Writer {
    /// Begins a recording in `dir`, which is made (0700, its parents too) or is empty.
    ///
    /// # Errors
    /// Where the directory cannot be made or written, or holds something.
    pub fn create(dir: impl AsRef<Path>, run: &RunFacts) -> Result<Writer, CreateError> {
        let dir = dir.as_ref();
        let io = |doing, path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| CreateError::Io { doing, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("create", dir))?;
        if std::fs::read_dir(dir).map_err(io("read", dir))?.next().is_some() {
            return Err(CreateError::NotEmpty { path: dir.to_owned() });
        }
        // It may have been there, empty, and open to others.
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(io("restrict", dir))?;
        run_file::write(dir, run).map_err(io("write", &dir.join(FILE_RUN)))?;
        run_file::reserve(dir);
        Ok(Writer {
            dir: dir.to_owned(),
            tails: Vec::new(),
            parts: ALL.map(|_| Parts { next: 1, small: Small::default() }),
            ticks: 0,
            events: 0,
            most_tail_bytes: TAIL_BYTES,
            losing: None,
            lost: Vec::new(),
        })
    }

    /// Keeps less in the live tail than [`TAIL_BYTES`]: for tests of what happens when it is full.
    pub fn with_tail_bytes(mut self, most: u64) -> Writer {
        self.most_tail_bytes = most.min(TAIL_BYTES);
        self
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is missing from the recording, a sentence each; nothing while all is well.
    pub fn lost(&self) -> Vec<String> {
        let now = self.losing.iter().map(|lost| lost.sentence(None));
        self.lost.iter().cloned().chain(now).collect()
    }

    /// Records one tick.
    pub fn sample(&mut self, sample: &Sample) {
        let written = self.attempt(|writer| {
            writer.record_lost(sample.at)?;
            writer.write_sample(sample)
        });
        match written {
            // Told as far as it is to be told one by one.
            Ok(()) if self.lost.len() < MOST_GAPS => {
                let lost = self.losing.take();
                self.lost.extend(lost.map(|lost| lost.sentence(Some(sample.at))));
            }
            Ok(()) => {}
            Err(why) => self.losing(sample.at, &why).samples += 1,
        }
    }

    /// Records one event.
    pub fn event(&mut self, event: &Event) {
        if let Err(why) = self.attempt(|writer| writer.write_event(event)) {
            self.losing(event.at, &why).events += 1;
        }
    }

    fn losing(&mut self, at: At, why: &WriteError) -> &mut Lost {
        self.losing.get_or_insert_with(|| Lost { since: at, samples: 0, events: 0, why: why.to_string() })
    }

    /// Writes something whole or not at all.
    fn attempt(
        &mut self,
        write: impl FnOnce(&mut Writer) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        // Tails that cannot become parts must not grow for ever.
        self.roll_when_full()?;
        let ends: Vec<u64> = self.tails.iter().map(Tail::end).collect();
        let events = self.events;
        match write(self) {
            Ok(()) => {
                // Where it fails it is tried again before the next.
                let _ = self.roll_when_full();
                Ok(())
            }
            Err(why) => {
                self.events = events;
                // A tail that was made meanwhile had nothing before.
                let ends = ends.into_iter().chain(std::iter::repeat(0));
                self.tails.iter_mut().zip(ends).try_for_each(|(tail, end)| tail.take_back(end))?;
                Err(why)
            }
        }
    }

    /// What was lost stands in the recording itself as soon as there is room: ullage may not live to close it.
    fn record_lost(&mut self, at: At) -> Result<(), WriteError> {
        let Some(lost) = self.losing.as_ref().filter(|_| self.lost.len() < MOST_GAPS) else { return Ok(()) };
        let text = format!("{}.", lost.sentence(Some(at)));
        self.write_event(&Event { at, what: EventKind::NotSeen { text } })
    }

    /// Ends the recording: the tail becomes parts, and `run.json` says how it ended.
    ///
    /// # Errors
    /// Where a tail could not become a part, or `run.json` not be replaced. What was written stays readable, and `run.json`
    /// is replaced where that is possible at all.
    pub fn close(mut self, run: &RunFacts) -> Result<(), WriteError> {
        let path = self.dir.join(FILE_RUN);
        let written = run_file::write(&self.dir, run).map_err(|e| WriteError::new("write", &path, e));
        let rolled = (0..self.tails.len()).try_for_each(|tail| self.roll(tail));
        if rolled.is_ok() {
            self.merge_the_last();
        }
        // Last: a recording with tails is one that is not closed, and is repaired.
        let rolled =
            rolled.and_then(|()| std::mem::take(&mut self.tails).into_iter().try_for_each(Tail::remove));
        // Where there was no room before, the tails may have made some.
        let written = written
            .or_else(|_| run_file::write(&self.dir, run).map_err(|e| WriteError::new("write", &path, e)));
        rolled.and(written)
    }

    fn tail(&mut self, table: &'static Table) -> Result<&mut Tail, WriteError> {
        let at = match self.tails.iter().position(|tail| std::ptr::eq(tail.table, table)) {
            Some(at) => at,
            None => {
                self.tails.push(Tail::create(&self.dir, table)?);
                self.tails.len() - 1
            }
        };
        Ok(&mut self.tails[at])
    }

    /// Writes these records as one batch, and says how many they were.
    fn write<R: Record>(&mut self, records: impl IntoIterator<Item = R>) -> Result<u64, WriteError> {
        let mut records = records.into_iter().peekable();
        if records.peek().is_none() {
            return Ok(0);
        }
        let tail = self.tail(R::TABLE)?;
        let mut count = 0;
        for record in records {
            tail.push(&record);
            count += 1;
        }
        tail.write().map(|()| count)
    }

    fn write_sample(&mut self, sample: &Sample) -> Result<(), WriteError> {
        let tick = self.ticks;
        let processes = || (0u64..).zip(&sample.processes);
        let rows = RowCounts {
            processes: self.write(placed(tick, sample.processes.iter().cloned()))?,
            mappings: self.write(processes().filter_map(|(position, process)| {
                let mappings = process.mappings.known()?;
                Some(Placed { tick, position, what: (process.id, mappings) })
            }))?,
            descriptors: self.write(processes().filter_map(
                |(position, process)| match &process.descriptors {
                    Measured::Known(Descriptors { kinds: Measured::Known(kinds), .. }) => {
                        Some(Placed { tick, position, what: (process.id, kinds.clone()) })
                    }
                    _ => None,
                },
            ))?,
            filesystems: self.write(placed(tick, sample.filesystems.iter().cloned()))?,
            cgroups: self.write(placed(tick, sample.cgroups.iter().cloned()))?,
            segments: match &sample.segments {
                Measured::Known(segments) => {
                    Measured::Known(self.write(placed(tick, segments.iter().cloned()))?)
                }
                Measured::Missing(why) => Measured::Missing(*why),
            },
            pages: self.write(placed(tick, sample.survey.iter().copied()))?,
        };
        let Sample { at, forks_since_last, cost, .. } = *sample;
        let host = sample.host.clone();
        self.write([TickRow { tick, at, rows, forks_since_last, cost, host }])?;
        self.ticks += 1;
        Ok(())
    }

    fn write_event(&mut self, event: &Event) -> Result<(), WriteError> {
        let row = EventRow::new(self.events, self.ticks, event)
            .map_err(|e| WriteError::new("encode an event for", &self.dir, e))?;
        self.write([row])?;
        self.events += 1;
        Ok(())
    }

    fn roll_when_full(&mut self) -> Result<(), WriteError> {
        while self.tails.iter().map(Tail::bytes).sum::<u64>() > self.most_tail_bytes {
            let largest = (0..self.tails.len()).max_by_key(|&tail| self.tails[tail].bytes());
            let Some(largest) = largest else { break };
            self.roll(largest)?;
        }
        Ok(())
    }

    /// Moves a tail's rows into a part. Between the part's appearance and the tail's emptying they are in both;
    /// readers drop rows of the tail whose numbers the parts hold already.
    fn roll(&mut self, tail: usize) -> Result<(), WriteError> {
        let tail = &mut self.tails[tail];
        let (batches, damage) = read_tail(tail.table, tail.read_back()?);
        if let Some(damage) = damage.first() {
            return Err(WriteError::new("read back", &self.dir, damage));
        }
        let Some(at) = ALL.iter().position(|table| std::ptr::eq(*table, tail.table)) else { return Ok(()) };
        let parts = &mut self.parts[at];
        let size = write_part(&self.dir, tail.table, parts.next, &batches, |_| true)?;
        // Megabytes, and merging wants room of its own.
        drop(batches);
        tail.restart()?;
        if let Some(size) = size {
            let full = parts.small.add(parts.next, size);
            parts.next += 1;
            // Parts that could not be merged, on a full disk for one, are as readable as before.
            let _ = merge(&self.dir, tail.table, &full);
        }
        Ok(())
    }

    fn merge_the_last(&mut self) {
        for (table, parts) in ALL.iter().zip(&mut self.parts) {
            let _ = merge(&self.dir, table, &parts.small.take());
        }
    }
}

fn placed<T>(tick: u64, list: impl Iterator<Item = T>) -> impl Iterator<Item = Placed<T>> {
    (0..).zip(list).map(move |(position, what)| Placed { tick, position, what })
}
