//! Does a run show orphan-workers? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{MOST_ANCESTORS, ORPHANED_S, ORPHANED_TIMES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use std::collections::{BTreeMap, BTreeSet};
use ullage_model::{At, Ending, Evidence, Fix, OutcomeKind, ProcessId, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    match survivors(analysis) {
        Judgement::Nothing => orphaned_during(analysis),
        found => found,
    }
}

/// Workers that went on for long after their parent was killed, or ended without them, whatever became of them at the end of the
/// run.
fn orphaned_during(analysis: &Analysis) -> Judgement {
    // What Python forks or multiprocessing starts works for its parent, whatever it is called; a program may be meant to stay.
    let repeated = left_behind_repeatedly(analysis);
    let is_worker = |process: &&ProcessHistory| match process.role {
        Role::LoaderWorker(_) | Role::PoolWorker | Role::Rank(_) => true,
        _ if repeated.contains(&process.id) => true,
        Role::Trainer | Role::Other => {
            let forked = process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some());
            process.started_by.is_some() || (forked && process.name().starts_with("python"))
        }
        _ => false,
    };
    let mut orphans: Vec<(f64, &ProcessHistory, &ProcessHistory)> = Vec::new();
    for process in analysis.timeline.processes().filter(is_worker) {
        let left = repeated.contains(&process.id).then(|| outlived(analysis, process)).flatten();
        if let Some((alone, ancestor)) = killed_above(analysis, process).or(left) {
            orphans.push((alone, process, ancestor));
        }
    }
    orphans.sort_by(|a, b| b.0.total_cmp(&a.0));
    let Some((longest, first, ancestor)) = orphans.first() else { return Judgement::Nothing };
    let memory: u64 = orphans
        .iter()
        .filter_map(|(_, process, _)| process.memory)
        .map(|(_, memory)| memory.anonymous.0)
        .fold(0, u64::saturating_add);
    let sentence = format!(
        "{} outlived a parent that {}, by up to {}, and held {} of anonymous memory; the first was {}, {} pid {}.",
        evidence::plural(orphans.len() as u64, "worker", "workers"),
        if is_killed(ancestor) { "was killed" } else { "exited and did not end them" },
        evidence::seconds(*longest),
        evidence::bytes(memory),
        evidence::describe(first),
        if first.born_to() == ancestor.id.pid { "started by" } else { "further below" },
        ancestor.id.pid
    );
    let at = ancestor.ended.map_or(ancestor.last_seen, |(at, _, _)| at);
    let source = "parents of processes that ended";
    let evidence = vec![evidence::number("orphans", orphans.len() as u64, "processes", source, at, sentence)];
    let mut finding =
        of_job(&RULE, Severity::Warning, Proof::SeenOutside, evidence, &analysis.remedy_context(None));
    finding.process = Some(evidence::process_ref(first));
    let group = Fix::new(
        "End a parent together with its group, not alone",
        "setsid python train.py & parent=$!\nkill -KILL -- -$parent  # the minus sign: its whole group",
    );
    let close = Fix::new(
        "End the workers before the program: os._exit() runs no handler that would",
        "executor.shutdown(cancel_futures=True)  # of a Pool: pool.terminate(); pool.join()",
    );
    finding.fixes = vec![if is_killed(ancestor) { group } else { close }, with_the_parent()];
    // What its workers hold came before, and stays because of this.
    finding.at = Some(first.first_seen);
    Judgement::one(finding)
}

