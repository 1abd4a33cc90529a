//! What is known of one filesystem: how full it was over time.

use super::series::Series;
use ullage_model::{At, FilesystemReading};

/// One filesystem.
#[derive(Clone, Debug)]
pub struct FilesystemHistory {
    /// The newest reading.
    pub last: FilesystemReading,
    /// When that was.
    pub last_at: At,
    /// Bytes in use.
    pub used: Series,
    /// Inodes in use.
    pub inodes: Series,
}

impl FilesystemHistory {
    pub(crate) fn new(at: At, reading: &FilesystemReading) -> Self {
        FilesystemHistory {
            last: reading.clone(),
            last_at: at,
            used: Series::default(),
            inodes: Series::default(),
        }
    }

    pub(crate) fn read(&mut self, at: At, reading: &FilesystemReading) {
        self.last_at = at;
        self.last = reading.clone();
        self.used.push(at, reading.used.0 as f64);
        self.inodes.push(at, reading.inodes_used as f64);
    }
}
