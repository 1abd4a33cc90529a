//! Does a run show memcg-oom-kill? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::{held_by, Cohort};
use crate::analysis::killed_at_work::{last_call, LastCall};
use crate::analysis::oom::{limit, limiting, own_groups, KillSign, Victim};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::{CgroupHistory, ProcessHistory};
use crate::policy::given::SIGKILL;
use crate::policy::sizes::WARN_PART;
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use std::cmp::Reverse;
use ullage_model::{
    At, Ending, Evidence, Finding, Fix, KernelOomKill, Measured, OutcomeKind, Place, Proof, Severity,
};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let victims: Vec<_> = analysis.oom_victims.iter().filter(|victim| victim.of_cgroup()).collect();
    match victims.iter().find(|victim| !analysis.unnoticed(victim)) {
        Some(victim) => Judgement::one(killed(analysis, &RULE, victim, victims.len())),
        None if victims.is_empty() => unseen(analysis).unwrap_or_else(|| unreadable(analysis)),
        None => Judgement::Nothing,
    }
}

/// A kill in a cgroup of the job, of a process that lived between two looks: the job's, or another's in there.
fn unseen(analysis: &Analysis) -> Option<Judgement> {
    let outcome = analysis.plain_outcome();
    if outcome.kind != OutcomeKind::Exit || outcome.code == Some(0) {
        return None;
    }
    let group = own_groups(analysis)
        .into_iter()
        .find(|group| group.oom_kills.growth().is_some_and(|grown| grown > 0))?;
    let line = analysis
        .kernel_log()
        .find(|line| line.task_cgroup.as_deref().is_some_and(|path| path.ends_with(group.path())));
    let whom = line.map_or("a process".to_owned(), |line| format!("{} (pid {})", line.task, line.pid));
    Some(Judgement::undetermined(format!(
        "the kernel killed {whom} in the job's cgroup {} at its memory limit; it was too short-lived to be read",
        group.path()
    )))
}

/// SIGKILL, and nothing to tell whose.
fn unreadable(analysis: &Analysis) -> Judgement {
    let killed =
        analysis.timeline.endings().into_iter().find(|(_, _, ending)| *ending == Ending::Signaled(SIGKILL));
    let Some((at, process, _)) = killed else { return Judgement::Nothing };
    let counters_read =
        analysis.timeline.cgroups().any(|group| group.oom_kills.last.is_some_and(|(last, _)| last >= at));
    let host_reported = analysis.oom_victims.iter().any(|victim| !victim.of_cgroup());
    let budget = analysis.plain_outcome().kind == OutcomeKind::Budget;
    if counters_read || host_reported || budget {
        return Judgement::Nothing;
    }
    let limited = analysis.timeline.cgroups().any(|group| limit(group).is_some());
    if !limited && analysis.timeline.cgroups().any(|group| group.memory.last().is_some()) {
        return Judgement::Nothing;
    }
    Judgement::undetermined(format!(
        "{} was killed by SIGKILL; its cgroup's oom_kill counter could not be read afterwards",
        evidence::describe(process)
    ))
}

/// What it was in the midst of: a kill leaves no traceback.
fn call_sentence(process: &ProcessHistory, kill: At, line: Option<&KernelOomKill>) -> Option<Evidence> {
    let LastCall { frame, from, came, held, .. } = last_call(process, kill, line)?;
    let sentence = format!(
        "{} of the {} that it held came while it was in {}, called from {}.",
        evidence::bytes(came as u64),
        evidence::bytes(held as u64),
        evidence::frame(frame),
        evidence::frame(from)
    );
    let source = evidence::Source::Agent(process.id.pid);
    Some(evidence::text("work", frame, source, Some(kill), sentence))
}

