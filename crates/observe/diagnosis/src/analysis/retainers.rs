//! What retains the memory by which a process grows to the end of its run, as the agent's censuses say: which container or
//! graph, under which name, and how much of the growth it explains.
//!
//! Only what became longer between two censuses counts, and only in a process that still grew at its end: what was filled
//! once, and what came to rest, is nobody's leak.

use super::growth_class::split::split;
use super::retained::retained;
use crate::history::{Allocator, ProcessHistory, Timeline};
use crate::policy::growth::{GROWTH_WARN_BYTES, GROWTH_WARN_SHARE, ONE_RISE, VIEWS_KEEP};
use crate::policy::sizes::MOST;
use crate::trend::Rise;
use std::collections::BTreeMap;
use ullage_model::{At, Census, GrowthClass, HeldGraph, Retainer, Role};

/// How a holder keeps what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the graph of its tensors.
    Graph,
    /// By views of larger storages.
    View,
    /// By exceptions and the frames that they passed.
    Error,
    /// By hooks and closures.
    Hook,
    /// As what waits for whoever takes it out of a queue, or for a worker of an executor.
    Queue,
    /// As what came before its turn.
    Early,
    /// In what `itertools.cycle` or `itertools.tee` stores to give it out again.
    Cycle,
    /// In a buffer that a dataset shuffles: full, it grows no more.
    Shuffled,
    /// By threads that are running.
    Thread,
    /// As results kept for later.
    Cache,
    /// As what each step brought.
    Output,
}

/// What the agent calls what iterators give out once more: the list of `itertools.cycle`, and that of `itertools.tee`.
const REPEATED: [&str; 2] = ["itertools.cycle", "itertools._tee_dataobject"];

/// What the agent says of tasks and futures that are not done.
const PENDING: &str = " (pending)";
/// And of tasks of asyncio that wait for work, each for itself.
const SERVING: &str = " (serving)";

/// What a `threading.local` holds for each thread.
pub(crate) const OF_THREADS: &str = "threading.local";

/// Where CPython's threading keeps each thread until it has ended.
const RUNNING_THREADS: &str = "threading._active";

/// What a loop of events holds until it is due.
const TIMER: &str = "asyncio.events.TimerHandle";

/// What the registry of `weakref.finalize` holds.
const FINALIZER: &str = "weakref.finalize._Info";

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Kind; 11] = [
        Kind::Queue,
        Kind::Early,
        Kind::Cycle,
        Kind::Shuffled,
        Kind::Thread,
        Kind::Cache,
        Kind::Graph,
        Kind::View,
        Kind::Error,
        Kind::Hook,
        Kind::Output,
    ];

    /// In a process.
    fn of_in(process: &ProcessHistory, retainer: &Retainer) -> Kind {
        match (Kind::of(retainer), &process.role) {
            _ if is_shuffled(process, retainer) => Kind::Shuffled,
            // It brings samples; what its dataset keeps of them is for later.
            (Kind::Output, Role::LoaderWorker(_)) => Kind::Cache,
            (kind, _) => kind,
        }
    }

    /// By itself.
    pub(crate) fn of(retainer: &Retainer) -> Kind {
        let of_data = ["Tensor", "ndarray", "float", "int", "complex", "numpy."]
            .iter()
            .any(|kind| retainer.element.starts_with(kind))
            || retainer.element.contains(" with ")
            // A value that is made anew and longer.
            || retainer.element.is_empty()
                && ["Tensor", "ndarray", "bytes", "bytearray"].iter().any(|kind| retainer.type_name.ends_with(kind));
        match retainer {
            _ if retainer.name == RUNNING_THREADS => Kind::Thread,
            // The loop of events keeps them until they are due, and they what they call.
            _ if is_timers(retainer) || is_future(retainer) => Kind::Hook,
            _ if is_of_a_queue(retainer) || is_waiting(retainer) => Kind::Queue,
            _ if retainer.errors >= MOST => Kind::Error,
            _ if REPEATED.contains(&retainer.type_name.as_str()) => Kind::Cycle,
            _ if is_hooks(retainer) || retainer.by_hook || retainer.name.contains("_hooks[") => Kind::Hook,
            _ if is_finalizers(retainer) => Kind::Hook,
            _ if retainer.graph >= MOST => Kind::Graph,
            _ if retainer.views >= MOST && retainer.own_bytes.saturating_mul(VIEWS_KEEP) < retainer.bytes => {
                Kind::View
            }
            _ if retainer.in_order && may_wait(retainer) && !retainer.bounded => Kind::Early,
            _ if (retainer.drained || may_wait(retainer)) && !retainer.bounded => Kind::Queue,
            _ if is_of_callables(retainer) && !is_called_a_cache(retainer) => Kind::Hook,
            _ if is_of_lists(retainer) && !is_called_a_cache(retainer) && !is_of_a_class(retainer) => {
                Kind::Output
            }
            // By the number of a step, and never asked whether it has one.
            _ if retainer.numbered && !is_called_a_cache(retainer) => Kind::Output,
            _ if is_keyed(retainer) => Kind::Cache,
            _ if retainer.name.contains("closure variable") => Kind::Hook,
            // Of a module, and no figures: what was looked up, made or met. Not what each of many instances lists.
            _ if !of_data && retainer.place.is_empty() && retainer.alike < 2 => Kind::Cache,
            _ => Kind::Output,
        }
    }
}

