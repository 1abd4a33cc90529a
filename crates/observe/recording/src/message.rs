//! How are columns and rows written as messages of an Arrow IPC stream? In the bytes that the Rust Arrow library writes.
//!
//! Why not by that library: `docs/decisions/0027-tails-without-the-arrow-library.md`.

use crate::batch::{field, BOOL, DOUBLE, FLOAT, INT, RECORD_BATCH, SCHEMA, UTF8};
use crate::columns::Cells;
use crate::table::Kind;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

/// Messages, and the buffers in them, begin at multiples of this, bytes: the least that Arrow allows. At 64, which most
/// libraries use, the padding of a tick's single row would be most of the file.
const ALIGNMENT: usize = 8;

/// `MetadataVersion` of the format: V5.
const VERSION: i16 = 4;

type Finished = WIPOffset<TableFinishedWIPOffset>;

/// A message that says which columns the stream has; all of them may have nulls.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, Kind)>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let fields: Vec<Finished> =
        columns.into_iter().map(|(name, kind)| column(&mut builder, name, kind)).collect();
    let fields = builder.create_vector(&fields);
    let table = builder.start_table();
    builder.push_slot_always(slot(field::schema::FIELDS), fields);
    let schema = builder.end_table(table);
    message(builder, SCHEMA, schema, &[])
}

fn column(builder: &mut FlatBufferBuilder<'_>, name: &str, kind: Kind) -> Finished {
    let name = builder.create_string(name);
    let (code, of, children) = match kind {
        Kind::U64 | Kind::I32 => {
            let children = builder.create_vector::<Finished>(&[]);
            let table = builder.start_table();
            builder.push_slot(slot(field::int::SIGNED), kind == Kind::I32, false);
            builder.push_slot(slot(field::int::BITS), if kind == Kind::U64 { 64 } else { 32 }, 0i32);
            (INT, builder.end_table(table), children)
        }
        Kind::F64 => {
            let table = builder.start_table();
            builder.push_slot(slot(field::float::PRECISION), DOUBLE, 0);
            let of = builder.end_table(table);
            let children = builder.create_vector::<Finished>(&[]);
            (FLOAT, of, children)
        }
        Kind::Bool | Kind::Text => {
            let table = builder.start_table();
            let empty = builder.end_table(table);
            let children = builder.create_vector::<Finished>(&[]);
            (if kind == Kind::Bool { BOOL } else { UTF8 }, empty, children)
        }
    };
    let table = builder.start_table();
    builder.push_slot_always(slot(field::column::NAME), name);
    builder.push_slot(slot(field::column::KIND), code, 0);
    builder.push_slot(slot(field::column::NULLABLE), true, false);
    builder.push_slot_always(slot(field::column::CHILDREN), children);
    builder.push_slot_always(slot(field::column::TYPE), of);
    builder.end_table(table)
}

/// A message of these rows: all columns of the stream, which are equally long.
pub(crate) fn batch(columns: &[Cells]) -> Result<Vec<u8>, &'static str> {
    let rows = columns.first().map_or(0, Cells::len);
    if columns.iter().any(|cells| cells.len() != rows) {
        return Err("its columns are of unequal length");
    }
    let mut body = Body::default();
    for cells in columns {
        match cells {
            Cells::U64(cells) => {
                body.valid(cells);
                body.numbers(cells, u64::to_le_bytes);
            }
            Cells::I32(cells) => {
                body.valid(cells);
                body.numbers(cells, i32::to_le_bytes);
            }
            Cells::F64(cells) => {
                body.valid(cells);
                body.numbers(cells, f64::to_le_bytes);
            }
            Cells::Bool(cells) => {
                body.valid(cells);
                body.buffer(|out| bits(out, cells.iter().map(|cell| cell.unwrap_or_default())));
            }
            Cells::Text(cells) => {
                body.valid(cells);
                body.offsets(cells)?;
                body.buffer(|out| {
                    cells.iter().flatten().for_each(|text| out.extend_from_slice(text.as_bytes()))
                });
            }
        }
    }
    let mut builder = FlatBufferBuilder::new();
    let buffers = pairs(&mut builder, &body.buffers);
    let nodes = pairs(&mut builder, &body.nodes);
    let table = builder.start_table();
    builder.push_slot(slot(field::batch::ROWS), rows as i64, 0);
    builder.push_slot_always(slot(field::batch::NODES), nodes);
    builder.push_slot_always(slot(field::batch::BUFFERS), buffers);
    let header = builder.end_table(table);
    Ok(message(builder, RECORD_BATCH, header, &body.bytes))
}

/// What follows a batch's metadata, and the metadata about it: pairs of integers.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// Rows and nulls of each column.
    nodes: Vec<(i64, i64)>,
    /// Place and length of each buffer, without its padding.
    buffers: Vec<(i64, i64)>,
}

impl Body {
    fn buffer(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.bytes.len();
        write(&mut self.bytes);
        self.buffers.push((at as i64, (self.bytes.len() - at) as i64));
        pad(&mut self.bytes);
    }

