//! Does a run show worker-processes-accumulate? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{
    GENERATIONS, GENERATIONS_ALIVE, GENERATION_TICKS, LEFT_BEHIND, MOST_ANCESTORS, ORPHANED_S,
};
use crate::policy::sizes::MOST;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use std::collections::BTreeMap;
use ullage_model::{At, Finding, Fix, Place, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// What a parent starts again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Loader,
    /// Of a pool, an executor, or multiprocessing itself.
    Process,
    Program,
}

impl Kind {
    fn of(process: &ProcessHistory) -> Option<Kind> {
        match process.role {
            Role::LoaderWorker(_) => Some(Kind::Loader),
            Role::PoolWorker | Role::Trainer | Role::Other => Some(Kind::Process),
            Role::Helper => Some(Kind::Program),
            _ => None,
        }
    }

    /// One of them, and several.
    fn words(self, cohort: &Cohort) -> (&'static str, &'static str) {
        let pool = || cohort.members.iter().filter(|one| one.role == Role::PoolWorker).count();
        match self {
            Kind::Loader => ("loader worker", "loader workers"),
            Kind::Process if 2 * pool() >= cohort.members.len() => ("pool worker", "pool workers"),
            Kind::Process => ("child process", "child processes"),
            Kind::Program => ("program", "programs"),
        }
    }
}

fn judge(analysis: &Analysis) -> Judgement {
    let found = [Kind::Loader, Kind::Process, Kind::Program].into_iter().flat_map(|kind| {
        let of_kind = analysis.timeline.processes().filter(move |process| Kind::of(process) == Some(kind));
        Cohort::by_parent(of_kind)
            .into_iter()
            .filter_map(move |(parent, cohort)| piled_up(analysis, kind, parent, &cohort))
    });
    let left = left_by_others(analysis)
        .into_iter()
        .filter_map(|(above, cohort)| piled_up(analysis, Kind::Program, above, &cohort))
        .map(|(number, finding)| (number, Finding { fixes: end_what_is_left(), ..finding }));
    match found.chain(left).max_by_key(|(number, _)| *number) {
        Some((_, finding)) => Judgement::one(finding),
        None => Judgement::Nothing,
    }
}

/// Programs that commands started and went away without, by what ran these commands: each left the same program behind.
fn left_by_others<'a>(analysis: &Analysis<'a>) -> Vec<(i32, Cohort<'a>)> {
    let mut left: BTreeMap<(i32, String), Vec<&ProcessHistory>> = BTreeMap::new();
    for process in analysis.timeline.processes().filter(|process| Kind::of(process) == Some(Kind::Program)) {
        let Some(command) = process.facts.as_ref().map(|facts| program_of(&facts.command_line)) else {
            continue;
        };
        let outlives = |parent: &&ProcessHistory| {
            parent
                .ended
                .is_some_and(|(at, ..)| process.first_seen < at && process.last_seen.since(at) >= ORPHANED_S)
        };
        let above = |process: &ProcessHistory| analysis.timeline.by_pid(process.born_to());
        let Some(parent) = above(process).filter(outlives) else { continue };
        let mut ancestors =
            std::iter::successors(above(parent), |ancestor| above(ancestor)).take(MOST_ANCESTORS);
        if let Some(runs) = ancestors.find(|ancestor| !outlives(ancestor)) {
            left.entry((runs.id.pid, command)).or_default().push(process);
        }
    }
    left.into_iter().map(|((above, _), members)| (above, Cohort::of(members))).collect()
}

/// What it runs and as what: without numbers, which may be a port, and without paths other than those of the program.
fn program_of(words: &[String]) -> String {
    let is_program = |place: usize, word: &str| place < 3 || !word.starts_with('/');
    let of_program = words.iter().enumerate().filter(|(place, word)| is_program(*place, word));
    let letters = |word: &String| word.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>();
    of_program.map(|(_, word)| letters(word)).collect::<Vec<_>>().join(" ")
}

