//! The recording of a run: written so that a SIGKILL loses at most one sample, read whatever its state.
//!
//! A directory a run: `run.json`, closed parts as Parquet, a live tail as Arrow IPC streams. The format is told in
//! `docs/recording-format.md`. Facts only: what they mean is computed on reading, so that an old recording profits
//! from a new rule. This crate does not look at the machine: whether a run still runs, its callers say.
#![forbid(unsafe_code)]

mod batch;
mod chunks;
mod columns;
mod copy;
mod copy_pace;
mod csv;
mod derived;
mod error;
mod export;
mod files;
mod flatbuffer;
mod fleet_file;
mod follow;
mod format;
mod given;
mod home;
mod merge;
mod message;
mod part;
mod part_read;
mod recording;
mod repair;
mod replay;
mod row;
mod rows;
mod run_file;
mod runs;
mod store;
mod table;
mod tail;
mod tail_archive;
mod tail_read;
mod writer;

pub use copy::{Copied, RecordingCopy};
pub use copy_pace::CopyPace;
pub use error::{CreateError, Damage, OpenError, WriteError};
pub use export::{prepare, ExportError, Exported, TableFormat};
pub use fleet_file::write_rows;
pub use follow::Follower;
pub use format::FORMAT;
pub use home::{home, run_id};
pub use recording::Recording;
pub use repair::{repair, RepairError};
pub use replay::Replay;
pub use run_file::run_facts;
pub use runs::{beyond, find, list_runs, remove, time_of, FindError, RemoveError, Run, RunState};
pub use writer::{Writer, TAIL_BYTES};
