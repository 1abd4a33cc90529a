//! What lies in a message's block: a table of parts, the pickle, then the parts that travel in it.
//!
//! A part is either in the block (copied there once) or a block of its own, which the sender collated in the arena.
//! Parts that begin anywhere begin at a multiple of 64 here.

use ullage_arena::Ticket;

/// Bytes of the table's head, and of each of its rows.
const HEAD: usize = 16;
const ROW: usize = 32;

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
    pub(crate) pickle: usize,
    /// Offset of each part that travels in the block.
    pub(crate) parts: Vec<Option<u64>>,
    pub(crate) size: u64,
}

/// Lays out a message: length of the pickle, and of each part that travels in the block.
pub(crate) fn plan(pickle: usize, parts: impl Iterator<Item = Option<u64>>) -> Plan {
    let parts: Vec<Option<u64>> = parts.collect();
    let start = HEAD + ROW * parts.len();
    let mut end = (start + pickle) as u64;
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
    Plan { pickle: start, parts, size: end }
}

/// Writes the table.
pub(crate) fn write_table(block: &mut [u8], pickle: usize, rows: &[Row]) {
    block[0..8].copy_from_slice(&(rows.len() as u64).to_ne_bytes());
    block[8..16].copy_from_slice(&(pickle as u64).to_ne_bytes());
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

/// Reads the table: the rows, and where the pickle lies. None where it contradicts itself.
pub(crate) fn read_table(block: &[u8]) -> Option<(Vec<Row>, std::ops::Range<usize>)> {
    let word = |at: usize| Some(u64::from_ne_bytes(block.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let (count, pickle) = (usize::try_from(word(0)?).ok()?, usize::try_from(word(8)?).ok()?);
    let start = HEAD.checked_add(ROW.checked_mul(count)?)?;
    let end = start.checked_add(pickle)?;
    if end > block.len() {
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
    Some((rows, start..end))
}
