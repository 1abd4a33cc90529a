//! Does a run show profiler-and-debug-hooks? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::growth_class::rising;
use crate::analysis::killed_at_work::during;
use crate::analysis::retainers::{explained_share, is_much, part};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, GROWTH_BYTES, GROWTH_WARN_BYTES, GROWTH_WARN_SHARE};
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
        found.extend(analysis.timeline.processes().find_map(|process| listed(analysis, process)));
    }
    match no_memory_in(analysis, &RULE, LISTING, lists, |_| None) {
        Judgement::Found(killed) => Judgement::Found(killed),
        _ if found.is_empty() => Judgement::Nothing,
        _ => Judgement::Found(found),
    }
}

const LISTING: &str = "making a list of all that a profiler of torch's had recorded";

/// A profiler that is stopped makes an object of Python for each event, and sums them up.
fn lists(failure: &Failure) -> bool {
    failure.calls("torch/profiler/profiler.py", &["stop", "stop_trace", "__exit__", "key_averages", "events"])
        || failure.passes("torch/autograd/profiler_util.py")
}

/// What came while it was stopped is much of what the process ever held.
fn listed(analysis: &Analysis, process: &ProcessHistory) -> Option<Finding> {
    let private = process.private();
    let (_, peak) = private.peak()?;
    let ends = process.works.iter().skip(1).map(|(at, _)| *at).chain([process.last_seen]);
    let (mut came, mut first) = (0.0, None);
    for (work, until) in process.works.iter().zip(ends) {
        let Some(failure) = during(process, work, &lists) else { continue };
        let (_, before) = private.at_or_before(work.0)?;
        came += private.peak_between(work.0, until).map_or(0.0, |(_, held)| (held - before).max(0.0));
        first.get_or_insert(failure);
    }
    let failure = first.filter(|_| came >= GROWTH_WARN_BYTES as f64 && came >= GROWTH_WARN_SHARE * peak)?;
    let own = failure.stack.iter().take_while(|frame| !frame.contains("/torch/")).last();
    let frame = own.map_or("unknown", |frame| frame.as_str());
    let sentence = format!(
        "{} came to {} while it was {LISTING}, called from {}.",
        evidence::bytes(came as u64),
        evidence::describe(process),
        evidence::frame(frame)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let listed = evidence::number("memory of a profiler", came as u64, "bytes", source, failure.at, sentence);
    Some(of_process(analysis, &RULE, Severity::Warning, Proof::InPart, vec![listed], process))
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
