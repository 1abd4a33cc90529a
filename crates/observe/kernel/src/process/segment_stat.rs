//! statx(2) of a shared segment: its size, the pages it holds, and when it was made.
//!
//! The surprise: st_blocks of a tmpfs file are its pages in memory and in swap together, and of what has a name they
//! add up to what statvfs(2) calls used. tmpfs tells when a file was made from kernel 5.18 on; before, its last
//! change of any kind (ctime) is the best bound.

use rustix::fd::AsFd;
use rustix::fs::{makedev, AtFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use ullage_model::Bytes;

/// What statx(2) says of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SegmentStat {
    /// st_dev.
    pub device: u64,
    /// st_ino.
    pub inode: u64,
    /// Length.
    pub size: Bytes,
    /// Pages that it holds.
    pub allocated: Bytes,
    /// No name is left.
    pub unlinked: bool,
    /// Owner.
    pub uid: u32,
    /// When it was made, seconds since 1970; where the kernel does not tell, when it was changed last.
    pub made: f64,
    /// When its length or its content (by write(2)) was changed last.
    pub modified: f64,
    /// A plain file, and not a folder, link or socket.
    pub file: bool,
    /// A folder.
    pub folder: bool,
}

impl SegmentStat {
    /// Of `path` below `dir`; a link at its end is followed only where asked to.
    pub(crate) fn read(dir: impl AsFd, path: impl Arg, follow: bool) -> Result<SegmentStat, Errno> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        rustix::fs::statx(dir, path, flags, wanted).map(|stat| SegmentStat::of(&stat))
    }

    fn of(stat: &Statx) -> SegmentStat {
        let seconds = |sec: i64, nsec: u32| sec as f64 + f64::from(nsec) / 1e9;
        let born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        let made = if born { stat.stx_btime } else { stat.stx_ctime };
        let kind = rustix::fs::FileType::from_raw_mode(stat.stx_mode.into());
        SegmentStat {
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            size: Bytes(stat.stx_size),
            // In units of 512 bytes, whatever the filesystem's block (statx(2)).
            allocated: Bytes(stat.stx_blocks.saturating_mul(512)),
            unlinked: stat.stx_nlink == 0,
            uid: stat.stx_uid,
            made: seconds(made.tv_sec, made.tv_nsec),
            modified: seconds(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            file: kind == rustix::fs::FileType::RegularFile,
            folder: kind == rustix::fs::FileType::Directory,
        }
    }
}
