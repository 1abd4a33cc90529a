//! Does a run show profiler-and-debug-hooks? page.md says what that is, and how it differs from its look-alikes.

use super::unnamed_growth::grows;
use crate::analysis::failures::Failure;
use crate::analysis::growth_class::rising;
use crate::analysis::killed_at_work::during;
use crate::analysis::retainers::{explained_share, is_much, part};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, GROWTH_BYTES, GROWTH_WARN_BYTES, GROWTH_WARN_SHARE};
use crate::policy::limits::LAST_SECONDS_S;
use crate::policy::sizes::MOST;
use crate::policy::trends::{COUNTER_AGAIN_S, COUNTER_AGAIN_SHARE};
use crate::rule::finding::{no_memory_in, of_process};
use crate::rule::retainers::growth_sentence;
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Finding, Fix, GrowthClass, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

const WHAT: &str = "profiler";

fn judge(analysis: &Analysis) -> Judgement {
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let mut found: Vec<Finding> =
        rising.filter_map(|(process, rise)| recorded(analysis, process, rise)).collect();
    if found.is_empty() {
        let all = analysis.timeline.processes().filter_map(|process| listed(analysis, process));
        found.extend(all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, finding)| finding));
    }
    match no_memory_in(analysis, &RULE, LISTING, lists, |_| None) {
        Judgement::Found(killed) => Judgement::Found(killed),
        _ if found.is_empty() => Judgement::Nothing,
        _ => Judgement::Found(found),
    }
}

const LISTING: &str = "making a list of all that a profiler of torch's had recorded";

/// A profiler that is stopped makes an object of Python for each event, and sums them up. What it calls then, once the trace is
/// there, is the program's.
fn lists(failure: &Failure) -> bool {
    let of_torch = |frame: &String| frame.contains("/torch/") || frame.starts_with('<');
    let Some(first) = failure.stack.iter().position(|frame| is_listing(frame)) else { return false };
    failure.stack[first..].iter().all(of_torch)
}

fn is_listing(frame: &str) -> bool {
    let (place, function) = frame.rsplit_once(' ').unwrap_or((frame, ""));
    const OF_SESSION: [&str; 5] = ["stop", "stop_trace", "__exit__", "key_averages", "events"];
    const OF_EVENTS: [&str; 2] = ["_parse_kineto_results", "_ensure_function_events"];
    place.contains("torch/profiler/profiler.py") && OF_SESSION.contains(&function)
        || place.contains("torch/autograd/profiler.py") && OF_EVENTS.contains(&function)
        || place.contains("torch/autograd/profiler_util.py")
}

/// What came while it was stopped is much of what the process ever held, and stays. Of one that grows to its end, or profiles by a
/// schedule, that is not the story.
fn listed(analysis: &Analysis, process: &ProcessHistory) -> Option<(f64, Finding)> {
    let private = process.private();
    let (_, peak) = private.peak()?;
    let (mut came, mut first, mut stays) = (0.0, None, 0.0);
    // Of those that follow each other: when the last is over, bytes before the first, and at most in them.
    let mut run: Option<(At, f64, f64)> = None;
    for (place, work) in process.works.iter().enumerate() {
        let listing =
            |failure: &Failure| lists(failure) && !failure.calls("torch/profiler/profiler.py", &["step"]);
        let Some(failure) = during(process, work, &listing) else {
            run = None;
            continue;
        };
        let soon = At::from_seconds(work.0.seconds() + LAST_SECONDS_S);
        let until = process.works.get(place + 1).map_or(process.last_seen, |(next, _)| *next).min(soon);
        // Of a long run old readings are few.
        let before = private.at_or_before(work.0).filter(|(at, _)| work.0.since(*at) <= LAST_SECONDS_S);
        let going = run.filter(|(over, ..)| *over >= work.0).map(|(_, base, most)| (base, most));
        let Some((base, most)) = going.or(before.map(|(_, bytes)| (bytes, bytes))) else { continue };
        let most = private.peak_between(work.0, until).map_or(most, |(_, held)| held.max(most));
        run = Some((until, base, most));
        if most - base > came {
            // At the first one after that look it may still be listing.
            let later = private.points().filter(|(at, _)| *at > work.0).skip(1).map(|(_, bytes)| bytes);
            (came, stays) = (most - base, later.reduce(f64::min).unwrap_or(base) - base);
            first = Some(failure);
        }
    }
    let failure = first.filter(|_| {
        came >= GROWTH_WARN_BYTES as f64 && came >= GROWTH_WARN_SHARE * peak && stays >= MOST * came
    })?;
    let is_other = |rise: &Rise| came < MOST * rise.by && grows(analysis, process);
    if rising(analysis, GROWTH_BYTES as f64).iter().any(|(one, rise)| one.id == process.id && is_other(rise))
    {
        return None;
    }
    let began = failure.stack.iter().position(|frame| is_listing(frame))?;
    let of_torch = |frame: &&String| {
        ["/torch/autograd/", "/torch/profiler/", "/torch/utils/"].iter().any(|part| frame.contains(part))
    };
    let own = failure.stack[..began].iter().rfind(|frame| !of_torch(frame));
    let sentence = format!(
        "{} came to {} while it was {LISTING}, called from {}.",
        evidence::bytes(came as u64),
        evidence::describe(process),
        own.map_or("unknown".into(), |frame| evidence::frame(frame))
    );
    let source = evidence::Source::Agent(process.id.pid);
    let listed = evidence::number("memory of a profiler", came as u64, "bytes", source, failure.at, sentence);
    Some((came, of_process(analysis, &RULE, Severity::Warning, Proof::InPart, vec![listed], process)))
}

