//! What went on over time, in bounded room: memory by category, private memory by role, counts, and what happened when.

use std::collections::BTreeMap;
use ullage_job_state::Thinned;
use ullage_model::{
    AgentMessage, At, Attempt, Ending, Event, EventKind, FilesystemUse, MemoryAt, ProcessId, Sample,
};
use ullage_report::format;

/// Stretches of time of the large plot, of a small one, and of a role's line.
const MEMORY_STRETCHES: usize = 1200;
const COUNT_STRETCHES: usize = 300;
const ROLE_STRETCHES: usize = 60;
/// What happened is listed up to here: the first ones tell the cause.
const MOST_FLAGS: usize = 100;
const MOST_MARKS: usize = 50;

/// Something that happened at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) at: At,
    pub(crate) text: String,
}

/// A figure beside memory, over time.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) series: Thinned<()>,
}

/// Collects a run's samples and events for its page.
#[derive(Clone, Debug)]
pub struct Curves {
    pub(crate) memory: Thinned<BTreeMap<String, u64>>,
    pub(crate) roles: BTreeMap<String, Thinned<u64>>,
    pub(crate) counts: Vec<Count>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) more_flags: u64,
    marks: usize,
}

impl Default for Curves {
    fn default() -> Self {
        let count = |title, unit| Count { title, unit, series: Thinned::new(COUNT_STRETCHES) };
        Curves {
            memory: Thinned::new(MEMORY_STRETCHES),
            roles: BTreeMap::new(),
            counts: vec![
                count("Processes of the job", "processes"),
                count("Mappings of the process that has most", "mappings"),
                count("Descriptors of the process that has most", "descriptors"),
                count("/dev/shm in use, by everybody", "bytes"),
                count("Swapped out", "bytes"),
            ],
            flags: Vec::new(),
            more_flags: 0,
            marks: 0,
        }
    }
}

impl Curves {
    /// Adds a tick, what the job held at it, and of each process its role without a number.
    pub fn sample(&mut self, sample: &Sample, memory: &MemoryAt, role: impl Fn(ProcessId) -> String) {
        let at = sample.at;
        // Between processes, and before the first one, there is nothing to draw.
        if sample.processes.is_empty() || memory.bytes == 0 || memory.at != at {
            return;
        }
        self.memory.push(at, memory.bytes, memory.categories.clone());
        let mut roles: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (id, bytes) in &memory.own {
            let of_role = roles.entry(role(*id)).or_default();
            *of_role = (of_role.0.saturating_add(*bytes), of_role.1 + 1);
        }
        for (name, (bytes, processes)) in roles {
            let series = self.roles.entry(name).or_insert_with(|| Thinned::new(ROLE_STRETCHES));
            series.push(at, bytes, processes);
        }
        for (count, value) in self.counts.iter_mut().zip(counts(sample)) {
            if let Some(value) = value {
                count.series.push(at, value, ());
            }
        }
    }

    /// Adds an event, where it is one that a person who looks at the plot asks for.
    pub fn event(&mut self, event: &Event) {
        let text = match &event.what {
            EventKind::ProcessEnded { id, ending: Ending::Signaled(signal), .. } => {
                format!("process {} ended by {}", id.pid, format::signal(*signal))
            }
            EventKind::ProcessEnded { id, ending: Ending::Exited(code), .. } if *code != 0 => {
                format!("process {} ended with exit status {code}", id.pid)
            }
            EventKind::Agent { pid, message: AgentMessage::Exception(report), .. } => {
                format!("exception in process {pid}: {}", report.type_name)
            }
            EventKind::KernelOomKill(kill) => {
                format!("the kernel killed {} ({}) for lack of memory", kill.pid, kill.task)
            }
            EventKind::Attempt { number } => Attempt::sentence(*number),
            EventKind::Mark { text, .. } => {
                // Those of a long training leave room for what failed.
                self.marks += 1;
                if self.marks > MOST_MARKS {
                    self.more_flags += 1;
                    return;
                }
                format!("mark: {text}")
            }
            EventKind::Budget { action, .. } => format!("--memory-max: {action}"),
            _ => return,
        };
        self.flag(event.at, text);
    }

    pub(crate) fn flag(&mut self, at: At, text: String) {
        if self.flags.len() < MOST_FLAGS {
            self.flags.push(Flag { at, text: format::clean(&text) });
        } else {
            self.more_flags += 1;
        }
    }
}

/// In the order of `Curves::counts`; none where nothing could be read.
fn counts(sample: &Sample) -> [Option<u64>; 5] {
    let mappings = sample.processes.iter().filter_map(|p| p.mappings.as_known());
    let descriptors = sample.processes.iter().filter_map(|p| p.descriptors.as_known());
    let swap: Vec<u64> =
        sample.processes.iter().filter_map(|p| p.memory.as_known().map(|memory| memory.swap.0)).collect();
    let shm = sample.filesystems.iter().filter(|reading| reading.used_for == FilesystemUse::Shm);
    [
        Some(sample.processes.len() as u64),
        mappings.map(|mappings| mappings.count).max(),
        descriptors.map(|descriptors| descriptors.count).max(),
        shm.map(|reading| reading.used.0).max(),
        (!swap.is_empty()).then(|| swap.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))),
    ]
}
