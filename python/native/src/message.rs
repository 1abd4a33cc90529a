//! What lies in a message's block: a table of parts, the pickle, the rows of its plain tensors, then the parts that
//! travel in it.
//!
//! A part is either in the block (copied there once) or a block of its own, which the sender collated in the arena.
//! Parts that begin anywhere begin at a multiple of 64 here.

use std::ops::Range;
use ullage_arena::Ticket;

/// Bytes of the table's head, and of each of its rows.
const HEAD: usize = 32;
const ROW: usize = 32;
/// In the first byte of a part: one object only is made of it, and is reached whole.
pub(crate) const ALONE: u64 = 1 << 63;

/// Memory that a message reaches: a storage, and its bytes from `first` to `last`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) address: usize,
    pub(crate) nbytes: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// [`ALONE`] or zero.
    pub(crate) mark: u64,
}

/// What is copied of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) address: usize,
    pub(crate) length: u64,
    /// Where in its storage it begins, and [`ALONE`].
    pub(crate) from: u64,
}

impl Part {
    pub(crate) fn copied(&self) -> Source {
        Source {
            address: self.address + self.first as usize,
            length: self.last - self.first,
            from: self.first | self.mark,
        }
    }

    /// Its mark where the storage travels whole, though not all of it may be reached.
    pub(crate) fn mark_of_whole(&self) -> u64 {
        if self.first == 0 && self.last == self.nbytes {
            self.mark
        } else {
            0
        }
    }
}

/// Where a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this block, from here.
    Here(u64),
    /// A block of its own.
    Block(Ticket),
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) length: u64,
    /// Where in its storage the part begins.
    pub(crate) from: u64,
}

/// How a message is laid out.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Where the pickle begins, and the rows of plain tensors.
    pub(crate) pickle: usize,
    pub(crate) plain: usize,
    /// Offset of each part that travels in the block.
    pub(crate) parts: Vec<Option<u64>>,
    pub(crate) size: u64,
}

/// Lays out a message: bytes of the pickle, of the rows, and of each part that travels in the block.
pub(crate) fn plan(pickle: usize, plain: usize, parts: impl Iterator<Item = Option<u64>>) -> Plan {
    let parts: Vec<Option<u64>> = parts.collect();
    let start = HEAD + ROW * parts.len();
    let mut end = (start + pickle + plain) as u64;
    let parts = parts
        .into_iter()
        .map(|length| {
            length.map(|length| {
                let here = end.div_ceil(64) * 64;
                end = here + length;
                here
            })
        })
        .collect();
    Plan { pickle: start, plain: start + pickle, parts, size: end }
}

/// Writes the table.
pub(crate) fn write_table(block: &mut [u8], pickle: usize, plain: usize, storages: usize, rows: &[Row]) {
    for (word, at) in [rows.len(), pickle, plain, storages].into_iter().zip([0, 8, 16, 24]) {
        block[at..at + 8].copy_from_slice(&(word as u64).to_ne_bytes());
    }
    for (row, bytes) in rows.iter().zip(block[HEAD..].chunks_exact_mut(ROW)) {
        let (offset, generation) = match row.place {
            Place::Here(offset) => (offset, 0),
            Place::Block(ticket) => (ticket.offset, u64::from(ticket.generation) | 1 << 32),
        };
        for (word, at) in [offset, row.length, row.from, generation].into_iter().zip([0, 8, 16, 24]) {
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
    }
}

/// A table as it was read.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    pub(crate) pickle: Range<usize>,
    pub(crate) plain: Range<usize>,
    /// So many of the rows are storages; the others are buffers.
    pub(crate) storages: usize,
}

/// Reads the table. None where it contradicts itself.
pub(crate) fn read_table(block: &[u8]) -> Option<Table> {
    let word = |at: usize| Some(u64::from_ne_bytes(block.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let number = |at: usize| usize::try_from(word(at)?).ok();
    let (count, storages) = (number(0)?, number(24)?);
    let start = HEAD.checked_add(ROW.checked_mul(count)?)?;
    let middle = start.checked_add(number(8)?)?;
    let end = middle.checked_add(number(16)?)?;
    if end > block.len() || storages > count {
        return None;
    }
    let rows = (0..count)
        .map(|row| {
            let at = HEAD + ROW * row;
            let (offset, length, from, mark) = (word(at)?, word(at + 8)?, word(at + 16)?, word(at + 24)?);
            let place = if mark >> 32 == 0 {
                if offset.checked_add(length)? > block.len() as u64 {
                    return None;
                }
                Place::Here(offset)
            } else {
                Place::Block(Ticket { offset, generation: mark as u32, length })
            };
            Some(Row { place, length, from })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Table { rows, pickle: start..middle, plain: middle..end, storages })
}