/// A local of the function in which the agent saw a shuffle buffer: `shuffled, data.py:17` there, `shuffled(), data.py:23`
/// here.
fn is_shuffled(process: &ProcessHistory, retainer: &Retainer) -> bool {
    let file = |place: &str| place.rsplit_once(':').map(|(file, _)| file.replacen("()", "", 1));
    let buffer = process.torch_counters.latest("shuffle-buffer").and_then(|(_, buffer)| file(&buffer.name));
    buffer.is_some() && buffer == file(&retainer.place)
}

/// By a key, by its name, or by all instances of a class. By which way the agent came to it says nothing.
pub(crate) fn is_keyed(retainer: &Retainer) -> bool {
    let mapping = ["lru_cache", "dict", "set", "frozenset", OF_THREADS]
        .contains(&retainer.type_name.as_str())
        || retainer.type_name.starts_with("collections.") && retainer.type_name != "collections.deque";
    mapping || is_called_a_cache(retainer) || is_of_a_class(retainer)
}

/// The number of its keys stands still, and a list under each of them grows.
fn is_of_lists(retainer: &Retainer) -> bool {
    retainer.nested && what(&retainer.element) == "list"
}

fn is_called_a_cache(retainer: &Retainer) -> bool {
    let last = retainer.name.rsplit('.').next().unwrap_or_default().to_lowercase();
    ["cache", "memo"].iter().any(|word| last.contains(word))
}

/// `__main__.Samples.kept`: an attribute of the class itself, which all its instances share.
fn is_of_a_class(retainer: &Retainer) -> bool {
    let of = retainer.name.rsplit_once('.').map(|(before, _)| before);
    !retainer.owner.is_empty() && of == Some(retainer.owner.as_str())
}

/// An attribute of a queue's class, or of an executor's; or such a one itself, as what leads to what grows.
fn is_of_a_queue(retainer: &Retainer) -> bool {
    let itself = if retainer.deep { retainer.type_name.as_str() } else { "" };
    let of = |modules: &[&str]| {
        modules.iter().any(|module| retainer.owner.starts_with(module) || itself.starts_with(module))
    };
    // A manager looks its objects up by their names, and a process holds what it was started with.
    let others = ["multiprocessing.managers.", "multiprocessing.process.", "multiprocessing.context."];
    of(&["queue.", "asyncio.", "multiprocessing.", "concurrent."]) && !of(&others)
}

/// Of a future what is called when it is done: the agent says so of that of C while it waits.
pub(crate) fn is_future(retainer: &Retainer) -> bool {
    let of_python = ["asyncio.futures.Future", "concurrent.futures._base.Future"];
    retainer.owner == "_asyncio.Future"
        || of_python.contains(&retainer.owner.as_str()) && retainer.name.ends_with("_callbacks")
}

/// Code of the program takes elements from it. So it does from a dict of listeners, and from one of lists, which is read by its
/// keys; and a cache takes an entry out to put it back as the newest.
fn may_wait(retainer: &Retainer) -> bool {
    let is_other =
        retainer.nested || is_of_callables(retainer) || is_of_tasks(retainer) || is_called_a_cache(retainer);
    retainer.taken_from && (retainer.type_name == "collections.deque" || !is_other)
}