    /// Begins a column: which of its rows are not null, where some are.
    fn valid<T>(&mut self, cells: &[Option<T>]) {
        let nulls = cells.iter().filter(|cell| cell.is_none()).count();
        self.nodes.push((cells.len() as i64, nulls as i64));
        self.buffer(|out| {
            if nulls > 0 {
                bits(out, cells.iter().map(Option::is_some));
            }
        });
    }

    fn numbers<T: Copy + Default, const N: usize>(&mut self, cells: &[Option<T>], le: impl Fn(T) -> [u8; N]) {
        self.buffer(|out| {
            cells.iter().for_each(|cell| out.extend_from_slice(&le(cell.unwrap_or_default())));
        });
    }

    fn offsets(&mut self, cells: &[Option<String>]) -> Result<(), &'static str> {
        let mut end = 0usize;
        let mut ends = vec![0i32];
        for cell in cells {
            end += cell.as_ref().map_or(0, String::len);
            ends.push(i32::try_from(end).map_err(|_| "its text is longer than 2 GB")?);
        }
        self.buffer(|out| {
            if !cells.is_empty() {
                ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
            }
        });
        Ok(())
    }
}

fn bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    for (row, bit) in bits.enumerate() {
        if row % 8 == 0 {
            out.push(0);
        }
        if let Some(last) = out.last_mut() {
            *last |= u8::from(bit) << (row % 8);
        }
    }
}

/// A vector of structs that are two 64-bit integers each. What is pushed last lies first.
fn pairs<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    pairs: &[(i64, i64)],
) -> WIPOffset<flatbuffers::Vector<'a, i64>> {
    builder.start_vector::<i64>(2 * pairs.len());
    for (first, second) in pairs.iter().rev() {
        builder.push(*second);
        builder.push(*first);
    }
    builder.end_vector(pairs.len())
}

/// The vtable's entry of a field, bytes: behind its own length and the table's.
fn slot(field: usize) -> u16 {
    4 + 2 * field as u16
}

/// Four bytes that mark a message, the length of its metadata, the metadata, the body.
fn message(mut builder: FlatBufferBuilder<'_>, kind: u8, header: Finished, body: &[u8]) -> Vec<u8> {
    let table = builder.start_table();
    builder.push_slot(slot(field::message::VERSION), VERSION, 0);
    builder.push_slot(slot(field::message::KIND), kind, 0);
    builder.push_slot(slot(field::message::BODY_LENGTH), body.len() as i64, 0);
    builder.push_slot_always(slot(field::message::HEADER), header);
    let root = builder.end_table(table);
    builder.finish(root, None);
    let metadata = builder.finished_data();
    let mut message = vec![0xff; 4];
    message.extend((metadata.len().next_multiple_of(ALIGNMENT) as i32).to_le_bytes());
    message.extend_from_slice(metadata);
    pad(&mut message);
    message.extend_from_slice(body);
    message
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}

#[cfg(test)]
mod tests {
    use super::{batch, schema};
    use crate::batch::{understand, Batch, Message, Schema};
    use crate::columns::Cells;
    use bytes::Bytes;
    use std::path::Path;

    /// What a file of the Arrow library's says, message by message, and the bytes of each.
    fn messages(path: &Path) -> Vec<(Vec<u8>, Message, Schema)> {
        let bytes = Bytes::from(std::fs::read(path).expect("a fixture can be read"));
        let mut of_stream = Schema::from([]);
        let mut at = 0;
        let mut messages = Vec::new();
        while at < bytes.len() {
            let frame = crate::tail_read::frame(&bytes, at).expect("a fixture is whole");
            let (from, end) = (at, frame.body.end);
            let body = bytes.slice(frame.body);
            let said = understand(&bytes[frame.metadata], body, &of_stream).expect("a fixture is whole");
            if let Message::Schema(schema) = &said {
                of_stream = schema.clone();
            }
            messages.push((bytes[from..end].to_vec(), said, of_stream.clone()));
            at = end;
        }
        messages
    }

    fn again(said: &Message, of_stream: &Schema) -> Vec<u8> {
        let columns = |batch: &Batch| {
            let cells = of_stream
                .iter()
                .map(|(name, kind)| Cells::of_batches(*kind, name, std::slice::from_ref(batch)));
            cells.collect::<Vec<_>>()
        };
        match said {
            Message::Schema(columns) => schema(columns.iter().map(|(name, kind)| (name.as_str(), *kind))),
            Message::Batch(rows) => batch(&columns(rows)).expect("columns of a batch are equally long"),
        }
    }

    /// So what reads a tail of the library's reads one of ours: Arrow's other libraries, and every older ullage.
    #[test]
    fn messages_are_the_bytes_that_the_arrow_library_wrote() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/recordings/1-killed");
        let mut compared = 0;
        for file in fixtures.read_dir().expect("the fixtures are there") {
            let path = file.expect("the fixtures can be listed").path();
            if path.extension().is_some_and(|extension| extension == "arrows") {
                for (bytes, said, of_stream) in messages(&path) {
                    assert!(again(&said, &of_stream) == bytes, "{}", path.display());
                    compared += 1;
                }
            }
        }
        assert!(compared >= 19, "{compared}");
    }
}
