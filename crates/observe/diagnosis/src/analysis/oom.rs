//! Who was killed by the kernel's OOM killer: shared by the three causes that name it.
//!
//! SIGKILL alone is never one: it takes the kernel's line that names the process, or the `oom_kill` counter of
//! the victim's own cgroup (v1 and v2 count it there; v2 in ancestors too, where other jobs count as well, so
//! ancestors never count here), or, where the counter could not be read afterwards, memory at the limit.

use crate::analysis::run::Run;
use crate::history::{CgroupHistory, ProcessHistory};
use crate::policy::given::SIGKILL;
use crate::policy::limits::{ALL_KILLED_AT, KILLED_AT, KILL_SLACK_S, LIMITING_FROM};
use ullage_model::{At, Ending, KernelOomKill, Measured, OomConstraint, OutcomeKind};

impl Victim<'_> {
    /// For the limit of a cgroup.
    pub(crate) fn of_cgroup(&self) -> bool {
        !self.host && !self.bound
    }

    /// Until when readings are of the time before the kill: while its counter stood, or the victim was read with its memory.
    /// An end is noticed a moment after the kill, and what is read between shows what the kill left.
    pub(crate) fn last_read_before(&self) -> At {
        let counted = self.group.and_then(|group| group.oom_kills.moved).map(|(before, _)| before);
        let read = self.process.and_then(|process| process.memory).map(|(at, _)| at);
        counted.or(read).map_or(self.at, |at| at.min(self.at))
    }
}

/// How a kill is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillSign {
    /// The kernel log names the victim.
    Log,
    /// The counter of its cgroup moved.
    Counter,
    /// Its cgroup stood at the limit, and the counter could not be read afterwards.
    AtLimit,
}

/// One process killed.
#[derive(Clone, Debug)]
pub(crate) struct Victim<'a> {
    /// Which; none where everything died at once and only the cgroup is known.
    pub(crate) process: Option<&'a ProcessHistory>,
    /// When.
    pub(crate) at: At,
    /// By the machine's lack of memory, not a cgroup's.
    pub(crate) host: bool,
    /// By the lack of memory of the nodes that it was bound to.
    pub(crate) bound: bool,
    /// How it is known.
    pub(crate) sign: KillSign,
    /// The kernel's line.
    pub(crate) line: Option<&'a KernelOomKill>,
    /// The victim's own cgroup.
    pub(crate) group: Option<&'a CgroupHistory>,
}

/// The recording ends while COMMAND ran, and the job is known to be over: the caller says so (outcome unknown), or
/// something was read after the last reading of a process. A job that runs has the outcome "still running".
pub(crate) fn cut_short(run: &Run) -> bool {
    if run.timeline.finished().is_some() || run.timeline.samples() == 0 {
        return false;
    }
    match (&run.facts.outcome, run.plain_outcome().kind) {
        (Some(_), kind) => return kind == OutcomeKind::Unknown,
        (None, OutcomeKind::StillRunning) => {}
        (None, _) => return false,
    }
    run.timeline.last_alive().is_some_and(|alive| {
        run.timeline.cgroups().any(|group| group.last_at > alive)
            || run.timeline.end() > alive && !run.timeline.oom_kills().is_empty()
    })
}

/// All kills of processes of the job.
pub(crate) fn victims<'a>(run: &Run<'a>) -> Vec<Victim<'a>> {
    let mut victims: Vec<Victim<'a>> = Vec::new();
    for (at, line) in run.timeline.oom_kills() {
        if let Some(process) = named_by(run, line) {
            // Its sizes came late, and it was told without them.
            let victim =
                victims.iter_mut().find(|victim| victim.process.is_some_and(|known| known.id == process.id));
            if let Some(victim) = victim {
                victim.line = Some(line);
                continue;
            }
            let at = process.ended.map_or((*at).min(process.last_seen.max(At(1))), |(ended, _, _)| ended);
            let (host, bound) =
                (line.constraint == OomConstraint::Host, line.constraint == OomConstraint::Numa);
            let group = group_of(run, process);
            victims.push(Victim {
                process: Some(process),
                at,
                host,
                bound,
                sign: KillSign::Log,
                line: Some(line),
                group,
            });
        }
    }
    for group in own_groups(run) {
        by_counter(run, group, &mut victims);
    }
    if victims.is_empty() {
        victims.extend(by_reading(run));
    }
    victims.sort_by_key(|victim| (victim.at, victim.process.map(|process| process.id)));
    victims
}

