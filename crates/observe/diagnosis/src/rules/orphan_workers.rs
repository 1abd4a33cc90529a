//! # orphan-workers
//!
//! ## What it does
//! Finds processes of the job that are still there after COMMAND has ended.
//!
//! ## Why it happens
//! After a SIGKILL nobody tells the children. Loader workers started by fork or spawn watch their parent and leave
//! within some seconds; those of a forkserver watch the forkserver, which lives on with them, so that both stay
//! for ever. Subprocesses of the user's own stay too.
//!
//! ## How it is told apart
//! They were of this run (same start time, not only same pid) and alive when COMMAND was gone.
//!
//! ## Known problems
//! A process that was meant to stay (a daemon) looks the same: where COMMAND ended with 0 and what stays is
//! no worker, it is a note only. The resource tracker, the shm manager and a forkserver without workers leave
//! by themselves, a moment after the pipe to their parent is closed, and are not counted.
//!
//! ## Example
//! The next job runs out of memory although nothing seems to run.
//!
//! ## Remedy
//! End them, and start the job so that they end with it.
//!
//! ## References
//! - prctl(2), PR_SET_PDEATHSIG

use crate::found::of_job;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{Evidence, Fix, OutcomeKind, Role, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "orphan-workers",
    title: "Workers, ranks or compile processes survive a killed parent",
    source: include_str!("orphan_workers.rs"),
    judge,
    fixes,
};

fn judge(case: &Case) -> Judgement {
    let Some((at, survivors)) = case.timeline.finished() else { return Judgement::Nothing };
    let mut orphans: Vec<_> = survivors
        .iter()
        .filter_map(|id| case.timeline.process(*id))
        .filter(|process| process.ended.is_none_or(|(ended, _, _)| ended > at))
        .filter(|process| !matches!(process.role, Role::ResourceTracker | Role::ShmManager))
        .collect();
    // A forkserver stays until the last process that inherited its pipe has gone, the shm manager among them: alone
    // it leaves by itself too. A zygote leaves with its trainer.
    if orphans.iter().all(|process| matches!(process.role, Role::Forkserver | Role::Zygote)) {
        return Judgement::Nothing;
    }
    orphans.sort_by_key(|process| {
        std::cmp::Reverse(process.memory.map_or(0, |(_, memory)| memory.resident().0))
    });
    let Some(largest) = orphans.first() else { return Judgement::Nothing };
    let is_worker = |role: &Role| {
        matches!(
            role,
            Role::Trainer | Role::Rank(_) | Role::LoaderWorker(_) | Role::PoolWorker | Role::Forkserver
        )
    };
    let worker = orphans.iter().find(|process| is_worker(&process.role));
    let outcome = case.plain_outcome();
    let killed = matches!(outcome.kind, OutcomeKind::Signal | OutcomeKind::OomKill | OutcomeKind::Budget);
    let severity = if killed || worker.is_some() { Severity::Warning } else { Severity::Note };
    let memory: u64 = orphans
        .iter()
        .filter_map(|process| process.memory)
        .map(|(_, memory)| memory.anonymous.0)
        .fold(0, u64::saturating_add);
    let names: Vec<_> = orphans.iter().take(6).map(|process| say::who(process)).collect();
    let more = orphans.len().saturating_sub(6);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let sentence = format!(
        "{} of the job outlived COMMAND: {}{more}; they hold {} of anonymous memory.",
        say::plural(orphans.len() as u64, "process", "processes"),
        names.join(", "),
        say::bytes(memory)
    );
    let mut evidence: Vec<Evidence> = vec![say::number(
        "survivors",
        orphans.len() as u64,
        "processes",
        "pids alive after the end of COMMAND",
        at,
        sentence,
    )];
    if killed {
        let how =
            outcome.signal.map_or("was killed".to_owned(), |signal| format!("was ended by signal {signal}"));
        let sentence = format!("COMMAND {how}, so that it could not end its children.");
        evidence.push(say::text("COMMAND", &how, "wait", Some(at), sentence));
    }
    let pids = orphans.iter().map(|process| process.id.pid).collect();
    let setting = Setting { pids, ..case.setting(None) };
    let mut finding = of_job(&RULE, severity, (Status::Established, 0.95), evidence, &setting);
    finding.process = Some(say::process_ref(worker.unwrap_or(largest)));
    Judgement::one(finding)
}

fn fixes(setting: &Setting) -> Vec<Fix> {
    let pids = setting.pids.iter().take(64).map(|pid| format!(" {pid}")).collect::<String>();
    let mut fixes = Vec::new();
    if !pids.is_empty() {
        fixes.push(Fix { title: "End them".into(), command: format!("kill{pids}"), automatic: None });
    }
    fixes.push(Fix {
        title: "Start the job in a scope that ends with it".into(),
        command: "systemd-run --user --scope -p KillMode=control-group python train.py".into(),
        automatic: None,
    });
    fixes.push(Fix {
        title: "In a child of one's own: end when the parent does".into(),
        command: "import ctypes, signal\nctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, first thing in the child".into(),
        automatic: None,
    });
    fixes
}
