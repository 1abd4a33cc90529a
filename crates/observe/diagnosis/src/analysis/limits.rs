//! Every limit that the job can meet: used, allowed, growth, and which is met first. Pure.
//!
//! Of many processes only the one that meets a limit first, else the one nearest to it, is listed for it. The
//! surprise: what a failing process counted in itself replaces the last reading, because the sampler may have looked
//! a second earlier.

use crate::analysis::run::Run;
use crate::history::Series;
use crate::history::Timeline;
use crate::history::{CgroupHistory, ProcessHistory};
use crate::policy::limits::ENDED_THE_RUN_S;
use crate::trend::forecast::{share, Figure};
use std::cmp::Ordering;
use ullage_model::{
    At, CountsAtFailure, FilesystemUse, Limit, LimitKind, LimitState, Measured, ResourceLimits, RunFacts,
    Scope,
};

/// The limits at the end of what was seen, first met first; those without an end last.
pub fn limits(facts: &RunFacts, timeline: &Timeline) -> Vec<LimitState> {
    let run = Run { facts, timeline };
    let mut states = Vec::new();
    per_process(&run, &mut states);
    tasks_of_user(&run, &mut states);
    for group in timeline.cgroups() {
        of_cgroup(timeline, group, &mut states);
    }
    of_budget(&run, &mut states);
    of_host(&run, &mut states);
    of_filesystems(timeline, &mut states);
    states.sort_by(|a, b| nearer(a, b).then_with(|| by_name(a).cmp(&by_name(b))));
    states
}

fn by_name(state: &LimitState) -> (&'static str, String) {
    (state.kind.name(), state.scope.to_string())
}

/// First the one that is met first, then the one of which less is left.
fn nearer(a: &LimitState, b: &LimitState) -> Ordering {
    let left = |state: &LimitState| state.time_left_s.unwrap_or(f64::INFINITY);
    let gone = |state: &LimitState| share(state.used.known(), state.limit);
    left(a).total_cmp(&left(b)).then(gone(b).total_cmp(&gone(a)))
}

fn state(
    kind: LimitKind,
    scope: Scope,
    used: Option<u64>,
    limit: Measured<Limit>,
    series: &Series,
) -> LimitState {
    let seen = series.last().map(|(at, _)| (series, at));
    Figure { kind, scope, used, limit, seen }.state()
}

/// A limit that each process has of its own.
struct OfProcess {
    kind: LimitKind,
    /// What is in use, and what its growth is taken from.
    used: fn(&ProcessHistory) -> &Series,
    series: fn(&ProcessHistory) -> &Series,
    limit: fn(&Run, &ProcessHistory) -> Measured<Limit>,
    counted: fn(&CountsAtFailure) -> Option<u64>,
}

const OF_PROCESS: [OfProcess; 4] = [
    OfProcess {
        kind: LimitKind::Mappings,
        used: |process| &process.mapping_count,
        series: |process| &process.mappings_between,
        limit: |run, _| run.machine().max_map_count.map(Limit::At),
        counted: |counts| counts.mappings,
    },
    OfProcess {
        kind: LimitKind::Descriptors,
        used: |process| &process.descriptors,
        series: |process| &process.descriptors,
        limit: |_, process| own(process, |limits| limits.open_files),
        counted: |counts| counts.fds,
    },
    OfProcess {
        kind: LimitKind::AddressSpace,
        used: |process| &process.virtual_size,
        series: |process| &process.virtual_size,
        limit: |_, process| own(process, |limits| limits.address_space),
        counted: |counts| counts.virtual_size,
    },
    OfProcess {
        kind: LimitKind::LockedMemory,
        used: |process| &process.locked,
        series: |process| &process.locked,
        limit: |_, process| own(process, |limits| limits.locked_memory),
        counted: |_| None,
    },
];

fn own(process: &ProcessHistory, limit: fn(&ResourceLimits) -> Limit) -> Measured<Limit> {
    process.limits.map_or_else(Measured::default, |limits| Measured::Known(limit(&limits)))
}

fn per_process(run: &Run, states: &mut Vec<LimitState>) {
    for of in &OF_PROCESS {
        let figures: Vec<Figure> =
            run.timeline.processes().filter_map(|process| figure(run, of, process)).collect();
        let most = figures.iter().map(Figure::share).fold(f64::NEG_INFINITY, f64::max);
        // Growth is worked out only where it matters: a job may have thousands of processes.
        let likely = figures.into_iter().filter(|figure| figure.may_be_near() || figure.share() >= most);
        states.extend(likely.map(Figure::state).min_by(nearer));
    }
}

fn figure<'a>(run: &'a Run, of: &OfProcess, process: &'a ProcessHistory) -> Option<Figure<'a>> {
    let series = (of.series)(process);
    let at_failure = run
        .timeline
        .exceptions()
        .iter()
        .filter(|seen| seen.id == Some(process.id))
        .filter_map(|seen| (of.counted)(&seen.report.counts))
        .max();
    let read = (of.used)(process).last().map(|(_, value)| value as u64);
    Some(Figure {
        kind: of.kind,
        scope: Scope::Process(process.id, process.role.clone()),
        used: Some(at_failure.max(read)?),
        limit: (of.limit)(run, process),
        seen: until(run.timeline, process).map(|until| (series, until)),
    })
}