/// The process that a line of the kernel names. Its pid is the machine's, so that inside a container it is
/// matched by name and cgroup instead.
fn named_by<'a>(run: &Run<'a>, line: &KernelOomKill) -> Option<&'a ProcessHistory> {
    let can_be = |process: &&ProcessHistory| match process.ended {
        Some((_, Ending::Signaled(signal), _)) => signal == SIGKILL,
        Some((_, Ending::Exited(_), _)) => false,
        Some((_, Ending::NotSeen(_), _)) => true,
        None => run.timeline.finished().is_none(),
    };
    // A process that only its agent told of, between two ticks, has no name.
    let same_name = |process: &&ProcessHistory| {
        process.name() == line.task || line.task.is_empty() || (process.agent && process.facts.is_none())
    };
    let by_pid =
        run.timeline.processes().filter(|process| process.id.pid == line.pid).filter(can_be).find(same_name);
    by_pid.or_else(|| {
        let group = line.task_cgroup.as_deref().filter(|group| group.len() > 1)?;
        let mut here = run
            .timeline
            .processes()
            .filter(can_be)
            .filter(same_name)
            .filter(|process| process.ended.is_some() && process.id.pid != line.pid)
            .filter(|process| {
                memory_path(process).is_some_and(|path| path.len() > 1 && group.ends_with(path))
            });
        // One such process is a match; several cannot be told apart.
        here.next().filter(|_| here.next().is_none())
    })
}

/// Path of a process's memory cgroup: v1's memory line, else the unified one.
fn memory_path(process: &ProcessHistory) -> Option<&str> {
    let lines = &process.facts.as_ref()?.cgroups;
    let path = |line: &'_ String| line.splitn(3, ':').nth(2).map(str::len).map(|len| line.len() - len);
    let v1 = lines.iter().find(|line| {
        line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == "memory"))
    });
    let line = v1.or_else(|| lines.iter().find(|line| line.starts_with("0::")))?;
    path(line).map(|from| &line[from..])
}

fn group_of<'a>(run: &Run<'a>, process: &ProcessHistory) -> Option<&'a CgroupHistory> {
    let path = memory_path(process);
    let with_memory = || run.timeline.cgroups().filter(|group| group.memory.last().is_some());
    path.and_then(|path| with_memory().find(|group| same_group(group.path(), path)))
        // A path as the mount namespace shows it may be shorter than the one of /proc/PID/cgroup.
        .or_else(|| with_memory().max_by_key(|group| group.path().len()))
}

fn same_group(shown: &str, path: &str) -> bool {
    shown == path || (shown.len() > 1 && path.ends_with(shown))
}

/// Memory cgroups that hold processes of the job themselves.
pub(crate) fn own_groups<'a>(run: &Run<'a>) -> Vec<&'a CgroupHistory> {
    let mut groups: Vec<&CgroupHistory> = Vec::new();
    for process in run.timeline.processes() {
        if let Some(group) = group_of(run, process) {
            if !groups.iter().any(|known| std::ptr::eq(*known, group)) {
                groups.push(group);
            }
        }
    }
    groups
}

