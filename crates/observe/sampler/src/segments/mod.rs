//! When are shared segments read, and what is remembered of them between two readings?
//!
//! A reading lists the job's /dev/shm, and of every process that has shared pages its mappings and descriptors:
//! milliseconds for a small job, a fifth of a second for 70,000 tensors. So it is made when cheap figures moved,
//! out of the budget, and once at the end of the run. The surprise: who made a memfd can only be told by who was
//! seen with it first, so that an early reading is worth more than a late one.

pub(crate) mod creator;
pub(crate) mod group;
pub(crate) mod table;

use self::creator::Pids;
use self::table::Key;
use std::collections::HashMap;
use ullage_model::{At, Creator, FilesystemReading, FilesystemUse, Measured, ProcessId, ProcessReading};

/// Share of the budget that readings of segments may take in the long run.
const SHARE: f64 = 0.25;
/// The longest pause while something moves, seconds.
const LONGEST_S: f64 = 30.0;

/// Cheap figures that move when segments do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Bytes and inodes in use in the job's /dev/shm.
    used: u64,
    inodes: u64,
    /// RssShmem of all processes.
    shared: u64,
    descriptors: u64,
    /// Processes that have shared pages.
    sharers: u64,
}

impl Moves {
    pub(crate) fn of(filesystems: &[FilesystemReading], processes: &[ProcessReading]) -> Moves {
        let mut moves = Moves::default();
        // Where /dev/shm is a folder of a disk, what else moves on that disk says nothing.
        let shm = |reading: &&FilesystemReading| reading.used_for == FilesystemUse::Shm && reading.tmpfs;
        for shm in filesystems.iter().filter(shm) {
            moves.used = moves.used.saturating_add(shm.used.0);
            moves.inodes = moves.inodes.saturating_add(shm.inodes_used);
        }
        for process in processes {
            let shared = process.memory.as_known().map_or(0, |memory| memory.shared.0);
            moves.shared = moves.shared.saturating_add(shared);
            moves.sharers += u64::from(shared > 0);
            moves.descriptors += process.descriptors.as_known().map_or(0, |descriptors| descriptors.count);
        }
        moves
    }

    /// By a sixteenth of anything, and by more than what moves all the time.
    fn differs(&self, other: &Moves) -> bool {
        let moved = |a: u64, b: u64, least: u64| a.abs_diff(b) > (a.max(b) / 16).max(least);
        moved(self.used, other.used, 1 << 20)
            || moved(self.inodes, other.inodes, 16)
            || moved(self.shared, other.shared, 1 << 20)
            || moved(self.descriptors, other.descriptors, 16)
            || (self.sharers != other.sharers && self.shared.max(other.shared) > 1 << 20)
    }

    /// By something at all. Less than this is a semaphore or OpenMP's page in each process: the last look finds it.
    fn stirred(&self, other: &Moves) -> bool {
        self.used.abs_diff(other.used) >= 256 << 10
            || self.inodes.abs_diff(other.inodes) >= 4
            || self.shared.abs_diff(other.shared) >= 1 << 20
    }
}

/// Between readings.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) pids: Pids,
    /// Makers of those that tell nothing themselves, as first seen.
    pub(crate) makers: HashMap<Key, Measured<Creator>>,
    /// Devices of the job's /dev/shm.
    pub(crate) devices: Vec<u64>,
    /// `/proc/PID/map_files` may be used.
    pub(crate) map_files: bool,
    /// The run is over: once more, whatever moved.
    pub(crate) last_sample: bool,
    last: Option<(At, Moves)>,
    /// What it cost last time, and how that compares with what was expected.
    cost_ns: f64,
    off_by: f64,
}

impl Default for Segments {
    fn default() -> Self {
        Segments {
            pids: Pids::default(),
            makers: HashMap::new(),
            devices: Vec::new(),
            map_files: true,
            last_sample: false,
            last: None,
            cost_ns: 0.0,
            off_by: 1.0,
        }
    }
}

impl Segments {
    /// A process of the job was seen for the first time.
    pub(crate) fn joined(&mut self, id: ProcessId) {
        self.pids.job.insert(id.pid, id);
    }

    /// What a reading will cost, by what one of this size costs usually.
    pub(crate) fn expected_ns(&self, usual_ns: f64) -> f64 {
        usual_ns * self.off_by
    }

    /// Whether something moved since the last reading, and that was long enough ago. `share` is that of the budget.
    pub(crate) fn due(&mut self, now: At, moves: Moves, share: f64) -> bool {
        let Some((at, before)) = self.last else {
            // The first tick is what the job found.
            self.last = Some((now, moves));
            return false;
        };
        let age = now.since(at);
        let pause = (now.seconds() / 8.0).clamp(0.9, LONGEST_S).max(self.cost_ns / 1e9 / (share * SHARE));
        (moves.differs(&before) && age >= pause) || (moves.stirred(&before) && age >= pause * 4.0)
    }

    /// A reading was made.
    pub(crate) fn read(&mut self, now: At, moves: Moves, usual_ns: f64, cost_ns: f64) {
        self.last = Some((now, moves));
        self.cost_ns = cost_ns;
        self.off_by = (self.off_by * 0.5 + cost_ns / usual_ns.max(1e5) * 0.5).clamp(0.1, 20.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Moves =
        Moves { used: 100 << 20, inodes: 100, shared: 100 << 20, descriptors: 100, sharers: 4 };

    fn seconds(seconds: f64) -> At {
        At::from_seconds(seconds)
    }

    #[test]
    fn what_the_job_found_is_no_reason_to_read() {
        let mut segments = Segments::default();
        assert!(!segments.due(seconds(0.0), CALM, 0.005));
        assert!(!segments.due(seconds(100.0), CALM, 0.005), "nothing moved");
        assert!(segments.due(seconds(100.0), Moves { inodes: 200, ..CALM }, 0.005));
    }

    #[test]
    fn a_large_move_is_read_soon_and_a_small_one_later() {
        let mut segments = Segments::default();
        segments.read(seconds(8.0), CALM, 1e6, 1e6);
        let (large, small) = (Moves { used: 200 << 20, ..CALM }, Moves { used: 101 << 20, ..CALM });
        assert!(!segments.due(seconds(8.5), large, 0.005));
        assert!(segments.due(seconds(9.2), large, 0.005));
        assert!(!segments.due(seconds(9.2), small, 0.005));
        assert!(segments.due(seconds(16.0), small, 0.005));
    }

    #[test]
    fn a_page_of_openmp_in_each_of_64_processes_is_no_move() {
        let mut segments = Segments::default();
        segments.due(seconds(0.0), Moves::default(), 0.005);
        let pages = Moves { used: 64 << 12, inodes: 1, shared: 64 << 12, descriptors: 16, sharers: 64 };
        assert!(!segments.due(seconds(100.0), Moves { used: 4096, ..pages }, 0.005));
        assert!(segments.due(seconds(100.0), Moves { shared: 4 << 20, ..pages }, 0.005));
    }

    #[test]
    fn dear_readings_are_rare() {
        let mut segments = Segments::default();
        segments.read(seconds(8.0), CALM, 1e6, 200e6);
        let large = Moves { used: 200 << 20, ..CALM };
        assert!(
            !segments.due(seconds(160.0), large, 0.005),
            "0.2 s of CPU are a quarter of the budget of 160 s"
        );
        assert!(segments.due(seconds(170.0), large, 0.005));
        assert!(segments.expected_ns(1e6) > 10e6, "and expected to be dear again");
    }
}
