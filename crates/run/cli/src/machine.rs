//! Small questions about the machine that several commands ask: is a process still alive, what does the
//! kernel remember of a run that ended without us.

use ullage_diagnosis::Timeline;
use ullage_kernel::cgroup::{CgroupKey, CgroupMounts};
use ullage_kernel::host::kmsg::{KernelLog, KernelNews};
use ullage_kernel::KernelRoot;
use ullage_model::{
    At, CgroupReading, CgroupVersion, Event, EventKind, Facts, Item, Missing, Outcome, OutcomeKind,
    ProcessId, RunFacts, Sample,
};

/// True where the very process (pid and start time) still runs and is no zombie.
pub fn is_alive(id: ProcessId) -> bool {
    ullage_supervisor::is_running(&KernelRoot::live(), id)
}

/// The identity of a process of this moment.
pub fn identity(root: &KernelRoot, pid: i32) -> Option<ProcessId> {
    let mut buffer = Vec::new();
    let id = root.process(pid).ok()?.stat(&mut buffer).ok()?.id;
    Some(id)
}

/// How far this machine's clock may be off: recordings of several machines are laid side by side by it. Facts have whole
/// numbers, so seconds are text.
pub fn clock() -> Facts {
    let Some(clock) = ullage_supervisor::clock::clock() else { return Facts::new() };
    let error_s = format!("{:.6}", clock.error_s);
    [("clock.error_s".into(), error_s.into()), ("clock.synchronized".into(), clock.synchronized.into())]
        .into()
}

/// Which boot of the machine this is: within one, all have the same clock.
pub fn boot(root: &KernelRoot) -> Facts {
    root.boot_id().map(|boot| ("boot.id".into(), boot.into())).into_iter().collect()
}

/// The outcome of a run whose recorder is gone: its job may well go on.
pub fn outcome_without_end(run: &RunFacts) -> Outcome {
    Outcome::of(match run.main {
        Some(main) if is_alive(main) => OutcomeKind::StillRunning,
        _ => OutcomeKind::Unknown,
    })
}

/// Adds to the timeline of an unfinished run what can be read now: counters of its cgroups, and what the kernel
/// log holds from its time.
pub fn post_mortem(run: &RunFacts, timeline: &mut Timeline) {
    let root = KernelRoot::live();
    let mut buffer = Vec::new();
    let at = At(timeline.end().0.saturating_add(1));
    let mounts = CgroupMounts::find(&root, &mut buffer);
    let cgroups: Vec<CgroupReading> = timeline
        .cgroups()
        .map(|group| CgroupKey {
            v2: group.last.version == CgroupVersion::V2,
            path: group.last.path.clone(),
            memory: group.last.memory.missing() != Some(Missing::NotAsked),
            pids: group.last.pids.missing() != Some(Missing::NotAsked),
        })
        .map(|key| mounts.read(&root, &key, &mut buffer))
        .collect();
    let news = run.main.map(|main| {
        // A second earlier: the start is known in ticks, and the log has its own clock.
        let ticks = run.machine.clock_ticks_per_second.max(1);
        let seconds = (main.start.0 / ticks).saturating_sub(1);
        KernelLog::history(&root, seconds * 1_000_000)
    });
    timeline.push(Item::Sample(Box::new(Sample { at, cgroups, ..Sample::default() })));
    match news {
        Some(Ok(news)) => {
            for one in news {
                let what = match one {
                    KernelNews::OomKill(kill) => EventKind::KernelOomKill(kill),
                    KernelNews::ForkRejected(cgroup) => EventKind::KernelForkRejected { cgroup },
                };
                timeline.push(Item::Event(Event { at, what }));
            }
        }
        Some(Err(error)) => {
            let text = format!("The kernel log could not be read: {error}.");
            timeline.push(Item::Event(Event { at, what: EventKind::NotSeen { text } }));
        }
        None => {}
    }
}