/// The finding for one victim; also used where nobody noticed.
pub(super) fn killed(analysis: &Analysis, rule: &Rule, victim: &Victim, victims: usize) -> Finding {
    let known = match victim.sign {
        KillSign::Log | KillSign::Counter => Proof::KernelSaid,
        KillSign::AtLimit => Proof::ReadNearLimit,
    };
    let limiting = victim.group.and_then(|group| limiting(analysis, group));
    let counted = counter_sentence(victim);
    let line = line_sentence(victim, counted.is_none(), limiting.map(|(_, limit)| limit));
    // Where the kernel named its victim, that it counted one too is the least news.
    let (first, last) = if line.is_some() { (line, counted) } else { (counted, None) };
    let mut evidence: Vec<Evidence> = first.into_iter().collect();
    let mut call = victim.process.and_then(|process| call_sentence(process, victim.at, victim.line));
    if !evidence.is_empty() {
        evidence.extend(call.take());
    }
    // What is read after a kill is what the kill left.
    let before = victim.last_read_before();
    let budget = limiting.and_then(|(_, limit)| own_budget(analysis, limit));
    if let Some((group, limit)) = limiting {
        let held = group.memory.at_or_before(before);
        if let Some((at, used)) = held {
            let subject = budget.map_or("The cgroup", |_| "The job");
            let sentence = format!(
                "{subject} held {} of {}, {} before the kill.",
                evidence::bytes(used as u64),
                evidence::bytes(limit),
                evidence::seconds(victim.at.since(at))
            );
            let source = evidence::Source::CgroupMemory(group.path().to_owned());
            evidence.push(evidence::with_limit(
                evidence::number("cgroup memory", used as u64, "bytes", source, at, sentence),
                limit,
            ));
        }
        evidence.extend(parts_sentence(group, before));
    }
    evidence.extend(call);
    evidence.extend(victim.process.and_then(|process| process_sentence(process, victim, before)));
    evidence.extend(largest_sentence(analysis, victim, before));
    evidence.extend(last);
    if victims > 1 {
        let sentence = format!(
            "The kernel killed {} of the job this way; this is the first.",
            evidence::plural(victims as u64, "process", "processes")
        );
        evidence.push(evidence::number(
            "victims",
            victims as u64,
            "processes",
            "all kills",
            victim.at,
            sentence,
        ));
    }
    let severity = if analysis.ended_well()
        || analysis.plain_outcome().kind == OutcomeKind::StillRunning && victim.process.is_some()
    {
        Severity::Warning
    } else {
        Severity::Fatal
    };
    let peak = limiting.and_then(|(group, _)| group.memory.peak()).map(|(_, peak)| peak as u64);
    let context = RemedyContext {
        bytes: peak,
        path: limiting.map(|(group, _)| group.path().to_owned()),
        ..analysis.remedy_context(None)
    };
    let mut finding = of_job(rule, severity, known, evidence, &context);
    if let Some(budget) = budget {
        finding.title =
            format!("The job reached its memory budget of {} (--memory-max)", evidence::bytes(budget));
        finding.fixes = within_budget(budget, &context);
    }
    finding.process = victim.process.map(evidence::process_ref);
    finding.at = Some(victim.at);
    finding
}

/// The budget that the user set, where the limit that was met is it: ullage made the cgroup for it. Limits are whole pages.
fn own_budget(analysis: &Analysis, limit: u64) -> Option<u64> {
    analysis.facts.memory_max.filter(|budget| budget >> 12 == limit >> 12)
}

fn within_budget(budget: u64, context: &RemedyContext) -> Vec<Fix> {
    let more = (budget / 2).saturating_add(budget) >> 20;
    vec![
        Fix::new("Raise the budget", format!("ullage run --memory-max {more}MiB -- {}", context.typed())),
        sharing::hold_less(),
        sharing::fewer_batches(context),
    ]
}

/// Processes that are told one by one.
const MOST_LARGEST: usize = 4;

/// Who held how much when it was killed, where that was not one process alone.
fn largest_sentence(analysis: &Analysis, victim: &Victim, before: At) -> Option<Evidence> {
    let alive = Cohort::of(analysis.timeline.processes()).alive(before);
    let held = |process: &ProcessHistory| held_by(analysis.timeline, process, before);
    let mut all: Vec<_> = alive.into_iter().filter_map(|one| Some((held(one)?, one))).collect();
    all.sort_by_key(|(bytes, process)| (Reverse(*bytes), process.id));
    let sum = all.iter().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add);
    let much: Vec<_> = all.iter().filter(|(bytes, _)| bytes.saturating_mul(WARN_PART) >= sum).collect();
    if much.len() < 2 {
        return None;
    }
    let listed = much.iter().take(MOST_LARGEST);
    let names: Vec<String> = listed
        .map(|(bytes, process)| format!("{} {}", evidence::describe(process), evidence::bytes(*bytes)))
        .collect();
    let rest = all.len() - names.len();
    let rest = match rest {
        0 => String::new(),
        _ => format!(", {} the rest", evidence::plural(rest as u64, "other process", "other processes")),
    };
    let sentence = format!(
        "The job's processes held {} that they shared with nobody: {}{rest}.",
        evidence::bytes(sum),
        names.join(", ")
    );
    let at = before.min(victim.at);
    Some(evidence::number("private memory", sum, "bytes", "/proc/PID/status of each", at, sentence))
}