/// Its elements are tasks or futures that are not done.
pub(crate) fn is_waiting(retainer: &Retainer) -> bool {
    what(&retainer.element).ends_with(PENDING)
}

/// Tasks that wait for work: each serves somebody, or nobody any more.
pub(crate) fn is_of_tasks(retainer: &Retainer) -> bool {
    what(&retainer.element).ends_with(SERVING)
}

/// Of `function with Tensor [3, 4]` the function.
fn what(element: &str) -> &str {
    element.split_once(" with ").map_or(element, |(what, _)| what)
}

/// Its elements are called back, with what they close over or are bound to.
pub(crate) fn is_of_callables(retainer: &Retainer) -> bool {
    ["function", "method", "functools.partial"].contains(&what(&retainer.element))
        && retainer.type_name != "lru_cache"
}

/// What native code would call, or would call something with: registered with `atexit`, as a hook of a graph, with a library of C.
pub(crate) fn is_held_by_c(retainer: &Retainer) -> bool {
    retainer.type_name == "callbacks"
}

/// Callbacks that a loop of events holds until they are due.
pub(crate) fn is_timers(retainer: &Retainer) -> bool {
    let of_a_loop = retainer.owner.ends_with("EventLoop") && retainer.name.ends_with("._scheduled");
    retainer.element.starts_with(TIMER) || of_a_loop
}

/// What is called when an object goes.
pub(crate) fn is_finalizers(retainer: &Retainer) -> bool {
    retainer.element.starts_with(FINALIZER)
}

/// Hooks of a module: the names of torch's dictionaries of them end so.
pub(crate) fn is_hooks(retainer: &Retainer) -> bool {
    retainer.name.ends_with("_hooks")
}

/// A process that grew to its end, with all that holds its growth in one way.
pub(crate) struct RetainedGrowth<'a> {
    pub(crate) process: &'a ProcessHistory,
    pub(crate) at: At,
    pub(crate) kind: Kind,
    pub(crate) retainers: Vec<&'a Retainer>,
    pub(crate) graphs: Vec<&'a HeldGraph>,
    pub(crate) explained: u64,
    pub(crate) of: u64,
    /// What the graphs saved was seen, not only what is left.
    pub(crate) seen: bool,
    pub(crate) rise: Rise,
}

impl RetainedGrowth<'_> {
    /// What the program calls it, and where it grows. An attribute goes by its class: several names lead to an instance.
    fn line(&self) -> Option<(&str, &str)> {
        match (self.retainers.first(), self.graphs.first()) {
            (Some(one), _) if !one.line.is_empty() && !one.owner.is_empty() => Some((&one.owner, &one.line)),
            (Some(one), _) => Some((&one.name, &one.line)),
            (None, Some(graph)) => Some((&graph.name, &graph.line)),
            (None, None) => None,
        }
    }

    /// Of what came, the part that it explains.
    pub(crate) fn share(&self) -> f64 {
        self.explained as f64 / self.of.max(1) as f64
    }

    /// It has a name, or a line at which it grows.
    pub(crate) fn is_known(&self) -> bool {
        self.line().is_some_and(|(name, line)| !name.is_empty() || !line.is_empty())
    }

    pub(crate) fn is_alike(&self, other: &RetainedGrowth) -> bool {
        std::mem::discriminant(&self.process.role) == std::mem::discriminant(&other.process.role)
            && self.line() == other.line()
    }
}

/// The census that explains most of the growth: the last one, or an earlier one where those after it had no time for all.
pub(crate) fn held(process: &ProcessHistory, rise: Rise, kind: Kind) -> Option<RetainedGrowth<'_>> {
    let (last_at, last) = process.censuses.last()?;
    // Of a program that has very much a census is dear, so that the last may be from before the rise as it was in the end.
    let since = if was_rising(process, &rise, *last_at) { last_at.seconds() } else { rise.since };
    let mut later_was_cut = true;
    let reported = process.censuses.iter().rev().take_while(|(at, census)| {
        let counts = later_was_cut && at.seconds() >= since;
        later_was_cut = census.cut;
        counts
    });
    reported
        .filter_map(|(at, census)| {
            let mut held = held_by(process, rise, kind, (*at, census))?;
            held.of = held.of.saturating_add(last.grown.saturating_sub(census.grown));
            Some(held)
        })
        .max_by(|a, b| a.share().total_cmp(&b.share()))
}

