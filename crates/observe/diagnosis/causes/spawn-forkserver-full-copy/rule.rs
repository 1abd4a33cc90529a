//! Does a run show spawn-forkserver-full-copy? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::copies::{
    at_once, severity, share, started_empty, starter, sum, unknown_private, zygote, Copy,
};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::reaches;
use crate::policy::memory::{DATASET_BYTES, HOLDS_COPY, RANKS_ALIKE};
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{Evidence, Finding, Fix, LoaderSettings, Proof, Role, Severity, Weight};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let mut weighed_inside = true;
    let copies: Vec<Copy> = analysis
        .timeline
        .processes()
        .filter(|process| matches!(process.role, Role::LoaderWorker(_)) && started_empty(analysis, process))
        .filter_map(|process| {
            let (copy, inside) = held(analysis, process)?;
            weighed_inside &= inside;
            Some(copy)
        })
        .collect();
    let copies = at_once(copies);
    let whole = sum(&copies);
    let Some(most) = copies.iter().max_by_key(|copy| copy.bytes) else {
        return sent(analysis).map_or_else(|| from_outside(analysis), Judgement::one);
    };
    let Some(severity) = severity(analysis, whole, analysis.timeline.memory().peak_bytes) else {
        return sent(analysis).map_or(Judgement::Nothing, Judgement::one);
    };
    let starter = starter(analysis, &copies);
    let loader = starter.and_then(|starter| starter.heaviest.as_ref());
    let known = if weighed_inside { Proof::SeenInside } else { Proof::Estimated };
    let mut evidence = vec![copies_sentence(&copies, whole, most, loader)];
    evidence.extend(step_sentence(most));
    evidence.extend(loader.and_then(|loader| method_sentence(loader, starter)));
    let mut finding = of_job(&RULE, severity, known, evidence, &analysis.remedy_context_of(starter));
    finding.process = Some(evidence::process_ref(starter.unwrap_or(most.process)));
    Judgement::one(finding)
}

/// Several processes of one parent, none a loader's, each unpickled about as much of what they were given: target and arguments.
/// Whether it is the same nobody compared. Ranks, and who makes a loader of it, are per-rank-copies, and what a pool's workers were
/// given becomes their globals.
fn sent(analysis: &Analysis) -> Option<Finding> {
    let is_other =
        |process: &&ProcessHistory| matches!(process.role, Role::Trainer | Role::Other | Role::Helper);
    let loads =
        |process: &ProcessHistory| process.heaviest.as_ref().is_some_and(|loader| loader.weight.is_some());
    let mut given: BTreeMap<i32, Vec<Copy>> = BTreeMap::new();
    for process in analysis.timeline.processes().filter(is_other).filter(|process| !loads(process)) {
        let Some(begun) = process.begun.filter(|_| started_empty(analysis, process)) else { continue };
        let Some((weight, held)) = begun.arguments.zip(begun.anonymous) else { continue };
        let bytes = weight.copied_by_pickle();
        if bytes >= DATASET_BYTES && reaches(HOLDS_COPY, held, bytes) {
            given.entry(process.born_to()).or_default().push(Copy { process, bytes, error: 0, at: begun.at });
        }
    }
    let alike = given.into_values().filter_map(|copies| {
        let most = copies.iter().map(|copy| copy.bytes).max()?;
        let alike = copies.into_iter().filter(|copy| reaches(RANKS_ALIKE, copy.bytes, most));
        Some(at_once(alike.collect())).filter(|copies| copies.len() > 1)
    });
    let copies = alike.max_by_key(|copies| sum(copies))?;
    let whole = sum(&copies);
    let most = copies.iter().max_by_key(|copy| copy.bytes)?;
    // Of one more it is not known whether the parent has it too.
    let saved = whole - most.bytes;
    // Each may have been given a part of its own, as large as the others': then nothing is held twice, and a job that ends well
    // is healthy.
    let severity = match severity(analysis, saved, analysis.timeline.memory().peak_bytes)? {
        Severity::Warning if !analysis.ran_out => Severity::Note,
        severity => severity,
    };
    let starter = starter(analysis, &copies);
    let number = evidence::count(copies.len() as u64);
    let sizes = format!("{} each, {} in all", evidence::bytes(most.bytes), evidence::bytes(whole));
    let sentence = format!("{number} processes each hold what they were given as they started: {sizes}.");
    let source = evidence::Source::Agents(most.process.id.pid);
    let mut evidence = vec![evidence::number("saved by sharing", saved, "bytes", source, most.at, sentence)];
    evidence.extend(step_sentence(most));
    let context = analysis.remedy_context_of(starter);
    let mut finding = of_job(&RULE, severity, Proof::Estimated, evidence, &context);
    finding.title = format!("{number} processes each unpickled the data that they were given: {sizes}");
    finding.process = Some(evidence::process_ref(starter.unwrap_or(most.process)));
    finding.fixes = vec![
        Fix::new(
            "Give them a path and not the data: what stands in args is pickled for each of them",
            "numpy.save(\"data.npy\", data)\nProcess(target=work, args=(\"data.npy\",))  # numpy.load(path, mmap_mode=\"r\") in work",
        ),
        Fix::new(
            "Or share it: all of them then read one packed copy (lists, dicts, strings, numbers, arrays, tensors)",
            "import ullage\nProcess(target=work, args=(ullage.share(data),))",
        ),
    ];
    Some(finding)
}

