//! Which processes are shown, in which order, with which sums? The tree with the sum of each subtree, or a list.

use std::collections::HashSet;
use ullage_job_state::{JobState, Process};
use ullage_model::ProcessId;

/// In which order processes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As a tree, with sums of subtrees.
    #[default]
    Tree,
    /// By private memory, the largest first.
    Private,
    /// By shared pages.
    Shared,
    /// By descriptors.
    Files,
    /// By mappings.
    Mappings,
    /// By CPU.
    Cpu,
}

impl Sort {
    /// The next one.
    pub(crate) fn next(self) -> Sort {
        match self {
            Sort::Tree => Sort::Private,
            Sort::Private => Sort::Shared,
            Sort::Shared => Sort::Files,
            Sort::Files => Sort::Mappings,
            Sort::Mappings => Sort::Cpu,
            Sort::Cpu => Sort::Tree,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Tree => "tree",
            Sort::Private => "private memory",
            Sort::Shared => "shared memory",
            Sort::Files => "open files",
            Sort::Mappings => "mappings",
            Sort::Cpu => "CPU",
        }
    }
}

/// Figures of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) private: Option<u64>,
    /// Of a subtree the largest: its processes mostly share the same pages.
    pub(crate) shared: Option<u64>,
    pub(crate) swap: Option<u64>,
    pub(crate) files: Option<u64>,
    pub(crate) mappings: Option<u64>,
    pub(crate) cpu: Option<f64>,
}

/// One line of the list.
pub(crate) struct Row<'a> {
    pub(crate) process: &'a Process,
    /// Branches of the tree before its name.
    pub(crate) branch: String,
    pub(crate) figures: Figures,
    /// Processes below it that are not shown.
    pub(crate) folded: usize,
}

/// The rows of a moment.
pub(crate) fn rows<'a>(
    state: &'a JobState,
    sort: Sort,
    filter: &str,
    folded: &HashSet<ProcessId>,
) -> Vec<Row<'a>> {
    let wanted = |process: &Process| filter.is_empty() || matches(process, filter);
    if sort == Sort::Tree && filter.is_empty() {
        return tree(&state.processes, folded);
    }
    let mut rows: Vec<Row<'a>> = state
        .processes
        .iter()
        .filter(|process| wanted(process))
        .map(|process| Row { process, branch: String::new(), figures: own(process), folded: 0 })
        .collect();
    let key = |row: &Row<'_>| match sort {
        Sort::Tree => None,
        Sort::Private => row.figures.private.map(|bytes| bytes as f64),
        Sort::Shared => row.figures.shared.map(|bytes| bytes as f64),
        Sort::Files => row.figures.files.map(|count| count as f64),
        Sort::Mappings => row.figures.mappings.map(|count| count as f64),
        Sort::Cpu => row.figures.cpu,
    };
    if sort != Sort::Tree {
        rows.sort_by(|a, b| key(b).unwrap_or(-1.0).total_cmp(&key(a).unwrap_or(-1.0)));
    }
    rows
}

fn matches(process: &Process, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    let identity = &process.identity;
    has(&identity.role.label())
        || has(&identity.name)
        || identity.id.pid.to_string().contains(&filter)
        || identity.command.iter().any(|word| has(word))
}

fn own(process: &Process) -> Figures {
    // Of the exited the last figures stand in its own row, and count in no sum.
    Figures {
        private: process.private,
        shared: process.shared,
        swap: process.swap,
        files: process.descriptors,
        mappings: process.mappings,
        cpu: process.cpu_share,
    }
}

fn add(sum: &mut Figures, process: &Process) {
    let plus = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    let more = own(process);
    sum.private = plus(sum.private, more.private);
    sum.shared = sum.shared.max(more.shared);
    sum.swap = plus(sum.swap, more.swap);
    sum.files = plus(sum.files, more.files);
    sum.mappings = plus(sum.mappings, more.mappings);
    sum.cpu = match (sum.cpu, more.cpu) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
}

/// `processes` stand with parents before their children, which are one deeper.
fn tree<'a>(processes: &'a [Process], folded: &HashSet<ProcessId>) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut skip_below: Option<u16> = None;
    for (place, process) in processes.iter().enumerate() {
        if skip_below.is_some_and(|depth| process.depth > depth) {
            continue;
        }
        skip_below = None;
        let below = processes[place + 1..].iter().take_while(|other| other.depth > process.depth);
        let mut figures = own(process);
        let mut count = 0;
        for child in below {
            count += 1;
            if child.exited.is_none() {
                add(&mut figures, child);
            }
        }
        let is_folded = folded.contains(&process.identity.id) && count > 0;
        if is_folded {
            skip_below = Some(process.depth);
        }
        let mut branch = branch(processes, place);
        branch.push_str(match (count > 0, is_folded) {
            (true, true) => "▸ ",
            (true, false) => "▾ ",
            (false, _) if process.depth == 0 => "  ",
            (false, _) => "",
        });
        rows.push(Row { process, branch, figures, folded: if is_folded { count } else { 0 } });
    }
    rows
}

/// `│ └─ ` for a last child of an earlier child.
fn branch(processes: &[Process], place: usize) -> String {
    /// A chain of a hundred shells would leave no room for a name.
    const DEEPEST: u16 = 8;
    let depth = processes[place].depth;
    let last_at = |depth: u16| {
        let after = processes[place + 1..].iter().find(|other| other.depth <= depth);
        after.is_none_or(|other| other.depth < depth)
    };
    let mut branch = String::new();
    for level in 1..=depth.min(DEEPEST) {
        let last = last_at(level);
        branch.push_str(match (level == depth.min(DEEPEST), last) {
            (true, true) => "└ ",
            (true, false) => "├ ",
            (false, true) => "  ",
            (false, false) => "│ ",
        });
    }
    branch
}
