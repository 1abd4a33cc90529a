//! Samples and events become moments, one after the other.
//!
//! The surprise: mappings and segments are read seldom, so a moment carries the last reading of each; and who killed a
//! process is often told by the kernel's log after it is gone.

use crate::happened::{ending, happened, Happened};
use crate::state::{Exit, Identity, JobState, Judged, Level, Memory, Process, SharedSegment, Used};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use ullage_diagnosis::Timeline;
use ullage_model::{
    At, Bytes, Event, EventKind, Growth, KernelOomKill, LimitKind, LimitState, Maker, Measured, MemoryAt,
    ProcessId, ProcessReading, ProcessState, Role, RunFacts, Sample, Scope, Segment,
};

/// Seconds that a process which exited stays: long enough to be seen by whoever looks once a minute.
const EXITED_STAY_S: f64 = 60.0;
/// Readings behind the speed of growth: those of a minute.
const SPEED_OVER_S: f64 = 60.0;
/// Limits and segments that a moment carries: more fill no screen, and a day has many moments.
const MOST_LIMITS: usize = 40;
const MOST_SEGMENTS: usize = 100;
/// Readings of a process's line.
const LINE: usize = 8;
/// Clock ticks a second, where the machine did not say: USER_HZ of every Linux here.
const CLOCK_TICKS: u64 = 100;

/// What is carried from one sample to the next.
#[derive(Clone, Debug, Default)]
struct Known {
    identity: Option<Arc<Identity>>,
    cpu: Option<(At, u64)>,
    cpu_share: Option<f64>,
    used: Used,
    line: Line,
    last: Option<Process>,
}

/// Private memory at eight moments of a process's life, as far apart as its age asks for.
#[derive(Clone, Debug, Default)]
struct Line {
    points: Vec<u64>,
    stride: u32,
    passed: u32,
    most_since: u64,
}

impl Line {
    fn push(&mut self, bytes: u64) {
        self.stride = self.stride.max(1);
        self.passed += 1;
        self.most_since = self.most_since.max(bytes);
        if self.passed < self.stride {
            return;
        }
        self.points.push(std::mem::take(&mut self.most_since));
        self.passed = 0;
        if self.points.len() >= 2 * LINE {
            // Of two neighbours the larger: a peak of one reading stays.
            self.points = self.points.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
            self.stride = self.stride.saturating_mul(2);
        }
    }

    fn levels(&self) -> [Level; LINE] {
        let mut levels = [0; LINE];
        let shown = &self.points[self.points.len().saturating_sub(LINE)..];
        let most = shown.iter().copied().max().unwrap_or(0).max(1);
        let blank = LINE - shown.len();
        for (level, bytes) in levels[blank..].iter_mut().zip(shown) {
            // At least one eighth for what holds anything.
            *level = (u128::from(*bytes) * 8 / u128::from(most)) as Level;
            *level = (*level).max(u8::from(*bytes > 0));
        }
        levels
    }
}

/// Turns what is read of a run into moments.
#[derive(Clone, Debug)]
pub struct Derivation {
    clock_ticks: u64,
    known: HashMap<ProcessId, Known>,
    exited: BTreeMap<ProcessId, (Process, Arc<Exit>)>,
    oom_kills: Vec<KernelOomKill>,
    total: VecDeque<(At, u64)>,
    mappings: HashMap<ProcessId, u64>,
    segments: Option<Arc<Vec<SharedSegment>>>,
    first_stall: Option<u64>,
    limits: Arc<Vec<LimitState>>,
    growth: Option<Arc<Growth>>,
    restarts: Option<u32>,
    used: BTreeMap<String, Used>,
    findings: Arc<Vec<Judged>>,
}

