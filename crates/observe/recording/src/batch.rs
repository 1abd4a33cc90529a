//! What does one message of an Arrow IPC stream say: its columns, or some rows of them?
//!
//! The format: <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>, of
//! which tails have schemas and record batches of four flat types. Every length is measured before a value is read, and
//! nothing is copied until somebody asks for a column: a tail has thousands of batches.

use crate::flatbuffer::{Damaged, FlatTable};
use crate::table::{Kind, Table};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// More rows than one sample can have (`kernel.pid_max` is at most 4 million, and a row has 100 bytes or more).
const MOST_ROWS: i64 = 1 << 22;
/// More columns than a table of any version has, and more bytes than a column's name: a small file may claim many.
const MOST_COLUMNS: usize = 1 << 10;
const MOST_NAME: usize = 1 << 8;

/// Fields of the format's tables, by their place in `Message.fbs` and `Schema.fbs`.
pub(crate) mod field {
    pub(crate) mod message {
        pub(crate) const VERSION: usize = 0;
        pub(crate) const KIND: usize = 1;
        pub(crate) const HEADER: usize = 2;
        pub(crate) const BODY_LENGTH: usize = 3;
    }
    pub(crate) mod schema {
        pub(crate) const ENDIANNESS: usize = 0;
        pub(crate) const FIELDS: usize = 1;
    }
    pub(crate) mod column {
        pub(crate) const NAME: usize = 0;
        pub(crate) const NULLABLE: usize = 1;
        pub(crate) const KIND: usize = 2;
        pub(crate) const TYPE: usize = 3;
        pub(crate) const DICTIONARY: usize = 4;
        pub(crate) const CHILDREN: usize = 5;
    }
    pub(crate) mod int {
        pub(crate) const BITS: usize = 0;
        pub(crate) const SIGNED: usize = 1;
    }
    pub(crate) mod float {
        pub(crate) const PRECISION: usize = 0;
    }
    pub(crate) mod batch {
        pub(crate) const ROWS: usize = 0;
        pub(crate) const NODES: usize = 1;
        pub(crate) const BUFFERS: usize = 2;
        pub(crate) const COMPRESSION: usize = 3;
    }
}

/// `MessageHeader` and `Type` of the format, as far as tails have them.
pub(crate) const SCHEMA: u8 = 1;
pub(crate) const RECORD_BATCH: u8 = 3;
pub(crate) const INT: u8 = 2;
pub(crate) const FLOAT: u8 = 3;
pub(crate) const UTF8: u8 = 5;
pub(crate) const BOOL: u8 = 6;

/// `Precision` of the format: 64 bits.
pub(crate) const DOUBLE: i16 = 2;

/// The columns that a tail has, which are those of the version that wrote it.
pub(crate) type Schema = Arc<[(String, Kind)]>;

/// What a message says.
pub(crate) enum Message {
    Schema(Schema),
    Batch(Batch),
}

/// Some rows, as they lie in the file.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    schema: Schema,
    pub(crate) rows: usize,
    body: Bytes,
    columns: Vec<Places>,
}

/// Where a column's buffers lie in the body; `MOST_TAIL_BYTES` fits.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// A bit a row; none where no row is null.
    valid: Option<Place>,
    /// Of text only.
    offsets: Place,
    values: Place,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at: u32,
    length: u32,
}

/// The columns that this version writes.
pub(crate) fn schema_of(table: &Table) -> Schema {
    table.columns.iter().map(|column| (column.name.to_owned(), column.kind)).collect()
}

/// What kind of message this is, and how long its body is; the metadata alone is looked at.
pub(crate) fn head(metadata: &[u8]) -> Result<(u8, i64), Damaged> {
    let message = FlatTable::root(metadata)?;
    Ok((message.u8(field::message::KIND)?, message.i64(field::message::BODY_LENGTH)?))
}

/// What a message says; `schema` is that of the stream.
pub(crate) fn understand(metadata: &[u8], body: Bytes, schema: &Schema) -> Result<Message, &'static str> {
    const DAMAGED: &str = "a record is damaged";
    let (kind, _) = head(metadata).map_err(|_| DAMAGED)?;
    let header = || FlatTable::root(metadata)?.table(field::message::HEADER);
    match kind {
        SCHEMA => {
            let columns = header().and_then(columns).map_err(|_| DAMAGED)?;
            columns.map(Message::Schema).ok_or("its columns are of unknown types")
        }
        RECORD_BATCH => {
            let batch = header().and_then(|header| batch(header, body, schema));
            batch.map(Message::Batch).map_err(|_| DAMAGED)
        }
        _ => Err("a record is of a kind that recordings do not have"),
    }
}

/// None where a column is of a type that tails do not have.
fn columns(schema: FlatTable<'_>) -> Result<Option<Schema>, Damaged> {
    let fields = schema.vector(field::schema::FIELDS, 4)?;
    let little_endian = schema.i16(field::schema::ENDIANNESS)? == 0;
    let column = |index| {
        let field = fields.table(index)?;
        let name = field.text(field::column::NAME)?;
        if name.len() > MOST_NAME {
            return Err(Damaged);
        }
        Ok(kind(field)?.filter(|_| little_endian).map(|kind| (name.to_owned(), kind)))
    };
    if fields.length > MOST_COLUMNS {
        return Err(Damaged);
    }
    (0..fields.length).map(column).collect()
}

fn kind(field: FlatTable<'_>) -> Result<Option<Kind>, Damaged> {
    let of = field.table(field::column::TYPE)?;
    if field.has(field::column::DICTIONARY)? {
        return Ok(None);
    }
    Ok(match field.u8(field::column::KIND)? {
        INT => match (of.i32(field::int::BITS)?, of.u8(field::int::SIGNED)? != 0) {
            (64, false) => Some(Kind::U64),
            (32, true) => Some(Kind::I32),
            _ => None,
        },
        FLOAT => (of.i16(field::float::PRECISION)? == DOUBLE).then_some(Kind::F64),
        UTF8 => Some(Kind::Text),
        BOOL => Some(Kind::Bool),
        _ => None,
    })
}

