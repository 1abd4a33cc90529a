//! # memcg-oom-kill
//!
//! ## What it does
//! Finds a process of the job that the kernel killed because its cgroup met its memory limit.
//!
//! ## Why it happens
//! A container's or a scheduler's limit is a memory cgroup. What cannot be reclaimed below the limit (anonymous
//! and shared memory, the kernel's own) ends with a SIGKILL for the largest process of the group, or for all of
//! them where `memory.oom.group` is 1. /proc/meminfo shows the machine, so that free memory looks fine.
//!
//! ## How it is told apart
//! The kernel log names the victim with `constraint=CONSTRAINT_MEMCG`, or `oom_kill` of the victim's own cgroup
//! moved and a process of it died by SIGKILL then. On cgroup v1 `oom_kill` moves in the victim's group and
//! `failcnt` in the ancestor whose limit was met. SIGKILL with counters at rest is somebody's kill, not this. Where
//! COMMAND lived on without noticing it is invisible-child-oom. `oom_kill` of vmstat counts every cgroup of the
//! machine and proves nothing.
//!
//! ## Known problems
//! Where everything died at once, ullage too, the verdict comes from the counters and the kernel log as
//! `ullage report` finds them afterwards, or from the last samples. Another process killed in the same cgroup
//! at the same moment, without a kernel log to read, cannot be told from one of the job.
//!
//! ## Example
//! `RuntimeError: DataLoader worker (pid(s) 8024) exited unexpectedly`
//!
//! ## Remedy
//! Raise the limit above the measured peak, or hold less: the parts of memory.stat say what.
//!
//! ## References
//! - <https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files>

use crate::failure::SIGKILL;
use crate::found::of_job;
use crate::oom::{limit, limiting, own_groups, unnoticed, Proof, Victim};
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{Ending, Evidence, Finding, Fix, Measured, OutcomeKind, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "memcg-oom-kill",
    title: "Memory cgroup limit reached: kernel OOM-kills a process of the job",
    source: include_str!("memcg_oom_kill.rs"),
    judge,
    fixes,
};

fn judge(case: &Case) -> Judgement {
    let victims: Vec<_> = case.oom_victims().iter().filter(|victim| victim.of_cgroup()).collect();
    match victims.iter().find(|victim| !unnoticed(case, victim)) {
        Some(victim) => Judgement::one(killed(case, &RULE, victim, victims.len())),
        None if victims.is_empty() => unseen(case).unwrap_or_else(|| unreadable(case)),
        None => Judgement::Nothing,
    }
}

/// A kill in a cgroup of the job, of a process that lived between two looks: the job's, or another's in there.
fn unseen(case: &Case) -> Option<Judgement> {
    let outcome = case.plain_outcome();
    if outcome.kind != OutcomeKind::Exit || outcome.code == Some(0) {
        return None;
    }
    let group =
        own_groups(case).into_iter().find(|group| group.oom_kills.growth().is_some_and(|grown| grown > 0))?;
    let line = case
        .kernel_log()
        .find(|line| line.task_cgroup.as_deref().is_some_and(|path| path.ends_with(group.path())));
    let whom = line.map_or("a process".to_owned(), |line| format!("{} (pid {})", line.task, line.pid));
    Some(Judgement::cannot_tell(format!(
        "the kernel killed {whom} in the job's cgroup {} for its memory limit; it lived between two looks, so that whether it was of the job was not seen",
        group.path()
    )))
}

/// SIGKILL, and nothing to tell whose.
fn unreadable(case: &Case) -> Judgement {
    let killed =
        case.timeline.endings().into_iter().find(|(_, _, ending)| *ending == Ending::Signaled(SIGKILL));
    let Some((at, process, _)) = killed else { return Judgement::Nothing };
    let counters_read =
        case.timeline.cgroups().any(|group| group.oom_kills.last.is_some_and(|(last, _)| last >= at));
    let host_told = case.oom_victims().iter().any(|victim| !victim.of_cgroup());
    let budget = case.plain_outcome().kind == OutcomeKind::Budget;
    if counters_read || host_told || budget {
        return Judgement::Nothing;
    }
    let limited = case.timeline.cgroups().any(|group| limit(group).is_some());
    if !limited && case.timeline.cgroups().any(|group| group.memory.last().is_some()) {
        return Judgement::Nothing;
    }
    Judgement::cannot_tell(format!(
        "{} was ended by SIGKILL, sender unknown; the oom_kill counter of its cgroup could not be read afterwards",
        say::who(process)
    ))
}