impl Derivation {
    /// Of this run, of which nothing was read.
    pub fn new(run: &RunFacts) -> Derivation {
        let clock_ticks = match run.machine.clock_ticks_per_second {
            0 => CLOCK_TICKS,
            ticks => ticks,
        };
        Derivation {
            clock_ticks,
            known: HashMap::new(),
            exited: BTreeMap::new(),
            oom_kills: Vec::new(),
            total: VecDeque::new(),
            mappings: HashMap::new(),
            segments: None,
            first_stall: None,
            limits: Arc::new(Vec::new()),
            growth: None,
            restarts: None,
            used: BTreeMap::new(),
            findings: Arc::new(Vec::new()),
        }
    }

    /// Limits, the nearest first, as they were judged just now: moments carry them until the next time.
    pub fn limits(&mut self, mut limits: Vec<LimitState>) {
        limits.retain(|state| state.limit.as_known().is_some_and(|limit| limit.at().is_some()));
        // A hundred workers that near theirs do not push /dev/shm out.
        let (mut listed, mut groups) = (0, HashSet::new());
        limits.retain(|state| {
            listed += 1;
            groups.insert(group(state)) || listed <= MOST_LIMITS
        });
        self.limits = Arc::new(limits);
    }

    /// The kind of growth, as it was judged just now.
    pub fn growth(&mut self, growth: Option<Growth>) {
        self.growth = growth.map(Arc::new);
    }

    /// The findings, as they were judged just now.
    pub fn findings(&mut self, mut findings: Vec<Judged>) {
        findings.sort();
        findings.dedup();
        self.findings = Arc::new(findings);
    }

    /// Takes an event in that the timeline already has; some where a person looks for such a one.
    pub fn event(&mut self, event: &Event, timeline: &Timeline) -> Option<Happened> {
        let mut how = None;
        match &event.what {
            EventKind::KernelOomKill(kill) => {
                self.oom_kills.push(kill.clone());
                // It may be told after the process is gone.
                for (process, exit) in self.exited.values_mut() {
                    if process.identity.id.pid == kill.pid && exit.failed {
                        let how = ending(ullage_model::Ending::Signaled(9), Some(kill));
                        *exit = Arc::new(Exit { how, ..Exit::clone(exit) });
                    }
                }
            }
            EventKind::ProcessEnded { id, ending: end, .. } => {
                let oom = self.oom_kills.iter().rev().find(|kill| kill.pid == id.pid);
                let text = ending(*end, oom);
                let failed =
                    !matches!(end, ullage_model::Ending::Exited(0) | ullage_model::Ending::NotSeen(_));
                let exit = Arc::new(Exit { at: event.at, how: text.clone(), failed });
                how = Some(text);
                self.mappings.remove(id);
                if let Some(last) = self.known.remove(id).and_then(|known| known.last) {
                    self.exited.insert(*id, (last, exit));
                }
            }
            EventKind::RoleKnown { id, .. } => {
                if let Some(known) = self.known.get_mut(id) {
                    known.identity = None;
                }
            }
            EventKind::ProcessSeen { facts } => {
                if let Some(known) = self.known.get_mut(&facts.id) {
                    known.identity = None;
                }
            }
            EventKind::Attempt { number } => self.restarts = Some(*number),
            _ => {}
        }
        let name = |pid: i32| {
            let role = timeline.by_pid(pid).map_or(Role::Other, |process| process.role.clone());
            format!("{} {pid}", role.label())
        };
        happened(event, name, how)
    }

