//! Does a run show object-collectives-pickle? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::killed_at_work::during;
use crate::analysis::oom::Victim;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::NOTICED_EARLY_S;
use crate::policy::memory::{OBJECT_BEFORE_S, OBJECT_TAKEN_PART, OBJECT_UNREAD_S};
use crate::policy::sizes::{NOTE_PART, WORK_NOTE_BYTES};
use crate::rule::finding::{is_killed_at_work, no_memory_in, of_process};
use crate::rule::retainers::ELSEWHERE;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Collective, Evidence, Finding, Fix, OutcomeKind, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// What evidence is called of the object that a rank sent, and of all that ranks took since then.
pub(crate) const SENT: &str = "object of one rank";
pub(crate) const TAKEN: &str = "taken by ranks since then";

/// The last object that one rank sent before a moment.
struct Sent<'a> {
    process: &'a ProcessHistory,
    at: At,
    what: &'a Collective,
}

fn judge(analysis: &Analysis) -> Judgement {
    let asked = no_memory_in(analysis, &RULE, "sending an object between ranks", in_collective, |_| {
        all(analysis, analysis.timeline.end()).into_iter().max_by_key(gathered).map(|sent| reported(&sent))
    });
    if let Judgement::Found(mut found) = asked {
        // What the agent counted when it began, and where it was at the kill, agree.
        for finding in found.iter_mut().filter(|finding| is_counted_at_the_kill(finding)) {
            finding.proof = Proof::SeenInside;
        }
        return Judgement::Found(found);
    }
    match killed(analysis).or_else(|| large(analysis)) {
        Some(finding) => Judgement::one(finding),
        None => asked,
    }
}

/// A process was in the midst of it at the kill, and had said what it would send.
fn is_counted_at_the_kill(finding: &Finding) -> bool {
    is_killed_at_work(finding) && finding.evidence.iter().any(|evidence| evidence.what == SENT)
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
fn all<'a>(analysis: &Analysis<'a>, until: At) -> Vec<Sent<'a>> {
    let last = |process: &'a ProcessHistory| {
        let (at, what) = process.torch_counters.sent.iter().rfind(|(at, _)| *at <= until)?;
        Some(Sent { process, at: *at, what })
    };
    analysis.timeline.processes().filter_map(last).collect()
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
fn killed(analysis: &Analysis) -> Option<Finding> {
    let victim = analysis.oom_victims.first().map(|victim| victim.at);
    let budget = (analysis.plain_outcome().kind == OutcomeKind::Budget).then(|| analysis.timeline.end());
    let at = victim.or(budget)?;
    let ranks = together(all(analysis, At::from_seconds(at.seconds() + NOTICED_EARLY_S)));
    let begun = ranks.iter().map(|sent| sent.at).max()?;
    let since = at.since(begun);
    if since > OBJECT_BEFORE_S {
        return None;
    }
    let most: u64 = ranks.iter().map(gathered).fold(0, u64::saturating_add);
    // As bytes and as objects, and what pickling takes meanwhile.
    let room = |sent: &Sent| 3 * gathered(sent).saturating_add(gathered(sent) / sent.what.ranks.max(1) * 4);
    let rises: Vec<Option<u64>> = ranks.iter().map(|sent| rise(analysis, sent, at)).collect();
    let fits = ranks.iter().zip(&rises).all(|(sent, rise)| rise.is_none_or(|rise| rise <= room(sent)));
    let took: u64 = rises.iter().flatten().fold(0, |sum, rise| sum.saturating_add(*rise));
    let peak = analysis.timeline.memory().peak_bytes;
    let unread = rises.iter().all(Option::is_none) && since <= OBJECT_UNREAD_S;
    // They take alike: one that was not read counts as the others.
    let number = rises.iter().flatten().count().max(1) as u64;
    let of_all = if unread { most } else { (took / number).saturating_mul(ranks.len() as u64) };
    if !fits || of_all.saturating_mul(OBJECT_TAKEN_PART) < peak {
        return None;
    }
    let largest = ranks.iter().max_by_key(|sent| gathered(sent))?;
    let mut evidence = vec![reported(largest)];
    let how = if unread {
        format!("A process of the job was killed for memory {} later.", evidence::seconds(since))
    } else {
        format!(
            "In the {} before the kill, {} took {} of private memory.",
            evidence::seconds(since),
            evidence::plural(number, "rank", "ranks"),
            evidence::bytes(took)
        )
    };
    let source = "/proc/PID/status of each, and the kernel log";
    let taken = evidence::number(TAKEN, took, "bytes", source, at, how);
    evidence.push(taken);
    let others = of_all.saturating_sub(took);
    if !unread && others > 0 {
        let count = (ranks.len() as u64).saturating_sub(number);
        let sentence = format!(
            "{} not read again, and take about {} more.",
            evidence::plural(count, "rank was", "ranks were"),
            evidence::bytes(others)
        );
        evidence.push(evidence::number(ELSEWHERE, others, "bytes", source, at, sentence));
    }
    // Where the agent saw each rank last, after it had begun.
    let last = |sent: &Sent| {
        let work = sent.process.works.iter().rfind(|(read, _)| (sent.at..=at).contains(read))?;
        Some(during(sent.process, work, &in_collective).is_some())
    };
    let last: Vec<bool> = ranks.iter().filter_map(last).collect();
    let known = match (unread, last.iter().any(|at_it| *at_it)) {
        (true, _) => Proof::Consistent,
        (false, true) => Proof::SeenInside,
        (false, false) if last.is_empty() && since <= OBJECT_UNREAD_S => Proof::InPart,
        (false, false) if last.is_empty() => Proof::Estimated,
        // It was over by then.
        (false, false) => Proof::Consistent,
    };
    Some(found(analysis, largest, Severity::Warning, known, evidence))
}

