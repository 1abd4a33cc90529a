//! Does a run show per-rank-copies? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::copies::{at_once, severity, started_empty, sum, Copy};
use crate::analysis::oom::limiting;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::limits::reaches;
use crate::policy::memory::{COPY_AT_KILL, HOLDS_COPY, RANKS_ALIKE, RANK_DATASET_BYTES};
use crate::policy::sizes::{MOST, WARN_BYTES};
use crate::rule::finding::of_process;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{At, Finding, Fix, LoaderSettings, Proof, Role, Severity, Weight};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// The evidence of processes that held alike when memory ran out, where nothing more is known.
pub(crate) const ALIKE: &str = "memory of alike processes";

fn judge(analysis: &Analysis) -> Judgement {
    let mut alike: BTreeMap<(&str, u64), Vec<(Copy, &LoaderSettings)>> = BTreeMap::new();
    for process in analysis.timeline.processes().filter(|process| is_rank(process)) {
        let Some((settings, weight)) = weighed(process) else { continue };
        let (Some(dataset), Some(length)) = (settings.dataset.as_deref(), settings.dataset_len) else {
            continue;
        };
        let Some((at, peak)) = process.anonymous.peak() else { continue };
        if weight >= RANK_DATASET_BYTES && peak >= HOLDS_COPY * weight as f64 {
            let copy = Copy { process, bytes: weight, error: 0, at };
            alike.entry((dataset, length)).or_default().push((copy, settings));
        }
    }
    let found = alike.into_iter().filter_map(|(key, copies)| copied(analysis, key, &copies));
    match found.max_by_key(|(saved, _)| *saved) {
        Some((_, judgement)) => judgement,
        None => at_kill(analysis).map_or(Judgement::Nothing, Judgement::one),
    }
}

/// Memory ran out while several processes that began with nothing of each other's each held about as much: no loader had to
/// see a dataset for that. It may have come among the arguments of spawn, or been read by each.
fn at_kill(analysis: &Analysis) -> Option<Finding> {
    let victim = analysis.oom_victims.first()?;
    let before = victim.last_read_before();
    let group = victim.group.filter(|_| !victim.host).and_then(|group| limiting(analysis, group));
    let room = group.map(|(_, limit)| limit).or(analysis.machine().memory_total.known().map(|all| all.0))?;
    let python = |process: &ProcessHistory| {
        process.agent || process.name().starts_with("python") || matches!(process.role, Role::Rank(_))
    };
    let stands_alone = |process: &&ProcessHistory| is_rank(process) || forked_empty(analysis, process);
    let alike = analysis.timeline.processes().filter(|process| stands_alone(process) && python(process));
    let sets = Cohort::by_parent(alike).into_iter().filter_map(|(parent, cohort)| {
        let held = |process: &'_ ProcessHistory| {
            let came_with = inherited(analysis, process).unwrap_or(0.0);
            process.anonymous.at_or_before(before).map(|(_, bytes)| (bytes - came_with).max(0.0) as u64)
        };
        let alive = cohort.alive(before);
        let most =
            alive.iter().filter_map(|process| held(process)).max().filter(|most| *most >= WARN_BYTES)?;
        let starter = analysis.timeline.by_pid(parent);
        // What was sent to a spawned process, the one that sent it has too.
        let sent = alive.iter().any(|process| started_empty(analysis, process));
        let copies: Vec<Copy> = alive
            .into_iter()
            .chain(starter.filter(|_| sent))
            .filter_map(|process| Some(Copy { process, bytes: held(process)?, error: 0, at: before }))
            .filter(|copy| {
                reaches(COPY_AT_KILL, copy.bytes, most) && loads_at(copy.process, copy.bytes, before)
            })
            .collect();
        // Of forked ones half stand still: the others load, and all that grow are another cause.
        let forked = copies.iter().filter(|copy| !is_rank(copy.process)).count();
        let standing = copies.iter().filter(|copy| is_rank(copy.process) || stands(copy.process, before));
        let loaded = forked == 0 || 2 * standing.count() >= copies.len();
        (copies.len() > 1 && loaded).then(|| (sum(&copies), sent, copies))
    });
    let (whole, sent, copies) = sets.max_by_key(|(whole, ..)| *whole)?;
    let most = copies.iter().max_by_key(|copy| copy.bytes)?;
    if !reaches(MOST, whole, room) {
        return None;
    }
    let sentence = format!(
        "{} processes that share nothing held {} when memory ran out, {} the largest: what all of them loaded, or were sent as they started, is there once for each. Whether it is the same was not read.",
        evidence::count(copies.len() as u64),
        evidence::bytes(whole),
        evidence::bytes(most.bytes),
    );
    let source = evidence::Source::Named("/proc/PID/status of each");
    let held = evidence::number(ALIKE, whole, "bytes", source, before, sentence);
    // Ranks that hold parts of their own, such as shards of an optimizer's states, hold alike too.
    let mut finding =
        of_process(analysis, &RULE, Severity::Warning, Proof::Consistent, vec![held], most.process);
    if copies.iter().any(|copy| inherited(analysis, copy.process).is_some()) {
        finding.fixes.insert(
            0,
            Fix::new(
                "Load it once, before the workers are forked: they share it as long as nobody writes to it",
                "gunicorn --preload app:app  # elsewhere: load before os.fork() and Process.start()",
            ),
        );
    }
    if sent {
        finding.fixes.insert(0, Fix::new(
            "Give spawned processes a path and not the data: what stands in args is pickled for each of them",
            "torch.multiprocessing.spawn(train, args=(\"data.npy\",), nprocs=2)  # numpy.load(path, mmap_mode=\"r\") in train",
        ));
    }
    Some(finding)
}

