//! What is readable of a live tail, however it ends or was damaged?
//!
//! arrow-ipc trusts the lengths it finds in a file: on hostile bytes it can panic or ask for gigabytes. So every
//! message is measured here first (its metadata verified, each buffer inside the body, the body inside the file,
//! no compression), and only then handed over, behind `catch_unwind`. After a message that does not hold, the
//! next one is looked for: each begins at a multiple of 8 with the same four bytes.

use crate::error::Damage;
use crate::table::{Kind, Table};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{MessageHeader, MetadataVersion};
use arrow_schema::{DataType, SchemaRef};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

const MARKER: [u8; 4] = [0xff; 4];
/// A tail is at most 5 MB, or one sample of a machine with very many processes; bytes.
pub(crate) const MOST_TAIL_BYTES: u64 = 64 << 20;
/// More rows than one sample can have (`kernel.pid_max` is at most 4 million, and a row has 100 bytes or more).
const MOST_ROWS: i64 = 1 << 22;

/// Where one message lies in the file.
struct Frame {
    metadata: std::ops::Range<usize>,
    body: std::ops::Range<usize>,
}

/// All complete batches of a tail, and what was lost of it.
pub(crate) fn read_tail(table: &'static Table, bytes: Vec<u8>) -> (Vec<RecordBatch>, Vec<Damage>) {
    let file = table.tail_name();
    let bytes = Buffer::from_vec(bytes);
    let mut damage = Vec::new();
    let mut batches = Vec::new();
    // Until the file's own schema was read, that of this version stands in for a damaged one.
    let mut schema = table.schema();
    let mut at = 0;
    while at < bytes.len() {
        let read = frame(&bytes, at).and_then(|frame| {
            let message = understand(&bytes, &frame, &schema)?;
            Ok((message, frame.body.end))
        });
        let problem = match read {
            Ok((message, end)) => {
                match message {
                    Message::Schema(own) => schema = own,
                    Message::Batch(batch) => batches.push(batch),
                }
                at = end;
                continue;
            }
            Err(problem) => problem,
        };
        let next = next_marker(&bytes, at + 8);
        let lost = next.unwrap_or(bytes.len()) - at;
        // A file killed while its first message was written has lost nothing.
        if at > 0 || next.is_some() {
            let what = format!("{problem}; {lost} bytes are left out");
            damage.push(Damage::new(&file, Some(at as u64), what));
        }
        at = next.unwrap_or(bytes.len());
    }
    (batches, damage)
}

/// Bytes of the whole records that a tail begins with, and where the last of them begins.
pub(crate) fn complete_length(bytes: &[u8]) -> (usize, usize) {
    let (mut at, mut last) = (0, 0);
    while let Ok(frame) = frame(bytes, at) {
        (last, at) = (at, frame.body.end);
    }
    (at, last)
}

/// Bytes of the first record: the schema.
pub(crate) fn first_length(bytes: &[u8]) -> usize {
    frame(bytes, 0).map_or(0, |frame| frame.body.end)
}

/// The next place from `from` on where a message can begin.
fn next_marker(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len()).step_by(8).find(|&at| bytes[at..].starts_with(&MARKER) && frame(bytes, at).is_ok())
}

fn frame(bytes: &[u8], at: usize) -> Result<Frame, &'static str> {
    const CUT: &str = "the file ends inside a record";
    let rest = &bytes[at..];
    if rest.len() < 8 {
        return Err(CUT);
    }
    let (marker, length) = (&rest[..4], [rest[4], rest[5], rest[6], rest[7]]);
    if marker != MARKER {
        return Err("no record begins here");
    }
    let length = usize::try_from(i32::from_le_bytes(length)).map_err(|_| "a record has a negative length")?;
    if length == 0 {
        return Err("the stream was ended here");
    }
    let metadata = at + 8..(at + 8).checked_add(length).ok_or(CUT)?;
    let message = arrow_ipc::root_as_message(bytes.get(metadata.clone()).ok_or(CUT)?)
        .map_err(|_| "the head of a record is damaged")?;
    let length = usize::try_from(message.bodyLength()).map_err(|_| "a record has a negative length")?;
    let body = metadata.end..metadata.end.checked_add(length).ok_or(CUT)?;
    if body.end > bytes.len() {
        return Err(CUT);
    }
    if body.end % 8 != 0 {
        return Err("a record is not padded as it should be");
    }
    Ok(Frame { metadata, body })
}

