//! Does a run show refcount-cow-fork-workers? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::copies::{
    at_once, copied, copied_last, go_on, held_in_all, parent, severity, share, starter, sum, zygote, Copy,
};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::given::PAGE_BYTES;
use crate::policy::growth::{COPIED_BYTES, PIECE_BYTES};
use crate::policy::memory::{WORKER_COPIES_BYTES, WORKER_FAULTS_TIMES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Fix, LoaderSettings, Missing, Proof, Role, Severity, Status};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let known = |copy: &Copy| copy.bytes.saturating_sub(copy.error) >= WORKER_COPIES_BYTES;
    // Where memory ran out there is no later reading, and what is likely counts; not what could not be read.
    let likely = |copy: &Copy| {
        analysis.ran_out
            && copy.error < copy.bytes
            && copy.bytes.saturating_sub(copy.error / 2) >= WORKER_COPIES_BYTES
    };
    let of = |process| {
        let sure = copied(analysis, process).filter(known);
        sure.or_else(|| copied_last(analysis, process).filter(likely))
    };
    let copies = at_once(workers(analysis).filter_map(of).collect());
    let whole = sum(&copies);
    let Some(most) = copies.iter().max_by_key(|copy| copy.bytes) else { return unreadable(analysis) };
    let starter = starter(analysis, &copies);
    let loader = starter
        .and_then(|starter| starter.heaviest.as_ref())
        .filter(|loader| loader.start_method.as_deref() == Some("fork"));
    let objects = loader.and_then(|loader| loader.weight).map(|weight| weight.objects);
    // As much is copied of a Python that collects its garbage, whatever the dataset is.
    if objects.is_none_or(|objects| objects < most.bytes / 2) && most.bytes < COPIED_BYTES {
        return Judgement::Nothing;
    }
    let of_a_loader =
        copies.iter().all(|copy| matches!(copy.process.role, Role::LoaderWorker(_) | Role::PoolWorker));
    let known = match objects {
        Some(objects) if objects >= most.bytes / 2 => Proof::SeenInside,
        Some(_) => Proof::Consistent,
        None if of_a_loader || is_of_objects(analysis, most) => Proof::Estimated,
        None => Proof::Consistent,
    };
    let saved = match objects {
        Some(objects) => copies.iter().map(|copy| copy.bytes.min(objects)).fold(0, u64::saturating_add),
        None => whole,
    };
    let held = held_in_all(analysis, &copies);
    let severity = match severity(analysis, whole, held) {
        None => return Judgement::Nothing,
        // That objects are read is not shown: no reason to call a run ill that went well.
        Some(_) if known.status() == Status::Hypothesis && !analysis.ran_out => Severity::Note,
        Some(Severity::Note) if go_on(analysis, &copies, held) => Severity::Warning,
        Some(severity) => severity,
    };
    let mut evidence = vec![copied_sentence(starter, &copies, whole, most)];
    evidence.push(match (loader, objects) {
        (Some(loader), Some(objects)) => dataset_sentence(starter, loader, objects, &copies, saved, most),
        _ => unweighed_sentence(whole, most),
    });
    evidence.extend(faults_sentence(analysis, &copies, most));
    let mut finding = of_job(&RULE, severity, known, evidence, &analysis.remedy_context_of(starter));
    finding.process = Some(evidence::process_ref(starter.unwrap_or(most.process)));
    Judgement::one(finding)
}

/// Half of the 95 % interval of the sum.
fn error(copies: &[Copy]) -> u64 {
    copies.iter().map(|copy| (copy.error as f64).powi(2)).sum::<f64>().sqrt() as u64
}

/// As much as was copied lies in small blocks of Python's: most of what the process inherited are objects.
fn is_of_objects(analysis: &Analysis, most: &Copy) -> bool {
    let parent = parent(analysis, most.process);
    let read = [Some(most.process), parent].into_iter().flatten();
    let blocks =
        read.filter_map(|process| process.memory_readings.all.iter().map(|one| one.blocks).reduce(f64::max));
    blocks.reduce(f64::max).is_some_and(|blocks| blocks * PIECE_BYTES >= most.bytes as f64)
}

/// Processes that may have been forked to do a share of the work; who was not shows no page that another maps.
fn workers<'a>(analysis: &Analysis<'a>) -> impl Iterator<Item = &'a ProcessHistory> {
    analysis.timeline.processes().filter(|process| {
        matches!(process.role, Role::LoaderWorker(_) | Role::PoolWorker | Role::Trainer | Role::Other)
    })
}

fn copied_sentence(starter: Option<&ProcessHistory>, copies: &[Copy], whole: u64, most: &Copy) -> Evidence {
    let from = starter.map_or("their parent".into(), evidence::describe);
    let each = if copies.len() > 1 {
        format!(", up to {} each", evidence::bytes(most.bytes))
    } else {
        String::new()
    };
    let sentence = format!(
        "{} copied {} (± {}) of memory shared with {from}{each}.",
        evidence::capital(&evidence::plural(copies.len() as u64, "forked worker", "forked workers")),
        evidence::bytes(whole),
        evidence::bytes(error(copies)),
    );
    let source = evidence::Source::Processes(most.process.id.pid, "pagemap");
    evidence::number("memory copied", whole, "bytes", source, most.at, sentence)
}

