//! What do the allocators of a job keep that the program has let go of, and what do the rules make of it? One rule for each
//! keeper; this is what they have in common.
//!
//! Memory that is kept is there for the next block, and costs nothing until something else needs it: a note. It is a
//! warning where it is what the job grows by to its end, or where memory ran out and it was much of it.

use crate::copies::ran_out;
use crate::found::of_job;
use crate::growing::{Hoard, Keeper};
use crate::history::ProcessHistory;
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::say;
use ullage_model::{At, Evidence, GrowthClass, Role, Severity, Status};

const MIB: f64 = (1 << 20) as f64;
/// Less is not worth a word: of one process, or of its private memory.
const NOTE: f64 = 64.0 * MIB;
const NOTE_SHARE: f64 = 0.2;
/// Growth of more is a warning, but for a loader's worker: batches come and go there.
const WARN: f64 = 256.0 * MIB;
/// Memory ran out, and this share of it was kept.
const MUCH: f64 = 0.3;
/// A look so long before the end, seconds or share of its life, says nothing of a process that held much more or less then.
const RECENT_S: f64 = 5.0;
const RECENT_SHARE: f64 = 0.1;
const STALE: f64 = 0.25;
/// Threads from which arenas count.
const THREADS: f64 = 4.0;

/// What one keeper has in all processes of a job that are large in it.
pub(crate) struct Kept<'a> {
    /// The process with most.
    pub(crate) process: &'a ProcessHistory,
    pub(crate) hoard: Hoard,
    /// Bytes of all of them.
    pub(crate) bytes: f64,
    pub(crate) processes: u64,
}

/// None where it is not worth a word.
pub(crate) fn kept<'a>(case: &Case<'a>, keeper: Keeper) -> Option<Kept<'a>> {
    let mut all: Option<Kept> = None;
    for process in case.timeline.processes() {
        let Some(hoard) = process.looks.hoard(keeper).filter(|hoard| is_worth(process, hoard)) else {
            continue;
        };
        all = Some(match all {
            None => Kept { process, hoard, bytes: hoard.bytes, processes: 1 },
            Some(before) => {
                let larger = hoard.bytes > before.hoard.bytes;
                let (process, hoard_of) =
                    if larger { (process, hoard) } else { (before.process, before.hoard) };
                let bytes = before.bytes + hoard.bytes;
                Kept { process, hoard: hoard_of, bytes, processes: before.processes + 1 }
            }
        });
    }
    all
}

fn is_worth(process: &ProcessHistory, hoard: &Hoard) -> bool {
    let life = process.last_seen.since(process.first_seen);
    let recent = process.last_seen.since(hoard.at) <= RECENT_S.max(RECENT_SHARE * life);
    let alike = || {
        // Its very last reading may be of its end.
        let end = At::from_seconds((process.last_seen.seconds() - 1.0).max(hoard.at.seconds()));
        let at_end = process.private().at_or_before(end).map_or(hoard.anonymous, |(_, bytes)| bytes);
        (at_end - hoard.anonymous).abs() <= STALE * hoard.anonymous
    };
    hoard.bytes >= NOTE && hoard.bytes >= NOTE_SHARE * hoard.anonymous && (recent || alike())
}

/// The finding of a keeper's rule. `known`: further evidence, in front of it what the keeper said.
pub(crate) fn judge(
    case: &Case,
    rule: &Rule,
    keeper: Keeper,
    sentence: impl Fn(&Kept) -> String,
    known: impl Fn(&Kept) -> Vec<Evidence>,
) -> Judgement {
    let Some(kept) = kept(case, keeper) else { return unsaid(case, keeper) };
    let most = Keeper::ALL.into_iter().filter_map(|other| self::kept(case, other)).map(|kept| kept.bytes);
    let most = most.fold(0.0, f64::max);
    let growing = case.growth().filter(|(growth, _)| growth.class == GrowthClass::FreedButHeld);
    let goes_on = growing.is_some_and(|(growth, goes_on)| *goes_on && growth.bytes as f64 >= WARN);
    let short = ran_out(case) && kept.bytes >= MUCH * case.timeline.memory().peak_bytes as f64;
    let worker = matches!(kept.process.role, Role::LoaderWorker(_));
    let severity =
        if short || (goes_on && !worker && kept.bytes >= most) { Severity::Warning } else { Severity::Note };
    let pid = kept.process.id.pid;
    let source = format!("agent in {pid}");
    let text = format!("{}{}", sentence(&kept), others(&kept));
    let said =
        say::number("kept by the allocator", kept.hoard.bytes as u64, "bytes", &source, kept.hoard.at, text);
    let mut evidence = vec![said];
    if let Some((growth, _)) = growing {
        let (what, at) = ("growth", growth.since.unwrap_or(kept.hoard.at));
        evidence.push(say::number(what, growth.bytes, "bytes", &source, at, growth.because.clone()));
    }
    evidence.extend(known(&kept));
    let setting = Setting { bytes: Some(kept.hoard.trimmable as u64), ..case.setting_of(Some(kept.process)) };
    // What most is kept by is told first.
    let confidence = 0.6 + 0.3 * (kept.bytes / most.max(1.0));
    let mut finding = of_job(rule, severity, (Status::Supported, confidence), evidence, &setting);
    finding.process = Some(say::process_ref(kept.process));
    if let Some(since) = growing.and_then(|(growth, _)| growth.since) {
        finding.at = Some(since);
    }
    Judgement::one(finding)
}

fn others(kept: &Kept) -> String {
    match kept.processes {
        1 => String::new(),
        number => format!(
            " With {} like it: {}.",
            say::plural(number - 1, "process", "processes"),
            say::bytes(kept.bytes as u64)
        ),
    }
}

/// `malloc_trim(0)` was not called: it is a figure of what it would do.
pub(crate) fn trim(hoard: &Hoard) -> String {
    format!("malloc_trim(0) would give back about {}", say::bytes(hoard.trimmable as u64))
}

/// Private memory grows, and nobody inside said what it is.
fn unsaid(case: &Case, keeper: Keeper) -> Judgement {
    let preloads = |name: &str| case.variable("LD_PRELOAD").is_some_and(|libraries| libraries.contains(name));
    let there = match keeper {
        Keeper::Jemalloc => preloads("jemalloc"),
        Keeper::Tcmalloc => preloads("tcmalloc") || preloads("mimalloc"),
        Keeper::Arenas | Keeper::Heap => !preloads("malloc"),
        Keeper::Pymalloc | Keeper::Arrow => false,
    };
    let Some((growth, _)) = case.growth().filter(|_| there) else { return Judgement::Nothing };
    let process = growth.process.as_ref().and_then(|process| case.timeline.process(process.id));
    let Some(process) = process.filter(|process| !process.agent) else { return Judgement::Nothing };
    let threads = process.threads.peak().map_or(0.0, |(_, threads)| threads);
    if growth.class != GrowthClass::LiveGrowth
        || (growth.bytes as f64) < WARN
        || (keeper == Keeper::Arenas && threads < THREADS)
    {
        return Judgement::Nothing;
    }
    Judgement::cannot_tell(format!(
        "{} grew by {}; how much of that is free inside its allocator is known from inside only, and the agent did not speak",
        say::who(process),
        say::bytes(growth.bytes)
    ))
}

/// A variable that was set for the job, as evidence.
pub(crate) fn variable(case: &Case, name: &str) -> Option<Evidence> {
    let value = case.variable(name)?;
    Some(say::text(name, value, "environment", None, format!("{name}={value} was set.")))
}