fn piled_up(analysis: &Analysis, kind: Kind, parent: i32, cohort: &Cohort) -> Option<(usize, Finding)> {
    let (first, last) = (cohort.members.first()?.first_seen, cohort.members.last()?.first_seen);
    let alive = cohort.alive(last);
    let generations = generations(&alive);
    let starter = analysis.timeline.by_pid(parent);
    // A job that has not failed goes on to make them.
    let end = starter.map_or(analysis.timeline.end(), |starter| starter.last_seen);
    let ongoing = last.since(first) >= MOST * end.since(first);
    if generations.len() < GENERATIONS
        || (alive.len() as f64) < GENERATIONS_ALIVE * cohort.members.len() as f64
        || !ongoing
    {
        return None;
    }
    // Of one pool that starts its workers as tasks come, the older ones work on.
    if kind != Kind::Loader && !left_behind(&generations, last) {
        return None;
    }
    let made = starter.filter(|_| kind == Kind::Loader);
    let made = made.and_then(|starter| starter.iterators.iter().max_by_key(|(_, number)| *number));
    if made.is_some_and(|(_, number)| (*number as usize) < GENERATIONS) {
        return None;
    }
    let number = alive.len() as u64;
    let name = starter.map_or_else(|| format!("process {parent}"), evidence::describe);
    let words = kind.words(cohort);
    let sentence = format!(
        "{} had {} at once, from {} rounds in {}; {} of {} had exited.",
        evidence::capital(&name),
        evidence::plural(number, words.0, words.1),
        evidence::count(generations.len() as u64),
        evidence::seconds(last.since(first)),
        evidence::count(cohort.members.len() as u64 - number),
        evidence::count(cohort.members.len() as u64),
    );
    let source = evidence::Source::Children(parent, "/proc/PID/stat");
    let mut evidence = vec![evidence::number(words.1, number, "processes", source, last, sentence)];
    if let Some((settings, iterators)) = made {
        let sentence = format!(
            "It made {} of one loader ({}, num_workers={}{}).",
            evidence::plural(u64::from(*iterators), "iterator", "iterators"),
            settings.dataset.as_deref().unwrap_or("one dataset"),
            settings.workers,
            if settings.persistent_workers { ", persistent_workers=True" } else { "" },
        );
        let source = evidence::Source::Agent(parent);
        evidence.push(evidence::number(
            "iterators",
            u64::from(*iterators),
            "iterators",
            source,
            last,
            sentence,
        ));
    }
    if kind != Kind::Loader {
        let sentence = "The older ones used almost no CPU time since newer ones started: nothing uses them, and nothing closed them.";
        let idle =
            evidence::text("older processes", "idle", "/proc/PID/stat of each", Some(last), sentence.into());
        evidence.push(idle);
    }
    let held = cohort.held(analysis.timeline, last);
    let sentence =
        format!("Together they held {} of memory that they share with nobody.", evidence::bytes(held));
    evidence.push(evidence::number(
        "memory of workers",
        held,
        "bytes",
        "/proc/PID/status of each",
        last,
        sentence,
    ));
    let known = if made.is_some() { Proof::SeenInside } else { Proof::Estimated };
    let mut finding = of_job(&RULE, Severity::Warning, known, evidence, &analysis.remedy_context_of(starter));
    finding.process = starter.map(evidence::process_ref);
    if kind != Kind::Loader {
        finding.title = format!(
            "{} pile up: they are started again and again and never ended",
            evidence::capital(words.1)
        );
        finding.fixes = end_them(kind);
    }
    Some((alive.len(), finding))
}

/// Groups of processes that were started together, the first ones first.
fn generations<'a>(alive: &[&'a ProcessHistory]) -> Vec<Vec<&'a ProcessHistory>> {
    let mut sorted = alive.to_vec();
    sorted.sort_by_key(|process| process.id.start.0);
    let together = |a: &&ProcessHistory, b: &&ProcessHistory| b.id.start.0 - a.id.start.0 <= GENERATION_TICKS;
    sorted.chunk_by(together).map(<[_]>::to_vec).collect()
}

/// Most of those that were started before the last ones did next to nothing since the next ones came.
fn left_behind(generations: &[Vec<&ProcessHistory>], until: At) -> bool {
    let (mut idle, mut all) = (0, 0);
    for pair in generations.windows(2) {
        let Some(since) = pair[1].first().map(|next| next.first_seen) else { continue };
        let most = LEFT_BEHIND * until.since(since);
        all += pair[0].len();
        idle += pair[0].iter().filter(|process| process.worked(since, until) <= most).count();
    }
    idle as f64 >= GENERATIONS_ALIVE * all as f64
}

/// A command that has ended no longer knows what it started.
fn end_what_is_left() -> Vec<Fix> {
    vec![
        Fix::new(
            "Give each command a session of its own, and end all of it when it is done",
            "command = subprocess.Popen(words, start_new_session=True)\ncommand.wait()\nos.killpg(command.pid, signal.SIGTERM)",
        ),
        Fix::new("Or start what stays once, and let every command use it", "server = subprocess.Popen(words)  # once"),
    ]
}

/// What ends them: a pool that is closed, one that is kept, or a program that is waited for.
fn end_them(kind: Kind) -> Vec<Fix> {
    if kind == Kind::Program {
        return vec![
            Fix::new(
                "Wait for each program, or end it, before the next one is started",
                "with subprocess.Popen(command) as program:\n    ...  # it is waited for here",
            ),
            Fix::new("Give it a time after which it is ended", "subprocess.run(command, timeout=600)"),
        ];
    }
    vec![
        Fix::new(
            "Make the pool or executor once, and use it for every call",
            "pool = multiprocessing.Pool(4)  # once\nfor batch in batches:\n    pool.map(work, batch)",
        ),
        Fix::new(
            "Or end its processes with each use",
            "with multiprocessing.Pool(4) as pool:\n    pool.map(work, batch)",
        ),
        Fix::new(
            "Processes of one's own: tell them to stop, and wait for each",
            "for process in processes:\n    process.terminate()\n    process.join()",
        ),
    ]
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Create the loader once, and loop over it to its end in each epoch",
            format!(
                "loader = {}  # once\nfor epoch in range(epochs):\n    for batch in loader:\n        ...",
                context.loader("persistent_workers=True")
            ),
        )
        .only(Place::Loader),
        Fix::new(
            "To take single batches: keep one iterator, and call next() on it",
            "batches = iter(loader)\n\
                      try:\n    batch = next(batches)\n\
                      except StopIteration:\n    batches = iter(loader)  # the old one is dropped here",
        ),
        Fix::new("Delete an iterator that you do not exhaust, and any exception it raised", "del batches"),
    ]
}
