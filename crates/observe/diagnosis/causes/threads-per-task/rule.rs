//! Does a run show threads-per-task? page.md says what that is, and how it differs from its look-alikes.

use super::gloo_and_process_group_growth::explains;
use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::retainers::{is_keyed, Kind, OF_THREADS};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{
    LIBRARY_POOLS, THREADS_CAME_S, THREADS_LASTED_S, THREADS_MORE, THREADS_REFUSED, THREADS_RISE_END,
    THREADS_TIMES, WHOLE_RATE,
};
use crate::rule::finding::of_process;
use crate::rule::{retainers, Judgement, Rule};
use crate::trend::{trend_of, Trend};
use ullage_model::{At, Evidence, Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let refused =
        analysis.failures.iter().filter(|failure| failure.symptom() == Symptom::NoTask && !failure.is_echo());
    let refused = refused.filter_map(|failure| at_refusal(analysis, failure));
    let found = refused.chain(analysis.timeline.processes().filter_map(|process| rising(analysis, process)));
    match found.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, judgement)) => judgement,
        // Few, that hold much.
        None => retainers::judge(analysis, &RULE, Kind::Thread),
    }
}

/// A thread could not be started in a process that had started many.
fn at_refusal(analysis: &Analysis, failure: &Failure) -> Option<(f64, Judgement)> {
    let process = failure.process?;
    let (_, first) = process.threads.first()?;
    let counted = failure.counts().and_then(|counts| counts.threads);
    let threads = counted.map(|threads| threads as f64).or_else(|| Some(process.threads.peak()?.1))?;
    let others: f64 = analysis
        .timeline
        .processes()
        .filter(|other| other.id != process.id)
        .filter_map(|other| other.threads.at_or_before(failure.at).filter(|_| other.last_seen >= failure.at))
        .map(|(_, threads)| threads)
        .sum();
    let more = threads - first;
    let of_libraries = (LIBRARY_POOLS * u64::from(analysis.machine().cores)) as f64;
    let of_tasks =
        more >= THREADS_MORE + of_libraries || came_one_by_one(process, first, threads, failure.at);
    if more < THREADS_REFUSED
        || !of_tasks
        || threads < THREADS_TIMES * first
        || threads < others
        || explains(process, more)
    {
        return None;
    }
    let sentence = format!(
        "{} had {} threads when the next one could not start, up from {}.",
        evidence::capital(&evidence::describe(process)),
        evidence::count(threads as u64),
        evidence::count(first as u64)
    );
    let source = failure.agent_source();
    let evidence = evidence::number("threads", threads as u64, "threads", source, failure.at, sentence);
    Some((threads, judged(analysis, process, vec![evidence], failure.at)))
}

/// A pool, and the threads of a library, come at once: while some of them are there, no more come.
fn came_one_by_one(process: &ProcessHistory, first: f64, last: f64, until: At) -> bool {
    let end = (last - first) * THREADS_RISE_END;
    let (from, to) = (first + end, last - end);
    let mut readings =
        process.threads.points().filter(|(at, threads)| *at <= until && (from..=to).contains(threads));
    readings
        .next()
        .zip(readings.last())
        .is_some_and(|(begin, last)| last.0.since(begin.0) >= THREADS_CAME_S && last.1 - begin.1 >= end)
}

/// Nothing failed yet: they become more and more.
fn rising(analysis: &Analysis, process: &ProcessHistory) -> Option<(f64, Judgement)> {
    let (_, first) = process.threads.first()?;
    let (last, _) = process.threads.last()?;
    // At its end a program may end all of them before it is read once more.
    let (at, most) =
        if process.taken_down.is_some() { process.threads.peak() } else { process.threads.last() }?;
    let Trend::Growing(growth) = trend_of(&process.threads, last) else { return None };
    let more = growth.per_second * growth.lasted_s;
    let of_groups = explains(process, most - first);
    if !growth.ongoing
        || more < THREADS_MORE
        || growth.lasted_s < THREADS_LASTED_S
        || most < THREADS_TIMES * first
        || of_groups
    {
        return None;
    }
    let sentence = format!(
        "{} has {} threads, {} more every second for the last {}, up from {}.",
        evidence::capital(&evidence::describe(process)),
        evidence::count(most as u64),
        rate(growth.per_second),
        evidence::seconds(growth.lasted_s),
        evidence::count(first as u64)
    );
    let source = evidence::Source::Process(process.id.pid, "stat");
    let evidence = evidence::number("threads", most as u64, "threads", source, at, sentence);
    Some((most, judged(analysis, process, vec![evidence], at)))
}

fn judged(analysis: &Analysis, process: &ProcessHistory, mut evidence: Vec<Evidence>, at: At) -> Judgement {
    evidence.extend(stacks(process, at));
    let known = Proof::SeenOutside;
    let mut finding = of_process(analysis, &RULE, Severity::Warning, known, evidence, process);
    // One that was cut short may have found nothing.
    let last = process.censuses.iter().rev().find(|(_, census)| !census.cut || !census.retainers.is_empty());
    let caches = last.map(|(_, census)| census.retainers.iter().filter(|one| is_keyed(one)));
    let most = caches.and_then(|caches| caches.max_by_key(|one| one.more_bytes));
    if most.is_some_and(|one| one.type_name == OF_THREADS) {
        finding.explains.push("unbounded-caches".into());
    }
    Judgement::one(finding)
}

/// What they cost in address space.
fn stacks(process: &ProcessHistory, at: At) -> Option<Evidence> {
    let (before, after) = (process.virtual_size.first()?.1, process.virtual_size.at_or_before(at)?.1);
    let threads = process.threads.at_or_before(at)?.1 - process.threads.first()?.1;
    if threads < 1.0 || after <= before {
        return None;
    }
    let grown = (after - before) as u64;
    let sentence = format!(
        "Its address space grew by {}, {} a thread, for stacks and malloc arenas.",
        evidence::bytes(grown),
        evidence::bytes((grown as f64 / threads) as u64)
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    Some(evidence::number("address space", grown, "bytes", source, at, sentence))
}

fn rate(per_second: f64) -> String {
    if per_second >= WHOLE_RATE {
        evidence::count(per_second as u64)
    } else {
        format!("{per_second:.1}")
    }
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Create one pool of a fixed size, and give it every task",
            "pool = concurrent.futures.ThreadPoolExecutor(max_workers=8)  # once, before the loop\n\
                      future = pool.submit(task, sample)",
        ),
        Fix::new(
            "If the loop must create a pool: end it there",
            "with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:\n    ...",
        ),
        Fix::new(
            "Show where they wait",
            "import faulthandler, signal\nfaulthandler.register(signal.SIGUSR1)  # in the program; then: kill -USR1 PID",
        ),
    ]
}
