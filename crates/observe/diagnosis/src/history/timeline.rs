//! Everything of a run that diagnosis needs, in order of time and in bounded memory.
//!
//! Fed by any [`Source`]: a live run, a replay, or a replay followed by what was read long afterwards (a
//! post-mortem: counters and kernel log as they stand now, pushed as a later sample and events).

use super::cgroup::CgroupHistory;
use super::filesystem::FilesystemHistory;
use super::groups::Groups;
use super::host::HostHistory;
use super::job_totals::JobTotals;
use super::process::{process_ref, Begun, ProcessHistory};
use super::segments::SegmentHistory;
use super::series::Series;
use std::collections::{BTreeMap, VecDeque};
use ullage_attribution::Accountant;
use ullage_model::cgroup::CgroupVersion;
use ullage_model::{
    AgentMessage, At, Attempt, ClockTicks, Ending, Event, EventKind, ExceptionReport, Facts, FilesystemUse,
    Item, KernelOomKill, MachineFacts, Mark, MemoryAt, MemorySummary, Neighbours, ProcessId, ProcessReading,
    Role, RoleMemory, Sample, Source, SourceError,
};

/// Histories kept; beyond it, processes that ended well are forgotten, oldest first.
const MOST_PROCESSES: usize = 2048;
/// Exceptions, kernel lines and budget steps kept of each kind, the first ones, which tell the cause; and marks, the last ones.
const MOST_EVENTS: usize = 256;

/// An exception that the agent reported.
#[derive(Clone, Debug)]
pub struct ExceptionSeen {
    /// When it left.
    pub at: At,
    /// Whose, where that is known.
    pub id: Option<ProcessId>,
    /// Pid of the speaker.
    pub pid: i32,
    /// What it says.
    pub report: ExceptionReport,
}

/// A budget step of `--memory-max`.
#[derive(Clone, Debug)]
pub struct BudgetStep {
    /// When.
    pub at: At,
    /// `warn`, `terminate`, `kill`.
    pub action: String,
    /// Bytes of the tree.
    pub used: u64,
    /// The budget.
    pub budget: u64,
}

/// A data file that was shorter than what a process had mapped of it, when that process was gone.
#[derive(Clone, Debug)]
pub struct ShortFile {
    /// When that was seen.
    pub at: At,
    /// Which process.
    pub id: ProcessId,
    /// The file.
    pub path: String,
    /// Where its mapping ended in the file.
    pub mapped: u64,
    /// Length of the file.
    pub length: u64,
}

/// Everything of a run that diagnosis needs.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub(crate) processes: BTreeMap<ProcessId, ProcessHistory>,
    pub(crate) cgroups: BTreeMap<(bool, String), CgroupHistory>,
    pub(crate) filesystems: BTreeMap<(u8, String, u64), FilesystemHistory>,
    pub(crate) host: HostHistory,
    /// Memory of the job, each shared byte once, over time.
    pub(crate) tree: Series,
    /// The same by group.
    pub(crate) groups: Groups,
    /// Processes of the job over time.
    pub(crate) alive: Series,
    /// Tasks of the job's processes that are not root's, over time.
    pub(crate) tasks: Series,
    pub(crate) segments: SegmentHistory,
    job_totals: JobTotals,
    accountant: Accountant,
    exceptions: Vec<ExceptionSeen>,
    oom_kills: Vec<(At, KernelOomKill)>,
    fork_rejections: Vec<(At, String)>,
    neighbours: Vec<(At, Neighbours)>,
    budget: Vec<BudgetStep>,
    not_seen: Vec<String>,
    /// Bytes of messages that went through arenas, and past them, as their makers said at their end.
    pub(crate) arena: (f64, f64),
    /// A process where loaders use the arena has said so.
    pub(crate) arena_reported: bool,
    /// Bytes of address space that an arena reserves in each process.
    pub(crate) arena_reserved: u64,
    short_files: Vec<ShortFile>,
    marks: VecDeque<Mark>,
    attempts: Vec<Attempt>,
    machine: Option<MachineFacts>,
    /// What the program's Python is made of, as the agent in it said.
    inside: Facts,
    /// Its pid.
    inside_of: i32,
    finished: Option<(At, Vec<ProcessId>)>,
    samples: u64,
    last_alive: Option<At>,
    end: At,
}

