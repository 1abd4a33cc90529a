//! What did a job meet, and how near did it come? Limits, groups and settings as its own processes had them (a
//! launcher in between may have changed those that ullage was given), and the most that was used of each.

use crate::history::Timeline;
use std::collections::BTreeMap;
use ullage_model::{
    cgroup_facts, filesystem_facts, At, Bytes, CgroupReading, CountsAtFailure, Fact, Facts,
    FilesystemReading, FilesystemUse, Limit, LoaderSettings, ResourceLimits, RunFacts,
};

/// Facts and figures of one run, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedPeaks {
    /// By the names of a snapshot, and `job.…` beside them.
    pub facts: Facts,
    /// The most that was seen: `descriptors`, `mappings`, `memory`, …
    pub peaks: BTreeMap<String, f64>,
}

/// Of a run that was read to its end.
pub fn observed_peaks(run: &RunFacts, timeline: &Timeline) -> ObservedPeaks {
    let mut facts = run.machine.by_name();
    for (name, value) in &run.environment {
        facts.insert(format!("env.{name}"), value.as_str().into());
    }
    // The agent speaks from inside the job: its word on variables and cores is the later one. A variable that the job
    // does not have any more is gone there too.
    if !timeline.inside().is_empty() {
        facts.retain(|name, _| !name.starts_with("env."));
    }
    facts.extend(timeline.inside().clone());
    of_processes(timeline, &mut facts);
    of_groups(timeline, &mut facts);
    of_filesystems(timeline, &mut facts);
    of_job(run, timeline, &mut facts);
    ObservedPeaks { facts, peaks: peaks(timeline) }
}

type OneLimit = (&'static str, fn(&ResourceLimits) -> Limit);

const LIMITS: [OneLimit; 7] = [
    ("nofile.soft", |limits| limits.open_files),
    ("nofile.hard", |limits| limits.open_files_hard),
    ("as.soft", |limits| limits.address_space),
    ("nproc.soft", |limits| limits.processes),
    ("memlock.soft", |limits| limits.locked_memory),
    ("stack.soft", |limits| limits.stack),
    ("fsize.soft", |limits| limits.file_size),
];

fn of_processes(timeline: &Timeline, facts: &mut Facts) {
    for (name, limit) in LIMITS {
        let of_job = timeline.processes().filter_map(|process| process.limits.as_ref().map(limit));
        if let Some(tightest) = of_job.reduce(Limit::tighter) {
            facts.insert(format!("limit.{name}"), tightest.into());
        }
    }
}

fn of_groups(timeline: &Timeline, facts: &mut Facts) {
    let mut groups: Vec<CgroupReading> = timeline.cgroups().map(|group| group.last.clone()).collect();
    if groups.is_empty() {
        return;
    }
    // Own group first, as a snapshot has them.
    groups.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then(a.path.cmp(&b.path)));
    // All but which versions there are: those were ullage's own groups.
    facts.retain(|name, _| {
        !name.starts_with("cgroup.") || ["cgroup.layout", "cgroup.v2_memory"].contains(&name.as_str())
    });
    cgroup_facts(&groups, facts);
}

fn of_filesystems(timeline: &Timeline, facts: &mut Facts) {
    for (name, used_for) in [("shm", FilesystemUse::Shm), ("tmp", FilesystemUse::Temporary)] {
        // Several, where a process of the job has mounts of its own: the smallest is met first.
        let size = |reading: &FilesystemReading| (reading.size.at().unwrap_or(u64::MAX), reading.inodes.at());
        if let Some(one) =
            timeline.filesystems(used_for).map(|history| &history.last).min_by_key(|one| size(one))
        {
            filesystem_facts(name, one, facts);
        }
    }
}

