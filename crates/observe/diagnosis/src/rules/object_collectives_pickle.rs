//! # object-collectives-pickle
//!
//! ## What it does
//! Finds a job that ran out of memory while Python objects went from rank to rank (all_gather_object and its like).
//!
//! ## Why it happens
//! Such a collective pickles each rank's object, pads it to the largest one, gathers all of them in every rank, and unpickles
//! them there: with N ranks each holds N objects twice, once as bytes, and a node with all of them N x N. At the end of an
//! evaluation it is all predictions at once.
//!
//! ## How it is told apart
//! The exception for lack of memory left through such a collective; or, where a process was killed, the agent had told shortly
//! before which object a rank was about to send, and what the ranks took since then fits that object. Which limit was met is
//! a finding of its own. Where nothing failed, gathered objects that are a good part of the job's peak are a note.
//!
//! ## Known problems
//! Needs the agent. Memory that C++ holds for an object is not weighed.
//!
//! ## Example
//! `torch.distributed.all_gather_object(all_predictions, predictions)` after the last batch of an evaluation
//!
//! ## Remedy
//! Reduce numbers instead of gathering objects; gather in one rank only; or write a file for each rank.
//!
//! ## References
//! - <https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather_object>
//! - <https://github.com/huggingface/transformers/issues/18799>

use crate::failure::Failure;
use crate::found::{no_memory_in, of_job};
use crate::history::ProcessHistory;
use crate::oom::Victim;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{At, Collective, Evidence, Finding, Fix, OutcomeKind, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "object-collectives-pickle",
    title: "all_gather_object / gather of Python objects to every rank",
    source: include_str!("object_collectives_pickle.rs"),
    judge,
    fixes,
};

/// So long before the end an object was told of, seconds.
const BEFORE_S: f64 = 30.0;
/// A process that was not read since then may be killed within this time.
const UNREAD_S: f64 = 5.0;
/// The ranks took at least one part in so many of the job's peak until one was killed: the kill comes in the midst of it.
const TAKEN: u64 = 8;
/// Worth a note where nothing failed: so much, and a quarter of all that the job held.
const MUCH: u64 = 512 << 20;

/// The last object that one rank sent before a moment.
struct Sent<'a> {
    process: &'a ProcessHistory,
    at: At,
    what: &'a Collective,
}

fn judge(case: &Case) -> Judgement {
    let asked =
        no_memory_in(case, &RULE, "an object was on its way from rank to rank", in_collective, |_| {
            all(case, case.timeline.end()).into_iter().max_by_key(gathered).map(|sent| told(&sent))
        });
    if let Judgement::Found(found) = asked {
        return Judgement::Found(found);
    }
    match killed(case).or_else(|| large(case)) {
        Some(finding) => Judgement::one(finding),
        None => asked,
    }
}

fn in_collective(failure: &Failure) -> bool {
    const CALLS: [&str; 8] = [
        "all_gather_object",
        "gather_object",
        "broadcast_object_list",
        "scatter_object_list",
        "send_object_list",
        "recv_object_list",
        "_object_to_tensor",
        "_tensor_to_object",
    ];
    failure.calls("torch/distributed/distributed_c10d.py", &CALLS)
}

/// What each rank sent last before this moment.
fn all<'a>(case: &Case<'a>, until: At) -> Vec<Sent<'a>> {
    let last = |process: &'a ProcessHistory| {
        let (at, what) = process.keeps.sent.iter().rfind(|(at, _)| *at <= until)?;
        Some(Sent { process, at: *at, what })
    };
    case.timeline.processes().filter_map(last).collect()
}

/// Bytes of all objects that end up in one rank.
fn gathered(sent: &Sent) -> u64 {
    sent.what.object.map_or(0, |weight| weight.bytes()).saturating_mul(sent.what.ranks.max(1))
}

/// Ranks of one collective at its beginning and of one kind.
fn together<'a>(sent: Vec<Sent<'a>>) -> Vec<Sent<'a>> {
    let Some((of, line)) =
        sent.iter().max_by_key(|sent| sent.at).map(|sent| (&sent.what.of, &sent.what.line))
    else {
        return Vec::new();
    };
    sent.into_iter().filter(|sent| sent.what.of == *of && sent.what.line == *line).collect()
}