/// A worker's copy of the dataset, and whether it was weighed in the worker.
fn held<'a>(analysis: &Analysis<'a>, process: &'a ProcessHistory) -> Option<(Copy<'a>, bool)> {
    let (last_at, _) = process.anonymous.last()?;
    let (at, weight, room, inside) = match process.begun {
        Some(begun) if begun.dataset.is_some() => (begun.at, begun.dataset?, begun.anonymous, true),
        // The agent was there and had nothing to weigh.
        Some(begun) if begun.anonymous.is_some() => return None,
        _ => (last_at, weighed_by_parent(analysis, process)?, None, false),
    };
    let peak = process.anonymous.peak().map_or(0, |(_, peak)| peak as u64);
    let bytes = weight.copied_by_pickle();
    // An estimate may be a little too large; memory that is not there is no copy.
    let fits = reaches(HOLDS_COPY, room.unwrap_or(peak).max(peak), bytes);
    (bytes >= DATASET_BYTES && fits).then_some((Copy { process, bytes, error: 0, at }, inside))
}

fn weighed_by_parent(analysis: &Analysis, process: &ProcessHistory) -> Option<Weight> {
    let alone = [Copy { process, bytes: 0, error: 0, at: process.first_seen }];
    let loader = starter(analysis, &alone)?.heaviest.as_ref()?;
    matches!(loader.start_method.as_deref(), Some("spawn" | "forkserver")).then_some(loader.weight?)
}

fn copies_sentence(copies: &[Copy], whole: u64, most: &Copy, loader: Option<&LoaderSettings>) -> Evidence {
    let name =
        loader.and_then(|loader| loader.dataset.as_deref()).map_or(String::new(), |name| format!(" {name}"));
    let items = loader
        .and_then(|loader| loader.dataset_len)
        .map_or(String::new(), |items| format!(" ({})", evidence::plural(items, "item", "items")));
    let number = copies.len() as u64;
    let size = match number {
        1 => evidence::bytes(whole),
        _ => format!("{} each, {} in all", evidence::bytes(most.bytes), evidence::bytes(whole)),
    };
    let sentence = format!(
        "{} a copy of the dataset{name}{items}: {size}.",
        evidence::plural(number, "loader worker holds", "loader workers hold"),
    );
    let source = evidence::Source::Agents(most.process.id.pid);
    evidence::number("saved by sharing", whole, "bytes", source, most.at, sentence)
}

/// It was there before the first item was read.
fn step_sentence(most: &Copy) -> Option<Evidence> {
    let begun = most.process.begun?;
    let before = begun.anonymous?;
    let (_, last) = most.process.anonymous.last()?;
    let sentence = format!(
        "{} had {} of anonymous memory before {}, imports included, and {} at the end.",
        evidence::describe(most.process),
        evidence::bytes(before),
        if begun.dataset.is_some() { "its first item" } else { "its target ran" },
        evidence::bytes(last as u64)
    );
    let source = evidence::Source::Agent(most.process.id.pid);
    Some(evidence::number(
        "anonymous memory",
        before,
        "bytes",
        source,
        begun.at,
        evidence::capital(&sentence),
    ))
}

fn method_sentence(loader: &LoaderSettings, starter: Option<&ProcessHistory>) -> Option<Evidence> {
    let method = loader.start_method.as_deref()?;
    let reason =
        match (loader.start_method_is_default, starter.and_then(|starter| starter.started_by.as_deref())) {
            (true, Some(own)) if own == method => {
                "this process's own start method; multiprocessing_context was not given".to_owned()
            }
            (true, _) => "the default here; multiprocessing_context was not given".to_owned(),
            (false, _) => format!("as multiprocessing_context={method:?} says"),
        };
    let source = starter.map_or("agent".into(), |starter| evidence::Source::Agent(starter.id.pid));
    let sentence =
        format!("The loader starts its workers by {method}, {reason}. Each unpickles its own dataset.");
    Some(evidence::text("start method", method, source, None, sentence))
}

fn from_outside(analysis: &Analysis) -> Judgement {
    let Some(sentence) = unknown_private(analysis, true) else { return Judgement::Nothing };
    if !analysis.ran_out {
        return Judgement::undetermined(sentence);
    }
    let evidence = vec![evidence::text(
        "private memory",
        "of unknown content",
        "/proc/PID/status",
        Some(analysis.timeline.end()),
        format!("{}.", evidence::capital(&sentence)),
    )];
    let known = Proof::Consistent;
    Judgement::one(of_job(&RULE, Severity::Warning, known, evidence, &analysis.remedy_context(None)))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![share()];
    fixes.extend(zygote(context));
    fixes.extend(sharing::fork_context(context));
    fixes
}
