//! Does a run show queue-backlog-unbounded? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, RemedyContext, Waiting};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::history::Series;
use crate::policy::memory::{QUEUE_LIVED, QUEUE_SHOWN};
use crate::policy::sizes::{FILLED_PART, NOTE_BYTES};
use crate::rule::finding::of_process;
use crate::rule::retainers;
use crate::rule::{Judgement, Rule};
use crate::trend::{trend_of, Trend};
use ullage_model::{At, Backlog, Evidence, FilesystemUse, Finding, Fix, LoaderSettings, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let queues = analysis
        .timeline
        .processes()
        .flat_map(|process| process.backlogs.iter().map(move |(at, backlog)| (process, *at, backlog)));
    let found = queues.filter_map(|(process, at, backlog)| judged(analysis, process, at, backlog));
    if let Some((_, finding)) = found.max_by_key(|(bytes, _)| *bytes) {
        return Judgement::one(finding);
    }
    // An executor's tasks, and queues that say nothing of themselves, are seen as containers that grow.
    match retainers::judge(analysis, &RULE, Kind::Queue) {
        Judgement::Found(found) => Judgement::Found(found),
        _ => unheard(analysis),
    }
}

/// A process that grows, and of whose queues nobody told.
fn unheard(analysis: &Analysis) -> Judgement {
    let growing = analysis.timeline.processes().filter(|process| !process.agent).find(|process| {
        let Trend::Growing(growth) = trend_of(&process.anonymous, process.last_seen) else { return false };
        growth.ongoing && growth.per_second * growth.lasted_s >= NOTE_BYTES as f64
    });
    growing.map_or(Judgement::Nothing, |process| {
        let subject = evidence::describe(process);
        Judgement::undetermined(format!(
            "the anonymous memory of {subject} grows; no agent was inside to see its queues"
        ))
    })
}

fn judged(
    analysis: &Analysis,
    process: &ProcessHistory,
    at: At,
    backlog: &Backlog,
) -> Option<(u64, Finding)> {
    let bytes = backlog.bytes();
    let made = At::from_seconds((at.seconds() - backlog.age_s).max(0.0));
    let rise = rise(process, made)?;
    // What is shared already lies in no one's anonymous memory.
    let shared =
        analysis.timeline.filesystems(FilesystemUse::Shm).filter_map(|shm| grown(&shm.used, made)).max();
    let shown = rise.saturating_add(shared.unwrap_or(0));
    if bytes < NOTE_BYTES
        || (shown as f64) < QUEUE_SHOWN * bytes as f64
        || backlog.items <= in_flight(process)
    {
        return None;
    }
    let life = process.last_seen.since(made);
    // It became twice as long within the last half of its life: a burst at the beginning did not.
    let ongoing = at.since(made) >= QUEUE_LIVED * life && backlog.maxsize.is_none();
    let severity = match (ongoing, analysis.ran_out) {
        (true, _) => Severity::Warning,
        (false, true) if bytes.saturating_mul(FILLED_PART) >= analysis.timeline.memory().peak_bytes => {
            Severity::Warning
        }
        _ => return None,
    };
    let mut evidence = vec![length(process, at, backlog, bytes), memory(process, rise)?];
    evidence.extend(others(process, at, backlog));
    let known = Proof::SeenInside;
    let mut finding = of_process(analysis, &RULE, severity, known, evidence, process);
    if backlog.of.ends_with("Queue") {
        finding.fixes = finding
            .fixes
            .into_iter()
            .map(|fix| if fix == bound(QUEUE) { bound(&backlog.of) } else { fix })
            .collect();
    }
    Some((bytes, finding))
}

/// By how much the anonymous memory rose since then.
fn rise(process: &ProcessHistory, made: At) -> Option<u64> {
    grown(&process.anonymous, made)
}

fn grown(series: &Series, since: At) -> Option<u64> {
    let (_, before) = series.at_or_before(since).or_else(|| series.first())?;
    let (_, peak) = series.peak()?;
    Some((peak - before).max(0.0) as u64)
}

/// A loader that pins memory has a queue without a bound, which never holds more than the batches in flight.
fn in_flight(process: &ProcessHistory) -> u64 {
    let ahead = |settings: &LoaderSettings| {
        u64::from(settings.workers).saturating_mul(settings.prefetch_factor.unwrap_or(2))
    };
    process.iterators.iter().map(|(settings, _)| ahead(settings).saturating_mul(2)).max().unwrap_or(0)
}

