//! How a shared object lies in its memfd.
//!
//! A header, then one encoded value (the root), then the tables: a pickle of what would be repeated (keys of records,
//! classes, dtypes). A value is a tag and its payload; lengths are LEB128. Rows of a list are found through an index;
//! a list of ints, of floats, or of arrays of one shape has none. Native byte order: it never leaves the machine. The
//! surprise: every read is checked against the end, although the pages are sealed, so that a foreign memfd is an
//! error and no crash.

use crate::error::ArenaError;
use pyo3::PyErr;

pub(crate) const MAGIC: [u8; 8] = *b"ullageS1";
/// MAGIC, length of all, place of the tables, their length; all words of 8 bytes.
pub(crate) const HEADER: usize = 64;

pub(crate) const NONE: u8 = 0;
pub(crate) const FALSE: u8 = 1;
pub(crate) const TRUE: u8 = 2;
/// Signed, of 1, 4 and 8 bytes; larger ones as length and two's complement.
pub(crate) const INT1: u8 = 3;
pub(crate) const INT4: u8 = 4;
pub(crate) const INT8: u8 = 5;
pub(crate) const BIG: u8 = 6;
pub(crate) const FLOAT: u8 = 7;
pub(crate) const COMPLEX: u8 = 8;
/// ASCII; then CPython's kinds of 1, 2 and 4 bytes a character, as many as the length says.
pub(crate) const ASCII: u8 = 9;
pub(crate) const TEXT1: u8 = 10;
pub(crate) const TEXT2: u8 = 11;
pub(crate) const TEXT4: u8 = 12;
pub(crate) const BYTES: u8 = 13;
/// Number of items, then each; read at once.
pub(crate) const TUPLE: u8 = 14;
/// Number of its keys in the tables, then the values.
pub(crate) const RECORD: u8 = 15;
/// Number of its class in the tables, then the fields.
pub(crate) const OBJECT: u8 = 16;
/// Width of the index, to 8: end, number of items, index (from its own beginning), rows.
pub(crate) const LIST: u8 = 17;
pub(crate) const LONG_TUPLE: u8 = 18;
/// Number of items, to 8: the items.
pub(crate) const INTS: u8 = 19;
pub(crate) const FLOATS: u8 = 20;
/// [`ARRAY`] or [`TENSOR`], dtype, dimensions, sizes, number of items, to 64: the bytes of all.
pub(crate) const STACK: u8 = 21;
/// To 8: end, number of entries, slots, the slots (hash and number of entry + 1), index, entries (key and value).
pub(crate) const DICT: u8 = 22;
/// Dtype, dimensions, sizes, to 16 or 64: bytes.
pub(crate) const ARRAY: u8 = 23;
pub(crate) const TENSOR: u8 = 24;
/// Dtype and bytes of a numpy scalar.
pub(crate) const SCALAR: u8 = 25;
/// Place of a value that was written before.
pub(crate) const SAME: u8 = 26;

/// Tuples of more items, and dicts of more keys, are read item by item.
pub(crate) const AT_ONCE: usize = 64;
/// Arrays from this size on begin at a line of their own.
pub(crate) const LARGE: usize = 4096;

/// Where the bytes of an array begin that could begin at `at`.
pub(crate) fn array_start(at: usize, nbytes: usize) -> usize {
    at.next_multiple_of(if nbytes >= LARGE { 64 } else { 16 })
}

pub(crate) fn damaged() -> PyErr {
    ArenaError::new_err("these shared pages are damaged, or of another version of ullage")
}

/// Reads one thing after the other.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], PyErr> {
        let end = self.at.checked_add(length).ok_or_else(damaged)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(damaged)?;
        self.at = end;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, PyErr> {
        let byte = *self.bytes.get(self.at).ok_or_else(damaged)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], PyErr> {
        self.take(N)?.try_into().map_err(|_| damaged())
    }

    #[inline]
    pub(crate) fn word(&mut self) -> Result<u64, PyErr> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    pub(crate) fn small(&mut self) -> Result<u32, PyErr> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    pub(crate) fn size(&mut self) -> Result<usize, PyErr> {
        Ok(self.word()? as usize)
    }

    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize, PyErr> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number as usize);
            }
        }
        Err(damaged())
    }

    pub(crate) fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }
}

/// FNV-1a, folded to 32 bits: the same in every process, unlike Python's.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (state ^ (state >> 32)) as u32
}