impl Timeline {
    /// Reads a source to its end. What was read before an error stays.
    pub fn read(source: &mut dyn Source) -> Result<Timeline, SourceError> {
        let mut timeline = Timeline::default();
        while let Some(item) = source.next_item()? {
            timeline.push(item);
        }
        Ok(timeline)
    }

    /// Adds the next sample or event.
    pub fn push(&mut self, item: Item) {
        match item {
            Item::Sample(sample) => self.push_sample(&sample),
            Item::Event(event) => self.push_event(event),
        }
    }

    /// Adds a sample.
    pub fn push_sample(&mut self, sample: &Sample) {
        let at = sample.at;
        self.end = self.end.max(at);
        self.samples += 1;
        if !sample.processes.is_empty() {
            self.last_alive = Some(at);
        }
        for reading in &sample.processes {
            self.history(reading.id, at).read(at, reading);
        }
        self.count_zombies(at, sample);
        self.count_tasks(at, sample);
        for reading in &sample.cgroups {
            let key = (reading.version == CgroupVersion::V2, reading.path.clone());
            self.cgroups.entry(key).or_insert_with(|| CgroupHistory::new(reading)).read(at, reading);
        }
        for reading in &sample.filesystems {
            // Two mount namespaces of the job may each have a /dev/shm of its own.
            let key = (reading.used_for as u8, reading.path.clone(), reading.device);
            self.filesystems
                .entry(key)
                .or_insert_with(|| FilesystemHistory::new(at, reading))
                .read(at, reading);
        }
        self.host.read(at, &sample.host);
        self.job_totals.read(sample);
        self.segments.read(sample, |id| self.processes.contains_key(&id));
        if let Some(uses) = super::segments::uses(sample, |id| self.processes.contains_key(&id)) {
            self.accountant.segments(&uses);
        }
        let tree = self.accountant.sample(sample);
        self.tree.push(at, tree as f64);
        if tree > 0 {
            self.groups.read(at, self.accountant.now());
            self.alive.push(at, sample.processes.len() as f64);
        }
    }

    /// A zombie that is still one at the next sample was not just about to be reaped.
    fn count_zombies(&mut self, at: At, sample: &Sample) {
        let mut by_parent: BTreeMap<i32, u64> = BTreeMap::new();
        for reading in &sample.processes {
            let lasting = self
                .processes
                .get(&reading.id)
                .and_then(|history| history.zombie_since)
                .is_some_and(|since| at.since(since) > 0.0);
            *by_parent.entry(reading.parent).or_default() += u64::from(lasting);
        }
        for reading in &sample.processes {
            let Some(parent) = self.processes.get_mut(&reading.id) else { continue };
            match by_parent.get(&reading.id.pid) {
                Some(count) => parent.zombies.push(at, *count as f64),
                None if parent.zombies.last().is_some() => parent.zombies.push(at, 0.0),
                None => {}
            }
        }
    }

    fn count_tasks(&mut self, at: At, sample: &Sample) {
        let counts = |reading: &&ProcessReading| {
            self.process(reading.id).and_then(ProcessHistory::uid).is_some_and(|uid| uid != 0)
        };
        let tasks: u64 =
            sample.processes.iter().filter(counts).map(|reading| u64::from(reading.threads)).sum();
        self.tasks.push(at, tasks as f64);
    }

