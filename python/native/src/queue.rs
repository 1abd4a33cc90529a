//! A queue of messages: pickled objects whose buffers lie in the arena.

use crate::arena::{duplicate, Arena};
use crate::message::{self, Place, Row};
use crate::piece::Piece;
use crate::{arena_error, ArenaError};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use ullage_arena::{Lease, Ticket};
use ullage_transport::{Channel, Received, Record};

/// Copies of at least so much let other threads run meanwhile.
const LONG_COPY: u64 = 256 << 10;
/// A part smaller than this is copied out where it arrives: kept for long, it pins no page of the arena.
const COPIED_OUT: u64 = 8 << 10;
/// In the first byte of a part: one object only is made of it, and begins there.
const ALONE: u64 = 1 << 63;

/// A queue between any number of processes.
#[pyclass(frozen, module = "ullage._native")]
pub(crate) struct Queue {
    arena: Py<Arena>,
    channel: RwLock<Channel>,
    number: u16,
    /// Bytes that went through: copied at sending, handed over in place.
    sent: Mutex<(u64, u64)>,
}

/// Memory of a storage: address, bytes, the part of it that the message reaches, and whether one object reaches it.
type Part = (usize, u64, u64, u64, bool);

struct Copy {
    to: u64,
    from: usize,
    length: u64,
}

// SAFETY: addresses of storages and buffers that the caller of `send` keeps alive until it returns.
unsafe impl Send for Copy {}

impl Queue {
    fn channel(&self) -> std::sync::RwLockReadGuard<'_, Channel> {
        self.channel.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every part of a message in a block of its own, for the reader; the lease of the message's block ends with the
    /// last part that lies in it.
    fn parts<'py>(
        &self,
        py: Python<'py>,
        lease: &Arc<Lease>,
        rows: &[Row],
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyList>> {
        let arena = &self.arena.get().arena;
        let parts = PyList::empty(py);
        // All are taken before one can fail: what was taken ends with the list.
        let taken: Vec<Option<Result<Lease, _>>> = rows
            .iter()
            .map(|row| match row.place {
                Place::Here(_) => None,
                Place::Block(ticket) => Some(arena.take(ticket)),
            })
            .collect();
        for (row, taken) in rows.iter().zip(taken) {
            let part = match (row.place, taken) {
                (Place::Here(offset), _) if row.length < COPIED_OUT => {
                    let (start, length) = (offset as usize, row.length as usize);
                    PyByteArray::new(py, &bytes[start..start + length]).into_any()
                }
                (Place::Here(offset), _) => {
                    Bound::new(py, Piece::of(Arc::clone(lease), offset as usize, row.length as usize))?
                        .into_any()
                }
                (Place::Block(_), Some(Ok(lease))) => Bound::new(py, Piece::whole(lease))?.into_any(),
                (Place::Block(_), Some(Err(error))) => return Err(arena_error(error)),
                (Place::Block(_), None) => {
                    return Err(ArenaError::new_err("a part of the message was not taken"))
                }
            };
            parts.append((part, row.from as i64))?;
        }
        Ok(parts)
    }