fn of_job(run: &RunFacts, timeline: &Timeline, facts: &mut Facts) {
    let mut set = |name: &str, fact: Fact| facts.insert(format!("job.{name}"), fact);
    if let Some(budget) = run.memory_max {
        set("memory_max", budget.into());
    }
    if !run.remedies.is_empty() {
        set("fixes", run.remedies.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into());
    }
    let loader = timeline
        .processes()
        .filter_map(|process| process.heaviest.as_ref())
        .max_by_key(|loader| loader.workers);
    let mut methods: Vec<&str> =
        timeline.processes().filter_map(|process| process.started_by.as_deref()).collect();
    methods
        .extend(loader.filter(|loader| loader.workers > 0).and_then(|loader| loader.start_method.as_deref()));
    methods.sort_unstable();
    methods.dedup();
    if !methods.is_empty() {
        set("start_method", methods.join(", ").into());
    }
    if let Some(LoaderSettings {
        workers,
        sharing_strategy,
        batch_size,
        prefetch_factor,
        pin_memory,
        persistent_workers,
        ..
    }) = loader
    {
        set("workers", u64::from(*workers).into());
        set("pin_memory", (*pin_memory).into());
        set("persistent_workers", (*persistent_workers).into());
        let counts = [("batch_size", batch_size), ("prefetch_factor", prefetch_factor)];
        for (name, count) in counts {
            if let Some(count) = count {
                set(name, (*count).into());
            }
        }
        if let Some(strategy) = sharing_strategy {
            set("sharing_strategy", strategy.as_str().into());
        }
    }
    let failed = timeline.exceptions().iter().find_map(|seen| seen.report.sharing_strategy.as_deref());
    if let (None, Some(strategy)) = (loader, failed) {
        set("sharing_strategy", strategy.into());
    }
}

fn peaks(timeline: &Timeline) -> BTreeMap<String, f64> {
    let mut peaks = BTreeMap::new();
    let mut most = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            let peak = peaks.entry(name.to_owned()).or_insert(value);
            *peak = f64::max(*peak, value);
        }
    };
    let mut threads = 0.0;
    for process in timeline.processes() {
        let of = |series: &crate::history::Series| series.peak().map(|(_, value)| value);
        most("descriptors", of(&process.descriptors));
        most("mappings", of(&process.mapping_count));
        most("address_space", of(&process.virtual_size));
        most("locked", of(&process.locked));
        most("threads", of(&process.threads));
        threads += of(&process.threads).unwrap_or(0.0);
    }
    most("tasks", (threads > 0.0).then_some(threads));
    most("processes", Some(timeline.processes().count() as f64));
    most("memory", timeline.tree.peak().map(|(_, value)| value));
    // Two runs may need the same at their height, and only one give it back.
    if let Some(end) = timeline.last_alive() {
        let late = timeline.tree.peak_between(At(end.0 / 4 * 3), end);
        most("memory_late", late.map(|(_, value)| value));
    }
    for seen in timeline.exceptions() {
        let CountsAtFailure { fds, mappings, virtual_size, shm_used, shm_inodes_used, committed, .. } =
            &seen.report.counts;
        let counted = [
            ("descriptors", fds),
            ("mappings", mappings),
            ("address_space", virtual_size),
            ("shm_bytes", shm_used),
            ("shm_inodes", shm_inodes_used),
            ("committed", committed),
        ];
        for (name, count) in counted {
            most(name, count.map(|count| count as f64));
        }
    }
    for history in timeline.filesystems(FilesystemUse::Shm) {
        most("shm_bytes", history.used.peak().map(|(_, value)| value));
        most("shm_inodes", history.inodes.peak().map(|(_, value)| value));
    }
    for history in timeline.filesystems(FilesystemUse::Temporary) {
        most("tmp_bytes", history.used.peak().map(|(_, value)| value));
    }
    for group in timeline.cgroups() {
        // Only what is limited: the group of the whole machine counts what is not the job's.
        let memory = group.last.memory.as_known().filter(|memory| memory.limit != Limit::Unlimited);
        most("cgroup_memory", memory.and_then(|_| group.memory.peak()).map(|(_, value)| value));
        let pids = group.last.pids.as_known().filter(|pids| pids.limit != Limit::Unlimited);
        most("cgroup_tasks", pids.and_then(|_| group.tasks.peak()).map(|(_, value)| value));
    }
    let host = timeline.host();
    most("committed", host.committed.peak().map(|(_, value)| value));
    most("host_memory", host.used.peak().map(|(_, value)| value));
    if let Some(Bytes(limit)) = host.last.memory.as_known().map(|memory| memory.commit_limit) {
        most("commit_limit", Some(limit as f64));
    }
    most("seconds", timeline.last_alive().map(|at| at.seconds()));
    peaks
}