/// It recorded while most of the rise came, and what came are blocks of native code, and room between them, that nothing else explains.
fn recorded(analysis: &Analysis, process: &ProcessHistory, rise: Rise) -> Option<Finding> {
    let (at, counter) = process.torch_counters.latest(WHAT)?;
    let since = at.seconds() - counter.count as f64;
    let until = if sent_later(process, at, counter.count) { at.seconds() } else { rise.until };
    let held = |at: f64| {
        process.anonymous.at_or_before(At::from_seconds(at.max(0.0))).map_or(0.0, |(_, bytes)| bytes)
    };
    let most = held(until) - held(since.max(rise.since)) >= MOST * rise.by;
    // Its events pin what is freed between them, too.
    let of = |classes: [GrowthClass; 2]| classes.map(|class| part(process, &rise, class)).iter().sum::<f64>();
    let native = of([GrowthClass::LiveNativeBlocks, GrowthClass::FreedButHeld]) >= MOST * rise.by;
    if !most || !native || !is_much(process, &rise) || explained_share(process, rise) >= EXPLAINS {
        return None;
    }
    let long = match counter.count {
        0 => "when it was last read".into(),
        seconds => format!("for at least {} without a break", evidence::seconds(seconds as f64)),
    };
    let sentence = format!(
        "A profiler of torch's recorded in {} {long}, and keeps each event until it is stopped.",
        evidence::describe(process)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let recorded = evidence::text("profiler", "recording", source, Some(at), sentence);
    let evidence = vec![recorded, growth_sentence(process, &rise)];
    let mut finding = of_process(analysis, &RULE, Severity::Warning, Proof::InPart, evidence, process);
    finding.at = Some(At::from_seconds(rise.since));
    finding.explains = vec!["glibc-dynamic-mmap-threshold".into()];
    Some(finding)
}

/// Would the agent have told of it again, had it still recorded at the last reading? A process that is killed is not read again.
fn sent_later(process: &ProcessHistory, at: At, seconds: u64) -> bool {
    let more = (COUNTER_AGAIN_SHARE * seconds as f64).ceil();
    let again = more.clamp(1.0, COUNTER_AGAIN_S);
    process.memory_readings.all.last().is_some_and(|reading| reading.at - at.seconds() >= again)
}

fn fixes(_: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Record a few steps, and write them out",
            "schedule = torch.profiler.schedule(wait=10, warmup=2, active=5, repeat=1)\n\
                      with torch.profiler.profile(schedule=schedule, on_trace_ready=handler) as profiler:\n    \
                      for batch in loader:\n        step(batch)\n        profiler.step()",
        ),
        Fix::new(
            "Lightning: the same for its profiler",
            "PyTorchProfiler(schedule=torch.profiler.schedule(wait=10, warmup=2, active=5, repeat=1))",
        ),
    ]
}
