//! How does an event stand in its table? What it says is one JSON object (`payload`, as the model serialises it):
//! kinds of events differ too much for columns of their own.

use crate::row::{BadRow, Record, RowReader, RowWriter};
use crate::table::{Table, EVENTS};
use ullage_model::{At, Event, EventKind};

/// An event and its place in the order of writing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventRow {
    pub(crate) number: u64,
    /// The tick that is written next.
    pub(crate) tick: u64,
    pub(crate) event: Event,
    /// `event.what` as JSON; kept apart because only making it can fail.
    pub(crate) payload: String,
}

impl EventRow {
    pub(crate) fn new(number: u64, tick: u64, event: &Event) -> Result<EventRow, serde_json::Error> {
        let payload = serde_json::to_string(&event.what)?;
        Ok(EventRow { number, tick, event: event.clone(), payload })
    }
}

impl Record for EventRow {
    const TABLE: &'static Table = &EVENTS;

    fn encode(&self, row: &mut RowWriter<'_>) {
        row.u64(self.number);
        row.u64(self.tick);
        row.u64(self.event.at.0);
        let (word, pid) = word_and_pid(&self.event.what);
        row.text(word);
        row.optional_i32(pid);
        row.text(&self.payload);
    }

    fn decode(row: &mut RowReader<'_>) -> Result<Self, BadRow> {
        let (number, tick, at) = (row.u64()?, row.u64()?, At(row.u64()?));
        row.skip(2);
        let payload = row.text()?.to_owned();
        let what = serde_json::from_str(&payload)
            .map_err(|_| row.bad("holds no event that this version understands"))?;
        Ok(EventRow { number, tick, event: Event { at, what }, payload })
    }
}

/// For whoever filters the table: which kind, and of which process.
fn word_and_pid(what: &EventKind) -> (&'static str, Option<i32>) {
    match what {
        EventKind::Machine { .. } => ("machine", None),
        EventKind::ProcessSeen { facts } => ("process_seen", Some(facts.id.pid)),
        EventKind::LimitsChanged { id, .. } => ("limits_changed", Some(id.pid)),
        EventKind::RoleKnown { id, .. } => ("role_known", Some(id.pid)),
        EventKind::ProcessEnded { id, .. } => ("process_ended", Some(id.pid)),
        EventKind::Agent { pid, .. } => ("agent", Some(*pid)),
        EventKind::MappedFileShort { id, .. } => ("mapped_file_short", Some(id.pid)),
        EventKind::KernelOomKill(kill) => ("kernel_oom_kill", Some(kill.pid)),
        EventKind::KernelForkRejected { .. } => ("kernel_fork_rejected", None),
        EventKind::Neighbours(_) => ("neighbours", None),
        EventKind::Budget { .. } => ("budget", None),
        EventKind::Mark { pid, .. } => ("mark", Some(*pid)),
        EventKind::Attempt { .. } => ("attempt", None),
        EventKind::NotSeen { .. } => ("not_seen", None),
        EventKind::Finished { .. } => ("finished", None),
    }
}