fn by_counter<'a>(run: &Run<'a>, group: &'a CgroupHistory, victims: &mut Vec<Victim<'a>>) {
    let (Some(grown), Some((before, shown))) = (group.oom_kills.growth(), group.oom_kills.moved) else {
        return;
    };
    let already =
        victims.iter().filter(|victim| victim.group.is_some_and(|known| std::ptr::eq(known, group))).count()
            as u64;
    let missing = grown.saturating_sub(already);
    if missing == 0 || reported_as_others(run, group, grown) {
        return;
    }
    let last_move = group.oom_kills.last.map_or(shown, |(at, _)| at);
    let mut killed: Vec<&ProcessHistory> = run
        .timeline
        .processes()
        .filter(|process| {
            !victims.iter().any(|victim| victim.process.is_some_and(|known| known.id == process.id))
        })
        .filter(|process| matches!(process.ended, Some((_, Ending::Signaled(SIGKILL), _))))
        .filter(|process| {
            process.ended.is_some_and(|(at, _, _)| {
                at.since(before) >= -KILL_SLACK_S && at.since(last_move) <= KILL_SLACK_S
            })
        })
        .filter(|process| group_of(run, process).is_some_and(|own| std::ptr::eq(own, group)))
        .collect();
    // The kernel takes the largest first.
    killed.sort_by_key(|process| {
        std::cmp::Reverse(process.memory.map_or(0, |(_, memory)| memory.resident().0))
    });
    let sign = KillSign::Counter;
    for process in killed.iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        let at = process.ended.map_or(shown, |(at, _, _)| at);
        victims.push(Victim {
            process: Some(process),
            at,
            host: false,
            bound: false,
            sign,
            line: None,
            group: Some(group),
        });
    }
    if killed.is_empty() && victims.is_empty() && cut_short(run) {
        let at = run.timeline.last_alive().unwrap_or(before);
        victims.push(Victim {
            process: None,
            at,
            host: false,
            bound: false,
            sign,
            line: None,
            group: Some(group),
        });
    }
}

/// The kernel log accounts for every kill in this group, and none of them is a process of the job.
fn reported_as_others(run: &Run, group: &CgroupHistory, grown: u64) -> bool {
    let lines: Vec<_> = run
        .kernel_log()
        .filter(|line| line.task_cgroup.as_deref().is_some_and(|path| path.ends_with(group.path())))
        .collect();
    lines.len() as u64 >= grown
        && lines.iter().all(|line| {
            named_by(run, line).is_none()
                && !run.timeline.processes().any(|process| process.name() == line.task)
        })
}

/// No counter after the kill: the last readings, where they stand at the limit.
fn by_reading<'a>(run: &Run<'a>) -> Option<Victim<'a>> {
    let all_gone = cut_short(run);
    let process =
        run.timeline.endings().into_iter().find(|(_, _, ending)| *ending == Ending::Signaled(SIGKILL));
    let (at, process) = match process {
        Some((at, process, _)) => (at, Some(process)),
        None if all_gone => (run.timeline.last_alive()?, None),
        None => return None,
    };
    let group = match process {
        Some(process) => group_of(run, process)?,
        None => own_groups(run).into_iter().next()?,
    };
    let read_after = group.oom_kills.last.is_some_and(|(last, _)| last > at);
    let (limiting, limit) = limiting(run, group)?;
    let (_, used) = limiting.memory.highest_before(at)?;
    let share = used / limit as f64;
    let enough = if all_gone { ALL_KILLED_AT } else { KILLED_AT };
    let hits = limiting.limit_hits.growth().unwrap_or(0) > 0;
    (!read_after && share >= enough && (hits || share >= KILLED_AT)).then_some(Victim {
        process,
        at,
        host: false,
        bound: false,
        sign: KillSign::AtLimit,
        line: None,
        group: Some(group),
    })
}

/// The cgroup whose limit was met: `group` or an ancestor of it.
pub(crate) fn limiting<'a>(run: &Run<'a>, group: &CgroupHistory) -> Option<(&'a CgroupHistory, u64)> {
    run.timeline
        .cgroups()
        .filter(|other| other.is_v2() == group.is_v2() && is_ancestor(other.path(), group.path()))
        .filter_map(|other| Some((other, limit(other)?)))
        .max_by(|a, b| {
            let key = |(other, limit): &(&CgroupHistory, u64)| {
                let hit = other.limit_hits.growth().unwrap_or(0) > 0;
                let share = other.memory.peak().map_or(0.0, |(_, peak)| peak) / (*limit).max(1) as f64;
                (hit && share > LIMITING_FROM, share)
            };
            let ((a_hit, a_share), (b_hit, b_share)) = (key(a), key(b));
            a_hit.cmp(&b_hit).then(a_share.total_cmp(&b_share))
        })
}

fn is_ancestor(path: &str, of: &str) -> bool {
    path == "/" || path == of || of.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// memory.max of a group.
pub(crate) fn limit(group: &CgroupHistory) -> Option<u64> {
    match &group.last.memory {
        Measured::Known(memory) => memory.limit.at(),
        Measured::Missing(_) => group.first.memory.as_known()?.limit.at(),
    }
}
