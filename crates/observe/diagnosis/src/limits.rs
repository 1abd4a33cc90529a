//! Every limit that the job can meet: used, allowed, growth, and which is met first. Pure.
//!
//! Of many processes only the one nearest to a limit is listed for it. The surprise: what a failing process
//! counted in itself replaces the last reading, because the sampler may have looked a second earlier.

use crate::history::{CgroupHistory, ProcessHistory};
use crate::rule::Case;
use crate::series::Series;
use crate::timeline::Timeline;
use ullage_model::{FilesystemUse, Limit, LimitState, Measured, ResourceLimits, RunFacts};

/// The limits at the end of what was seen, first met first; those without an end last.
pub fn limits(run: &RunFacts, timeline: &Timeline) -> Vec<LimitState> {
    let case = Case::new(run, timeline);
    let mut states = Vec::new();
    per_process(&case, &mut states);
    tasks_of_user(&case, &mut states);
    for group in timeline.cgroups() {
        of_cgroup(group, &mut states);
    }
    of_host(&case, &mut states);
    of_filesystems(timeline, &mut states);
    states.sort_by(|a, b| {
        let left = |state: &LimitState| state.time_left_s.unwrap_or(f64::INFINITY);
        left(a)
            .total_cmp(&left(b))
            .then(share(b).total_cmp(&share(a)))
            .then(a.name.cmp(&b.name))
            .then(a.scope.cmp(&b.scope))
    });
    states
}

fn share(state: &LimitState) -> f64 {
    match (state.used.as_known(), state.limit.as_known().and_then(|limit| limit.at())) {
        (Some(used), Some(limit)) if limit > 0 => *used as f64 / limit as f64,
        (Some(used), Some(_)) if *used > 0 => 1.0,
        _ => -1.0,
    }
}

fn state(
    name: &str,
    scope: String,
    unit: &str,
    used: Option<u64>,
    limit: Measured<Limit>,
    series: Option<&Series>,
) -> LimitState {
    let slope = series.and_then(Series::steady_growth);
    let headroom = limit
        .as_known()
        .and_then(|limit| limit.at())
        .zip(used)
        .map(|(limit, used)| limit.saturating_sub(used));
    let time_left_s = match headroom {
        Some(0) if limit != Measured::Known(Limit::At(0)) => Some(0.0),
        Some(room) => slope.map(|slope| room as f64 / slope),
        None => None,
    };
    LimitState {
        name: name.into(),
        scope,
        used: used.into(),
        limit,
        unit: unit.into(),
        slope_per_s: slope,
        time_left_s,
    }
}

fn per_process(case: &Case, states: &mut Vec<LimitState>) {
    type Pick = fn(&ProcessHistory) -> &Series;
    type LimitOf = fn(&ResourceLimits) -> Limit;
    let maps = case.machine().max_map_count;
    let nearest = |name: &str,
                   unit: &str,
                   pick: Pick,
                   limit_of: &dyn Fn(&ProcessHistory) -> Measured<Limit>,
                   counted: fn(&ullage_model::CountsAtFailure) -> Option<u64>| {
        case.timeline
            .processes()
            .filter_map(|process| {
                let at_failure = case
                    .timeline
                    .exceptions()
                    .iter()
                    .filter(|seen| seen.id == Some(process.id))
                    .filter_map(|seen| counted(&seen.report.counts))
                    .max();
                let read = pick(process).last().map(|(_, value)| value as u64);
                let used = at_failure.max(read)?;
                let scope = format!("process {} ({})", process.id.pid, process.role.label());
                Some(state(name, scope, unit, Some(used), limit_of(process), Some(pick(process))))
            })
            .max_by(|a, b| share(a).total_cmp(&share(b)))
    };
    let of = |limit_of: LimitOf| {
        move |process: &ProcessHistory| match process.limits {
            Some(limits) => Measured::Known(limit_of(&limits)),
            None => Measured::default(),
        }
    };
    states.extend(nearest(
        "mappings",
        "mappings",
        |p| &p.mapping_count,
        &|_| maps.map(Limit::At),
        |c| c.mappings,
    ));
    states.extend(nearest(
        "descriptors",
        "descriptors",
        |p| &p.descriptors,
        &of(|l| l.open_files),
        |c| c.fds,
    ));
    states.extend(nearest(
        "address space",
        "bytes",
        |p| &p.virtual_size,
        &of(|l| l.address_space),
        |c| c.virtual_size,
    ));
    states.extend(nearest("locked memory", "bytes", |p| &p.locked, &of(|l| l.locked_memory), |_| None));
}

