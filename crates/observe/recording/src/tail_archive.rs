//! How do live tails reach a second place, some kilobytes a minute? `tails.zst`: one zstd frame behind the other, each with
//! what came to the tails since the one before.
//!
//! A frame holds, for each tail that changed: length of its name (u16), its name, an offset (u64), a length (u64) and so many
//! bytes, all little-endian. The tail is then what it was up to the offset, and these bytes. A tail is a batch a sample, and a
//! minute of them is much alike: a frame has a fiftieth of the bytes. The surprise: a frame is appended under the file's
//! own name, so the last one may be torn; its length and its checksum show it.

use crate::store::{self, Store};
use crate::table::{Table, ALL};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use ullage_model::names::FILE_TAILS;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size, CParameter};

/// Higher ones save one percent; this one takes 20 ms for a minute of 64 busy processes.
const ZSTD_LEVEL: i32 = 9;
/// An archive is begun anew long before it comes near this, bytes.
const MOST_ARCHIVE_BYTES: u64 = 64 << 20;
/// All of its tails, at any time; bytes.
const MOST_BYTES: usize = 256 << 20;

/// What came to a tail, from an offset on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) table: &'static Table,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// One frame.
pub(crate) fn frame(pieces: &[Piece<'_>]) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(pieces.iter().map(|piece| piece.bytes.len() + 64).sum());
    for Piece { table, offset, bytes } in pieces {
        let name = table.tail_name();
        content.extend(u16::try_from(name.len()).map_err(io::Error::other)?.to_le_bytes());
        content.extend(name.as_bytes());
        content.extend(offset.to_le_bytes());
        content.extend((bytes.len() as u64).to_le_bytes());
        content.extend(*bytes);
    }
    let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    compressor.compress(&content)
}

/// The tails, by file name, as far as whole frames say.
pub(crate) fn tails(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut tails = BTreeMap::new();
    let mut rest = archive;
    while let Ok(length) = find_frame_compressed_size(rest) {
        let Some((frame, behind)) = rest.split_at_checked(length).filter(|_| length > 0) else { break };
        let Some(content) = content(frame) else { break };
        if take_in(&mut tails, &content).is_none() {
            break;
        }
        rest = behind;
    }
    tails.retain(|_, bytes: &mut Vec<u8>| !bytes.is_empty());
    tails
}

/// The files of a recording in a directory: of a copy, the tails are those of its archive.
pub(crate) fn store_of(dir: &Path) -> Store {
    let mut archive = Vec::new();
    let read = store::open(&dir.join(FILE_TAILS))
        .and_then(|file| file.take(MOST_ARCHIVE_BYTES).read_to_end(&mut archive));
    match read {
        Ok(_) => Store::Copy { dir: dir.to_owned(), tails: tails(&archive) },
        Err(_) => Store::Directory(dir.to_owned()),
    }
}

fn content(frame: &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
    if length > MOST_BYTES {
        return None;
    }
    zstd::bulk::decompress(frame, length).ok()
}

/// None where the frame is not what [`frame`] writes.
fn take_in(tails: &mut BTreeMap<String, Vec<u8>>, content: &[u8]) -> Option<()> {
    let mut rest = content;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let (name, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
        let (offset, behind) = behind.split_first_chunk::<8>()?;
        let (length, behind) = behind.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (bytes, behind) = behind.split_at_checked(length)?;
        let name = std::str::from_utf8(name).ok()?;
        ALL.iter().find(|table| table.tail_name() == name)?;
        let offset = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
        let others: usize = tails.values().map(Vec::len).sum();
        let tail = tails.entry(name.to_owned()).or_default();
        if offset > tail.len() || others.saturating_add(bytes.len()) > MOST_BYTES {
            return None;
        }
        tail.truncate(offset);
        tail.extend(bytes);
        rest = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{EVENTS, TICKS};

    fn piece<'a>(table: &'static Table, offset: u64, bytes: &'a [u8]) -> Piece<'a> {
        Piece { table, offset, bytes }
    }

    fn archive() -> (Vec<u8>, usize) {
        let first = frame(&[piece(&TICKS, 0, b"head one"), piece(&EVENTS, 0, b"head")]).unwrap();
        let second = frame(&[piece(&TICKS, 8, b" two")]).unwrap();
        let third = frame(&[piece(&TICKS, 4, b" new"), piece(&EVENTS, 0, b"")]).unwrap();
        let end = first.len() + second.len();
        ([first, second, third].concat(), end)
    }

    #[test]
    fn frames_add_to_tails_shorten_them_and_end_them() {
        let (archive, two) = archive();
        let whole = tails(&archive);
        assert_eq!(whole, BTreeMap::from([("ticks.arrows".to_owned(), b"head new".to_vec())]));
        assert_eq!(tails(&archive[..two])["ticks.arrows"], b"head one two");
        assert_eq!(tails(&archive[..two])["events.arrows"], b"head");
    }

    #[test]
    fn a_torn_or_changed_frame_ends_it_and_nothing_panics() {
        let (archive, two) = archive();
        let before = tails(&archive[..two]);
        for length in two..archive.len() {
            assert_eq!(tails(&archive[..length]), before, "cut at {length}");
        }
        for at in 0..archive.len() {
            let mut changed = archive.clone();
            changed[at] ^= 0x55;
            let read = tails(&changed);
            assert!(at < two || read == before || read == tails(&archive), "changed at {at}");
        }
        assert_eq!(tails(b"not zstd"), BTreeMap::new());
        let gap = frame(&[piece(&TICKS, 9, b"x")]).unwrap();
        assert_eq!(tails(&gap), BTreeMap::new(), "bytes behind a gap");
    }

    #[test]
    fn a_frame_that_claims_gigabytes_is_not_unpacked() {
        let zeros = vec![0u8; MOST_BYTES + 1];
        let bomb = zstd::bulk::compress(&zeros, 1).unwrap();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(content(&bomb), None);
    }
}
