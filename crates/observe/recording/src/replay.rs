//! In which order did it happen? Samples and events of a recording, merged by time; parts are read one at a time,
//! so that a long recording needs little memory.
//!
//! Two things of the same instant come in the order in which they were written. An event that was written long
//! after its time (in a later part of the events) comes when its part does.

use crate::columns::Columns;
use crate::error::Damage;
use crate::part_read::read_part;
use crate::recording::{Files, MOST_PART_BYTES};
use crate::row::{Record, RowReader};
use crate::rows::event::EventRow;
use crate::rows::tick::TickRow;
use crate::rows::Placed;
use crate::table::TICKS;
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use ullage_model::process::DescriptorKinds;
use ullage_model::{
    CgroupReading, Descriptors, FilesystemReading, Item, Mappings, Measured, Pages, ProcessId,
    ProcessReading, Sample,
};

/// Samples and events in order of time. An [`Iterator`], and so a [`ullage_model::Source`].
pub struct Replay {
    files: Arc<Files>,
    damage: Vec<Damage>,
    ticks: Chunks<TickRow>,
    next_ticks: VecDeque<TickRow>,
    events: Chunks<EventRow>,
    next_events: VecDeque<EventRow>,
    processes: ByTick<Placed<ProcessReading>>,
    mappings: ByTick<Placed<(ProcessId, Mappings)>>,
    descriptors: ByTick<Placed<(ProcessId, DescriptorKinds)>>,
    filesystems: ByTick<Placed<FilesystemReading>>,
    cgroups: ByTick<Placed<CgroupReading>>,
    pages: ByTick<Placed<Pages>>,
    expected_tick: u64,
    lost: Option<Lost>,
}

/// Samples in a row that are known to have been there.
struct Lost {
    first: u64,
    last: u64,
}

impl Replay {
    pub(crate) fn new(files: Arc<Files>) -> Replay {
        Replay {
            ticks: Chunks::new(&files),
            next_ticks: VecDeque::new(),
            events: Chunks::new(&files),
            next_events: VecDeque::new(),
            processes: ByTick::new(&files),
            mappings: ByTick::new(&files),
            descriptors: ByTick::new(&files),
            filesystems: ByTick::new(&files),
            cgroups: ByTick::new(&files),
            pages: ByTick::new(&files),
            expected_tick: 0,
            lost: None,
            damage: Vec::new(),
            files,
        }
    }

    /// What could not be read so far, beyond what [`crate::Recording::damage`] says. Complete after the last
    /// item.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn fill(&mut self) {
        while self.next_ticks.is_empty() {
            let Some(chunk) = self.ticks.next(&self.files, &mut self.damage) else { break };
            let by_number: BTreeMap<u64, TickRow> = chunk.into_iter().collect();
            self.next_ticks.extend(by_number.into_values());
        }
        while self.next_events.is_empty() {
            let Some(chunk) = self.events.next(&self.files, &mut self.damage) else { break };
            let mut rows: Vec<EventRow> = chunk.into_iter().map(|(_, row)| row).collect();
            rows.sort_by_key(|row| (row.event.at, row.number));
            self.next_events.extend(rows);
        }
    }

    /// The sample of this tick, where all its rows are there.
    fn assemble(&mut self, tick: &TickRow) -> Option<Sample> {
        let (files, damage) = (&self.files, &mut self.damage);
        let mappings = self.mappings.take(tick.tick, tick.rows.mappings, files, damage);
        let descriptors = self.descriptors.take(tick.tick, tick.rows.descriptors, files, damage);
        let processes = self.processes.take(tick.tick, tick.rows.processes, files, damage);
        let filesystems = self.filesystems.take(tick.tick, tick.rows.filesystems, files, damage);
        let cgroups = self.cgroups.take(tick.tick, tick.rows.cgroups, files, damage);
        let pages = self.pages.take(tick.tick, tick.rows.pages, files, damage);
        let mut processes = in_order(processes?)?;
        for row in mappings? {
            let process = processes.get_mut(usize::try_from(row.position).ok()?)?;
            process.mappings = Measured::Known(row.what.1);
        }
        for row in descriptors? {
            let process = processes.get_mut(usize::try_from(row.position).ok()?)?;
            if let Measured::Known(Descriptors { kinds, .. }) = &mut process.descriptors {
                *kinds = Measured::Known(row.what.1);
            }
        }
        Some(Sample {
            at: tick.at,
            processes,
            host: tick.host.clone(),
            filesystems: in_order(filesystems?)?,
            cgroups: in_order(cgroups?)?,
            survey: in_order(pages?)?,
            forks_since_last: tick.forks_since_last,
            cost: tick.cost,
        })
    }

    fn lose(&mut self, first: u64, last: u64) {
        match &mut self.lost {
            Some(lost) if lost.last + 1 == first => lost.last = last,
            _ => {
                self.tell_lost();
                self.lost = Some(Lost { first, last });
            }
        }
    }

    fn tell_lost(&mut self) {
        if let Some(Lost { first, last }) = self.lost.take() {
            let what = if first == last {
                format!("sample {first} is incomplete and left out")
            } else {
                format!("samples {first} to {last} are incomplete and left out")
            };
            self.damage.push(Damage::new(TICKS.name, None, what));
        }
    }
}