    fn history(&mut self, id: ProcessId, at: At) -> &mut ProcessHistory {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&id) {
            self.forget_one();
        }
        self.processes.entry(id).or_insert_with(|| ProcessHistory::new(id, at))
    }

    fn forget_one(&mut self) {
        let ended = |history: &&ProcessHistory| history.ended.is_some() && history.exceptions == 0;
        let well = |history: &&ProcessHistory| {
            matches!(history.ended, Some((_, Ending::Exited(0) | Ending::NotSeen(_), _)))
        };
        let oldest = |histories: &mut dyn Iterator<Item = &ProcessHistory>| {
            histories.min_by_key(|history| history.last_seen).map(|history| history.id)
        };
        let goes = oldest(&mut self.processes.values().filter(ended).filter(well))
            .or_else(|| oldest(&mut self.processes.values().filter(ended).skip(MOST_EVENTS)));
        if let Some(id) = goes {
            self.processes.remove(&id);
        }
    }

    /// Adds an event.
    pub fn push_event(&mut self, event: Event) {
        let at = event.at;
        self.end = self.end.max(at);
        self.accountant.event(&event);
        match event.what {
            EventKind::Machine { facts } => self.machine = Some(*facts),
            EventKind::ProcessSeen { facts } => {
                let history = self.history(facts.id, at);
                history.limits = facts.limits.known().or(history.limits);
                // A role told by the agent is better than the one seen from outside.
                if history.role == Role::Other || facts.role != Role::Other {
                    history.role = facts.role.clone();
                }
                history.parent = facts.parent;
                history.facts = Some(*facts);
            }
            EventKind::LimitsChanged { id, limits } => self.history(id, at).limits = Some(limits),
            EventKind::RoleKnown { id, role } => self.history(id, at).role = role,
            EventKind::ProcessEnded { id, ending, source } => {
                self.history(id, at).ended = Some((at, ending, source));
            }
            EventKind::Agent { id, pid, message } => {
                if let AgentMessage::Fix { remedy, failed: Some(because) } = &message {
                    self.not_seen
                        .push(format!("The remedy {remedy} was not applied in process {pid}: {because}."));
                }
                if let AgentMessage::Bye { figures, .. } = &message {
                    let figure = |name: &str| figures.get(name).copied().unwrap_or_default();
                    self.arena.0 += figure("arena_copied") + figure("arena_in_place");
                    self.arena.1 += figure("arena_passed_by");
                    self.arena_reported |= figures.contains_key("arena_copied");
                    self.arena_reserved = self.arena_reserved.max(figure("arena_reserved") as u64);
                }
                self.agent_said(at, id, pid, message);
            }
            EventKind::KernelOomKill(kill) if self.oom_kills.len() < MOST_EVENTS => {
                self.oom_kills.push((at, kill))
            }
            EventKind::KernelForkRejected { cgroup } if self.fork_rejections.len() < MOST_EVENTS => {
                self.fork_rejections.push((at, cgroup));
            }
            // The first, to compare with, and the latest.
            EventKind::Neighbours(neighbours) => {
                self.neighbours.truncate(MOST_EVENTS);
                self.neighbours.push((at, neighbours));
            }
            EventKind::Budget { action, used, budget } if self.budget.len() < MOST_EVENTS => {
                self.budget.push(BudgetStep { at, action, used, budget });
            }
            EventKind::MappedFileShort { id, path, mapped, length }
                if self.short_files.len() < MOST_EVENTS =>
            {
                self.short_files.push(ShortFile { at, id, path, mapped, length });
            }
            EventKind::Mark { text, .. } => {
                // A job that dies does so behind the last ones.
                if self.marks.len() == MOST_EVENTS {
                    self.marks.pop_front();
                }
                self.marks.push_back(Mark { at, text });
            }
            EventKind::Attempt { number } if self.attempts.len() < MOST_EVENTS => {
                self.attempts.push(Attempt { at, number });
            }
            EventKind::NotSeen { text }
                if self.not_seen.len() < MOST_EVENTS && !self.not_seen.contains(&text) =>
            {
                self.not_seen.push(text);
            }
            EventKind::Finished { survivors } => self.finished = Some((at, survivors)),
            _ => {}
        }
    }

    fn made_of(&mut self, pid: i32, facts: Facts) {
        // What it has loaded since.
        if pid == self.inside_of {
            return self.inside.extend(facts);
        }
        // A helper program may have spoken first; the one with torch is the one that matters.
        const TORCH: &str = "torch.version";
        if self.inside.is_empty() || (facts.contains_key(TORCH) && !self.inside.contains_key(TORCH)) {
            (self.inside, self.inside_of) = (facts, pid);
        }
    }

    /// What the program's Python is made of, by the names of a snapshot; empty where the agent did not say.
    pub fn inside(&self) -> &Facts {
        &self.inside
    }

    fn agent_said(&mut self, at: At, id: Option<ProcessId>, pid: i32, message: AgentMessage) {
        let id = id.or_else(|| self.by_pid(pid).map(|history| history.id));
        if let Some(id) = id {
            let heard_first = !self.processes.contains_key(&id);
            let history = self.history(id, at);
            history.agent = true;
            history.heard_first |= heard_first;
            match &message {
                AgentMessage::Loader(settings) => history.makes_loader(at, (**settings).clone()),
                AgentMessage::Process { start_method, anonymous, dataset, arguments, .. } => {
                    history.started_by = start_method.clone();
                    let (dataset, arguments) = (*dataset, *arguments);
                    history.begun = Some(Begun { at, anonymous: *anonymous, dataset, arguments });
                }
                AgentMessage::Holds { globals } => history.holds = globals.clone(),
                AgentMessage::Exception(report) => {
                    history.exceptions += 1;
                    // An exception that ends a process is its last message.
                    if matches!(report.left.as_str(), "main" | "process") {
                        history.taken_down = Some(at);
                    }
                    let retained = report.counts.retained_by_iterators;
                    history.retained_by_iterators =
                        retained.map(|retained| (at, retained)).or(history.retained_by_iterators);
                }
                AgentMessage::Hello { python, .. } => {
                    history.python = Some(python.clone());
                    history.taken_down = None;
                }
                AgentMessage::Backlog(backlog) => history.has_backlog(at, backlog),
                AgentMessage::Census(census) => history.counted(at, census),
                AgentMessage::Sites(sites) => history.sites = Some((at, sites.clone())),
                AgentMessage::Memory { figures } => history.memory_readings.add(at, figures),
                AgentMessage::Work { stacks } => history.has_come(at, stacks),
                AgentMessage::TorchCount(count) => history.torch_counters.add_count(at, count),
                AgentMessage::Waiting(waiting) => history.torch_counters.add_waiting(at, waiting),
                AgentMessage::Collective(collective) => history.torch_counters.add_collective(at, collective),
                AgentMessage::Bye { retained_by_iterators, figures } => {
                    history.retained_by_iterators = retained_by_iterators.map(|retained| (at, retained));
                    history.torch_counters.end(at);
                    history.taken_down = Some(at);
                    history.memory_readings.end(figures);
                }
                AgentMessage::Fix { .. } | AgentMessage::Inside { .. } | AgentMessage::Mark { .. } => {}
            }
        }
        if let AgentMessage::Inside { facts } = message {
            return self.made_of(pid, facts);
        }
        if let AgentMessage::Exception(report) = message {
            if self.exceptions.len() < MOST_EVENTS {
                self.exceptions.push(ExceptionSeen { at, id, pid, report: *report });
            }
        }
    }

    /// Memory of the whole tree, with its forked processes under their names.
    pub fn memory(&self) -> MemorySummary {
        let mut memory = self.accountant.summary();
        for cow in &mut memory.copy_on_write {
            if let Some(history) = self.process(cow.process.id) {
                cow.process = process_ref(history);
            }
        }
        let mut by_role: BTreeMap<String, RoleMemory> = BTreeMap::new();
        for (id, bytes) in self.accountant.own_at_peak() {
            let role = self.process(*id).map_or_else(|| Role::Other.kind(), |history| history.role.kind());
            let none = RoleMemory { role: role.clone(), processes: 0, bytes: 0 };
            let of_role = by_role.entry(role).or_insert(none);
            of_role.processes += 1;
            of_role.bytes = of_role.bytes.saturating_add(*bytes);
        }
        memory.by_role = by_role.into_values().collect();
        memory.by_role.sort_by_key(|role| std::cmp::Reverse(role.bytes));
        memory
    }

    /// The tree at the last sample in which it held anything.
    pub fn memory_now(&self) -> &MemoryAt {
        self.accountant.now()
    }

    /// Bytes that the tree holds at a sample that was not pushed yet.
    pub fn tree_bytes(&self, sample: &Sample) -> u64 {
        self.accountant.tree(sample).bytes
    }

    /// The process that had this pid last.
    pub fn by_pid(&self, pid: i32) -> Option<&ProcessHistory> {
        let of = |start| ProcessId { pid, start: ClockTicks(start) };
        self.processes
            .range(of(0)..=of(u64::MAX))
            .map(|(_, history)| history)
            .max_by_key(|history| history.last_seen)
    }

    /// What is known of one process.
    pub fn process(&self, id: ProcessId) -> Option<&ProcessHistory> {
        self.processes.get(&id)
    }

    /// Every process kept, by pid.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessHistory> {
        self.processes.values()
    }

    /// Cgroups of the job and their ancestors.
    pub fn cgroups(&self) -> impl Iterator<Item = &CgroupHistory> {
        self.cgroups.values()
    }

    /// Filesystems used like this.
    pub fn filesystems(&self, used_for: FilesystemUse) -> impl Iterator<Item = &FilesystemHistory> {
        self.filesystems.values().filter(move |history| history.last.used_for == used_for)
    }

    /// The machine's readings.
    pub fn host(&self) -> &HostHistory {
        &self.host
    }

    /// What all processes of the job hold together.
    pub fn job_totals(&self) -> &JobTotals {
        &self.job_totals
    }

    /// Exceptions that the agent reported, in order.
    pub fn exceptions(&self) -> &[ExceptionSeen] {
        &self.exceptions
    }

    /// How processes ended, earliest first.
    pub fn endings(&self) -> Vec<(At, &ProcessHistory, Ending)> {
        let mut endings: Vec<_> = self
            .processes
            .values()
            .filter_map(|history| history.ended.map(|(at, ending, _)| (at, history, ending)))
            .collect();
        endings.sort_by_key(|(at, history, _)| (*at, history.id));
        endings
    }

    /// OOM kills that the kernel log reported.
    pub fn oom_kills(&self) -> &[(At, KernelOomKill)] {
        &self.oom_kills
    }

    /// Cgroups of the job in which the kernel log says that a fork was refused: the log is the whole machine's. Of a job whose
    /// cgroups could not be read, and of one that sees its own as the root, which path is its own is not known.
    pub fn fork_rejections(&self) -> impl Iterator<Item = &(At, String)> {
        self.fork_rejections.iter().filter(|(_, cgroup)| self.may_be_in(cgroup))
    }

    fn may_be_in(&self, refused: &str) -> bool {
        let within = |path: &str| {
            path == "/"
                || path.strip_prefix(refused).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let counts_tasks = |group: &CgroupHistory| group.last.pids.known().is_some();
        self.cgroups.is_empty() || self.cgroups().any(|group| counts_tasks(group) && within(&group.last.path))
    }

    /// Who else had the machine's memory, as it was looked at.
    pub fn neighbours(&self) -> &[(At, Neighbours)] {
        &self.neighbours
    }

    /// Moments that the job marked, the last ones.
    pub fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter()
    }

    /// When torchrun started its workers again.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Steps of the budget.
    pub fn budget(&self) -> &[BudgetStep] {
        &self.budget
    }

    /// A file that this process had mapped more of than it had when that was gone.
    pub fn short_file(&self, id: ProcessId) -> Option<&ShortFile> {
        self.short_files.iter().find(|file| file.id == id)
    }

    /// What could not be seen.
    pub fn not_seen(&self) -> &[String] {
        &self.not_seen
    }

    /// The machine, where the recording carries it as an event.
    pub fn machine(&self) -> Option<&MachineFacts> {
        self.machine.as_ref()
    }

    /// When COMMAND ended, and who was still alive; none where the recording stops before.
    pub fn finished(&self) -> Option<(At, &[ProcessId])> {
        self.finished.as_ref().map(|(at, survivors)| (*at, survivors.as_slice()))
    }

    /// The last moment at which a process of the job was read.
    pub fn last_alive(&self) -> Option<At> {
        self.last_alive
    }

    /// The last moment of anything.
    pub fn end(&self) -> At {
        self.end
    }

    /// Samples pushed.
    pub fn samples(&self) -> u64 {
        self.samples
    }
}