/// Python programs that outlived the Python that started them and failed, the same program under so many others, and all of them
/// there at one time: each of those left one behind. A server that is meant to stay is left behind once, and by what exits with 0.
fn left_behind_repeatedly(analysis: &Analysis) -> BTreeSet<ProcessId> {
    let mut by_program: BTreeMap<&str, Vec<(At, &ProcessHistory, ProcessId)>> = BTreeMap::new();
    for process in analysis.timeline.processes() {
        let Some(program) = program(process) else { continue };
        let Some(parent) = analysis.timeline.by_pid(process.born_to()) else { continue };
        let Some((at, ending, _)) = parent.ended else { continue };
        // A pid may have been given out again.
        let is_parent = parent.is_python() && (parent.first_seen..at).contains(&process.first_seen);
        if is_parent && failed(ending) && process.last_seen.since(at) >= ORPHANED_S {
            by_program.entry(program).or_default().push((at, process, parent.id));
        }
    }
    let mut repeated = BTreeSet::new();
    for left in by_program.into_values() {
        // At the end of each: those that were alone for so long by then, and were still there.
        let together = |end: At| {
            let there = left
                .iter()
                .filter(|(at, process, _)| process.last_seen >= end && end.since(*at) >= ORPHANED_S);
            there.map(|(_, _, parent)| *parent).collect::<BTreeSet<_>>().len()
        };
        if left.iter().any(|(_, process, _)| together(process.last_seen) >= ORPHANED_TIMES) {
            repeated.extend(left.iter().map(|(_, process, _)| process.id));
        }
    }
    repeated
}

/// Not where nobody saw how it ended.
fn failed(ending: Ending) -> bool {
    matches!(ending, Ending::Signaled(_)) || matches!(ending, Ending::Exited(status) if status != 0)
}

/// `server.py` of `python -u server.py 1`, `server` of `python -m server`; none where it is no program of its own, or has no name.
fn program(process: &ProcessHistory) -> Option<&str> {
    let facts = process.facts.as_ref().filter(|facts| facts.forked_from.is_none())?;
    let is_one = process.is_python() && process.started_by.is_none();
    if !is_one || !matches!(process.role, Role::Other | Role::Helper) {
        return None;
    }
    let mut words = facts.command_line.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" => return None,
            "-W" | "-X" => drop(words.next()),
            option if option.starts_with('-') => {}
            name => return Some(name),
        }
    }
    None
}

/// Its parent, and seconds for which it outlived it.
fn outlived<'a>(analysis: &Analysis<'a>, process: &ProcessHistory) -> Option<(f64, &'a ProcessHistory)> {
    let parent = analysis.timeline.by_pid(process.born_to())?;
    Some((process.last_seen.since(parent.ended?.0), parent))
}

fn is_killed(process: &ProcessHistory) -> bool {
    matches!(process.ended, Some((_, Ending::Signaled(_), _)))
}

/// The nearest of a process's ancestors that was killed by a signal and that it outlived for long, by how many seconds: its parent,
/// or a Python program further up, of which nobody in between knows. A shell that is killed may have meant its children to stay.
/// A Python that exits ends or awaits what multiprocessing started for it, unless it leaves by `os._exit`: then they are orphans too.
fn killed_above<'a>(analysis: &Analysis<'a>, process: &ProcessHistory) -> Option<(f64, &'a ProcessHistory)> {
    let ancestors = std::iter::successors(analysis.timeline.by_pid(process.born_to()), |ancestor| {
        analysis.timeline.by_pid(ancestor.born_to())
    });
    // A pid that is given out again makes no circle.
    ancestors.take(MOST_ANCESTORS).find_map(|ancestor| {
        let (at, ending, _) = ancestor.ended?;
        let is_parent = ancestor.id.pid == process.born_to() && ancestor.is_python();
        let left = matches!(ending, Ending::Exited(_))
            && is_parent
            && process.started_by.is_some()
            && !leaves_by_itself(analysis, process);
        if !is_killed(ancestor) && !left {
            return None;
        }
        let alone = process.last_seen.since(at);
        let is_its_own = ancestor.id.pid == process.born_to() || ancestor.is_python();
        (process.first_seen < at && alone >= ORPHANED_S && is_its_own).then_some((alone, ancestor))
    })
}

