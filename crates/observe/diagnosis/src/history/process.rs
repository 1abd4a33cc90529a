//! What is known of one process: its figures over time, and what the agent said from inside it.

use super::mapping_estimate::MappingEstimate;
use super::memory_readings::MemoryReadings;
use super::series::Series;
use super::torch_counters::TorchCounters;
use crate::policy::given::{CLOCK_TICKS, NS_PER_S};
use crate::policy::growth::TAKEN_DOWN_S;
use crate::policy::trends::{FILES_MOVED_BYTES, RUNNABLE_ERRORS};
use std::borrow::Cow;
use std::collections::BTreeSet;
use ullage_model::process::DescriptorKinds;
use ullage_model::{
    At, Backlog, Census, Ending, EndingSource, Exclusive, Held, LoaderSettings, Mappings, Measured,
    ProcessFacts, ProcessId, ProcessMemory, ProcessReading, ProcessRef, ProcessState, ResourceLimits,
    RetainedByIterators, Role, Sites, Weight,
};

/// Probes kept of one process; beyond it, every second one is forgotten.
const MOST_PROBES: usize = 64;
/// Censuses kept of one process: the latest.
const MOST_CENSUSES: usize = 16;

/// Moments at which much memory came whose functions are kept: the latest.
const MOST_WORKS: usize = 64;
/// Functions that are remembered of looks before them.
const MOST_FUNCTIONS: usize = 1024;

/// Queues of one process that are kept.
const MOST_QUEUES: usize = 32;
/// Loaders of different settings that are counted.
const MOST_ITERATORS: usize = 32;

/// What a probe of a forked process's pages found, and what else was read of it then.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// When.
    pub at: At,
    /// Memory that it alone maps.
    pub exclusive: Exclusive,
    /// RssAnon.
    pub anonymous: u64,
    /// Minor faults since it was forked.
    pub faults: u64,
}