/// RLIMIT_NPROC counts the user's tasks on the whole machine; seen are those of the job. Root is exempt.
fn tasks_of_user(case: &Case, states: &mut Vec<LimitState>) {
    let last = case.timeline.last_alive();
    let alive = || {
        let at_the_end = move |process: &&ProcessHistory| Some(process.last_seen) >= last;
        case.timeline
            .processes()
            .filter(at_the_end)
            .filter(|process| process.uid().is_some_and(|uid| uid != 0))
    };
    let Some((process, limit)) = alive().find_map(|process| Some((process, process.limits?.processes)))
    else {
        return;
    };
    let tasks: f64 = alive().filter_map(|process| process.threads.last()).map(|(_, threads)| threads).sum();
    let scope = process.uid().map_or("user".to_owned(), |uid| format!("user {uid} (tasks of this job)"));
    states.push(state("processes", scope, "tasks", Some(tasks as u64), Measured::Known(limit), None));
}

fn of_cgroup(group: &CgroupHistory, states: &mut Vec<LimitState>) {
    let scope = || format!("cgroup {}", group.path());
    if let Measured::Known(memory) = &group.last.memory {
        // Page cache does not bring the limit nearer.
        let used = group.working_set.last().map(|(_, bytes)| bytes as u64);
        let limit = Measured::Known(memory.limit);
        states.push(state("cgroup memory", scope(), "bytes", used, limit, Some(&group.working_set)));
    }
    if let Measured::Known(pids) = &group.last.pids {
        states.push(state(
            "cgroup tasks",
            scope(),
            "tasks",
            Some(pids.current),
            Measured::Known(pids.limit),
            Some(&group.tasks),
        ));
    }
}

fn of_host(case: &Case, states: &mut Vec<LimitState>) {
    let host = case.timeline.host();
    let Measured::Known(memory) = &host.last.memory else { return };
    let used = host.used.last().map(|(_, bytes)| bytes as u64);
    let whole = Limit::At(memory.total.0.saturating_add(memory.swap_total.0));
    states.push(state(
        "memory and swap",
        "host".into(),
        "bytes",
        used,
        Measured::Known(whole),
        Some(&host.used),
    ));
    // Only mode 2 refuses what goes beyond CommitLimit.
    let binding = case.machine().overcommit_memory.map(|mode| match mode {
        2 => Limit::At(memory.commit_limit.0),
        _ => Limit::Unlimited,
    });
    states.push(state(
        "commit limit",
        "host".into(),
        "bytes",
        Some(memory.committed.0),
        binding,
        Some(&host.committed),
    ));
}

fn of_filesystems(timeline: &Timeline, states: &mut Vec<LimitState>) {
    for history in timeline.filesystems(FilesystemUse::Shm) {
        let path = &history.last.path;
        let (size, inodes) = (Measured::Known(history.last.size), Measured::Known(history.last.inodes));
        let used = Some(history.last.used.0);
        states.push(state("/dev/shm bytes", path.clone(), "bytes", used, size, Some(&history.used)));
        let used = Some(history.last.inodes_used);
        states.push(state("/dev/shm inodes", path.clone(), "inodes", used, inodes, Some(&history.inodes)));
    }
    for history in timeline.filesystems(FilesystemUse::Temporary) {
        let used = Some(history.last.used.0);
        let size = Measured::Known(history.last.size);
        states.push(state(
            "temporary files",
            history.last.path.clone(),
            "bytes",
            used,
            size,
            Some(&history.used),
        ));
    }
}
