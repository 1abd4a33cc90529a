//! `/proc/sysvipc/shm`: the System V segments of this IPC namespace (proc_sysvipc(5)).
//!
//! ```text
//!        key      shmid perms         size  cpid  lpid nattch   uid   gid  cuid  cgid   atime   dtime   ctime    rss   swap
//!       4660          5   600        65536  4711  4711      1     0     0     0     0       1       0       1   4096      0
//! ```
//! The surprise: its columns are named by the head line and not in the order of `struct shmid_ds`; `rss` and
//! `swap` are bytes. Pids are those of the reader's pid namespace, 0 where the process lives in none that it sees.

use crate::error::{KernelError, ParseError};
use crate::scan::{lines, number, signed, words};
use crate::KernelRoot;
use ullage_model::Bytes;

/// One segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SysvSegment {
    /// IPC key, 0 for IPC_PRIVATE.
    pub key: i32,
    /// shmid.
    pub id: u64,
    /// Size asked for.
    pub size: Bytes,
    /// Pid of its creator.
    pub creator: i32,
    /// Pid of the last attach or detach.
    pub last: i32,
    /// Attachments, of all processes of the namespace.
    pub attached: u64,
    /// Owner.
    pub uid: u32,
    /// Seconds since 1970 of its last change; 0 where the column is missing.
    pub changed: i64,
    /// Pages in memory and in swap.
    pub allocated: Bytes,
}

/// Parses the file. Lines that lack a column are an error: what they say cannot be told.
pub fn parse_sysv_shm(bytes: &[u8]) -> Result<Vec<SysvSegment>, ParseError> {
    let mut rows = lines(bytes);
    let head: Vec<&[u8]> = rows.next().map(|line| words(line).collect()).unwrap_or_default();
    let column = |name: &'static str| {
        head.iter().position(|word| *word == name.as_bytes()).ok_or(ParseError::at(1, name))
    };
    let (key, id, size, creator) = (column("key")?, column("shmid")?, column("size")?, column("cpid")?);
    let (last, attached, uid) = (column("lpid")?, column("nattch")?, column("uid")?);
    let (resident, swap, changed) = (column("rss")?, column("swap")?, column("ctime").ok());
    let mut segments = Vec::new();
    for (index, line) in rows.enumerate() {
        let cells: Vec<&[u8]> = words(line).collect();
        let at = |item| ParseError::at(index as u32 + 2, item);
        let natural = |column: usize, item| cells.get(column).and_then(|cell| number(cell)).ok_or(at(item));
        let pid = |column: usize, item| {
            cells
                .get(column)
                .and_then(|cell| signed(cell))
                .and_then(|n| i32::try_from(n).ok())
                .ok_or(at(item))
        };
        segments.push(SysvSegment {
            key: pid(key, "key")?,
            id: natural(id, "shmid")?,
            size: Bytes(natural(size, "size")?),
            creator: pid(creator, "cpid")?,
            last: pid(last, "lpid")?,
            attached: natural(attached, "nattch")?,
            uid: u32::try_from(natural(uid, "uid")?).map_err(|_| at("uid"))?,
            changed: changed.and_then(|column| natural(column, "ctime").ok()).map_or(0, |n| n as i64),
            allocated: Bytes(natural(resident, "rss")?.saturating_add(natural(swap, "swap")?)),
        });
    }
    Ok(segments)
}

impl KernelRoot {
    /// The System V segments of this program's IPC namespace.
    pub fn sysv_segments(&self, buffer: &mut Vec<u8>) -> Result<Vec<SysvSegment>, KernelError> {
        self.parsed("/proc/sysvipc/shm", buffer, parse_sysv_shm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n";

    #[test]
    fn a_line_is_taken_apart() {
        let text = format!(
            "{HEAD}      4660          5   600                 65536  4711  4712      2  1000  1000  1000  1000 1795233312          0 1795233300                  8192                  4096\n"
        );
        let segments = parse_sysv_shm(text.as_bytes()).unwrap();
        let wanted = SysvSegment {
            key: 4660,
            id: 5,
            size: Bytes(65536),
            creator: 4711,
            last: 4712,
            attached: 2,
            uid: 1000,
            changed: 1_795_233_300,
            allocated: Bytes(12288),
        };
        assert_eq!(segments, [wanted]);
        assert!(parse_sysv_shm(&text.as_bytes()[..text.len() - 30]).is_err(), "a torn line");
        assert_eq!(parse_sysv_shm(HEAD.as_bytes()), Ok(vec![]));
        assert!(parse_sysv_shm(b"key shmid\n").is_err());
    }

    #[test]
    fn the_live_machine_is_read() {
        // A kernel without System V IPC has no such file.
        match KernelRoot::live().sysv_segments(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.missing_feature(), ullage_model::Missing::KernelTooOld),
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse_sysv_shm(&bytes);
            let _ = parse_sysv_shm(&[HEAD.as_bytes(), &bytes].concat());
        }
    }
}
