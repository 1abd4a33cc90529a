//! What does a table of a FlatBuffer hold, in bytes that nobody vouches for?
//!
//! Arrow describes its messages by these tables (<https://flatbuffers.dev/internals/>): a table begins with the way back to
//! its vtable, which says where each field lies in it. No place is believed: each read ends in a value or in [`Damaged`].

/// Something lies outside of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// A table, whose fields are counted from 0 in the order of its schema.
#[derive(Clone, Copy)]
pub(crate) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A vector whose items have `size` bytes each.
#[derive(Clone, Copy)]
pub(crate) struct FlatVector<'a> {
    bytes: &'a [u8],
    /// Where its first item begins.
    at: usize,
    pub(crate) length: usize,
}

impl<'a> FlatTable<'a> {
    /// The table that the bytes begin with a reference to.
    pub(crate) fn root(bytes: &'a [u8]) -> Result<FlatTable<'a>, Damaged> {
        Ok(FlatTable { bytes, at: referred(bytes, 0)? })
    }

    /// Where a field lies; none where it was left out, and so has the default of its schema.
    fn place(&self, field: usize) -> Result<Option<usize>, Damaged> {
        let back = i64::from(i32::from_le_bytes(read(self.bytes, self.at)?));
        let vtable = i64::try_from(self.at).ok().and_then(|at| at.checked_sub(back));
        let vtable = vtable.and_then(|at| usize::try_from(at).ok()).ok_or(Damaged)?;
        let length = usize::from(u16::from_le_bytes(read(self.bytes, vtable)?));
        let entry = 4 + 2 * field;
        if entry + 2 > length {
            return Ok(None);
        }
        match u16::from_le_bytes(read(self.bytes, vtable + entry)?) {
            0 => Ok(None),
            offset => Ok(Some(self.at + usize::from(offset))),
        }
    }

    fn scalar<const N: usize>(&self, field: usize) -> Result<Option<[u8; N]>, Damaged> {
        self.place(field)?.map(|at| read(self.bytes, at)).transpose()
    }

    pub(crate) fn u8(&self, field: usize) -> Result<u8, Damaged> {
        Ok(self.scalar(field)?.map_or(0, u8::from_le_bytes))
    }

    pub(crate) fn i16(&self, field: usize) -> Result<i16, Damaged> {
        Ok(self.scalar(field)?.map_or(0, i16::from_le_bytes))
    }

    pub(crate) fn i32(&self, field: usize) -> Result<i32, Damaged> {
        Ok(self.scalar(field)?.map_or(0, i32::from_le_bytes))
    }

    pub(crate) fn i64(&self, field: usize) -> Result<i64, Damaged> {
        Ok(self.scalar(field)?.map_or(0, i64::from_le_bytes))
    }

    pub(crate) fn has(&self, field: usize) -> Result<bool, Damaged> {
        Ok(self.place(field)?.is_some())
    }

    /// A table that must be there.
    pub(crate) fn table(&self, field: usize) -> Result<FlatTable<'a>, Damaged> {
        let place = self.place(field)?.ok_or(Damaged)?;
        Ok(FlatTable { bytes: self.bytes, at: referred(self.bytes, place)? })
    }

    /// A vector that must be there, of items of `size` bytes.
    pub(crate) fn vector(&self, field: usize, size: usize) -> Result<FlatVector<'a>, Damaged> {
        let at = referred(self.bytes, self.place(field)?.ok_or(Damaged)?)?;
        let length = u32::from_le_bytes(read(self.bytes, at)?) as usize;
        let end = length.checked_mul(size).and_then(|bytes| bytes.checked_add(at + 4)).ok_or(Damaged)?;
        if end > self.bytes.len() {
            return Err(Damaged);
        }
        Ok(FlatVector { bytes: self.bytes, at: at + 4, length })
    }

    /// A text that must be there.
    pub(crate) fn text(&self, field: usize) -> Result<&'a str, Damaged> {
        let FlatVector { bytes, at, length } = self.vector(field, 1)?;
        std::str::from_utf8(&bytes[at..at + length]).map_err(|_| Damaged)
    }
}

impl<'a> FlatVector<'a> {
    /// Item `index` of a vector of tables.
    pub(crate) fn table(&self, index: usize) -> Result<FlatTable<'a>, Damaged> {
        Ok(FlatTable { bytes: self.bytes, at: referred(self.bytes, self.at + 4 * index)? })
    }

    /// Item `index` of a vector of structs that are two 64-bit integers each.
    pub(crate) fn pair(&self, index: usize) -> Result<(i64, i64), Damaged> {
        let at = self.at + 16 * index;
        Ok((i64::from_le_bytes(read(self.bytes, at)?), i64::from_le_bytes(read(self.bytes, at + 8)?)))
    }
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Damaged> {
    let end = at.checked_add(N).ok_or(Damaged)?;
    bytes.get(at..end).and_then(|bytes| bytes.try_into().ok()).ok_or(Damaged)
}

/// The place that the reference at `at` is to: it counts from where it lies.
fn referred(bytes: &[u8], at: usize) -> Result<usize, Damaged> {
    at.checked_add(u32::from_le_bytes(read(bytes, at)?) as usize).ok_or(Damaged)
}