/// The kernel, or a budget, ended a process soon after it had begun.
fn killed(case: &Case) -> Option<Finding> {
    let victim = case.oom_victims().first().map(|victim| victim.at);
    let budget = (case.plain_outcome().kind == OutcomeKind::Budget).then(|| case.timeline.end());
    let at = victim.or(budget)?;
    let ranks = together(all(case, At::from_seconds(at.seconds() + 0.5)));
    let begun = ranks.iter().map(|sent| sent.at).max()?;
    let since = at.since(begun);
    if since > BEFORE_S {
        return None;
    }
    let most: u64 = ranks.iter().map(gathered).fold(0, u64::saturating_add);
    // As bytes and as objects, and what pickling takes meanwhile.
    let room = |sent: &Sent| 3 * gathered(sent).saturating_add(gathered(sent) / sent.what.ranks.max(1) * 4);
    let rises: Vec<Option<u64>> = ranks.iter().map(|sent| rise(case, sent, at)).collect();
    let fits = ranks.iter().zip(&rises).all(|(sent, rise)| rise.is_none_or(|rise| rise <= room(sent)));
    let took: u64 = rises.iter().flatten().fold(0, |sum, rise| sum.saturating_add(*rise));
    let peak = case.timeline.memory().peak_bytes;
    let unread = rises.iter().all(Option::is_none) && since <= UNREAD_S;
    // They take alike: one that was not read counts as the others.
    let number = rises.iter().flatten().count().max(1) as u64;
    let of_all = if unread { most } else { (took / number).saturating_mul(ranks.len() as u64) };
    if !fits || of_all.saturating_mul(TAKEN) < peak {
        return None;
    }
    let largest = ranks.iter().max_by_key(|sent| gathered(sent))?;
    let mut evidence = vec![told(largest)];
    let how = if unread {
        format!("A process of the job was killed for memory {} after that.", say::seconds(since))
    } else {
        format!(
            "In the {} until a process of the job was killed for memory, {} took {} of private memory.",
            say::seconds(since),
            say::plural(number, "rank", "ranks"),
            say::bytes(took)
        )
    };
    evidence.push(say::number(
        "taken since then",
        took,
        "bytes",
        "/proc/PID/status of each, and the kernel log",
        at,
        how,
    ));
    let known = if unread { (Status::Hypothesis, 0.5) } else { (Status::Supported, 0.8) };
    Some(found(case, largest, Severity::Warning, known, evidence))
}

/// Private memory that a rank took since it began; none where it was not read again, and not killed with a word of the kernel.
fn rise(case: &Case, sent: &Sent, until: At) -> Option<u64> {
    let held = &sent.process.anonymous;
    let before = held.at_or_before(sent.at).or(held.first())?.1;
    let read = held.peak_between(At(sent.at.0 + 1), until).map(|(_, peak)| peak);
    // A second and more may pass between two readings of a busy machine, and this is quicker.
    let killed = at_kill(case, sent.process).map(|bytes| bytes as f64);
    let most = read.into_iter().chain(killed).reduce(f64::max)?;
    Some((most - before).max(0.0) as u64)
}

/// What the kernel found in a process that it killed.
fn at_kill(case: &Case, process: &ProcessHistory) -> Option<u64> {
    let is_it = |victim: &&Victim| victim.process.is_some_and(|killed| killed.id == process.id);
    let line = case.oom_victims().iter().find(is_it)?.line?;
    (line.anonymous > 0).then_some(line.anonymous)
}

/// Nothing failed: a large part of what the job held.
fn large(case: &Case) -> Option<Finding> {
    if crate::copies::ran_out(case) {
        return None;
    }
    let ranks = together(all(case, case.timeline.end()));
    let most: u64 = ranks.iter().map(gathered).fold(0, u64::saturating_add);
    let largest = ranks.iter().max_by_key(|sent| gathered(sent))?;
    (most >= MUCH && most.saturating_mul(4) >= case.timeline.memory().peak_bytes)
        .then(|| found(case, largest, Severity::Note, (Status::Supported, 0.7), vec![told(largest)]))
}

fn found(
    case: &Case,
    sent: &Sent,
    severity: Severity,
    known: (Status, f64),
    evidence: Vec<Evidence>,
) -> Finding {
    let mut finding = of_job(&RULE, severity, known, evidence, &case.setting_of(Some(sent.process)));
    finding.process = Some(say::process_ref(sent.process));
    finding
}

fn told(sent: &Sent) -> Evidence {
    let object = sent.what.object.map_or(0, |weight| weight.bytes());
    let place =
        if sent.what.line.is_empty() { String::new() } else { format!(", called at {}", sent.what.line) };
    let sentence = format!(
        "{} began {} with an object of {} in a group of {} ranks{place}: {} of objects where all of them arrive, as bytes and then once more as objects.",
        say::capital(&say::who(sent.process)),
        sent.what.of,
        say::bytes(object),
        sent.what.ranks,
        say::bytes(gathered(sent))
    );
    let source = format!("agent in {}", sent.process.id.pid);
    say::number("object of one rank", object, "bytes", &source, sent.at, sentence)
}

fn fixes(_setting: &Setting) -> Vec<Fix> {
    vec![
        Fix {
            title: "Send figures instead of objects: what a metric needs is a few sums".into(),
            command: "torch.distributed.all_reduce(sums)".into(),
            automatic: None,
        },
        Fix {
            title: "Gather where it is needed, in one rank".into(),
            command: "torch.distributed.gather_object(part, parts if rank == 0 else None, dst=0)".into(),
            automatic: None,
        },
        Fix {
            title: "Or write a file for each rank, and read them one after another".into(),
            command: "torch.save(predictions, f\"predictions-{rank}.pt\")".into(),
            automatic: None,
        },
    ]
}
