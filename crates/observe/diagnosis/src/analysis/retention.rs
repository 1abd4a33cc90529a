//! What do the allocators of a job retain that the program has let go of?

use super::retained::{retained, Retained};
use super::run::Run;
use crate::history::{Allocator, ProcessHistory};
use crate::policy::growth::{HELD_MORE, RECENT_MOST_S, RECENT_S, RECENT_SHARE, RETAINED_SHARE};
use crate::policy::sizes::NOTE_BYTES;
use ullage_model::At;

/// What one allocator retains in all processes of a job where that is much.
pub(crate) struct Retention<'a> {
    pub(crate) allocator: Allocator,
    /// The process with most.
    pub(crate) process: &'a ProcessHistory,
    pub(crate) retained: Retained,
    /// Bytes of all of them.
    pub(crate) bytes: f64,
    pub(crate) processes: u64,
}

/// None where it is not worth a word.
pub(crate) fn of<'a>(run: &Run<'a>, allocator: Allocator) -> Option<Retention<'a>> {
    let mut all: Option<Retention> = None;
    for process in run.timeline.processes() {
        let Some(retained) =
            retained(&process.memory_readings, allocator).filter(|retained| is_worth(process, retained))
        else {
            continue;
        };
        all = Some(match all {
            None => Retention { allocator, process, retained, bytes: retained.bytes, processes: 1 },
            Some(before) => {
                let larger = retained.bytes > before.retained.bytes;
                let (process, largest) =
                    if larger { (process, retained) } else { (before.process, before.retained) };
                let bytes = before.bytes + retained.bytes;
                Retention { allocator, process, retained: largest, bytes, processes: before.processes + 1 }
            }
        });
    }
    all
}

fn is_worth(process: &ProcessHistory, retained: &Retained) -> bool {
    let life = process.last_seen.since(process.first_seen);
    let recent =
        process.last_seen.since(retained.at) <= RECENT_S.max((RECENT_SHARE * life).min(RECENT_MOST_S));
    let alike = || {
        // Its very last reading may be of its end.
        let end = At::from_seconds((process.last_seen.seconds() - 1.0).max(retained.at.seconds()));
        let at_end = process.private().at_or_before(end).map_or(retained.anonymous, |(_, bytes)| bytes);
        (at_end - retained.anonymous).abs() <= HELD_MORE * retained.anonymous
    };
    retained.bytes >= NOTE_BYTES as f64
        && retained.bytes >= RETAINED_SHARE * retained.anonymous
        && (recent || alike())
}
