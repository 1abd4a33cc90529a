//! From how many bytes on is it worth a note, and from how many a warning?

/// Memory that one cause holds is worth a note from here on: torch, its libraries and a healthy loader scatter by less.
pub(crate) const NOTE_BYTES: u64 = 64 << 20;
/// Memory that one cause holds, or took, is worth a warning from here on, where it goes on or is a part of all.
pub(crate) const WARN_BYTES: u64 = 256 << 20;
/// Memory that the work itself needs (batches in flight, objects to send, compile workers) is worth a note from here on.
pub(crate) const WORK_NOTE_BYTES: u64 = 512 << 20;

/// A process of which nobody inside spoke is worth a word from here on: torch alone takes as much.
pub(crate) const UNKNOWN_BYTES: u64 = 128 << 20;

/// One n-th of what the job held: a cause that could save as much is a warning.
pub(crate) const WARN_PART: u64 = 10;
/// A cause that held as much when memory ran out filled it.
pub(crate) const FILLED_PART: u64 = 5;
/// Memory that the work needs, and that is as much of the job's, is worth a note.
pub(crate) const NOTE_PART: u64 = 4;
/// A buffer that held as much of what was in use filled it.
pub(crate) const BUFFER_PART: u64 = 3;

/// More than the half: the larger part of something, and so what it is about.
pub(crate) const MOST: f64 = 0.5;
/// A share that is not the whole is not rounded to it, per cent.
pub(crate) const NOT_THE_WHOLE_PERCENT: f64 = 99.9;