/// Private memory that a rank took since it began; none where it was not read again, and not killed with a word of the kernel.
fn rise(analysis: &Analysis, sent: &Sent, until: At) -> Option<u64> {
    let held = &sent.process.anonymous;
    let before = held.at_or_before(sent.at).or(held.first())?.1;
    let read = held.peak_between(At(sent.at.0 + 1), until).map(|(_, peak)| peak);
    // A second and more may pass between two readings of a busy machine, and this is quicker.
    let killed = at_kill(analysis, sent.process).map(|bytes| bytes as f64);
    let most = read.into_iter().chain(killed).reduce(f64::max)?;
    Some((most - before).max(0.0) as u64)
}

/// What the kernel found in a process that it killed.
fn at_kill(analysis: &Analysis, process: &ProcessHistory) -> Option<u64> {
    let is_it = |victim: &&Victim| victim.process.is_some_and(|killed| killed.id == process.id);
    let line = analysis.oom_victims.iter().find(is_it)?.line?;
    (line.anonymous > 0).then_some(line.anonymous)
}

/// Nothing failed: a large part of what the job held.
fn large(analysis: &Analysis) -> Option<Finding> {
    if analysis.ran_out {
        return None;
    }
    let ranks = together(all(analysis, analysis.timeline.end()));
    let most: u64 = ranks.iter().map(gathered).fold(0, u64::saturating_add);
    let largest = ranks.iter().max_by_key(|sent| gathered(sent))?;
    (most >= WORK_NOTE_BYTES && most.saturating_mul(NOTE_PART) >= analysis.timeline.memory().peak_bytes)
        .then(|| found(analysis, largest, Severity::Note, Proof::Estimated, vec![reported(largest)]))
}

fn found(
    analysis: &Analysis,
    sent: &Sent,
    severity: Severity,
    known: Proof,
    evidence: Vec<Evidence>,
) -> Finding {
    of_process(analysis, &RULE, severity, known, evidence, sent.process)
}

fn reported(sent: &Sent) -> Evidence {
    let object = sent.what.object.map_or(0, |weight| weight.bytes());
    let place = if sent.what.line.is_empty() { String::new() } else { format!(" at {}", sent.what.line) };
    let sentence = format!(
        "{} called {}{} with an object of {} in {} ranks: {} arrive, as bytes and again as objects.",
        evidence::capital(&evidence::describe(sent.process)),
        sent.what.of,
        place,
        evidence::bytes(object),
        sent.what.ranks,
        evidence::bytes(gathered(sent))
    );
    let source = evidence::Source::Agent(sent.process.id.pid);
    evidence::number(SENT, object, "bytes", source, sent.at, sentence)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Send sums instead of objects: most metrics need no more",
            "torch.distributed.all_reduce(sums)",
        ),
        Fix::new(
            "Gather in one rank only",
            "torch.distributed.gather_object(part, parts if rank == 0 else None, dst=0)",
        ),
        Fix::new(
            "Or write a file per rank, and read them one after another",
            "torch.save(predictions, f\"predictions-{rank}.pt\")",
        ),
    ]
}