/// Until when the process is known to have gone on; none where it ended before the run did.
fn until(timeline: &Timeline, process: &ProcessHistory) -> Option<At> {
    let until = process.zombie_since.map_or(process.last_seen, |since| since.min(process.last_seen));
    let end = timeline.last_alive()?;
    let over =
        end.since(until) > ENDED_THE_RUN_S || (process.ended.is_some() && timeline.finished().is_none());
    (!over).then_some(until)
}

/// RLIMIT_NPROC counts the user's tasks on the whole machine; seen are those of the job. Root is exempt.
fn tasks_of_user(run: &Run, states: &mut Vec<LimitState>) {
    let last = run.timeline.last_alive();
    let alive = || {
        let at_the_end = move |process: &&ProcessHistory| Some(process.last_seen) >= last;
        run.timeline
            .processes()
            .filter(at_the_end)
            .filter(|process| process.uid().is_some_and(|uid| uid != 0))
    };
    let Some((process, limit)) = alive().find_map(|process| Some((process, process.limits?.processes)))
    else {
        return;
    };
    let tasks: f64 = alive().filter_map(|process| process.threads.last()).map(|(_, threads)| threads).sum();
    let (scope, used) = (Scope::User(process.uid()), Some(tasks as u64));
    states.push(state(LimitKind::UserTasks, scope, used, Measured::Known(limit), &run.timeline.tasks));
}

fn of_cgroup(timeline: &Timeline, group: &CgroupHistory, states: &mut Vec<LimitState>) {
    let scope = || Scope::Cgroup(group.path().to_owned());
    if let Measured::Known(memory) = &group.last.memory {
        // What is read after a kill that ended the run is what the kill left.
        let ended = |at: At| timeline.last_alive().is_none_or(|end| end.since(at) <= ENDED_THE_RUN_S);
        let killed = group.oom_kills.moved.map(|(before, _)| before).filter(|before| ended(*before));
        let read = match killed {
            Some(before) => group.working_set.at_or_before(before),
            None => group.working_set.last(),
        };
        // Page cache does not bring the limit nearer.
        let used = read.map(|(_, bytes)| bytes as u64);
        let limit = Measured::Known(memory.limit);
        states.push(state(LimitKind::CgroupMemory, scope(), used, limit, &group.working_set));
    }
    if let Measured::Known(pids) = &group.last.pids {
        states.push(state(
            LimitKind::CgroupTasks,
            scope(),
            Some(pids.current),
            Measured::Known(pids.limit),
            &group.tasks,
        ));
    }
}

/// `--memory-max`, which ullage holds itself: where a cgroup of that limit holds the job too, it counts a little less.
fn of_budget(run: &Run, states: &mut Vec<LimitState>) {
    let Some(limit) = run.facts.memory_max.map(Limit::At) else { return };
    let tree = &run.timeline.tree;
    let used = tree.last().map(|(_, bytes)| bytes as u64);
    states.push(state(LimitKind::MemoryBudget, Scope::Job, used, Measured::Known(limit), tree));
}

fn of_host(run: &Run, states: &mut Vec<LimitState>) {
    let host = run.timeline.host();
    let Measured::Known(memory) = &host.last.memory else { return };
    let used = host.used.last().map(|(_, bytes)| bytes as u64);
    let whole = Limit::At(memory.total.0.saturating_add(memory.swap_total.0));
    states.push(state(LimitKind::HostMemory, Scope::Host, used, Measured::Known(whole), &host.used));
    // Only mode 2 refuses what goes beyond CommitLimit.
    let binding = run.machine().overcommit_memory.map(|mode| match mode {
        2 => Limit::At(memory.commit_limit.0),
        _ => Limit::Unlimited,
    });
    states.push(state(LimitKind::Committed, Scope::Host, Some(memory.committed.0), binding, &host.committed));
}

fn of_filesystems(timeline: &Timeline, states: &mut Vec<LimitState>) {
    for history in timeline.filesystems(FilesystemUse::Shm) {
        let scope = || Scope::Filesystem(history.last.path.clone());
        let (size, inodes) = (Measured::Known(history.last.size), Measured::Known(history.last.inodes));
        let used = Some(history.last.used.0);
        states.push(state(LimitKind::ShmBytes, scope(), used, size, &history.used));
        let used = Some(history.last.inodes_used);
        states.push(state(LimitKind::ShmInodes, scope(), used, inodes, &history.inodes));
    }
    for history in timeline.filesystems(FilesystemUse::Temporary) {
        let used = Some(history.last.used.0);
        let (size, scope) =
            (Measured::Known(history.last.size), Scope::Filesystem(history.last.path.clone()));
        states.push(state(LimitKind::TemporaryFiles, scope, used, size, &history.used));
    }
}
