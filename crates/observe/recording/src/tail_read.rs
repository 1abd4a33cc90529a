//! What is readable of a live tail, however it ends or was damaged?
//!
//! Of each message the lengths are measured before it is believed (`batch`). After one that does not hold, the next is
//! looked for: each begins at a multiple of 8 with the same four bytes.

use crate::batch::{head, schema_of, understand, Batch, Message};
use crate::error::Damage;
use crate::table::Table;
use bytes::Bytes;

const MARKER: [u8; 4] = [0xff; 4];
/// A tail is at most 5 MB, or one sample of a machine with very many processes; bytes.
pub(crate) const MOST_TAIL_BYTES: u64 = 64 << 20;

/// Where one message lies in the file.
pub(crate) struct Frame {
    pub(crate) metadata: std::ops::Range<usize>,
    pub(crate) body: std::ops::Range<usize>,
}

/// All complete batches of a tail, and what was lost of it.
pub(crate) fn read_tail(table: &'static Table, bytes: Vec<u8>) -> (Vec<Batch>, Vec<Damage>) {
    let file = table.tail_name();
    let bytes = Bytes::from(bytes);
    let mut damage = Vec::new();
    let mut batches = Vec::new();
    // Until the file's own schema was read, that of this version stands in for a damaged one.
    let mut schema = schema_of(table);
    let mut at = 0;
    while at < bytes.len() {
        let read = frame(&bytes, at).and_then(|frame| {
            let message = understand(&bytes[frame.metadata], bytes.slice(frame.body.clone()), &schema)?;
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

pub(crate) fn frame(bytes: &[u8], at: usize) -> Result<Frame, &'static str> {
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
    let (_, length) =
        head(bytes.get(metadata.clone()).ok_or(CUT)?).map_err(|_| "the head of a record is damaged")?;
    let length = usize::try_from(length).map_err(|_| "a record has a negative length")?;
    let body = metadata.end..metadata.end.checked_add(length).ok_or(CUT)?;
    if body.end > bytes.len() {
        return Err(CUT);
    }
    if body.end % 8 != 0 {
        return Err("a record is not padded as it should be");
    }
    Ok(Frame { metadata, body })
}
