//! How does a recording that was never closed become a closed one?

use crate::error::{Damage, OpenError, WriteError};
use crate::files::TableFiles;
use crate::merge::merge_all;
use crate::part::write_part;
use crate::recording::Recording;
use crate::run_file;
use crate::store::Store;
use crate::table::{Table, EVENTS, TICKS};
use std::path::Path;
use ullage_model::ProcessId;

/// Why a recording was not repaired. It is as readable as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its writer is at work.
    #[error("{run} is still being recorded; it closes itself when the run ends")]
    StillRunning {
        /// Name of the run.
        run: String,
    },
    /// Usually a full disk or a read-only file system.
    #[error("{0}; the recording can be read as it is")]
    Write(#[from] WriteError),
}

/// Moves what is readable of the live tail into closed parts and removes the tail; returns the damage found.
/// A closed recording is left as it is, and so is a copy: its own recorder or copier may be at work on another machine. `runs` says whether a process still does: this crate does not look.
///
/// # Errors
/// Where it cannot be opened or written, or is still being recorded.
pub fn repair(dir: impl AsRef<Path>, runs: impl Fn(&ProcessId) -> bool) -> Result<Vec<Damage>, RepairError> {
    let dir = dir.as_ref();
    let recording = Recording::open(dir)?;
    let files = &recording.files;
    if recording.is_closed() || recording.is_live_copy() {
        return Ok(recording.damage);
    }
    if recording.run.outcome.is_none() && recording.run.recorder.as_ref().is_some_and(runs) {
        return Err(RepairError::StillRunning { run: recording.run.run.0 });
    }
    let ticks = files.of(&TICKS);
    let last_tick = ticks.and_then(|ticks| ticks.tail.last_number().max(files.last_number_of_parts(ticks)));
    for table in &files.tables {
        close(dir, table, files.last_number_of_parts(table), last_tick)?;
    }
    for table in &files.tables {
        tidy(dir, table.table);
    }
    run_file::give_back(dir);
    // Only when every table has its part: a kill in between leaves a tail that is repaired the next time.
    for table in &files.tables {
        let path = dir.join(table.table.tail_name());
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(WriteError::new("remove", &path, e).into());
            }
            _ => {}
        }
    }
    Ok(recording.damage)
}

/// Rows that the parts have not yet, up to the last tick that counts, become a part.
fn close(
    dir: &Path,
    table: &TableFiles,
    in_parts: Option<u64>,
    last_tick: Option<u64>,
) -> Result<(), WriteError> {
    let has_ticks = !std::ptr::eq(table.table, &EVENTS) && !std::ptr::eq(table.table, &TICKS);
    let keep = |number: u64| {
        in_parts.is_none_or(|last| number > last)
            && (!has_ticks || last_tick.is_some_and(|last| number <= last))
    };
    write_part(dir, table.table, table.last_part + 1, &table.batches, keep).map(drop)
}

/// Merges the parts, up to the first that cannot be read, and removes one that was being written.
fn tidy(dir: &Path, table: &'static Table) {
    let names = Store::Directory(dir.to_owned()).names().unwrap_or_default();
    let unfinished = |name: &&String| name.strip_suffix(".tmp").and_then(|n| table.part_number(n)).is_some();
    for name in names.iter().filter(unfinished) {
        let _ = std::fs::remove_file(dir.join(name));
    }
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| table.part_number(name)).collect();
    numbers.sort_unstable();
    // The recording is whole either way, only larger.
    let _ = merge_all(dir, table, &numbers);
}
