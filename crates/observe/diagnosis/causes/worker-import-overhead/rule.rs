//! Does a run show worker-import-overhead? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::copies::{at_once, severity, started_empty, starter, sum, unknown_private, Copy};
use crate::analysis::growth_class::is_start;
use crate::analysis::oom::limiting;
use crate::analysis::{Analysis, RemedyContext};
use crate::causes::ALIKE;
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::reaches;
use crate::policy::memory::{FILLED_TOGETHER, HOLDS_COPY, IMPORTS_ALIKE};
use crate::policy::sizes::{MOST, WARN_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{Evidence, Finding, Fix, Held, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// A global of one name and type, in every worker that holds it.
type Globals<'a> = BTreeMap<(&'a str, &'a str), Vec<(Copy<'a>, &'a Held)>>;

fn judge(analysis: &Analysis) -> Judgement {
    let mut globals = Globals::new();
    for process in analysis.timeline.processes().filter(|process| process.role == Role::PoolWorker) {
        for held in process.holds.iter().filter(|held| of_its_own(analysis, process, held.bytes)) {
            let at = process.anonymous.last().map_or(process.last_seen, |(at, _)| at);
            let copy = Copy { process, bytes: held.bytes, error: 0, at };
            globals.entry((&held.name, &held.type_name)).or_default().push((copy, held));
        }
    }
    let found = globals.into_values().filter_map(|copies| copied_global(analysis, &copies));
    match found.max_by_key(|(saved, _)| *saved) {
        Some((_, judgement)) => judgement,
        None => match loading_at_kill(analysis) {
            Some(finding) => Judgement::one(finding),
            None => unknown_private(analysis, false).map_or(Judgement::Nothing, Judgement::undetermined),
        },
    }
}

/// The kernel killed one of several workers that had been started together, with nothing of their parent's memory, in their start:
/// each was in its imports, or filled what it was given. The kernel says how much one had, and the others had the same to load.
fn loading_at_kill(analysis: &Analysis) -> Option<Finding> {
    let victim = analysis.oom_victims.first()?;
    let killed = victim.process?;
    let bytes = victim.line.map(|line| line.anonymous).filter(|bytes| *bytes > 0)?;
    let group = victim.group.filter(|_| !victim.host).and_then(|group| limiting(analysis, group));
    let room = group.map(|(_, limit)| limit).or(analysis.machine().memory_total.known().map(|all| all.0))?;
    let loads = |process: &ProcessHistory| {
        // Before its first task a pool's worker is like any other process.
        matches!(process.role, Role::PoolWorker | Role::Other)
            && started_empty(analysis, process)
            && is_start(process, victim.at.seconds())
    };
    let together = |process: &&ProcessHistory| {
        process.born_to() == killed.born_to()
            && loads(process)
            && (process.first_seen..=process.last_seen).contains(&victim.last_read_before())
    };
    let then = |process: &ProcessHistory| {
        process.anonymous.at_or_before(victim.last_read_before()).map_or(0, |(_, held)| held as u64)
    };
    let number = analysis.timeline.processes().filter(together).count() as u64;
    // Of those that were read with much, what they hold is measured: per-rank-copies.
    let alike = |one: &ProcessHistory| reaches(MOST, then(one), then(killed)) && then(one) < WARN_BYTES;
    let alike = then(killed) > 0 && analysis.timeline.processes().filter(together).all(alike);
    let whole = bytes.saturating_mul(number);
    // More than there is room for they cannot have had: then it is one of them that took so much.
    let fits = reaches(MOST, whole, room) && !reaches(FILLED_TOGETHER, whole, room);
    if number < 2 || !together(&killed) || !alike || !fits {
        return None;
    }
    let sentence = format!(
        "{} had just been started together, with nothing of their parent's memory, when memory ran out: the one that was killed had {}, so that all of them need {} and more. What they import, or build as they begin, is there once for each.",
        evidence::plural(number, "process", "processes"),
        evidence::bytes(bytes),
        evidence::bytes(whole),
    );
    let held = evidence::number(ALIKE, whole.min(room), "bytes", "the kernel log", victim.at, sentence);
    let starter = analysis.timeline.by_pid(killed.born_to());
    let context = analysis.remedy_context_of(starter);
    let mut finding = of_job(&RULE, Severity::Warning, Proof::Consistent, vec![held], &context);
    finding.process = Some(evidence::process_ref(starter.unwrap_or(killed)));
    finding.title = "Each worker that was started loads the same for itself".into();
    finding.fixes.insert(
        0,
        Fix::new(
            "Start fewer of them, or load before they are started and fork them",
            "multiprocessing.get_context(\"fork\").Pool(2)  # workers then share what the parent has loaded",
        ),
    );
    Some(finding)
}

/// The worker has that much memory that it does not share.
fn of_its_own(analysis: &Analysis, process: &ProcessHistory, bytes: u64) -> bool {
    let Some((_, peak)) = process.anonymous.peak() else { return false };
    let before = match process.anonymous.first() {
        _ if started_empty(analysis, process) => 0.0,
        // What it was forked with it shares. It is read at once, or it has begun to fill the global already.
        Some((at, first)) => crate::analysis::copies::parent(analysis, process)
            .and_then(|parent| parent.anonymous.at_or_before(at))
            .map_or(first, |(_, held)| held.min(first)),
        None => 0.0,
    };
    peak - before >= bytes as f64 * HOLDS_COPY
}

fn copied_global(analysis: &Analysis, copies: &[(Copy, &Held)]) -> Option<(u64, Judgement)> {
    let together = at_once(copies.iter().map(|(copy, _)| *copy).collect());
    let (least, most) =
        (together.iter().min_by_key(|copy| copy.bytes)?, together.iter().max_by_key(|copy| copy.bytes)?);
    if together.len() < 2 || !reaches(IMPORTS_ALIKE, least.bytes, most.bytes) {
        return None;
    }
    let saved = sum(&together) - most.bytes;
    let severity = severity(analysis, saved, analysis.timeline.memory().peak_bytes)?;
    let held =
        |copy: &Copy| copies.iter().find(|(of, _)| of.process.id == copy.process.id).map(|(_, held)| *held);
    let first = held(most)?;
    let alike = first.picked.is_some()
        && together.iter().all(|copy| held(copy).is_some_and(|held| held.picked == first.picked));
    let known = if alike { Proof::SeenInside } else { Proof::Estimated };
    let starter = starter(analysis, &together);
    let mut evidence = vec![copies_sentence(&together, first, saved, alike)];
    evidence.extend(memory_sentence(analysis, most));
    let mut finding = of_job(&RULE, severity, known, evidence, &analysis.remedy_context_of(starter));
    finding.process = Some(evidence::process_ref(starter.unwrap_or(most.process)));
    Some((saved, Judgement::one(finding)))
}

fn copies_sentence(together: &[Copy], global: &Held, saved: u64, alike: bool) -> Evidence {
    let contents = if alike {
        "sampled bytes are equal"
    } else if global.picked.is_some() {
        "sampled bytes differ"
    } else {
        "bytes not compared"
    };
    let number = together.len() as u64;
    let sentence = format!(
        "Each of {} workers holds its own global `{}` ({}, {}; {contents}): sharing saves {}.",
        evidence::count(number),
        global.name,
        global.type_name,
        evidence::bytes(global.bytes),
        evidence::bytes(saved)
    );
    let copy = &together[0];
    let source = evidence::Source::Agents(copy.process.id.pid);
    evidence::number("saved by sharing", saved, "bytes", source, copy.at, sentence)
}

fn memory_sentence(analysis: &Analysis, most: &Copy) -> Option<Evidence> {
    let (at, peak) = most.process.anonymous.peak()?;
    let method =
        most.process.started_by.as_deref().map_or(String::new(), |method| format!(", started by {method},"));
    let before = most.process.begun.and_then(|begun| begun.anonymous);
    let from = match before {
        Some(before) if started_empty(analysis, most.process) => {
            format!(", {} of it before its first task", evidence::bytes(before))
        }
        _ => String::new(),
    };
    let sentence = format!(
        "{}{method} held up to {} of anonymous memory{from}.",
        evidence::capital(&evidence::describe(most.process)),
        evidence::bytes(peak as u64)
    );
    let source = evidence::Source::Process(most.process.id.pid, "status");
    Some(evidence::number("anonymous memory", peak as u64, "bytes", source, at, sentence))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Fill it once in the parent, and share it with every worker",
            "shared = ullage.share(fill())\n\
                      with multiprocessing.get_context(\"spawn\").Pool(4, initializer=init, initargs=(shared,)) as pool:  # init() sets the global",
        ),
        Fix::new(
            "Or store the array in a file that all workers map",
            "numpy.save(\"buffer.npy\", array)  # once\n\
                      GLOBAL_BUFFER = numpy.load(\"buffer.npy\", mmap_mode=\"r\")  # in each worker",
        ),
    ]
}