/// What a forked process had of its parent: no less than it had when it was read first. None of others, and where that was not
/// read.
fn inherited(analysis: &Analysis, process: &ProcessHistory) -> Option<f64> {
    let forked = process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some());
    let parent = crate::analysis::copies::parent(analysis, process).filter(|_| forked)?;
    let (_, of_parent) = parent.anonymous.at_or_before(process.first_seen)?;
    let (_, first) = process.anonymous.first()?;
    Some(of_parent.max(first))
}

/// It was forked, and what it has is more than all that its parent had: a server's worker that loads after the fork.
fn forked_empty(analysis: &Analysis, process: &ProcessHistory) -> bool {
    let role = matches!(process.role, Role::Other | Role::PoolWorker | Role::Helper);
    let most = process.anonymous.peak().map_or(0.0, |(_, bytes)| bytes);
    role && inherited(analysis, process).is_some_and(|had| most - had >= had)
}

/// What it has was there in the midst of its life: it was loaded, and is no growth.
fn stands(process: &ProcessHistory, before: At) -> bool {
    let middle = process.first_seen.seconds().midpoint(before.seconds());
    let then = process.anonymous.at_or_before(At::from_seconds(middle));
    let now = process.anonymous.at_or_before(before);
    then.zip(now).is_some_and(|(then, now)| reaches(COPY_AT_KILL, then.1 as u64, now.1 as u64))
}

/// What it held came before it began to train, as far as its loader tells.
fn loads_at(process: &ProcessHistory, held: u64, before: At) -> bool {
    let trains = process.loader_at.filter(|at| *at < before);
    let then = trains.and_then(|at| process.anonymous.at_or_before(at));
    then.is_none_or(|(_, then)| then >= MOST * held as f64)
}

/// It was started as a program or a process of its own, with nothing of another's memory.
fn is_rank(process: &ProcessHistory) -> bool {
    let forked = process.facts.as_ref().is_some_and(|facts| facts.forked_from.is_some())
        || process.started_by.as_deref() == Some("fork");
    let role =
        matches!(process.role, Role::Rank(_) | Role::Trainer | Role::Other | Role::PoolWorker | Role::Helper);
    role && (!forked || matches!(process.role, Role::Rank(_)))
}

fn weighed(process: &ProcessHistory) -> Option<(&LoaderSettings, u64)> {
    let settings = process.heaviest.as_ref()?;
    let weight: Weight = settings.weight?;
    Some((settings, weight.copied_by_pickle().saturating_add(weight.tensors)))
}

fn copied(
    analysis: &Analysis,
    (dataset, length): (&str, u64),
    copies: &[(Copy, &LoaderSettings)],
) -> Option<(u64, Judgement)> {
    let together = at_once(copies.iter().map(|(copy, _)| *copy).collect());
    let least = together.iter().min_by_key(|copy| copy.bytes)?;
    let most = together.iter().max_by_key(|copy| copy.bytes)?;
    if together.len() < 2 || !reaches(RANKS_ALIKE, least.bytes, most.bytes) {
        return None;
    }
    let saved = sum(&together) - most.bytes;
    let severity = match severity(analysis, saved, analysis.timeline.memory().peak_bytes)? {
        Severity::Warning if !analysis.ran_out => Severity::Note,
        severity => severity,
    };
    let sentence = format!(
        "{} processes each hold the dataset {dataset} ({}, about {}): {} in all, {} of it repeated.",
        evidence::count(together.len() as u64),
        evidence::plural(length, "item", "items"),
        evidence::bytes(most.bytes),
        evidence::bytes(sum(&together)),
        evidence::bytes(saved)
    );
    let source = evidence::Source::Agents(most.process.id.pid);
    let evidence = evidence::number("saved by sharing", saved, "bytes", source, most.at, sentence);
    let finding = of_process(analysis, &RULE, severity, Proof::InPart, vec![evidence], most.process);
    Some((saved, Judgement::one(finding)))
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Write arrays once, and map them in every rank",
            "if local_rank == 0:\n    numpy.save(\"data.npy\", data)\n\
                      torch.distributed.barrier()\n\
                      data = numpy.load(\"data.npy\", mmap_mode=\"r\")",
        ),
        Fix::new(
            "Or load in each rank only its own samples",
            "samples = samples[rank::world_size]  # instead of a DistributedSampler over all",
        ),
    ]
}
