//! Does a run show out-of-order-reorder-buffer? page.md says what that is, and how it differs from its look-alikes.
use crate::analysis::retainers::Kind;
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::UNSETTLED_S;
use crate::policy::memory::REORDER_BEFORE_S;
use crate::policy::sizes::{BUFFER_PART, NOTE_BYTES};
use crate::rule::finding::of_process;
use crate::rule::retainers;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, FilesystemUse, Fix, Place, Proof, Severity, Waiting};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    // The program's own, as it puts results of its workers in order.
    match (of_a_loader(analysis), retainers::judge(analysis, &RULE, Kind::Early)) {
        (Judgement::Found(mut found), Judgement::Found(of_the_program)) => {
            found.extend(of_the_program);
            Judgement::Found(found)
        }
        (_, Judgement::Found(found)) => Judgement::Found(found),
        (of_a_loader, _) => of_a_loader,
    }
}

fn of_a_loader(analysis: &Analysis) -> Judgement {
    let reported = analysis.timeline.processes().flat_map(|process| {
        process.torch_counters.waiting.iter().map(move |(at, waiting)| (process, *at, waiting))
    });
    let Some((process, at, waiting)) = reported.max_by_key(|(_, at, waiting)| (bytes(waiting), *at)) else {
        return Judgement::Nothing;
    };
    let held = bytes(waiting);
    let severity = match full(analysis, at) {
        Some(used) if held.saturating_mul(BUFFER_PART) >= used => Severity::Warning,
        _ if held >= NOTE_BYTES => Severity::Note,
        _ => return Judgement::Nothing,
    };
    let worker = waiting.worker.map_or("a worker".to_owned(), |number| format!("loader worker {number}"));
    let sentence = format!(
        "{} held {} of {} finished batches ({}) for {}, waiting for {worker}.",
        evidence::capital(&evidence::describe(process)),
        evidence::count(waiting.batches),
        evidence::count(waiting.outstanding),
        evidence::bytes(held),
        evidence::seconds(waiting.waited_s)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let evidence = evidence::number("batches behind a late one", held, "bytes", source, at, sentence);
    Judgement::one(of_process(analysis, &RULE, severity, Proof::Estimated, vec![evidence], process))
}

fn bytes(waiting: &Waiting) -> u64 {
    waiting.batch.map_or(0, |weight| weight.bytes()).saturating_mul(waiting.batches)
}

/// /dev/shm or memory ran out soon after this moment: what was in use of it.
fn full(analysis: &Analysis, at: At) -> Option<u64> {
    let soon = |failed: At| (-UNSETTLED_S..=REORDER_BEFORE_S).contains(&failed.since(at));
    let shm = analysis.failures.iter().find(|failure| {
        soon(failure.at)
            && (space::is_bus_error(failure) || (space::is_no_space(failure) && space::about_shm(failure)))
    });
    if shm.is_some() {
        let used = analysis.timeline.filesystems(FilesystemUse::Shm).filter_map(|shm| shm.used.peak());
        return Some(used.map(|(_, used)| used as u64).max().unwrap_or(0));
    }
    let end = analysis.oom_victims.first().map(|victim| victim.at);
    let refused = analysis
        .failures
        .iter()
        .find(|failure| failure.symptom() == crate::analysis::failures::Symptom::NoMemory);
    let when = end.or(refused.map(|failure| failure.at)).unwrap_or(analysis.timeline.end());
    (analysis.ran_out && soon(when)).then(|| analysis.timeline.memory().peak_bytes)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    if let Some(retainer) = &context.retainer {
        let name = retainer.name.as_deref().unwrap_or("early");
        return vec![
            Fix::new(
                "Begin only as many as may wait for a late one",
                format!(
                    "room = threading.BoundedSemaphore(64)  # once; that of multiprocessing where processes share it\n\
                     room.acquire()  # before each piece of work that is handed out\n\
                     room.release()  # after each one that was taken from {name} in its turn, or is given up"
                ),
            ),
            Fix::new(
                "If their order does not matter: take each as it is done",
                "for future in concurrent.futures.as_completed(futures):\n    use(future.result())",
            ),
        ];
    }
    vec![
        Fix::new(
            "If their order does not matter: take batches as they finish (torch 2.6 or newer)",
            context.loader("in_order=False"),
        )
        .only(Place::Loader),
        Fix::new("Let fewer batches wait", context.loader("prefetch_factor=1")).only(Place::Loader),
        Fix::new(
            "Find the slow samples",
            "begin = time.monotonic()  # in the dataset's __getitem__\n...\n\
                      if time.monotonic() - begin > 1:\n    print(\"slow\", index)",
        ),
    ]
}