/// In each quarter of the time from then to the beginning of the rise it rose about as fast, as far as it was read so often: it
/// is one growth. What is loaded at first comes faster.
fn was_rising(process: &ProcessHistory, rise: &Rise, at: At) -> bool {
    let (private, since) = (process.private(), At::from_seconds(rise.since));
    let readings = private.points().filter(|(read, _)| *read > at && *read <= since).count();
    let parts = (readings / 2).clamp(1, 4);
    let each = (rise.since - at.seconds()) / parts as f64;
    let came = each * rise.by / (rise.until - rise.since).max(1.0);
    let held = |part: usize| {
        let then = At::from_seconds(at.seconds() + each * part as f64);
        private.at_or_before(then).map(|(_, bytes)| bytes)
    };
    let rose = |part: usize| {
        let alike = |(before, after): (f64, f64)| {
            (ONE_RISE[0] * came..=ONE_RISE[1] * came).contains(&(after - before))
        };
        held(part).zip(held(part + 1)).is_some_and(alike)
    };
    each > 0.0 && (0..parts).all(rose)
}

/// Of the growth of a process, the largest share that holders of one kind explain.
pub(crate) fn explained_share(process: &ProcessHistory, rise: Rise) -> f64 {
    let held = Kind::ALL.into_iter().filter_map(|kind| held(process, rise, kind));
    held.map(|held| held.share()).fold(0.0, f64::max)
}

fn held_by<'a>(
    process: &'a ProcessHistory,
    rise: Rise,
    kind: Kind,
    (at, census): (At, &'a Census),
) -> Option<RetainedGrowth<'a>> {
    let most = most_ever(process);
    let grew = |retainer: &&Retainer| {
        // What a constructor fills was empty when that began: of one that failed a single look is enough.
        let made =
            retainer.in_constructor && process.exceptions > 0 && [Kind::Cache, Kind::Output].contains(&kind);
        let longer = retainer.before.map_or(made, |before| before < retainer.length);
        longer && retainer.bytes.max(retainer.more_bytes).max(retainer.hidden_bytes) <= most
    };
    let retainers: Vec<&Retainer> = census
        .retainers
        .iter()
        .filter(grew)
        .filter(|retainer| Kind::of_in(process, retainer) == kind)
        .collect();
    let graphs: Vec<&HeldGraph> = match kind {
        Kind::Graph => census.graphs.iter().filter(|graph| graph.more_bytes <= most).collect(),
        _ => Vec::new(),
    };
    let of = retainers.iter().map(|one| one.of_bytes).chain(graphs.iter().map(|one| one.of_bytes)).max()?;
    let of_retainers = distinct(&retainers);
    // Several names may lead to one graph.
    let of_graphs = graphs.iter().map(|graph| graph.more_bytes).max().unwrap_or(0);
    let hidden: u64 = retainers.iter().map(|one| one.hidden_bytes).sum::<u64>().max(of_graphs);
    let mut explained = of_retainers.saturating_add(hidden);
    let seen = kind != Kind::Graph || census.sees_saved || hidden > 0;
    if !seen {
        let others =
            census.retainers.iter().filter(grew).filter(|retainer| Kind::of_in(process, retainer) != kind);
        let others: u64 = others.map(|one| one.more_bytes).sum();
        explained = of.saturating_sub(others);
    }
    Some(RetainedGrowth {
        process,
        at,
        kind,
        retainers,
        graphs,
        explained: explained.min(of),
        of,
        seen,
        rise,
    })
}

/// The most that a process ever had in memory. What is said to weigh more was weighed wrongly, and says nothing.
fn most_ever(process: &ProcessHistory) -> u64 {
    let private = process.private().peak().map_or(0.0, |(_, bytes)| bytes) as u64;
    let others = process.memory.map_or(0, |(_, memory)| memory.file.0.saturating_add(memory.shared.0));
    private.saturating_add(others)
}

/// Bytes that came to all of them; what lies in another of them counts there.
fn distinct(retainers: &[&Retainer]) -> u64 {
    let inside = |one: &Retainer| {
        retainers.iter().any(|other| {
            let rest = one.name.strip_prefix(other.name.as_str()).filter(|_| !other.name.is_empty());
            one.place == other.place && rest.is_some_and(|rest| rest.starts_with(['[', '.']))
        })
    };
    let own = retainers.iter().filter(|retainer| !inside(retainer));
    own.map(|retainer| retainer.more_bytes).fold(0, u64::saturating_add)
}

