//! Shared memory that has an inode of its own: a file in /dev/shm, a memfd, a System V segment, a shared anonymous
//! mapping. Deleted or not, it holds its pages for as long as anybody maps it or holds it open.

use crate::{Bytes, Measured, ProcessId};
use serde::{Deserialize, Serialize};

/// What made it, as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentKind {
    /// A tensor that torch shares: `torch_PID_RANDOM_N` in /dev/shm.
    Torch,
    /// Another file in /dev/shm: `psm_*` and `pym-*` of Python, `sem.*`, …
    PosixShm,
    /// memfd_create(2).
    Memfd,
    /// A memfd of ullage's arena.
    UllageArena,
    /// A memfd of `ullage.share` or of a dataset that ullage ships.
    UllageShare,
    /// shmget(2).
    Sysv,
    /// `mmap(MAP_SHARED | MAP_ANONYMOUS)`: `/dev/zero (deleted)`.
    SharedAnonymous,
}

impl SegmentKind {
    /// Every kind, in the order of the list above.
    pub const ALL: [SegmentKind; 7] = [
        SegmentKind::Torch,
        SegmentKind::PosixShm,
        SegmentKind::Memfd,
        SegmentKind::UllageArena,
        SegmentKind::UllageShare,
        SegmentKind::Sysv,
        SegmentKind::SharedAnonymous,
    ];

    /// As it stands in JSON, in recordings and on the screen.
    pub const fn word(self) -> &'static str {
        match self {
            SegmentKind::Torch => "torch",
            SegmentKind::PosixShm => "posix-shm",
            SegmentKind::Memfd => "memfd",
            SegmentKind::UllageArena => "ullage-arena",
            SegmentKind::UllageShare => "ullage-share",
            SegmentKind::Sysv => "sysv",
            SegmentKind::SharedAnonymous => "shared-anonymous",
        }
    }

    /// The kind of this word.
    pub fn of_word(word: &str) -> Option<SegmentKind> {
        SegmentKind::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// How its creator is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CreatorSource {
    /// Its name carries the pid.
    Name,
    /// The kernel keeps the pid (System V).
    Kernel,
    /// Nobody else mapped it or held it open when it was first seen.
    OnlyUser,
    /// The eldest of those that mapped it or held it open when it was first seen.
    EldestUser,
}

impl CreatorSource {
    /// Every source.
    pub const ALL: [CreatorSource; 4] =
        [CreatorSource::Name, CreatorSource::Kernel, CreatorSource::OnlyUser, CreatorSource::EldestUser];

    /// As it stands in JSON and in recordings.
    pub const fn word(self) -> &'static str {
        match self {
            CreatorSource::Name => "name",
            CreatorSource::Kernel => "kernel",
            CreatorSource::OnlyUser => "only-user",
            CreatorSource::EldestUser => "eldest-user",
        }
    }

    /// The source of this word.
    pub fn of_word(word: &str) -> Option<CreatorSource> {
        CreatorSource::ALL.into_iter().find(|source| source.word() == word)
    }
}

/// Who made a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Creator {
    /// Which process.
    pub maker: Maker,
    /// How that is known.
    pub by: CreatorSource,
}

/// A process, or what is left of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// A process of the job, which may have ended since; or another one that was alive at the reading.
    Process(ProcessId),
    /// A pid that no process of the job had, and that no process had at the reading: it ended, or it lives in another
    /// pid namespace.
    Gone(i32),
}

/// One segment; or several small ones that are alike in everything but name and size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Kind.
    pub kind: SegmentKind,
    /// `torch_4711_1804289383_0`, `memfd:x`, `shmid 5 key 0x1234`; of several, what their names begin with, and `*`.
    pub name: String,
    /// How many this stands for.
    pub count: u64,
    /// st_dev of its filesystem: that of the job's /dev/shm, or the kernel's own for what has no name.
    pub device: u64,
    /// Its inode (of System V, the shmid); of several, the largest one's.
    pub inode: u64,
    /// Length, of all together.
    pub size: Bytes,
    /// Pages that it holds, in memory or swap. Missing where only processes that this user may not look into reach it.
    pub allocated: Measured<Bytes>,
    /// `allocated` counts only pages that its mappers have in their tables.
    pub at_least: bool,
    /// It has no name any more: it goes with its last user.
    pub deleted: bool,
    /// It was there before the job.
    pub before: bool,
    /// Who made it. `Vanished`: neither its name tells, nor was a process of the job seen with it.
    pub creator: Measured<Creator>,
    /// Processes of the job that map it.
    pub mappers: Vec<ProcessId>,
    /// Processes of the job that hold it open and do not map it.
    pub openers: Vec<ProcessId>,
    /// Processes outside of the job have it attached: known of System V only, where the kernel counts them.
    pub outsiders: Measured<bool>,
}

impl Segment {
    /// Nobody of the job uses it.
    pub fn unused(&self) -> bool {
        self.mappers.is_empty() && self.openers.is_empty() && self.outsiders != Measured::Known(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_what_they_stand_for() {
        for kind in SegmentKind::ALL {
            assert_eq!(SegmentKind::of_word(kind.word()), Some(kind));
        }
        for source in CreatorSource::ALL {
            assert_eq!(CreatorSource::of_word(source.word()), Some(source));
        }
        assert_eq!(SegmentKind::of_word("other"), None);
    }
}