impl Iterator for Replay {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            self.fill();
            let event_first = match (self.next_ticks.front(), self.next_events.front()) {
                (None, None) => {
                    self.tell_lost();
                    return None;
                }
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(tick), Some(event)) => (event.event.at, event.tick) <= (tick.at, tick.tick),
            };
            if event_first {
                return self.next_events.pop_front().map(|row| Item::Event(row.event));
            }
            let tick = self.next_ticks.pop_front()?;
            if tick.tick > self.expected_tick {
                self.lose(self.expected_tick, tick.tick - 1);
            }
            self.expected_tick = tick.tick.saturating_add(1);
            match self.assemble(&tick) {
                Some(sample) => return Some(Item::Sample(Box::new(sample))),
                None => self.lose(tick.tick, tick.tick),
            }
        }
    }
}

/// The readings, where their positions are 0, 1, 2, …
fn in_order<T>(mut rows: Vec<Placed<T>>) -> Option<Vec<T>> {
    rows.sort_by_key(|row| row.position);
    let complete = (0..).zip(&rows).all(|(position, row): (u64, _)| row.position == position);
    complete.then(|| rows.into_iter().map(|row| row.what).collect())
}

/// The rows of a table, a part at a time, the tail last.
struct Chunks<R> {
    next_part: usize,
    tail_done: bool,
    /// Largest number read from parts: rows of the tail up to here were moved into a part already.
    seen: Option<u64>,
    rows: PhantomData<R>,
}

impl<R: Record> Chunks<R> {
    fn new(_: &Files) -> Chunks<R> {
        Chunks { next_part: 0, tail_done: false, seen: None, rows: PhantomData }
    }

    /// Rows with their numbers. A part that cannot be read is passed over.
    fn next(&mut self, files: &Files, damage: &mut Vec<Damage>) -> Option<Vec<(u64, R)>> {
        let table = files.of(R::TABLE)?;
        while let Some(name) = table.parts.get(self.next_part) {
            self.next_part += 1;
            let bytes = files.store.read(name, MOST_PART_BYTES).map_err(|e| e.to_string());
            match bytes.and_then(|bytes| read_part(R::TABLE, bytes)) {
                Ok(columns) => return Some(self.decode(&columns, name, damage)),
                Err(why) => {
                    let what = format!("cannot be read ({why}); its rows are lost");
                    damage.push(Damage::new(name, None, what));
                }
            }
        }
        if self.tail_done {
            return None;
        }
        self.tail_done = true;
        Some(self.decode(&table.tail, &R::TABLE.tail_name(), damage))
    }

    fn decode(&mut self, columns: &Columns, file: &str, damage: &mut Vec<Damage>) -> Vec<(u64, R)> {
        let mut rows = Vec::with_capacity(columns.rows);
        let (mut bad, mut example) = (0, None);
        for row in 0..columns.rows {
            let number = columns.u64(0, row);
            if number.is_some_and(|number| self.seen.is_some_and(|seen| number <= seen)) {
                continue;
            }
            match (number, R::decode(&mut RowReader::new(columns, row))) {
                (Some(number), Ok(record)) => rows.push((number, record)),
                (_, wrong) => {
                    bad += 1;
                    example = example.or(wrong.err());
                }
            }
        }
        if bad > 0 {
            let why = example.map_or_else(|| "their numbers are missing".to_owned(), |e| e.to_string());
            damage.push(Damage::new(
                file,
                None,
                format!("{bad} rows are not understood ({why}) and left out"),
            ));
        }
        self.seen = self.seen.max(columns.last_number());
        rows
    }
}

/// The rows of a table that belong to a tick, asked for in order.
struct ByTick<R> {
    chunks: Chunks<R>,
    loaded: BTreeMap<u64, Vec<R>>,
}

impl<R: Record> ByTick<R> {
    fn new(files: &Files) -> ByTick<R> {
        ByTick { chunks: Chunks::new(files), loaded: BTreeMap::new() }
    }

    /// The `count` rows of this tick; none where they are not all there.
    fn take(&mut self, tick: u64, count: u64, files: &Files, damage: &mut Vec<Damage>) -> Option<Vec<R>> {
        if count == 0 {
            return Some(Vec::new());
        }
        loop {
            self.loaded = self.loaded.split_off(&tick);
            if let Some(rows) = self.loaded.remove(&tick) {
                return (rows.len() as u64 == count).then_some(rows);
            }
            if !self.loaded.is_empty() {
                return None;
            }
            for (number, row) in self.chunks.next(files, damage)? {
                self.loaded.entry(number).or_default().push(row);
            }
        }
    }
}
