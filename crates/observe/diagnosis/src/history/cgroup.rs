//! What is known of one cgroup: readings over time, and when its counters moved.

use super::series::Series;
use ullage_model::cgroup::CgroupVersion;
use ullage_model::{At, CgroupReading, Measured};

/// One cgroup: its first and last reading, and when its counters first moved.
#[derive(Clone, Debug)]
pub struct CgroupHistory {
    /// Before the job did anything.
    pub first: CgroupReading,
    /// The newest.
    pub last: CgroupReading,
    /// When that was.
    pub last_at: At,
    /// The last one before the first OOM kill.
    before_kill: Option<(At, CgroupReading)>,
    /// Memory in use over time, bytes.
    pub memory: Series,
    /// Memory without page cache, bytes.
    pub working_set: Series,
    /// Tasks over time.
    pub tasks: Series,
    /// OOM kills of its own processes: readings before and after the first move, and the sum of all moves.
    pub oom_kills: Counter,
    /// Times its memory limit was met.
    pub limit_hits: Counter,
    /// Times that memory.high slowed somebody down.
    pub high_hits: Counter,
    /// Shared memory over time, bytes: tmpfs, memfd, System V.
    pub shared: Series,
    /// Page cache over time, without shared memory, bytes.
    pub cache: Series,
    /// Swap that it is charged for over time, bytes; empty where that is not counted.
    pub swap: Series,
    /// Memory of the kernel over time, bytes.
    pub kernel: Series,
    /// The reading with most memory in transparent huge pages: when, these bytes, and all anonymous ones.
    pub most_huge: Option<(At, u64, u64)>,
    /// Forks refused.
    pub refused: Counter,
}

/// A kernel counter that only grows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    /// The first value read.
    pub first: Option<u64>,
    /// The last value read, and when.
    pub last: Option<(At, u64)>,
    /// The last reading before the first move, and the reading that showed it.
    pub moved: Option<(At, At)>,
}

impl Counter {
    fn read(&mut self, at: At, value: Measured<u64>) {
        let Measured::Known(value) = value else { return };
        self.first.get_or_insert(value);
        if let (Some((before, old)), None) = (self.last, self.moved) {
            if value > old {
                self.moved = Some((before, at));
            }
        }
        self.last = Some((at, value));
    }

    /// By how much it moved while it was watched; none where it could not be read.
    pub fn growth(&self) -> Option<u64> {
        Some(self.last?.1.saturating_sub(self.first?))
    }
}

impl CgroupHistory {
    pub(crate) fn new(reading: &CgroupReading) -> Self {
        CgroupHistory {
            first: reading.clone(),
            last: reading.clone(),
            last_at: At::default(),
            before_kill: None,
            memory: Series::default(),
            working_set: Series::default(),
            tasks: Series::default(),
            oom_kills: Counter::default(),
            limit_hits: Counter::default(),
            high_hits: Counter::default(),
            shared: Series::default(),
            cache: Series::default(),
            swap: Series::default(),
            kernel: Series::default(),
            most_huge: None,
            refused: Counter::default(),
        }
    }

    pub(crate) fn read(&mut self, at: At, reading: &CgroupReading) {
        let before = std::mem::replace(&mut self.last_at, at);
        if let Measured::Known(memory) = &reading.memory {
            self.memory.push(at, memory.current.0 as f64);
            self.working_set.push(at, memory.in_use().0 as f64);
            let killed = self.oom_kills.moved.is_some();
            self.oom_kills.read(at, memory.oom_kills);
            if !killed && self.oom_kills.moved.is_some() {
                self.before_kill = Some((before, self.last.clone()));
            }
            self.limit_hits.read(at, memory.limit_hits);
            self.high_hits.read(at, memory.high_hits);
            if let Measured::Known(swap) = memory.swap {
                self.swap.push(at, swap.0 as f64);
            }
            if let Measured::Known(parts) = memory.parts {
                self.shared.push(at, parts.shared.0 as f64);
                self.cache.push(at, parts.file.0.saturating_sub(parts.shared.0) as f64);
                self.kernel.push(at, parts.kernel.0 as f64);
                if let Measured::Known(huge) = memory.anonymous_huge {
                    if self.most_huge.is_none_or(|(_, most, _)| huge.0 >= most) {
                        self.most_huge = Some((at, huge.0, parts.anonymous.0));
                    }
                }
            }
        }
        if let Measured::Known(pids) = &reading.pids {
            self.tasks.push(at, pids.current as f64);
            self.refused.read(at, pids.refused);
        }
        self.last = reading.clone();
    }

    /// The last reading that is no later, of those that were kept.
    pub(crate) fn reading_before(&self, at: At) -> Option<(At, &CgroupReading)> {
        let of_kill = self.before_kill.as_ref().map(|(when, reading)| (*when, reading));
        [Some((self.last_at, &self.last)), of_kill].into_iter().flatten().find(|(when, _)| *when <= at)
    }

    /// `/x` as a person knows it.
    pub fn path(&self) -> &str {
        &self.last.path
    }

    /// Of the unified hierarchy.
    pub fn is_v2(&self) -> bool {
        self.last.version == CgroupVersion::V2
    }
}