    fn discard(&self, record: Record) {
        let arena = &self.arena.get().arena;
        if let Ok(lease) = arena.take(record.ticket) {
            // SAFETY: its sender wrote it before it was sent.
            let rows =
                message::read_table(unsafe { lease.bytes() }).map(|(rows, _)| rows).unwrap_or_default();
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
        Ok(Queue { arena, channel: RwLock::new(channel), number, sent: Mutex::default() })
    }

    /// The queue behind a descriptor from another process; the descriptor itself stays the caller's.
    #[staticmethod]
    fn attach(arena: Py<Arena>, fd: i32, number: u16) -> PyResult<Queue> {
        let channel = RwLock::new(Channel::over(duplicate(fd)?));
        Ok(Queue { arena, channel, number, sent: Mutex::default() })
    }

    /// Its descriptor.
    fn fileno(&self) -> i32 {
        self.channel().fd().as_raw_fd()
    }

    /// Its number in the arena.
    #[getter]
    fn number(&self) -> u16 {
        self.number
    }

    /// Sends a pickle with its parts. `storages`: address, bytes, first and last byte reached; a storage that was
    /// made in the arena by this process goes as it is, any other part is copied. `buffers`: out-of-band buffers.
    /// A storage that is one object's alone is marked by the sign bit of its first byte at the other end.
    fn send(
        &self,
        py: Python<'_>,
        pickle: &[u8],
        storages: Vec<Part>,
        buffers: Vec<Bound<'_, PyAny>>,
        kind: u32,
        extra: u64,
    ) -> PyResult<()> {
        let arena = &self.arena.get().arena;
        let buffers = buffers.iter().map(PyBuffer::<u8>::get).collect::<PyResult<Vec<_>>>()?;
        let shared: Vec<Option<Ticket>> = storages
            .iter()
            .map(|(address, length, ..)| arena.share_at(*address, *length, self.number))
            .collect();
        let take_back = || shared.iter().flatten().for_each(|ticket| arena.discard(*ticket));

        let lengths = storages
            .iter()
            .zip(&shared)
            .map(|((_, _, from, to, _), ticket)| ticket.is_none().then_some(to - from))
            .chain(buffers.iter().map(|buffer| Some(buffer.len_bytes() as u64)));
        let plan = message::plan(pickle.len(), lengths);
        let mut block = match arena.alloc(plan.size) {
            Ok(block) => block,
            Err(error) => {
                take_back();
                return Err(arena_error(error));
            }
        };

        let mut rows = Vec::with_capacity(plan.parts.len());
        let mut copies = Vec::new();
        let from_storages =
            storages.iter().zip(&shared).map(|((address, length, from, to, alone), ticket)| {
                let mark = if *alone { ALONE } else { 0 };
                match ticket {
                    Some(ticket) => (Some(*ticket), 0, *length, mark),
                    None => (None, address + *from as usize, to - from, from | mark),
                }
            });
        let from_buffers =
            buffers.iter().map(|buffer| (None, buffer.buf_ptr() as usize, buffer.len_bytes() as u64, 0));
        for ((ticket, address, length, from), here) in from_storages.chain(from_buffers).zip(&plan.parts) {
            let place = match (ticket, here) {
                (Some(ticket), _) => Place::Block(ticket),
                (None, here) => {
                    let to = here.unwrap_or_default();
                    copies.push(Copy { to, from: address, length });
                    Place::Here(to)
                }
            };
            rows.push(Row { place, length, from });
        }
        // SAFETY: the block was just allocated, and nobody else knows of it.
        let bytes = unsafe { block.bytes_mut() };
        message::write_table(bytes, pickle.len(), &rows);
        bytes[plan.pickle..plan.pickle + pickle.len()].copy_from_slice(pickle);
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
        let ticket = match block.send(self.number) {
            Ok(ticket) => ticket,
            Err(_) => {
                take_back();
                return Err(ArenaError::new_err("a message's block could not be handed over"));
            }
        };
        let record = Record { ticket, kind, extra };
        if let Err(error) = self.channel().send(record) {
            self.discard(record);
            return Err(arena_error(error));
        }
        let in_place: u64 = shared.iter().flatten().map(|ticket| ticket.length).sum();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.0 += copied;
        sent.1 += in_place;
        Ok(())
    }

    /// The next message as (kind, extra, pickle, [(part, first byte in its storage)]). None where `timeout` seconds
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
            let received = py.detach(|| self.channel().receive(left, &others)).map_err(arena_error)?;
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
        let lease = Arc::new(self.arena.get().arena.take(record.ticket).map_err(arena_error)?);
        // SAFETY: its sender wrote it before it was sent, and handed it over.
        let bytes = unsafe { lease.bytes() };
        let (rows, pickle) =
            message::read_table(bytes).ok_or_else(|| ArenaError::new_err("a message's table is damaged"))?;
        let parts = self.parts(py, &lease, &rows, bytes)?;
        let pickle = PyBytes::new(py, &bytes[pickle]);
        Ok((record.kind, record.extra, pickle, parts).into_pyobject(py)?.into_any().unbind())
    }

    /// True where no message is there at this moment.
    fn empty(&self) -> bool {
        !self.channel().has_message()
    }

    /// Waits until all that was sent can be received, at most `timeout` seconds; true where it can.
    fn flush(&self, py: Python<'_>, timeout: f64) -> bool {
        py.detach(|| self.channel().flush(Duration::from_secs_f64(timeout.clamp(0.0, 1e9))))
    }

    /// Bytes that were copied at sending, and bytes that were handed over in place.
    #[getter]
    fn sent(&self) -> (u64, u64) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody will receive any more: what is still on its way comes free.
    fn close(&self) {
        while let Ok(Received::Message(record)) = self.channel().receive(Some(Duration::ZERO), &[]) {
            self.discard(record);
        }
        self.arena.get().arena.close_channel(self.number);
    }

    /// To be called in the child of a fork.
    fn forked(&self) {
        self.channel.write().unwrap_or_else(PoisonError::into_inner).forked();
    }
}