/// Every length and offset holds in what this returns, and text is UTF-8.
fn batch(header: FlatTable<'_>, body: Bytes, schema: &Schema) -> Result<Batch, Damaged> {
    let rows = header.i64(field::batch::ROWS)?;
    let nodes = header.vector(field::batch::NODES, 16)?;
    let buffers = header.vector(field::batch::BUFFERS, 16)?;
    if header.has(field::batch::COMPRESSION)?
        || !(0..=MOST_ROWS).contains(&rows)
        || nodes.length != schema.len()
    {
        return Err(Damaged);
    }
    let mut taken = 0;
    let mut next = |least: i64| {
        if taken == buffers.length {
            return Err(Damaged);
        }
        let (at, length) = buffers.pair(taken)?;
        taken += 1;
        let end = at.checked_add(length).and_then(|end| usize::try_from(end).ok()).ok_or(Damaged)?;
        if at < 0 || at % 8 != 0 || length < least || end > body.len() {
            return Err(Damaged);
        }
        let fits = |number| u32::try_from(number).map_err(|_| Damaged);
        Ok(Place { at: fits(at)?, length: fits(length)? })
    };
    let mut columns = Vec::with_capacity(schema.len());
    for (index, (_, kind)) in schema.iter().enumerate() {
        let (length, nulls) = nodes.pair(index)?;
        if length != rows || !(0..=rows).contains(&nulls) {
            return Err(Damaged);
        }
        let bits = (rows + 7) / 8;
        let valid = next(if nulls > 0 { bits } else { 0 })?;
        let valid = (nulls > 0).then_some(valid);
        let mut offsets = Place::default();
        let values = match kind {
            Kind::U64 | Kind::F64 => next(rows * 8)?,
            Kind::I32 => next(rows * 4)?,
            Kind::Bool => next(bits)?,
            Kind::Text => {
                offsets = next(if rows == 0 { 0 } else { (rows + 1) * 4 })?;
                next(0)?
            }
        };
        columns.push(Places { valid, offsets, values });
    }
    if taken != buffers.length {
        return Err(Damaged);
    }
    let rows = usize::try_from(rows).map_err(|_| Damaged)?;
    let batch = Batch { schema: Arc::clone(schema), rows, body, columns };
    let texts = (0..schema.len()).filter(|column| schema[*column].1 == Kind::Text);
    texts
        .map(|column| batch.spans(column))
        .try_for_each(|mut spans| {
            spans.try_for_each(|text| text.and_then(|text| std::str::from_utf8(text).ok()).map(drop))
        })
        .ok_or(Damaged)?;
    Ok(batch)
}

impl Batch {
    /// The place of the column of that name, where it is of that kind.
    pub(crate) fn column(&self, name: &str, kind: Kind) -> Option<usize> {
        let at = self.schema.iter().position(|(own, _)| own == name)?;
        (self.schema[at].1 == kind).then_some(at)
    }

    pub(crate) fn u64s(&self, column: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        self.numbers::<8>(column).map(|cell| cell.map(u64::from_le_bytes))
    }

    pub(crate) fn i32s(&self, column: usize) -> impl Iterator<Item = Option<i32>> + '_ {
        self.numbers::<4>(column).map(|cell| cell.map(i32::from_le_bytes))
    }

    pub(crate) fn f64s(&self, column: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.numbers::<8>(column).map(|cell| cell.map(f64::from_le_bytes))
    }

    pub(crate) fn bools(&self, column: usize) -> impl Iterator<Item = Option<bool>> + '_ {
        let values = self.bytes(self.columns[column].values);
        (0..self.rows).map(move |row| self.is_valid(column, row).then(|| bit(values, row)))
    }

    pub(crate) fn texts(&self, column: usize) -> impl Iterator<Item = Option<&str>> + '_ {
        let texts = self.spans(column).enumerate();
        texts.map(move |(row, text)| {
            // Each was UTF-8 when the batch was made.
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            text.filter(|_| self.is_valid(column, row))
        })
    }

    fn numbers<const N: usize>(&self, column: usize) -> impl Iterator<Item = Option<[u8; N]>> + '_ {
        let (values, _) = self.bytes(self.columns[column].values).as_chunks::<N>();
        let valid = move |row| self.is_valid(column, row);
        values.iter().take(self.rows).enumerate().map(move |(row, value)| valid(row).then_some(*value))
    }

    /// The bytes of each row's text; none where its offsets lie outside of the values.
    fn spans(&self, column: usize) -> impl Iterator<Item = Option<&[u8]>> + '_ {
        let Places { offsets, values, .. } = self.columns[column];
        let (offsets, values) = (self.bytes(offsets).as_chunks::<4>().0, self.bytes(values));
        offsets.windows(2).take(self.rows).map(move |pair| {
            let [from, to] =
                [pair[0], pair[1]].map(|offset| usize::try_from(i32::from_le_bytes(offset)).ok());
            values.get(Range { start: from?, end: to? })
        })
    }

    fn is_valid(&self, column: usize, row: usize) -> bool {
        self.columns[column].valid.is_none_or(|valid| bit(self.bytes(valid), row))
    }

    fn bytes(&self, place: Place) -> &[u8] {
        &self.body[place.at as usize..place.at as usize + place.length as usize]
    }
}

fn bit(bits: &[u8], row: usize) -> bool {
    bits[row / 8] & 1 << (row % 8) != 0
}
