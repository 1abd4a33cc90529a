//! In which order did it happen? Samples and events of a recording, merged by time.
//!
//! Two things of the same instant come in the order in which they were written. An event that was written long
//! after its time (in a later part of the events) comes when its part does.

use crate::chunks::{Chunk, Chunks};
use crate::error::Damage;
use crate::files::Files;
use crate::given::Given;
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
    ProcessReading, Sample, Segment,
};

/// Samples and events in order of time. An [`Iterator`], and so a [`ullage_model::Source`].
pub struct Replay {
    files: Arc<Files>,
    damage: Vec<Damage>,
    ticks: Records<TickRow>,
    next_ticks: VecDeque<TickRow>,
    events: Records<EventRow>,
    next_events: VecDeque<EventRow>,
    processes: ByTick<Placed<ProcessReading>>,
    mappings: ByTick<Placed<(ProcessId, Mappings)>>,
    descriptors: ByTick<Placed<(ProcessId, DescriptorKinds)>>,
    filesystems: ByTick<Placed<FilesystemReading>>,
    cgroups: ByTick<Placed<CgroupReading>>,
    segments: ByTick<Placed<Segment>>,
    pages: ByTick<Placed<Pages>>,
    whole: Whole,
    given: Given,
    before: u64,
    lost: Option<Lost>,
}

/// Which samples are whole, as far as was replayed.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// All before this one, but for those that are lost.
    next: u64,
    lost: Vec<Lost>,
}

/// Samples in a row that are known to have been there.
#[derive(Clone, Copy, Debug)]
struct Lost {
    first: u64,
    last: u64,
}

impl Whole {
    pub(crate) fn has(&self, tick: u64) -> bool {
        let lost_before = self.lost.partition_point(|lost| lost.first <= tick);
        let is_lost = self.lost[..lost_before].last().is_some_and(|lost| tick <= lost.last);
        tick < self.next && !is_lost
    }
}

impl Replay {
    pub(crate) fn new(files: Arc<Files>) -> Replay {
        Replay::between(files, Given::default(), None)
    }

    /// Without what was given before, and without this tick and what came after it.
    pub(crate) fn between(files: Arc<Files>, given: Given, before: Option<u64>) -> Replay {
        Replay {
            before: before.unwrap_or(u64::MAX),
            ticks: Records::after(given),
            next_ticks: VecDeque::new(),
            events: Records::after(given),
            next_events: VecDeque::new(),
            processes: ByTick::after(given),
            mappings: ByTick::after(given),
            descriptors: ByTick::after(given),
            filesystems: ByTick::after(given),
            cgroups: ByTick::after(given),
            segments: ByTick::after(given),
            pages: ByTick::after(given),
            whole: Whole { next: given.tick.map_or(0, |tick| tick.saturating_add(1)), lost: Vec::new() },
            given,
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

    /// Numbers of the last sample and the last event that were given, or are lost.
    pub(crate) fn given(&self) -> Given {
        self.given
    }

    /// Complete after the last item.
    pub(crate) fn whole(&self) -> &Whole {
        &self.whole
    }

    fn fill(&mut self) {
        while self.next_ticks.is_empty() {
            let Some(chunk) = self.ticks.next(&self.files, &mut self.damage) else { break };
            let before = chunk.into_iter().filter(|(number, _)| *number < self.before);
            let by_number: BTreeMap<u64, TickRow> = before.collect();
            self.next_ticks.extend(by_number.into_values());
        }
        while self.next_events.is_empty() {
            let Some(chunk) = self.events.next(&self.files, &mut self.damage) else { break };
            let rows = chunk.into_iter().map(|(_, row)| row);
            // The tick of an event is the next one.
            let mut rows: Vec<EventRow> = rows.filter(|row| row.tick <= self.before).collect();
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
        let segments = match tick.rows.segments {
            Measured::Known(rows) => {
                Measured::Known(in_order(self.segments.take(tick.tick, rows, files, damage)?)?)
            }
            Measured::Missing(why) => Measured::Missing(why),
        };
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
            segments,
            survey: in_order(pages?)?,
            forks_since_last: tick.forks_since_last,
            cost: tick.cost,
        })
    }

    fn lose(&mut self, first: u64, last: u64) {
        match &mut self.lost {
            Some(lost) if lost.last + 1 == first => lost.last = last,
            _ => {
                self.report_lost();
                self.lost = Some(Lost { first, last });
            }
        }
    }

    fn report_lost(&mut self) {
        if let Some(Lost { first, last }) = self.lost.take() {
            self.whole.lost.push(Lost { first, last });
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
                    self.report_lost();
                    return None;
                }
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(tick), Some(event)) => (event.event.at, event.tick) <= (tick.at, tick.tick),
            };
            if event_first {
                let row = self.next_events.pop_front()?;
                self.given.event = self.given.event.max(Some(row.number));
                return Some(Item::Event(row.event));
            }
            let tick = self.next_ticks.pop_front()?;
            if tick.tick > self.whole.next {
                self.lose(self.whole.next, tick.tick - 1);
            }
            self.whole.next = tick.tick.saturating_add(1);
            self.given.tick = self.given.tick.max(Some(tick.tick));
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

/// The rows of a table as what they stand for, a file at a time.
struct Records<R> {
    chunks: Chunks,
    rows: PhantomData<R>,
}

impl<R: Record> Records<R> {
    fn after(given: Given) -> Records<R> {
        Records { chunks: Chunks::after(given.of(R::TABLE)), rows: PhantomData }
    }

    /// Rows with their numbers.
    fn next(&mut self, files: &Files, damage: &mut Vec<Damage>) -> Option<Vec<(u64, R)>> {
        let decoded = self.chunks.next(R::TABLE, files, damage, |chunk| decode(&chunk));
        decoded.map(|(rows, wrong)| {
            damage.extend(wrong);
            rows
        })
    }
}

fn decode<R: Record>(chunk: &Chunk<'_>) -> (Vec<(u64, R)>, Option<Damage>) {
    let mut rows = Vec::with_capacity(chunk.columns.rows);
    let (mut bad, mut example) = (0, None);
    for row in chunk.rows() {
        let number = chunk.columns.u64(0, row);
        match (number, R::decode(&mut RowReader::new(chunk.columns, row))) {
            (Some(number), Ok(record)) => rows.push((number, record)),
            (_, wrong) => {
                bad += 1;
                example = example.or(wrong.err());
            }
        }
    }
    let damage = (bad > 0).then(|| {
        let why = example.map_or_else(|| "their numbers are missing".to_owned(), |e| e.to_string());
        Damage::new(chunk.file, None, format!("{bad} rows are not understood ({why}) and left out"))
    });
    (rows, damage)
}

/// The rows of a table that belong to a tick, asked for in order.
struct ByTick<R> {
    records: Records<R>,
    loaded: BTreeMap<u64, Vec<R>>,
}

impl<R: Record> ByTick<R> {
    fn after(given: Given) -> ByTick<R> {
        ByTick { records: Records::after(given), loaded: BTreeMap::new() }
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
            for (number, row) in self.records.next(files, damage)? {
                self.loaded.entry(number).or_default().push(row);
            }
        }
    }
}