    /// The moment of a sample that the timeline already has.
    pub fn sample(&mut self, sample: &Sample, timeline: &Timeline) -> JobState {
        let at = sample.at;
        let now = timeline.memory_now();
        let own: HashMap<ProcessId, u64> =
            if now.at == at { now.own.iter().copied().collect() } else { HashMap::new() };
        self.forget(at, sample);
        let mut processes: Vec<Process> =
            sample.processes.iter().filter_map(|reading| self.process(at, reading, &own, timeline)).collect();
        processes.extend(self.exited.values().map(|(process, exit)| {
            let exited = Some(Arc::clone(exit));
            Process { exited, cpu_share: None, ..process.clone() }
        }));
        if let Measured::Known(segments) = &sample.segments {
            self.segments = Some(Arc::new(shared_segments(segments)));
        }
        let stall = sample.host.memory_stall_full_us.known();
        let since = stall.map(|now| *self.first_stall.get_or_insert(now));
        self.total.push_back((at, now.bytes));
        while self.total.len() > 2
            && self.total.front().is_some_and(|(then, _)| at.since(*then) > SPEED_OVER_S)
        {
            self.total.pop_front();
        }
        JobState {
            at,
            memory: memory(now),
            bytes_per_second: speed(&self.total),
            processes: in_a_tree(processes),
            limits: Arc::clone(&self.limits),
            growth: self.growth.clone(),
            segments: self.segments.clone(),
            stall_s: stall.zip(since).map(|(now, first)| now.saturating_sub(first) as f64 / 1e6),
            oom_kills: self.oom_kills.len() as u64,
            restarts: self.restarts,
            used: self.used.clone(),
            findings: Arc::clone(&self.findings),
            cost: sample.cost,
        }
    }

    /// Lets go of those that exited a minute ago, and of those that left without an event.
    fn forget(&mut self, at: At, sample: &Sample) {
        self.exited.retain(|_, (_, exit)| at.since(exit.at) <= EXITED_STAY_S);
        if self.known.len() > 2 * sample.processes.len() + LINE {
            let there: HashSet<ProcessId> = sample.processes.iter().map(|process| process.id).collect();
            self.known.retain(|id, _| there.contains(id));
            self.mappings.retain(|id, _| there.contains(id));
        }
    }

    fn process(
        &mut self,
        at: At,
        reading: &ProcessReading,
        own: &HashMap<ProcessId, u64>,
        timeline: &Timeline,
    ) -> Option<Process> {
        // A zombie that was told to have exited stands among the exited.
        if self.exited.contains_key(&reading.id) {
            return None;
        }
        let known = self.known.entry(reading.id).or_default();
        let history = timeline.process(reading.id);
        let is_new = known.identity.as_ref().is_none_or(|identity| identity.name != reading.comm);
        if is_new {
            let facts = history.and_then(|history| history.facts.as_ref());
            known.identity = Some(Arc::new(Identity {
                id: reading.id,
                role: history.map_or(Role::Other, |history| history.role.clone()),
                name: reading.comm.clone(),
                command: facts.map(|facts| facts.command_line.clone()).unwrap_or_default(),
            }));
        }
        let identity = Arc::clone(known.identity.as_ref()?);
        let memory = reading.memory.as_known();
        let private = memory.map(|memory| own.get(&reading.id).copied().unwrap_or(memory.anonymous.0));
        if let Some(bytes) = private {
            known.line.push(bytes);
        }
        let ticks = reading.cpu.0;
        if let Some((then, before)) = known.cpu {
            let seconds = at.since(then);
            if seconds > 0.0 {
                known.cpu_share =
                    Some(ticks.saturating_sub(before) as f64 / self.clock_ticks as f64 / seconds);
            }
        }
        known.cpu = Some((at, ticks));
        let cpu_s = ticks as f64 / self.clock_ticks as f64;
        let used = Used { cpu_s, major_faults: reading.major_faults };
        let before = std::mem::replace(&mut known.used, used);
        let of_role = self.used.entry(identity.role.kind()).or_default();
        of_role.cpu_s += (used.cpu_s - before.cpu_s).max(0.0);
        of_role.major_faults += used.major_faults.saturating_sub(before.major_faults);
        if let Measured::Known(mappings) = &reading.mappings {
            self.mappings.insert(reading.id, mappings.count);
        }
        let process = Process {
            identity,
            parent: reading.parent,
            depth: 0,
            private,
            shared: memory.map(|memory| memory.shared.0),
            swap: memory.map(|memory| memory.swap.0),
            descriptors: reading.descriptors.as_known().map(|descriptors| descriptors.count),
            mappings: self.mappings.get(&reading.id).copied(),
            cpu_s,
            cpu_share: known.cpu_share,
            line: known.line.levels(),
            exited: None,
        };
        // Of a zombie the sizes are gone: what is shown of the exited is from when it lived.
        if reading.state != ProcessState::Zombie || known.last.is_none() {
            known.last = Some(process.clone());
        }
        Some(process)
    }
}

