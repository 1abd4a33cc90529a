//! A queue of messages: pickled objects whose buffers lie in the arena.

use crate::arena::{duplicate, Arena};
use crate::encoder::{Encoded, Encoder};
use crate::error::{arena_error, ArenaError};
use crate::incoming::{Arrived, Incoming};
use crate::keep::{Copied, Keep};
use crate::message::{self, Part, Place, Plan, Row};
use pyo3::prelude::*;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use ullage_arena::fail::{self, FailPoint};
use ullage_arena::{Lease, Ticket, Travelled};
use ullage_transport::{Channel, Received, Record};

/// Copies of at least so much let other threads run meanwhile.
const LONG_COPY: u64 = 256 << 10;
/// A part smaller than this is copied out where it arrives: kept for long, it pins no page of the arena.
const COPIED_OUT: u64 = 8 << 10;

/// A queue between any number of processes.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Queue {
    arena: Py<Arena>,
    channel: Channel,
    number: u16,
    /// Bytes that were copied at sending, and that were handed over in place.
    copied: AtomicU64,
    in_place: AtomicU64,
}

struct Copy {
    to: u64,
    from: usize,
    length: u64,
}

// SAFETY: addresses of storages and buffers that the caller of `send` keeps alive until it returns.
unsafe impl Send for Copy {}

impl Queue {
    fn over(arena: Py<Arena>, channel: Channel, number: u16) -> Queue {
        Queue { arena, channel, number, copied: AtomicU64::new(0), in_place: AtomicU64::new(0) }
    }

    /// Where every part of a message is; the lease of the message's block ends with the last part that lies in it.
    fn arrived(&self, lease: &Arc<Lease>, rows: &[Row], bytes: &[u8]) -> PyResult<Vec<Arrived>> {
        let arena = &self.arena.get().arena;
        let mut parts = Vec::with_capacity(rows.len());
        let mut failed = None;
        // All are taken, although one may fail: what was taken ends with the list.
        for row in rows {
            let length = row.length as usize;
            let (keep, start) = match row.place {
                Place::Here(offset) if row.length < COPIED_OUT => {
                    let start = offset as usize;
                    (Keep::Copied(Arc::new(Copied::of(&bytes[start..start + length]))), 0)
                }
                Place::Here(offset) => (Keep::Lease(Arc::clone(lease)), offset as usize),
                Place::Block(ticket) => match arena.take(ticket) {
                    Ok(lease) => (Keep::Lease(Arc::new(lease)), 0),
                    Err(error) => {
                        failed = Some(error);
                        continue;
                    }
                },
            };
            parts.push(Arrived { keep, start, length, from: row.from });
        }
        failed.map_or(Ok(parts), |error| Err(arena_error(error)))
    }

    /// A block with the whole message, and the bytes that were copied beside the pickle.
    fn fill(
        &self,
        py: Python<'_>,
        encoded: &Encoded<'_>,
        shared: &[Option<Ticket>],
    ) -> PyResult<(Lease, u64)> {
        let parts: Vec<Part> = encoded.parts().collect();
        let lengths =
            parts.iter().zip(shared).map(|(part, ticket)| ticket.is_none().then_some(part.last - part.first));
        let plan: Plan = message::plan(encoded.pickle().len(), encoded.plain().len(), lengths);
        let mut block = self.arena.get().arena.alloc(plan.size).map_err(arena_error)?;
        let mut copies = Vec::new();
        let mut rows = Vec::with_capacity(parts.len());
        for ((part, ticket), here) in parts.iter().zip(shared).zip(&plan.parts) {
            let source = part.copied();
            rows.push(match (ticket, here) {
                (Some(ticket), _) => {
                    Row { place: Place::Block(*ticket), length: part.nbytes, from: part.mark_of_whole() }
                }
                (None, here) => {
                    let to = here.unwrap_or_default();
                    copies.push(Copy { to, from: source.address, length: source.length });
                    Row { place: Place::Here(to), length: source.length, from: source.from }
                }
            });
        }
        // SAFETY: the block was just allocated, and nobody else knows of it.
        let bytes = unsafe { block.bytes_mut() };
        let (pickle, plain) = (encoded.pickle(), encoded.plain());
        message::write_table(bytes, pickle.len(), plain.len(), encoded.storages(), &rows);
        bytes[plan.pickle..plan.pickle + pickle.len()].copy_from_slice(pickle);
        bytes[plan.plain..plan.plain + plain.len()].copy_from_slice(plain);
        let copied: u64 = copies.iter().map(|copy| copy.length).sum();
        let copy = |bytes: &mut [u8]| {
            for copy in &copies {
                // SAFETY: the plan left room for `length` bytes at `to`; the source is alive for the whole call, and
                // may be written by another thread only where the user's own program is at fault.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        copy.from as *const u8,
                        bytes.as_mut_ptr().add(copy.to as usize),
                        copy.length as usize,
                    );
                }
            }
        };
        if copied >= LONG_COPY {
            py.detach(|| copy(bytes));
        } else {
            copy(bytes);
        }
        Ok((block, copied))
    }

    fn discard(&self, record: Record) {
        let arena = &self.arena.get().arena;
        if let Ok(lease) = arena.take(record.ticket) {
            // SAFETY: its sender wrote it before it was sent.
            let rows =
                message::read_table(unsafe { lease.bytes() }).map(|table| table.rows).unwrap_or_default();
            for row in rows {
                if let Place::Block(ticket) = row.place {
                    arena.discard(ticket);
                }
            }
        }
    }
}