/// Processes that are alive after the end of the command.
fn survivors(analysis: &Analysis) -> Judgement {
    let Some((at, survivors)) = analysis.timeline.finished() else { return Judgement::Nothing };
    let mut orphans: Vec<_> = survivors
        .iter()
        .filter_map(|id| analysis.timeline.process(*id))
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
    let is_worker = |process: &&&ProcessHistory| {
        matches!(
            process.role,
            Role::Trainer | Role::Rank(_) | Role::LoaderWorker(_) | Role::PoolWorker | Role::Forkserver
        ) && !leaves_by_itself(analysis, process)
    };
    let worker = orphans.iter().find(is_worker);
    let repeated = left_behind_repeatedly(analysis);
    let many = orphans.iter().filter(|process| repeated.contains(&process.id)).count() >= ORPHANED_TIMES;
    let stay = orphans.iter().any(|process| !leaves_by_itself(analysis, process));
    let outcome = analysis.plain_outcome();
    let killed = matches!(outcome.kind, OutcomeKind::Signal | OutcomeKind::OomKill | OutcomeKind::Budget);
    let severity =
        if stay && (killed || worker.is_some() || many) { Severity::Warning } else { Severity::Note };
    let memory: u64 = orphans
        .iter()
        .filter_map(|process| process.memory)
        .map(|(_, memory)| memory.anonymous.0)
        .fold(0, u64::saturating_add);
    let names: Vec<_> = orphans.iter().take(6).map(|process| evidence::describe(process)).collect();
    let more = orphans.len().saturating_sub(6);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let sentence = format!(
        "{} outlived the command and hold {} of anonymous memory: {}{more}.",
        evidence::plural(orphans.len() as u64, "process", "processes"),
        evidence::bytes(memory),
        names.join(", ")
    );
    let mut evidence: Vec<Evidence> = vec![evidence::number(
        "survivors",
        orphans.len() as u64,
        "processes",
        "pids alive after the end of COMMAND",
        at,
        sentence,
    )];
    if killed {
        let how = outcome.signal.map_or("was killed".to_owned(), |signal| {
            format!("was killed by {}", evidence::signal_name(signal))
        });
        let sentence = format!("The command {how}, and could not end its children.");
        evidence.push(evidence::text("COMMAND", &how, "wait", Some(at), sentence));
    }
    let pids = orphans.iter().map(|process| process.id.pid).collect();
    let context = RemedyContext { pids, ..analysis.remedy_context(None) };
    let mut finding = of_job(&RULE, severity, Proof::SeenOutside, evidence, &context);
    finding.process = Some(evidence::process_ref(worker.unwrap_or(largest)));
    Judgement::one(finding)
}

/// A loader's worker that its trainer started itself, by fork or spawn, looks every few seconds whether that one lives. One
/// of a forkserver looks at the server, and stays.
fn leaves_by_itself(analysis: &Analysis, process: &ProcessHistory) -> bool {
    let parent = analysis.timeline.processes().find(|parent| parent.id.pid == process.born_to());
    let by_server = process.started_by.as_deref() == Some("forkserver")
        || parent.is_some_and(|parent| matches!(parent.role, Role::Forkserver | Role::Zygote));
    matches!(process.role, Role::LoaderWorker(_)) && !by_server
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let pids = context.pids.iter().take(64).map(|pid| format!(" {pid}")).collect::<String>();
    let mut fixes = Vec::new();
    if !pids.is_empty() {
        fixes.push(Fix::new("End them", format!("kill{pids}")));
    }
    fixes.push(Fix::new(
        "Start the job in a scope that ends with it",
        format!("systemd-run --user --scope -p KillMode=control-group {}", context.typed()),
    ));
    fixes.push(with_the_parent());
    fixes
}

fn with_the_parent() -> Fix {
    Fix::new(
        "In your own child processes: end with the parent",
        "import ctypes, signal\nctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, first thing in the child",
    )
}
