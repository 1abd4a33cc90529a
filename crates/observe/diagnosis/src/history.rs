//! What a timeline keeps of one process, one cgroup, one filesystem and the machine.

use crate::series::Series;
use ullage_model::cgroup::CgroupVersion;
use ullage_model::process::DescriptorKinds;
use ullage_model::{
    At, CgroupReading, Ending, EndingSource, FilesystemReading, HostReading, LoaderSettings, Mappings,
    Measured, ProcessFacts, ProcessId, ProcessMemory, ProcessReading, ProcessState, ResourceLimits, Role,
};

/// One process.
#[derive(Clone, Debug)]
pub struct ProcessHistory {
    /// Pid and start time.
    pub id: ProcessId,
    /// What is read once; none where it ended too soon.
    pub facts: Option<ProcessFacts>,
    /// The role last known.
    pub role: Role,
    /// Its limits as last read.
    pub limits: Option<ResourceLimits>,
    /// Pid of its parent, as last read.
    pub parent: i32,
    /// First sight.
    pub first_seen: At,
    /// Last reading.
    pub last_seen: At,
    /// The last reading as it was.
    pub last: Option<ProcessReading>,
    /// Sizes, as last read while it had memory.
    pub memory: Option<(At, ProcessMemory)>,
    /// Mappings, as last counted.
    pub mappings: Option<(At, Mappings)>,
    /// Kinds of descriptors, as last read, with their number.
    pub kinds: Option<(At, u64, DescriptorKinds)>,
    /// Mappings over time.
    pub mapping_count: Series,
    /// Descriptors over time.
    pub descriptors: Series,
    /// Threads over time.
    pub threads: Series,
    /// Address space over time, bytes.
    pub virtual_size: Series,
    /// Locked bytes over time.
    pub locked: Series,
    /// Lasting zombie children over time.
    pub zombies: Series,
    /// When it was first seen as a zombie.
    pub zombie_since: Option<At>,
    /// The agent spoke from inside it.
    pub agent: bool,
    /// Exceptions that the agent reported from it.
    pub exceptions: u32,
    /// Settings of the last loader that it made.
    pub loader: Option<LoaderSettings>,
    /// Start method by which multiprocessing started it.
    pub started_by: Option<String>,
    /// How it ended.
    pub ended: Option<(At, Ending, EndingSource)>,
}

impl ProcessHistory {
    pub(crate) fn new(id: ProcessId, at: At) -> Self {
        ProcessHistory {
            id,
            facts: None,
            role: Role::Other,
            limits: None,
            parent: 0,
            first_seen: at,
            last_seen: at,
            last: None,
            memory: None,
            mappings: None,
            kinds: None,
            mapping_count: Series::default(),
            descriptors: Series::default(),
            threads: Series::default(),
            virtual_size: Series::default(),
            locked: Series::default(),
            zombies: Series::default(),
            zombie_since: None,
            agent: false,
            exceptions: 0,
            loader: None,
            started_by: None,
            ended: None,
        }
    }

    pub(crate) fn read(&mut self, at: At, reading: &ProcessReading) {
        self.last_seen = at;
        self.parent = reading.parent;
        if reading.state == ProcessState::Zombie {
            self.zombie_since.get_or_insert(at);
        } else {
            self.threads.push(at, f64::from(reading.threads));
        }
        if let Measured::Known(memory) = reading.memory {
            self.memory = Some((at, memory));
            self.virtual_size.push(at, memory.virtual_size.0 as f64);
            self.locked.push(at, memory.locked.0 as f64);
        }
        if let Measured::Known(descriptors) = reading.descriptors {
            self.descriptors.push(at, descriptors.count as f64);
            if let Measured::Known(kinds) = descriptors.kinds {
                self.kinds = Some((at, descriptors.count, kinds));
            }
        }
        if let Measured::Known(mappings) = reading.mappings {
            self.mapping_count.push(at, mappings.count as f64);
            self.mappings = Some((at, mappings));
        }
        self.last = Some(reading.clone());
    }

    /// `comm`, as last read.
    pub fn name(&self) -> &str {
        match (&self.last, &self.facts) {
            (Some(reading), _) => &reading.comm,
            (None, Some(facts)) => &facts.comm,
            (None, None) => "",
        }
    }

    /// Real user id, where it could be read.
    pub fn uid(&self) -> Option<u32> {
        self.facts.as_ref()?.uid.known()
    }
}

/// One cgroup: its first and last reading, and when its counters first moved.
#[derive(Clone, Debug)]
pub struct CgroupHistory {
    /// Before the job did anything.
    pub first: CgroupReading,
    /// The newest.
    pub last: CgroupReading,
    /// When that was.
    pub last_at: At,
    /// Memory in use over time, bytes.
    pub memory: Series,
    /// Memory without the page cache that the kernel gives back first, bytes.
    pub working_set: Series,
    /// Tasks over time.
    pub tasks: Series,
    /// OOM kills of its own processes: readings before and after the first move, and the sum of all moves.
    pub oom_kills: Counter,
    /// Times its memory limit was met.
    pub limit_hits: Counter,
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
            memory: Series::default(),
            working_set: Series::default(),
            tasks: Series::default(),
            oom_kills: Counter::default(),
            limit_hits: Counter::default(),
            refused: Counter::default(),
        }
    }

    pub(crate) fn read(&mut self, at: At, reading: &CgroupReading) {
        self.last_at = at;
        if let Measured::Known(memory) = &reading.memory {
            self.memory.push(at, memory.current.0 as f64);
            let idle = memory.parts.known().map_or(0, |parts| parts.inactive_file.0);
            self.working_set.push(at, memory.current.0.saturating_sub(idle) as f64);
            self.oom_kills.read(at, memory.oom_kills);
            self.limit_hits.read(at, memory.limit_hits);
        }
        if let Measured::Known(pids) = &reading.pids {
            self.tasks.push(at, pids.current as f64);
            self.refused.read(at, pids.refused);
        }
        self.last = reading.clone();
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

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct HostHistory {
    /// The newest reading.
    pub last: HostReading,
    /// MemTotal minus MemAvailable plus swap in use, bytes.
    pub used: Series,
    /// Committed_AS, bytes.
    pub committed: Series,
    /// MemAvailable, bytes.
    pub available: Series,
    /// Least MemAvailable, and when.
    pub least_available: Option<(At, u64)>,
}

impl HostHistory {
    pub(crate) fn read(&mut self, at: At, reading: &HostReading) {
        if let Measured::Known(memory) = &reading.memory {
            let swap = memory.swap_total.saturating_sub(memory.swap_free);
            let used = memory.total.saturating_sub(memory.available).saturating_add(swap);
            self.used.push(at, used.0 as f64);
            self.committed.push(at, memory.committed.0 as f64);
            self.available.push(at, memory.available.0 as f64);
            if self.least_available.is_none_or(|(_, least)| memory.available.0 < least) {
                self.least_available = Some((at, memory.available.0));
            }
        }
        if reading.memory.as_known().is_some() || self.last.memory.as_known().is_none() {
            self.last = reading.clone();
        }
    }
}