#[pymethods]
impl Queue {
    /// A new queue.
    #[new]
    fn new(arena: Py<Arena>) -> PyResult<Queue> {
        let channel = Channel::create().map_err(arena_error)?;
        let number = arena.get().arena.open_channel();
        Ok(Queue::over(arena, channel, number))
    }

    /// The queue behind a descriptor from another process; the descriptor itself stays the caller's.
    #[staticmethod]
    fn attach(arena: Py<Arena>, fd: i32, number: u16) -> PyResult<Queue> {
        Ok(Queue::over(arena, Channel::over(duplicate(fd)?), number))
    }

    /// Its descriptor.
    fn fileno(&self) -> i32 {
        self.channel.fd().as_raw_fd()
    }

    /// Its number in the arena.
    #[getter]
    fn number(&self) -> u16 {
        self.number
    }

    /// Sends what an encoder collected. A storage that was made in the arena by this process goes as it is, any
    /// other memory is copied.
    fn send(&self, py: Python<'_>, encoder: &Encoder) -> PyResult<()> {
        let encoded = encoder.encoded();
        let arena = &self.arena.get().arena;
        let shared: Vec<Option<Ticket>> = encoded
            .parts()
            .enumerate()
            .map(|(index, part)| {
                let storage = index < encoded.storages();
                storage.then(|| arena.share_at(part.address, part.nbytes, self.number)).flatten()
            })
            .collect();
        let sent = self.fill(py, &encoded, &shared).and_then(|(block, copied)| {
            let in_place: u64 = shared.iter().flatten().map(|ticket| ticket.length).sum();
            fail::at(FailPoint::Filled);
            let failed = |_| ArenaError::new_err("a message's block could not be handed over");
            let ticket = block.send(self.number).map_err(failed)?;
            fail::at(FailPoint::Sent);
            self.channel.send(Record { ticket, kind: 0, extra: 0 }).map_err(|error| {
                // Its parts are taken back below.
                if let Ok(lease) = arena.take(ticket) {
                    drop(lease);
                }
                arena_error(error)
            })?;
            fail::at(FailPoint::Written);
            encoder.is_sent();
            arena.travelled(Travelled { copied, in_place, passed_by: encoded.passed_by() });
            self.copied.fetch_add(copied, Ordering::Relaxed);
            self.in_place.fetch_add(in_place, Ordering::Relaxed);
            Ok(())
        });
        if sent.is_err() {
            shared.iter().flatten().for_each(|ticket| arena.discard(*ticket));
        }
        sent
    }

    /// The next message, an `Incoming`. None where `timeout` seconds
    /// passed; an int where descriptor number so-and-so of `others` became ready and no message was there before.
    #[pyo3(signature = (timeout=None, others=Vec::new()))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>, others: Vec<i32>) -> PyResult<Py<PyAny>> {
        let deadline =
            timeout.map(|timeout| std::time::Instant::now() + Duration::from_secs_f64(timeout.max(0.0)));
        // SAFETY: the caller keeps these descriptors open during the call.
        let others: Vec<BorrowedFd<'_>> = others
            .into_iter()
            .filter(|fd| *fd >= 0)
            .map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
            .collect();
        let record = loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
            let received = py.detach(|| self.channel.receive(left, &others)).map_err(arena_error)?;
            match received {
                Received::Message(record) => break record,
                Received::Nothing => return Ok(py.None()),
                Received::Others(ready) => {
                    let first = ready.first().copied().unwrap_or_default();
                    return Ok(first.into_pyobject(py)?.into_any().unbind());
                }
                Received::Interrupted => py.check_signals()?,
            }
        };
        fail::at(FailPoint::Received);
        let lease = Arc::new(self.arena.get().arena.take(record.ticket).map_err(arena_error)?);
        fail::at(FailPoint::Taken);
        self.arena.get().warn_once(py);
        // SAFETY: its sender wrote it before it was sent, and handed it over.
        let bytes = unsafe { lease.bytes() };
        let table =
            message::read_table(bytes).ok_or_else(|| ArenaError::new_err("a message's table is damaged"))?;
        let parts = self.arrived(&lease, &table.rows, bytes)?;
        let place = |range: &std::ops::Range<usize>| (range.start, range.len());
        let (pickle, plain) = (place(&table.pickle), place(&table.plain));
        let incoming = Incoming::new(Keep::Lease(lease), pickle, plain, parts, table.storages);
        Ok(Py::new(py, incoming)?.into_any())
    }

    /// True where no message is there at this moment.
    fn empty(&self) -> bool {
        !self.channel.has_message()
    }

    /// Waits until all that was sent can be received, at most `timeout` seconds; true where it can.
    fn flush(&self, py: Python<'_>, timeout: f64) -> bool {
        py.detach(|| self.channel.flush(Duration::from_secs_f64(timeout.clamp(0.0, 1e9))))
    }

    /// Bytes that were copied at sending, and bytes that were handed over in place.
    #[getter]
    fn sent(&self) -> (u64, u64) {
        (self.copied.load(Ordering::Relaxed), self.in_place.load(Ordering::Relaxed))
    }

    /// Nobody will receive any more: what is still on its way comes free.
    fn close(&self) {
        while let Ok(Received::Message(record)) = self.channel.receive(Some(Duration::ZERO), &[]) {
            self.discard(record);
        }
        self.arena.get().arena.close_channel(self.number);
    }
}
