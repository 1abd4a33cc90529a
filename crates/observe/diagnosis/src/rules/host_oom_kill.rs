//! # host-oom-kill
//!
//! ## What it does
//! Finds a process of the job that the kernel killed because the whole machine was out of memory.
//!
//! ## Why it happens
//! Without a cgroup's limit all jobs share the machine's memory and swap; when both are used up the kernel kills
//! the process with the highest score.
//!
//! ## How it is told apart
//! Only the kernel log proves it: `constraint=CONSTRAINT_NONE … global_oom` with a process of the job as its victim.
//! `oom_kill` of /proc/vmstat also counts kills in any cgroup, and little available memory before a SIGKILL is
//! also what a memory daemon (earlyoom, systemd-oomd) acts on.
//!
//! ## Known problems
//! Where the kernel log may not be read (`dmesg_restrict`) it can be suspected, not told.
//!
//! ## Example
//! `Out of memory: Killed process 4242 (python3) total-vm:…`
//!
//! ## Remedy
//! Limit each job, run fewer at once, or add memory or swap.
//!
//! ## References
//! - <https://docs.kernel.org/admin-guide/mm/concepts.html#oom-killer>

use crate::failure::SIGKILL;
use crate::found::{logged, of_victim};
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{Ending, Evidence, Fix, OutcomeKind};

pub(super) const RULE: Rule = Rule {
    id: "host-oom-kill",
    title: "Whole host out of memory: global OOM killer",
    source: include_str!("host_oom_kill.rs"),
    judge,
    fixes,
};

fn judge(case: &Case) -> Judgement {
    let Some(victim) = case.oom_victims().iter().find(|victim| victim.host) else { return suspected(case) };
    let log = logged(victim, |line| {
        format!(
            "The kernel log says that the machine itself was out of memory (global_oom) and that it killed {} (pid {}), which held {} anonymous and {} shared memory.",
            line.task,
            line.pid,
            say::bytes(line.anonymous),
            say::bytes(line.shared)
        )
    });
    let mut evidence: Vec<Evidence> = log.into_iter().collect();
    if let Some((at, available)) = case.timeline.host().available.at_or_before(victim.at) {
        let total = case.machine().memory_total.known().map_or(0, |bytes| bytes.0);
        let sentence = format!(
            "The machine had {} of {} available, last read {} before.",
            say::bytes(available as u64),
            say::bytes(total),
            say::seconds(victim.at.since(at))
        );
        evidence.push(say::of(
            say::number("available memory", available as u64, "bytes", "/proc/meminfo", at, sentence),
            total,
        ));
    }
    let setting =
        Setting { bytes: case.machine().memory_total.known().map(|bytes| bytes.0), ..case.setting(None) };
    Judgement::one(of_victim(case, &RULE, victim, 0.99, evidence, &setting))
}

/// SIGKILL while the machine had next to nothing left, and no line of the kernel about it.
fn suspected(case: &Case) -> Judgement {
    let killed =
        case.timeline.endings().into_iter().find(|(_, _, ending)| *ending == Ending::Signaled(SIGKILL));
    let Some((at, process, _)) = killed else { return Judgement::Nothing };
    let explained = !case.oom_victims().is_empty() || case.plain_outcome().kind == OutcomeKind::Budget;
    let total = case.machine().memory_total.known().map_or(0, |bytes| bytes.0);
    let Some((read, available)) = case.timeline.host().available.at_or_before(at) else {
        return Judgement::Nothing;
    };
    if explained || total == 0 || available > total as f64 * 0.03 {
        return Judgement::Nothing;
    }
    Judgement::cannot_tell(format!(
        "{} was ended by SIGKILL, sender unknown, {} after the machine was read with {} available; the kernel log shows no kill of it or could not be read",
        say::who(process),
        say::seconds(at.since(read)),
        say::bytes(available as u64)
    ))
}

fn fixes(setting: &Setting) -> Vec<Fix> {
    let gib = ((setting.bytes.unwrap_or(16 << 30) / 10 * 8) >> 30).max(1);
    vec![
        Fix {
            title: "Keep this job inside a budget, so that it is ended in order, before the machine is"
                .into(),
            command: format!("ullage run --memory-max {gib}GiB -- python train.py"),
            automatic: None,
        },
        Fix {
            title: "Hold less: fewer workers, fewer batches in flight".into(),
            command: "DataLoader(dataset, num_workers=2, prefetch_factor=1)".into(),
            automatic: None,
        },
    ]
}