/// Limits of one kind that one thing has, or the processes of one role.
pub(crate) fn group(state: &LimitState) -> (LimitKind, String) {
    let scope = match &state.scope {
        Scope::Process(_, role) => role.kind(),
        scope => scope.to_string(),
    };
    (state.kind, scope)
}

fn memory(now: &MemoryAt) -> Memory {
    let sorted = |of: &BTreeMap<String, u64>| {
        let mut list: Vec<(String, u64)> =
            of.iter().filter(|(_, bytes)| **bytes > 0).map(|(name, bytes)| (name.clone(), *bytes)).collect();
        list.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        list
    };
    Memory {
        bytes: now.bytes,
        error_bytes: now.error_bytes,
        categories: sorted(&now.categories),
        beside: sorted(&now.beside),
    }
}

/// Theil's incomplete method: the median slope of each reading and the one half a minute later, so that a spike of one
/// reading is no growth. None for less than ten seconds.
fn speed(total: &VecDeque<(At, u64)>) -> Option<f64> {
    const LEAST_S: f64 = 10.0;
    if total.back()?.0.since(total.front()?.0) < LEAST_S {
        return None;
    }
    let half = total.len().div_ceil(2);
    let slope = |((from, before), (to, after)): (&(At, u64), &(At, u64))| {
        let seconds = to.since(*from);
        (seconds > 0.0).then(|| (*after as f64 - *before as f64) / seconds)
    };
    let mut slopes: Vec<f64> = total.iter().zip(total.iter().skip(half)).filter_map(slope).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

/// Parents before their children, which stand one deeper; brothers and sisters by role, then by pid.
fn in_a_tree(processes: Vec<Process>) -> Vec<Process> {
    let pids: HashSet<i32> = processes.iter().map(|process| process.identity.id.pid).collect();
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    const ROOT: i32 = 0;
    for process in processes {
        let own = process.identity.id.pid;
        let parent =
            if pids.contains(&process.parent) && process.parent != own { process.parent } else { ROOT };
        children.entry(parent).or_default().push(process);
    }
    for list in children.values_mut() {
        list.sort_by_key(|process| {
            let identity = &process.identity;
            (identity.role.kind(), identity.index(), identity.id.pid, identity.id.start)
        });
    }
    let mut ordered = Vec::new();
    let mut open: Vec<Process> = children.remove(&ROOT).unwrap_or_default().into_iter().rev().collect();
    loop {
        while let Some(process) = open.pop() {
            let (pid, depth) = (process.identity.id.pid, process.depth);
            ordered.push(process);
            for mut child in children.remove(&pid).unwrap_or_default().into_iter().rev() {
                child.depth = depth.saturating_add(1);
                open.push(child);
            }
        }
        // A circle of parents: a pid was used again.
        let Some(pid) = children.keys().min().copied() else { break };
        open.extend(children.remove(&pid).unwrap_or_default().into_iter().rev());
    }
    ordered
}

fn shared_segments(segments: &[Segment]) -> Vec<SharedSegment> {
    let mut shared: Vec<SharedSegment> = segments
        .iter()
        .map(|segment| SharedSegment {
            kind: segment.kind,
            name: segment.name.clone(),
            count: segment.count,
            bytes: match segment.allocated {
                Measured::Known(Bytes(bytes)) => bytes,
                Measured::Missing(_) => segment.size.0,
            },
            creator: segment.creator.as_known().map(|creator| match creator.maker {
                Maker::Process(id) => id.pid,
                Maker::Gone(pid) => pid,
            }),
            mappers: segment.mappers.len(),
            unused: segment.unused(),
        })
        .collect();
    shared.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    shared.truncate(MOST_SEGMENTS);
    shared
}

#[cfg(test)]
#[path = "derivation_tests.rs"]
mod tests;
