//! Does a run show machine-neighbour-load? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{NEIGHBOURS_FELL, NEIGHBOURS_FLAT};
use crate::policy::sizes::MOST;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Evidence, Fix, Neighbour, Neighbours, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Named in the evidence.
const MOST_NAMED: usize = 5;

fn judge(analysis: &Analysis) -> Judgement {
    let host = analysis.timeline.host();
    let total = host.last.memory.as_known().map_or(0, |memory| memory.total.0) as f64;
    let [(began, before), .., (latest, after)] = analysis.timeline.neighbours() else {
        return Judgement::Nothing;
    };
    let available = |at: At| host.available.at_or_before(at).map(|(_, bytes)| bytes);
    let (Some(at_first), Some(at_last)) = (available(*began), available(*latest)) else {
        return Judgement::Nothing;
    };
    let fell = at_first - at_last;
    if at_last >= Neighbours::SHORT * total || fell < NEIGHBOURS_FELL * total {
        return Judgement::Nothing;
    }
    let tree = |at: At| analysis.timeline.tree.at_or_before(at).map_or(0.0, |(_, bytes)| bytes);
    let (job, job_before) = (tree(*latest), tree(*began));
    let took = (job - job_before).max(0.0);
    if took >= NEIGHBOURS_FLAT * fell {
        return Judgement::Nothing;
    }
    let others = after.bytes.saturating_sub(before.bytes) as f64;
    let short = format!(
        "The machine's available memory fell by {} to {} of {}, while the job grew by {} to {}",
        evidence::bytes(fell as u64),
        evidence::bytes(at_last as u64),
        evidence::bytes(total as u64),
        evidence::bytes(took as u64),
        evidence::bytes(job as u64)
    );
    if others < MOST * fell {
        return Judgement::undetermined(format!(
            "{short}; the {} visible beside it grew by {}, so containers, a tmpfs or the kernel hold the rest",
            evidence::plural(after.processes, "process", "processes"),
            evidence::bytes(others as u64)
        ));
    }
    let fall = evidence::number(
        "available memory",
        at_last as u64,
        "bytes",
        "/proc/meminfo",
        *latest,
        format!("{short}."),
    );
    let mut evidence = vec![evidence::with_limit(fall, total as u64), grew(*latest, others, after)];
    evidence.extend(after.largest.iter().take(MOST_NAMED).map(|one| ranked(one, before, *latest)));
    let mut context = analysis.remedy_context(None);
    context.pids = after.largest.iter().map(|one| one.id.pid).take(1).collect();
    let finding = of_job(&RULE, Severity::Warning, Proof::SeenOutside, evidence, &context);
    Judgement::one(finding)
}

fn grew(at: At, others: f64, after: &Neighbours) -> Evidence {
    let sentence = format!(
        "{} outside the job grew by {} to {}.",
        evidence::plural(after.processes, "process", "processes"),
        evidence::bytes(others as u64),
        evidence::bytes(after.bytes)
    );
    evidence::number("memory of others", after.bytes, "bytes", "/proc/PID/status", at, sentence)
}

fn ranked(one: &Neighbour, before: &Neighbours, at: At) -> Evidence {
    let owner = one.uid.map_or(String::new(), |uid| format!(", user {uid}"));
    let earlier = before.largest.iter().find(|other| other.id == one.id).map(|other| other.bytes);
    let grew = match earlier {
        Some(earlier) if one.bytes > earlier => {
            format!(", {} more than before", evidence::bytes(one.bytes - earlier))
        }
        Some(_) => ", as before".into(),
        None => ", and was small before".into(),
    };
    let sentence =
        format!("{} (pid {}{owner}) held {}{grew}.", one.name, one.id.pid, evidence::bytes(one.bytes));
    let source = evidence::Source::Process(one.id.pid, "status");
    evidence::number(&format!("memory of {}", one.name), one.bytes, "bytes", source, at, sentence)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if let Some(pid) = context.pids.first() {
        fixes.push(Fix::new(
            "Look at the largest of them, and end or postpone it",
            format!("ps -o pid,user,rss,lstart,args -p {pid}"),
        ));
    }
    if context.is_root() {
        fixes.push(Fix::new(
            "Give the other work its own limit",
            "systemd-run --scope -p MemoryMax=8G -- COMMAND",
        ));
    } else {
        fixes.push(Fix::new(
            "If the other work is yours: start it with its own limit",
            "systemd-run --user --scope -p MemoryMax=8G -- COMMAND",
        ));
    }
    fixes
}