/// A process of multiprocessing just before its target ran, as the agent in it said.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// When.
    pub at: At,
    /// RssAnon, where it was not forked.
    pub anonymous: Option<u64>,
    /// A loader worker's own copy of the dataset.
    pub dataset: Option<Weight>,
    /// Any other process's own copy of its target and arguments.
    pub arguments: Option<Weight>,
}

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
    /// Last reading while its program ran.
    pub worked_until: At,
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
    /// Mappings over time, estimated where they were not counted.
    pub mappings_between: Series,
    mapping_estimate: MappingEstimate,
    /// Descriptors over time.
    pub descriptors: Series,
    /// Threads over time.
    pub threads: Series,
    /// Address space of generated code over time, bytes.
    pub executable: Series,
    /// Address space over time, bytes.
    pub virtual_size: Series,
    /// Locked bytes over time.
    pub locked: Series,
    /// Resident anonymous bytes over time.
    pub anonymous: Series,
    /// Resident shared bytes over time, from the first ones on; empty where there never were any.
    pub shared: Series,
    /// The most that was ever resident (VmHWM) over time: the kernel's own, so that it knows what lay between two readings.
    pub high_water: Series,
    /// Bytes in swap over time, from the first ones on; empty where there never were any.
    pub swapped: Series,
    /// Resident bytes of mapped files, whenever they moved by a MiB.
    pub files: Series,
    /// What the agent said of its private memory, in order.
    pub(crate) memory_readings: MemoryReadings,
    /// What the agent said of what torch keeps in it.
    pub(crate) torch_counters: TorchCounters,
    /// Where its threads were when much memory had come, in order: of each, functions from the outermost on.
    pub works: Vec<(At, Vec<Vec<String>>)>,
    /// Censuses of what holds its growth, in order.
    pub censuses: Vec<(At, Census)>,
    /// Where was allocated what no census could name, as last told.
    pub sites: Option<(At, Sites)>,
    /// Minor faults over time.
    pub faults: Series,
    /// CPU time over time, seconds; empty where none was ever read.
    cpu: Series,
    /// Seconds in which its main thread could have run, over time, by the state at each reading.
    runnable: Series,
    /// Sum of the squares of the seconds between readings, over time: how far the states at a few readings may mislead.
    apart: Series,
    /// Seconds that its first thread waited for a core, over time, while that was read: of its youth; empty where the kernel does
    /// not count them, and in older recordings.
    run_delay: Series,
    /// Probes of its pages, in order.
    pub probes: Vec<Probe>,
    /// Lasting zombie children over time.
    pub zombies: Series,
    /// When it was first seen as a zombie.
    pub zombie_since: Option<At>,
    /// The agent spoke from inside it.
    pub agent: bool,
    /// It spoke before the process was read, as it started: what the kernel counts of it began at 0 then.
    pub heard_first: bool,
    /// Exceptions that the agent reported from it.
    pub exceptions: u32,
    /// Settings of the last loader that it made.
    pub loader: Option<LoaderSettings>,
    /// When it began to make that one.
    pub loader_at: Option<At>,
    /// Settings of that of its loaders whose dataset weighs most.
    pub heaviest: Option<LoaderSettings>,
    /// Loaders that it made iterators of, by dataset and settings, and how many of each: the first ones only.
    pub iterators: Vec<(LoaderSettings, u32)>,
    /// Start method by which multiprocessing started it.
    pub started_by: Option<String>,
    /// How it stood before its target ran.
    pub begun: Option<Begun>,
    /// Queues in it that held many items, with the most that each was told to hold, and when.
    pub backlogs: Vec<(At, Backlog)>,
    /// What iterators that keep all they have seen held at its end, and when.
    pub retained_by_iterators: Option<(At, RetainedByIterators)>,
    /// Its large globals, as last told.
    pub holds: Vec<Held>,
    /// Version of its Python.
    pub python: Option<String>,
    /// When the agent said that its interpreter was about to be taken down: what it gives back from then on is no part of its run.
    pub taken_down: Option<At>,
    /// Functions in which it was at looks that are forgotten.
    pub been_in: BTreeSet<String>,
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
            worked_until: at,
            last: None,
            memory: None,
            mappings: None,
            kinds: None,
            mapping_count: Series::default(),
            mappings_between: Series::default(),
            mapping_estimate: MappingEstimate::default(),
            descriptors: Series::default(),
            threads: Series::default(),
            executable: Series::default(),
            virtual_size: Series::default(),
            locked: Series::default(),
            anonymous: Series::default(),
            shared: Series::default(),
            high_water: Series::default(),
            swapped: Series::default(),
            files: Series::default(),
            memory_readings: MemoryReadings::default(),
            torch_counters: TorchCounters::default(),
            works: Vec::new(),
            censuses: Vec::new(),
            sites: None,
            faults: Series::default(),
            cpu: Series::default(),
            runnable: Series::default(),
            apart: Series::default(),
            run_delay: Series::default(),
            probes: Vec::new(),
            zombies: Series::default(),
            zombie_since: None,
            agent: false,
            heard_first: false,
            exceptions: 0,
            loader: None,
            loader_at: None,
            heaviest: None,
            iterators: Vec::new(),
            started_by: None,
            begun: None,
            backlogs: Vec::new(),
            retained_by_iterators: None,
            holds: Vec::new(),
            python: None,
            taken_down: None,
            been_in: BTreeSet::new(),
            ended: None,
        }
    }

    pub(crate) fn read(&mut self, at: At, reading: &ProcessReading) {
        self.ran(at, reading, at.seconds() - self.last_seen.seconds());
        self.last_seen = at;
        self.parent = reading.parent;
        if reading.state == ProcessState::Zombie {
            self.zombie_since.get_or_insert(at);
            self.worked_until = at;
        } else {
            self.threads.push(at, f64::from(reading.threads));
        }
        if let Measured::Known(memory) = reading.memory {
            self.memory = Some((at, memory));
            self.virtual_size.push(at, memory.virtual_size.0 as f64);
            self.locked.push(at, memory.locked.0 as f64);
            if !self.gives_back(at, &memory) {
                self.anonymous.push(at, memory.anonymous.0 as f64);
                if memory.shared.0 > 0 || self.shared.last().is_some() {
                    self.shared.push(at, memory.shared.0 as f64);
                }
                if memory.swap.0 > 0 || self.swapped.last().is_some() {
                    self.swapped.push(at, memory.swap.0 as f64);
                }
                self.worked_until = at;
            }
            if memory.peak_resident.0 > 0 {
                self.high_water.push(at, memory.peak_resident.0 as f64);
            }
            if self
                .files
                .last()
                .is_none_or(|(_, before)| (memory.file.0 as f64 - before).abs() >= FILES_MOVED_BYTES)
            {
                self.files.push(at, memory.file.0 as f64);
            }
            self.faults.push(at, reading.minor_faults as f64);
            let counted = reading.mappings.as_known().map(|mappings| mappings.count);
            if let Some(mappings) = self.mapping_estimate.mappings(at, counted, memory.virtual_size.0) {
                self.mappings_between.push(at, mappings);
            }
            if let Measured::Known(exclusive) = reading.exclusive {
                self.probed(Probe {
                    at,
                    exclusive,
                    anonymous: memory.anonymous.0,
                    faults: reading.minor_faults,
                });
            }
        }
        if let Measured::Known(descriptors) = &reading.descriptors {
            self.descriptors.push(at, descriptors.count as f64);
            // As it ends a process closes them all: the fuller table says what filled it.
            let fuller = self
                .kinds
                .as_ref()
                .is_none_or(|(_, before, _)| descriptors.count.saturating_mul(2) >= *before);
            if let (Measured::Known(kinds), true) = (&descriptors.kinds, fuller) {
                self.kinds = Some((at, descriptors.count, kinds.clone()));
            }
        }
        if let Measured::Known(mappings) = reading.mappings {
            self.mapping_count.push(at, mappings.count as f64);
            self.mappings = Some((at, mappings));
            if let Measured::Known(bytes) = mappings.executable_bytes {
                self.executable.push(at, bytes.0 as f64);
            }
        }
        self.last = Some(reading.clone());
    }

    /// Its interpreter is being taken down, and it holds less than while it ran: of much memory that takes seconds.
    fn gives_back(&self, at: At, memory: &ProcessMemory) -> bool {
        let last = |series: &Series| series.last().map_or(0.0, |(_, bytes)| bytes);
        let held = last(&self.anonymous) + last(&self.swapped);
        // Of a child of multiprocessing that is said before its threads are awaited, which may work on for hours.
        let lately = self.taken_down.is_some_and(|since| at.since(since) <= TAKEN_DOWN_S);
        lately && (memory.anonymous.0.saturating_add(memory.swap.0) as f64) < held
    }

    fn ran(&mut self, at: At, reading: &ProcessReading, since: f64) {
        let before = self.runnable.last().map_or(0.0, |(_, seconds)| seconds);
        let could = if reading.state == ProcessState::Running { since } else { 0.0 };
        self.runnable.push(at, before + could);
        let before = self.apart.last().map_or(0.0, |(_, squares)| squares);
        self.apart.push(at, before + since * since);
        if reading.cpu.0 > 0 {
            self.cpu.push(at, reading.cpu.0 as f64 / CLOCK_TICKS);
        }
        if let Measured::Known(delay) = reading.run_delay_ns {
            self.run_delay.push(at, delay as f64 / NS_PER_S);
        }
    }

    /// The start method, where it is one that gives a process nothing of its parent's memory.
    pub(crate) fn began_empty(&self) -> Option<&str> {
        self.started_by.as_deref().filter(|method| matches!(*method, "spawn" | "forkserver"))
    }

    /// Seconds between two times without those in which it could have run and waited for a core: how long it would have taken on
    /// a machine of its own.
    pub(crate) fn unhindered(&self, from: At, to: At) -> f64 {
        (to.since(from) - self.waited_for_core(from, to)).max(0.0)
    }

    /// Seconds between two times in which it could have run and waited for a core: on a busy machine everything takes longer by
    /// them. As the kernel counted them; else at least so many: a process that sleeps is found runnable now and then, and a reading
    /// stands for the time since the one before. 0 where it computed in several threads: then nobody knows.
    fn waited_for_core(&self, from: At, to: At) -> f64 {
        let between = |series: &Series| {
            let first = series.first().map(|(at, sum)| (at, if self.heard_first { 0.0 } else { sum }));
            let at = |when| series.at_or_before(when).or(first).map(|(_, sum)| sum);
            at(to).zip(at(from)).map_or(0.0, |(after, before)| after - before)
        };
        if let Some(((since, before), (read, sum))) = self.run_delay.first().zip(self.run_delay.last()) {
            // A process is asked while it is young. After that it waits as often, for all that is known.
            let share = (sum - before) / read.since(since).max(1.0);
            return between(&self.run_delay) + share.min(1.0) * to.since(from.max(read)).max(0.0);
        }
        let (could, lasted) = (between(&self.runnable), to.since(from));
        if self.cpu.last().is_none() || lasted <= 0.0 {
            return 0.0;
        }
        let share = (could / lasted).min(1.0);
        let error = (between(&self.apart) * share * (1.0 - share)).sqrt();
        (could - between(&self.cpu) - RUNNABLE_ERRORS * error).max(0.0)
    }

    /// CPU time that it used between two times, seconds, as far as it was read between them: what it used before the first
    /// of these readings may be of the time before.
    pub(crate) fn worked(&self, from: At, to: At) -> f64 {
        let first = self.cpu.points().find(|(at, _)| *at >= from).map(|(_, seconds)| seconds);
        let last = self.cpu.at_or_before(to).map(|(_, seconds)| seconds);
        first.zip(last).map_or(0.0, |(first, last)| (last - first).max(0.0))
    }

    /// Private memory wherever it is, in memory and in swap, over time.
    pub(crate) fn private(&self) -> Cow<'_, Series> {
        if self.swapped.last().is_none() {
            return Cow::Borrowed(&self.anonymous);
        }
        let mut both = Series::default();
        for (at, bytes) in self.anonymous.points() {
            both.push(at, bytes + self.swapped.at_or_before(at).map_or(0.0, |(_, swapped)| swapped));
        }
        Cow::Owned(both)
    }

    fn probed(&mut self, probe: Probe) {
        if self.probes.len() >= MOST_PROBES {
            let mut index = 0;
            self.probes.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.probes.push(probe);
    }

    pub(crate) fn has_come(&mut self, at: At, stacks: &[Vec<String>]) {
        if self.works.len() >= MOST_WORKS {
            let (_, oldest) = self.works.remove(0);
            let functions = oldest.iter().flatten().filter_map(|frame| function_of(frame));
            let room = MOST_FUNCTIONS.saturating_sub(self.been_in.len());
            self.been_in.extend(functions.take(room));
        }
        self.works.push((at, stacks.to_vec()));
    }

    /// The agent took a census.
    pub(crate) fn counted(&mut self, at: At, census: &Census) {
        if self.censuses.len() >= MOST_CENSUSES {
            self.censuses.remove(0);
        }
        self.censuses.push((at, census.clone()));
    }

    /// It makes a loader.
    pub(crate) fn makes_loader(&mut self, at: At, settings: LoaderSettings) {
        // Weighed anew where the dataset is another object: that alone makes no other loader.
        let alike = LoaderSettings { weight: None, ..settings.clone() };
        if let Some((_, number)) = self.iterators.iter_mut().find(|(known, _)| *known == alike) {
            *number += 1;
        } else if self.iterators.len() < MOST_ITERATORS {
            self.iterators.push((alike, 1));
        }
        let weight = |settings: &LoaderSettings| {
            settings.weight.map_or(0, |weight| weight.copied_by_pickle().saturating_add(weight.tensors))
        };
        if self.heaviest.as_ref().is_none_or(|before| weight(before) <= weight(&settings)) {
            self.heaviest = Some(settings.clone());
        }
        self.loader = Some(settings);
        self.loader_at = Some(at);
    }

    /// A queue in it holds more than before.
    pub(crate) fn has_backlog(&mut self, at: At, backlog: &Backlog) {
        match self.backlogs.iter().position(|(_, known)| known.number == backlog.number) {
            Some(place) => self.backlogs[place] = (at, backlog.clone()),
            None if self.backlogs.len() < MOST_QUEUES => self.backlogs.push((at, backlog.clone())),
            None => {}
        }
    }

    /// Bytes that wait in its queues, as far as these said what an item weighs.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.backlogs.iter().map(|(_, backlog)| backlog.bytes()).fold(0, u64::saturating_add)
    }

    /// Pid of the process that started it: an orphan's parent is another one.
    pub fn born_to(&self) -> i32 {
        self.facts.as_ref().map_or(self.parent, |facts| facts.parent)
    }

    /// Whether it may run Python: by its command line, where that is known, its name, or since an agent is in it.
    pub(crate) fn is_python(&self) -> bool {
        let python = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            name.starts_with("python") || name.starts_with("pypy")
        };
        let first = self.facts.as_ref().and_then(|facts| facts.command_line.first());
        self.agent || python(self.name()) || first.is_none_or(|first| python(first))
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

/// As findings name a process.
pub(crate) fn process_ref(process: &ProcessHistory) -> ProcessRef {
    ProcessRef { id: process.id, role: process.role.clone(), name: process.name().to_owned() }
}

/// File and function of a frame `path:line function`, at whatever line.
pub(crate) fn function_of(frame: &str) -> Option<String> {
    let (place, function) = frame.rsplit_once(' ')?;
    Some(format!("{} {function}", place.rsplit_once(':')?.0))
}