/// The resident size hides it, and the faults say who wrote.
fn faults_sentence(analysis: &Analysis, copies: &[Copy], most: &Copy) -> Option<Evidence> {
    let moved = |copy: &Copy| {
        let (_, first) = copy.process.anonymous.first()?;
        let (_, then) = copy.process.anonymous.at_or_before(copy.at)?;
        Some((then - first).max(0.0) as u64)
    };
    let faults = |copy: &Copy| copy.process.faults.at_or_before(copy.at).map_or(0.0, |(_, faults)| faults);
    let theirs: f64 = copies.iter().map(faults).sum();
    let grown = copies.iter().filter_map(moved).max()?;
    let parents = parent(analysis, most.process).and_then(|parent| {
        let (forked, _) = most.process.faults.first()?;
        let (_, before) = parent.faults.at_or_before(forked)?;
        let (_, after) = parent.faults.at_or_before(most.at)?;
        Some(format!(
            ", {} took {}",
            evidence::describe(parent),
            evidence::count((after - before).max(0.0) as u64)
        ))
    });
    let sentence = format!(
        "Their resident sizes grew by at most {}. They took {} minor faults{}: they wrote.",
        evidence::bytes(grown),
        evidence::count(theirs as u64),
        parents.unwrap_or_default()
    );
    let source = evidence::Source::Processes(most.process.id.pid, "stat");
    Some(evidence::number("minor faults", theirs as u64, "faults", source, most.at, sentence))
}

fn dataset_sentence(
    starter: Option<&ProcessHistory>,
    loader: &LoaderSettings,
    objects: u64,
    copies: &[Copy],
    saved: u64,
    most: &Copy,
) -> Evidence {
    let name = loader.dataset.as_deref().map_or(String::new(), |name| format!(" {name}"));
    let items = loader
        .dataset_len
        .map_or(String::new(), |items| format!(" for {}", evidence::plural(items, "item", "items")));
    let sentence = if saved.saturating_mul(2) >= sum(copies) {
        format!(
            "Reading a Python object writes its reference count, which copies its page. The dataset{name} holds {} of them{items}. Reading all copies {}; ullage.share(dataset) would have saved {} so far.",
            evidence::bytes(objects),
            evidence::bytes(objects.saturating_mul(copies.len() as u64)),
            evidence::bytes(saved)
        )
    } else {
        format!(
            "The dataset{name} holds only {} of Python objects{items}: the workers write other inherited memory. ullage.share(dataset) would have saved {} so far.",
            evidence::bytes(objects),
            evidence::bytes(saved)
        )
    };
    let source = starter.map_or("agent".into(), |starter| evidence::Source::Agent(starter.id.pid));
    evidence::number("saved by sharing", saved, "bytes", source, most.at, sentence)
}

fn unweighed_sentence(whole: u64, most: &Copy) -> Evidence {
    let sentence = format!(
        "Reading a Python object writes its reference count, which copies its page. ullage.share(dataset) would have saved up to {} so far.",
        evidence::bytes(whole)
    );
    let source = evidence::Source::Processes(most.process.id.pid, "pagemap");
    evidence::number("saved by sharing", whole, "bytes", source, most.at, sentence)
}

/// Loader workers that faulted much, and whose pages could not be looked at.
fn unreadable(analysis: &Analysis) -> Judgement {
    let page = analysis.machine().page_size.max(PAGE_BYTES);
    let hidden = workers(analysis).find_map(|process| {
        let forked = process.started_by.as_deref() == Some("fork");
        let faults = process.faults.last()?.1 as u64;
        let why = process.last.as_ref()?.exclusive.missing()?;
        let refused = matches!(why, Missing::NoPermission | Missing::KernelTooOld | Missing::Unreadable);
        let much = faults.saturating_mul(page) >= WORKER_FAULTS_TIMES * WORKER_COPIES_BYTES;
        (forked && refused && process.probes.is_empty() && much).then_some((process, why))
    });
    match hidden {
        Some((process, why)) => Judgement::undetermined(format!(
            "the pages of {} could not be read ({}), so its copies are unknown",
            evidence::describe(process),
            why.reason()
        )),
        None => Judgement::Nothing,
    }
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![share()];
    if context.freezes() {
        fixes.push(Fix::new(
            "Or make the objects immortal: reading then writes nothing (Python 3.12 or newer, workers by fork)",
            "ullage.freeze(dataset)  # before the workers are forked",
        ));
    }
    fixes.push(Fix::new(
        "Or store text as an array of bytes and one of offsets: reading arrays writes nothing",
        "data = [text.encode() for text in texts]\n\
                  blob = numpy.frombuffer(b\"\".join(data), numpy.uint8)\n\
                  ends = numpy.cumsum([0] + [len(item) for item in data])\n\
                  # item i is blob[ends[i]:ends[i + 1]].tobytes().decode()",
    ));
    fixes.extend(zygote(context));
    fixes
}