/// What the victim held, where it was read before the kill.
fn process_sentence(process: &ProcessHistory, victim: &Victim, before: At) -> Option<Evidence> {
    let source = evidence::Source::Process(process.id.pid, "status");
    let subject = evidence::capital(&evidence::describe(process));
    match process.memory.filter(|(at, _)| *at <= before) {
        Some((at, memory)) => {
            let sentence = format!(
                "{subject} held {} resident ({} anonymous, {} shared), {} before the kill.",
                evidence::bytes(memory.resident().0),
                evidence::bytes(memory.anonymous.0),
                evidence::bytes(memory.shared.0),
                evidence::seconds(victim.at.since(at))
            );
            Some(evidence::number("resident memory", memory.resident().0, "bytes", source, at, sentence))
        }
        None => {
            let (at, anonymous) = process.anonymous.at_or_before(before)?;
            let sentence = format!(
                "{subject} held {} of anonymous memory, {} before the kill.",
                evidence::bytes(anonymous as u64),
                evidence::seconds(victim.at.since(at))
            );
            Some(evidence::number("anonymous memory", anonymous as u64, "bytes", source, at, sentence))
        }
    }
}

/// `alone`: no other sentence names the cgroup.
fn line_sentence(victim: &Victim, alone: bool, limit: Option<u64>) -> Option<Evidence> {
    let line = victim.line?;
    let group = line.oom_cgroup.as_ref().filter(|_| alone);
    let subject = group.map_or("its cgroup".to_owned(), |group| format!("the cgroup {group}"));
    let of = limit.map_or(String::new(), |limit| format!(" of {}", evidence::bytes(limit)));
    let sentence = format!(
        "The kernel killed {} (pid {}) when {subject} met its memory limit{of}: {} anonymous, {} shared.",
        line.task,
        line.pid,
        evidence::bytes(line.anonymous),
        evidence::bytes(line.shared)
    );
    Some(evidence::text("OOM kill", &line.task, "kernel log", Some(victim.at), sentence))
}

fn counter_sentence(victim: &Victim) -> Option<Evidence> {
    let group = victim.group?;
    let (before, shown) = group.oom_kills.moved?;
    let grown = group.oom_kills.growth()?;
    let sentence = format!(
        "The kernel counted {} in the cgroup {} from {} to {} after the start.",
        evidence::plural(grown, "OOM kill", "OOM kills"),
        group.path(),
        evidence::seconds(before.seconds()),
        evidence::seconds(shown.seconds())
    );
    let source = if group.is_v2() { "memory.events" } else { "memory.oom_control" };
    Some(evidence::number(
        "OOM kills",
        grown,
        "kills",
        evidence::Source::Cgroup(source, group.path().to_owned()),
        shown,
        sentence,
    ))
}

fn parts_sentence(group: &CgroupHistory, before: At) -> Option<Evidence> {
    let (at, reading) = group.reading_before(before)?;
    let memory = reading.memory.as_known()?;
    let parts = memory.parts.known()?;
    let whole = match memory.oom_group {
        Measured::Known(true) => " It kills the whole group at once (memory.oom.group is 1).",
        _ => "",
    };
    let sentence = format!(
        "Before the kill {} was anonymous, {} shared (/dev/shm), {} page cache.{whole}",
        evidence::bytes(parts.anonymous.0),
        evidence::bytes(parts.shared.0),
        evidence::bytes(parts.file.0.saturating_sub(parts.shared.0))
    );
    let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
    Some(evidence::number("anonymous memory", parts.anonymous.0, "bytes", source, at, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    // No size is made up where none was read.
    let size = context.bytes.map(|peak| ((peak / 10).saturating_mul(13) >> 30) + 1);
    let size = |unit: &str| size.map_or_else(|| "SIZE".to_owned(), |gib| format!("{gib}{unit}"));
    let mut fixes = vec![
        Fix::new(
            "Start the container with a limit above the peak",
            format!("docker run --memory={} IMAGE", size("g")),
        )
        .only(Place::Container),
        Fix::new("Under Slurm: ask for more than the peak", format!("sbatch --mem={} train.sh", size("G")))
            .only(Place::Slurm),
    ];
    if context.path.as_ref().is_some_and(|path| path.len() > 1) {
        fixes.push(Fix::new(
            "Start the job in a cgroup with a larger limit, or have its limit raised",
            format!("systemd-run --user --scope -p MemoryMax={} {}", size("G"), context.typed()),
        ));
    }
    fixes.push(sharing::fewer_batches(context));
    fixes.push(sharing::hold_less());
    fixes
}