/// Enough to be a warning where it may be meant to be so.
pub(crate) fn is_much(process: &ProcessHistory, rise: &Rise) -> bool {
    is_much_of(rise.by, process.private().peak().map_or(0.0, |(_, bytes)| bytes))
}

/// The same of what is in use, of all that is: what malloc holds free below live blocks may be many times as much.
pub(crate) fn is_much_in_use(process: &ProcessHistory, rise: &Rise) -> bool {
    let free = part(process, rise, GrowthClass::FreedButHeld);
    let most = process.private().peak().map_or(0.0, |(_, bytes)| bytes);
    is_much_of(rise.by - free, most - all_free(process, rise))
}

/// The same of several.
pub(crate) fn are_much_in_use(timeline: &Timeline, all: &[(&ProcessHistory, &Rise)]) -> bool {
    let processes: Vec<&ProcessHistory> = all.iter().map(|(process, _)| *process).collect();
    let free: f64 = all.iter().map(|(process, rise)| part(process, rise, GrowthClass::FreedButHeld)).sum();
    let by: f64 = all.iter().map(|(_, rise)| rise.by).sum();
    // What forks inherited, free or not, counts once.
    let in_all = if let [(process, rise)] = all { all_free(process, rise) } else { free };
    is_much_of(by - free, most_private(timeline, &processes) - in_all)
}

/// What malloc holds free in it: not less than came of that in the rise.
fn all_free(process: &ProcessHistory, rise: &Rise) -> f64 {
    let of = |allocator| retained(&process.memory_readings, allocator).map_or(0.0, |retained| retained.bytes);
    let came = part(process, rise, GrowthClass::FreedButHeld);
    (of(Allocator::Arenas) + of(Allocator::Heap)).max(came)
}

fn is_much_of(by: f64, private: f64) -> bool {
    by >= GROWTH_WARN_BYTES as f64 && by >= GROWTH_WARN_SHARE * private
}

/// The same of several processes that grow alike: a job grows by what all of them do.
pub(crate) fn are_much(timeline: &Timeline, all: &[(&ProcessHistory, &Rise)]) -> bool {
    let processes: Vec<&ProcessHistory> = all.iter().map(|(process, _)| *process).collect();
    is_much_of(all.iter().map(|(_, rise)| rise.by).sum(), most_private(timeline, &processes))
}

/// Private memory that they had at most, together. What several were forked with counts once, and as their parent's where it
/// is one of them; of what a process had when it was first read, no more than its parent had then can be that.
pub(crate) fn most_private(timeline: &Timeline, all: &[&ProcessHistory]) -> f64 {
    let (mut own, mut inherited) = (0.0, BTreeMap::new());
    for process in all {
        let most = process.private().peak().map_or(0.0, |(_, bytes)| bytes);
        let forked_from = process.facts.as_ref().and_then(|facts| facts.forked_from);
        let parent = forked_from.and_then(|parent| timeline.process(parent));
        let began = parent.zip(process.anonymous.first()).map_or(0.0, |(parent, (at, first))| {
            let of_parent = parent.anonymous.at_or_before(at).or(parent.anonymous.first());
            of_parent.map_or(0.0, |(_, bytes)| bytes.min(first).min(most))
        });
        own += most - began;
        if let Some(parent) = parent.filter(|parent| all.iter().all(|other| other.id != parent.id)) {
            let of_parent: &mut f64 = inherited.entry(parent.id).or_default();
            *of_parent = of_parent.max(began);
        }
    }
    own + inherited.values().sum::<f64>()
}

/// Most of what came is free inside the allocator.
pub(crate) fn is_not_live(process: &ProcessHistory, rise: &Rise) -> bool {
    part(process, rise, GrowthClass::FreedButHeld) > MOST * rise.by
}

/// Bytes of what came that are of a class.
pub(crate) fn part(process: &ProcessHistory, rise: &Rise, class: GrowthClass) -> f64 {
    let parts = split(&process.memory_readings, rise.since, rise.by, rise.rests(process.worked_until));
    parts.unwrap_or_default().iter().filter(|part| part.0 == class).map(|part| part.1).sum()
}