fn length(process: &ProcessHistory, at: At, backlog: &Backlog, bytes: u64) -> Evidence {
    let bound = match backlog.maxsize {
        Some(maxsize) => format!("maxsize {}", evidence::count(maxsize)),
        None => "no maxsize".to_owned(),
    };
    let sentence = format!(
        "{} {} in {} holds {} that no process took, about {} ({bound}, {} old).",
        if backlog.of.starts_with(['a', 'e', 'i', 'o']) { "An" } else { "A" },
        backlog.of,
        evidence::describe(process),
        evidence::plural(backlog.items, "item", "items"),
        evidence::bytes(bytes),
        evidence::seconds(backlog.age_s)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::number("items in a queue", backlog.items, "items", source, at, sentence);
    match backlog.maxsize {
        Some(maxsize) => evidence::with_limit(evidence, maxsize),
        None => evidence,
    }
}

/// Items may lie in several of them, as those of a tee do.
fn others(process: &ProcessHistory, at: At, backlog: &Backlog) -> Option<Evidence> {
    let others = process.backlogs.iter().map(|(_, other)| other);
    let others: Vec<&Backlog> =
        others.filter(|other| other.number != backlog.number && other.bytes() >= NOTE_BYTES).collect();
    let bytes = others.iter().map(|other| other.bytes()).fold(0, u64::saturating_add);
    let sentence = format!(
        "{} more of its queues hold about {}.",
        evidence::count(others.len() as u64),
        evidence::bytes(bytes)
    );
    let source = evidence::Source::Agent(process.id.pid);
    (!others.is_empty()).then(|| evidence::number("other queues", bytes, "bytes", source, at, sentence))
}

fn memory(process: &ProcessHistory, rise: u64) -> Option<Evidence> {
    let (at, peak) = process.anonymous.peak()?;
    let sentence = format!(
        "Since then the anonymous memory of {} rose by {} to {}.",
        evidence::describe(process),
        evidence::bytes(rise),
        evidence::bytes(peak as u64)
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    Some(evidence::number("anonymous memory", peak as u64, "bytes", source, at, sentence))
}

/// In which an executor of concurrent.futures has the tasks that no worker took.
const OF_AN_EXECUTOR: [&str; 2] = ["_pending_work_items", "_work_queue"];

const QUEUE: &str = "multiprocessing.Queue";

/// By the name of its class.
fn bound(queue: &str) -> Fix {
    Fix::new("Bound the queue: put() then waits for the consumer", format!("queue = {queue}(maxsize=16)"))
}

fn submit(executor: &str) -> Fix {
    Fix::new(
        "Submit no more tasks than the workers take",
        format!(
            "room = threading.BoundedSemaphore(64)  # once\nroom.acquire()  # before each submit()\n\
             future = {executor}.submit(work, sample)\nfuture.add_done_callback(lambda _: room.release())"
        ),
    )
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let retainer = context.retainer.as_ref();
    let name = retainer.and_then(|retainer| retainer.name.as_deref()).unwrap_or_default();
    let executor =
        OF_AN_EXECUTOR.iter().find_map(|part| Some(name.split_once(part)?.0.trim_end_matches('.')));
    match (executor, retainer.and_then(|retainer| retainer.waiting)) {
        (Some(executor), _) => return vec![submit(executor)],
        (None, Some(Waiting::Futures)) => return vec![submit("executor")],
        (None, Some(Waiting::Tasks)) => {
            return vec![Fix::new(
                "Make a task when there is room for it, not one for each item at once",
                "room = asyncio.Semaphore(64)  # once\nawait room.acquire()  # before each create_task()\n\
                 task = asyncio.create_task(work(item))\ntask.add_done_callback(lambda _: room.release())",
            )]
        }
        (None, Some(Waiting::Items)) => {
            return vec![Fix::new(
                "Let the producer wait for room",
                format!(
                    "room = threading.BoundedSemaphore(64)  # once; asyncio.Semaphore where tasks add to it\n\
                     room.acquire()  # before each item that is added to {name}\n\
                     room.release()  # after each one that was taken"
                ),
            )]
        }
        (None, None) => {}
    }
    vec![
        bound(QUEUE),
        Fix::new(
            "Pool.imap: start no more tasks than you consume",
            "room = threading.Semaphore(16)\n\
                      def limited(samples):\n    for sample in samples:\n        room.acquire()\n        yield sample\n\
                      for result in pool.imap(work, limited(samples)):\n    room.release()",
        ),
    ]
}