enum Message {
    Schema(SchemaRef),
    Batch(RecordBatch),
}

fn understand(bytes: &Buffer, frame: &Frame, schema: &SchemaRef) -> Result<Message, &'static str> {
    const DAMAGED: &str = "a record is damaged";
    let message = arrow_ipc::root_as_message(&bytes[frame.metadata.clone()]).map_err(|_| DAMAGED)?;
    match message.header_type() {
        MessageHeader::Schema => {
            let head = message.header_as_schema().ok_or(DAMAGED)?;
            let read = catch_unwind(AssertUnwindSafe(|| arrow_ipc::convert::try_fb_to_schema(head)));
            let schema = read.map_err(|_| DAMAGED)?.map_err(|_| DAMAGED)?;
            let known = schema.fields().iter().all(|field| kind(field.data_type()).is_some());
            known.then(|| Message::Schema(Arc::new(schema))).ok_or("its columns are of unknown types")
        }
        MessageHeader::RecordBatch => {
            let head = message.header_as_record_batch().ok_or(DAMAGED)?;
            measure(&head, frame.body.len(), schema).ok_or(DAMAGED)?;
            let body = bytes.slice_with_length(frame.body.start, frame.body.len());
            let read = catch_unwind(AssertUnwindSafe(|| {
                let none = HashMap::new();
                let version = MetadataVersion::V5;
                arrow_ipc::reader::read_record_batch(&body, head, Arc::clone(schema), &none, None, &version)
            }));
            read.map_err(|_| DAMAGED)?.map(Message::Batch).map_err(|_| DAMAGED)
        }
        _ => Err("a record is of a kind that recordings do not have"),
    }
}

fn kind(of: &DataType) -> Option<Kind> {
    [Kind::U64, Kind::I32, Kind::Bool, Kind::Text].into_iter().find(|kind| kind.arrow() == *of)
}

/// Some when every length and offset of the batch holds.
fn measure(batch: &arrow_ipc::RecordBatch<'_>, body: usize, schema: &SchemaRef) -> Option<()> {
    let body = i64::try_from(body).ok()?;
    let rows = batch.length();
    let nodes = batch.nodes()?;
    let holds = |length: i64, nulls: i64| length == rows && (0..=rows).contains(&nulls);
    if batch.compression().is_some() || !(0..=MOST_ROWS).contains(&rows) {
        return None;
    }
    if nodes.len() != schema.fields().len() || !nodes.iter().all(|n| holds(n.length(), n.null_count())) {
        return None;
    }
    let mut buffers = batch.buffers()?.iter();
    for field in schema.fields() {
        // Validity, then values; text has the offsets between.
        let least = match kind(field.data_type())? {
            Kind::U64 => [Some(0), Some(rows * 8), None],
            Kind::I32 => [Some(0), Some(rows * 4), None],
            Kind::Bool => [Some(0), Some((rows + 7) / 8), None],
            Kind::Text => [Some(0), Some(if rows == 0 { 0 } else { (rows + 1) * 4 }), Some(0)],
        };
        for least in least.into_iter().flatten() {
            let buffer = buffers.next()?;
            let (offset, length) = (buffer.offset(), buffer.length());
            if offset < 0 || offset % 8 != 0 || length < least || offset.checked_add(length)? > body {
                return None;
            }
        }
    }
    buffers.next().is_none().then_some(())
}