/// The finding for one victim; also used where nobody noticed.
pub(super) fn killed(case: &Case, rule: &Rule, victim: &Victim, victims: usize) -> Finding {
    let known = match victim.proof {
        Proof::Log => (Status::Established, 0.99),
        Proof::Counter if victim.process.is_some() => (Status::Established, 0.96),
        Proof::Counter => (Status::Established, 0.9),
        Proof::AtLimit => (Status::Supported, 0.75),
    };
    let mut evidence: Vec<Evidence> =
        line_sentence(victim).into_iter().chain(counter_sentence(victim)).collect();
    let limiting = victim.group.and_then(|group| limiting(case, group));
    if let Some((group, limit)) = limiting {
        if let Some((at, used)) = group.memory.at_or_before(victim.at).or_else(|| group.memory.last()) {
            let sentence = format!(
                "The cgroup {} held {} of the {} that its limit allows, last read {} before the kill.",
                group.path(),
                say::bytes(used as u64),
                say::bytes(limit),
                say::seconds(victim.at.since(at))
            );
            let source = format!("memory of cgroup {}", group.path());
            evidence.push(say::of(
                say::number("cgroup memory", used as u64, "bytes", &source, at, sentence),
                limit,
            ));
        }
        evidence.extend(parts_sentence(group));
    }
    if let Some((process, (at, memory))) =
        victim.process.and_then(|process| process.memory.map(|memory| (process, memory)))
    {
        let sentence = format!(
            "{} held {} of resident memory ({} anonymous, {} shared), last read {} before it was killed.",
            say::capital(&say::who(process)),
            say::bytes(memory.resident().0),
            say::bytes(memory.anonymous.0),
            say::bytes(memory.shared.0),
            say::seconds(victim.at.since(at))
        );
        let source = format!("/proc/{}/status", process.id.pid);
        evidence.push(say::number("resident memory", memory.resident().0, "bytes", &source, at, sentence));
    }
    if victims > 1 {
        let sentence = format!(
            "{} of the job were killed so; this is the first.",
            say::plural(victims as u64, "process", "processes")
        );
        evidence.push(say::number("victims", victims as u64, "processes", "all kills", victim.at, sentence));
    }
    let severity = if case.ended_well()
        || case.plain_outcome().kind == OutcomeKind::StillRunning && victim.process.is_some()
    {
        Severity::Warning
    } else {
        Severity::Fatal
    };
    let peak = limiting.and_then(|(group, _)| group.memory.peak()).map(|(_, peak)| peak as u64);
    let setting = Setting {
        bytes: peak,
        path: limiting.map(|(group, _)| group.path().to_owned()),
        ..case.setting(None)
    };
    let mut finding = of_job(rule, severity, known, evidence, &setting);
    finding.process = victim.process.map(say::process_ref);
    finding.at = Some(victim.at);
    finding
}

fn line_sentence(victim: &Victim) -> Option<Evidence> {
    let line = victim.line?;
    let whose =
        line.oom_cgroup.as_ref().map_or("its cgroup".to_owned(), |group| format!("the cgroup {group}"));
    let sentence = format!(
        "The kernel log says that it killed {} (pid {}) because {whose} met its memory limit: {} anonymous, {} shared.",
        line.task,
        line.pid,
        say::bytes(line.anonymous),
        say::bytes(line.shared)
    );
    Some(say::text("OOM kill", &line.task, "kernel log", Some(victim.at), sentence))
}

fn counter_sentence(victim: &Victim) -> Option<Evidence> {
    let group = victim.group?;
    let (before, shown) = group.oom_kills.moved?;
    let grown = group.oom_kills.growth()?;
    let sentence = format!(
        "The kernel counted {} in the cgroup {} between {} and {} after the start.",
        say::plural(grown, "OOM kill", "OOM kills"),
        group.path(),
        say::seconds(before.seconds()),
        say::seconds(shown.seconds())
    );
    let source = if group.is_v2() { "memory.events" } else { "memory.oom_control" };
    Some(say::number("OOM kills", grown, "kills", &format!("{source} of {}", group.path()), shown, sentence))
}

fn parts_sentence(group: &crate::history::CgroupHistory) -> Option<Evidence> {
    let parts = group.last.memory.as_known()?.parts.known()?;
    let whole = match group.last.memory.as_known()?.oom_group {
        Measured::Known(true) => " memory.oom.group is 1: the kernel kills the whole group at once.",
        _ => "",
    };
    let sentence = format!(
        "At the last reading it was {} anonymous, {} shared (/dev/shm and the like), {} page cache.{whole}",
        say::bytes(parts.anonymous.0),
        say::bytes(parts.shared.0),
        say::bytes(parts.file.0.saturating_sub(parts.shared.0))
    );
    let source = format!("memory.stat of {}", group.path());
    Some(say::number("anonymous memory", parts.anonymous.0, "bytes", &source, group.last_at, sentence))
}

fn fixes(setting: &Setting) -> Vec<Fix> {
    let gib = ((setting.bytes.unwrap_or(0) / 10).saturating_mul(13) >> 30) + 1;
    let mut fixes = vec![Fix {
        title: "In a container: start it with a larger limit than the peak that was seen".into(),
        command: format!("docker run --memory={gib}g IMAGE"),
        automatic: None,
    }];
    fixes.push(Fix {
        title: "Under Slurm".into(),
        command: format!("sbatch --mem={gib}G train.sh"),
        automatic: None,
    });
    fixes.push(Fix {
        title: "Hold less: fewer workers, fewer batches in flight".into(),
        command: "DataLoader(dataset, num_workers=2, prefetch_factor=1)".into(),
        automatic: None,
    });
    fixes
}
