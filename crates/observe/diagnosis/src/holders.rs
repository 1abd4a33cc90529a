//! What holds the memory by which a process grows to the end of its run, as the agent's censuses say: which container or
//! graph, under which name, and how much of the growth it explains. What the rules about such growth have in common.
//!
//! Only what became longer between two censuses counts, and only in a process that still grew at its end: what was filled
//! once, and what came to rest, is nobody's leak. The surprise: a container that is filled to the end of a run, because the
//! run was that long, looks like one that is never emptied. So containers alone must hold much before it is a warning; a
//! graph, a view or a traceback that is kept is one without that.

use crate::copies::{starter, Copy};
use crate::found::of_job;
use crate::growing::{rising, still_rises, Rise};
use crate::history::ProcessHistory;
use crate::rule::{Case, Judgement, Rule};
use crate::say;
use ullage_model::{At, Evidence, Finding, GrowthClass, HeldGraph, Holder, Role, Severity, Status};

const MIB: u64 = 1 << 20;
/// Growth of less is not told.
pub(crate) const LEAST: u64 = 32 * MIB;
/// Growth that nobody could look into is told from here on.
const UNSEEN: u64 = 64 * MIB;
/// From here on a container that only becomes longer is a warning, where it is this share of the process.
const WARN: u64 = 96 * MIB;
const WARN_SHARE: f64 = 0.25;
/// Of the growth, what a cause must explain to be told, and to be certain.
pub(crate) const SHARE: f64 = 0.3;
pub(crate) const CERTAIN: f64 = 0.5;
/// Most of its elements.
const MOST: f64 = 0.5;
/// Hooks that one module has more than before.
const HOOKS: u64 = 16;
/// Holders that are named.
const NAMED: usize = 3;

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
    /// As results kept for later.
    Cache,
    /// As what each step brought.
    Output,
}

impl Kind {
    /// In a process.
    fn of_in(process: &ProcessHistory, holder: &Holder) -> Kind {
        match (Kind::of(holder), &process.role) {
            // It brings samples; what its dataset keeps of them is for later.
            (Kind::Output, Role::LoaderWorker(_)) => Kind::Cache,
            (kind, _) => kind,
        }
    }

    fn of(holder: &Holder) -> Kind {
        let of_data = ["Tensor", "ndarray", "float", "int", "complex", "numpy."]
            .iter()
            .any(|kind| holder.element.starts_with(kind))
            || holder.element.contains(" with ");
        let mapping = ["lru_cache", "dict", "set", "frozenset"].contains(&holder.type_name.as_str())
            || holder.type_name.starts_with("collections.") && holder.type_name != "collections.deque";
        match holder {
            _ if holder.errors >= MOST => Kind::Error,
            _ if is_hooks(holder) || holder.by_hook || holder.name.contains("_hooks[") => Kind::Hook,
            _ if holder.graph >= MOST => Kind::Graph,
            _ if holder.views >= MOST && holder.own_bytes.saturating_mul(4) < holder.bytes => Kind::View,
            _ if mapping || is_called_a_cache(holder) || is_of_a_class(holder) => Kind::Cache,
            _ if holder.name.contains("closure variable") => Kind::Hook,
            // Of a module, and no figures: what was looked up, made or met.
            _ if !of_data && holder.place.is_empty() => Kind::Cache,
            _ => Kind::Output,
        }
    }
}

fn is_called_a_cache(holder: &Holder) -> bool {
    let last = holder.name.rsplit('.').next().unwrap_or_default().to_lowercase();
    ["cache", "memo"].iter().any(|word| last.contains(word))
}

/// `__main__.Samples.kept`: an attribute of the class itself, which all its instances share.
fn is_of_a_class(holder: &Holder) -> bool {
    let of = holder.name.rsplit_once('.').map(|(before, _)| before);
    !holder.owner.is_empty() && of == Some(holder.owner.as_str())
}

/// What waits in a queue is queue-backlog-unbounded's.
fn is_of_a_queue(holder: &Holder) -> bool {
    ["queue.", "asyncio.", "multiprocessing.", "concurrent."]
        .iter()
        .any(|module| holder.owner.starts_with(module))
}

fn is_hooks(holder: &Holder) -> bool {
    holder.name.ends_with("_hooks")
}

/// A process that grew to its end, with all that holds its growth in one way.
struct Held<'a> {
    process: &'a ProcessHistory,
    at: At,
    kind: Kind,
    holders: Vec<&'a Holder>,
    graphs: Vec<&'a HeldGraph>,
    explained: u64,
    of: u64,
    /// What the graphs saved was seen, not only what is left.
    seen: bool,
    rise: Rise,
}

impl Held<'_> {
    /// What the program calls it, and where it grows.
    fn line(&self) -> Option<(&str, &str)> {
        let holder = self.holders.first().map(|one| (one.name.as_str(), one.line.as_str()));
        holder.or(self.graphs.first().map(|one| (one.name.as_str(), one.line.as_str())))
    }

    fn is_alike(&self, other: &Held) -> bool {
        std::mem::discriminant(&self.process.role) == std::mem::discriminant(&other.process.role)
            && self.line() == other.line()
    }
}

/// What a rule about one kind of holder says.
pub(crate) fn judge(case: &Case, rule: &Rule, kind: Kind) -> Judgement {
    let rising = rising(case, LEAST as f64).into_iter();
    let mut all: Vec<Held> = rising.filter_map(|(process, rise)| held(process, rise, kind)).collect();
    all.sort_by_key(|held| std::cmp::Reverse(held.explained));
    let mut found = Vec::new();
    while !all.is_empty() {
        let first = all.remove(0);
        // Workers of one loader, ranks of one job: the same line in each of them is one finding.
        let (same, others): (Vec<Held>, Vec<Held>) = all.into_iter().partition(|held| first.is_alike(held));
        all = others;
        found.extend(finding(case, rule, &first, &same));
    }
    if found.is_empty() {
        return unseen(case).map_or(Judgement::Nothing, Judgement::cannot_tell);
    }
    Judgement::Found(found)
}

fn held(process: &ProcessHistory, rise: Rise, kind: Kind) -> Option<Held<'_>> {
    let (at, census) = process.censuses.last()?;
    if at.seconds() < rise.since {
        return None;
    }
    let grew = |holder: &&Holder| {
        holder.before.is_some_and(|before| before < holder.length) && !is_of_a_queue(holder)
    };
    let holders: Vec<&Holder> =
        census.holders.iter().filter(grew).filter(|holder| Kind::of_in(process, holder) == kind).collect();
    let graphs: Vec<&HeldGraph> =
        if kind == Kind::Graph { census.graphs.iter().collect() } else { Vec::new() };
    let of = holders.iter().map(|one| one.of_bytes).chain(graphs.iter().map(|one| one.of_bytes)).max()?;
    let of_holders = distinct(&holders);
    // Several names may lead to one graph.
    let of_graphs = graphs.iter().map(|graph| graph.more_bytes).max().unwrap_or(0);
    let hidden: u64 = holders.iter().map(|one| one.hidden_bytes).sum::<u64>().max(of_graphs);
    let mut explained = of_holders.saturating_add(hidden);
    let seen = kind != Kind::Graph || census.sees_saved || hidden > 0;
    if !seen {
        let others = census.holders.iter().filter(grew).filter(|holder| Kind::of_in(process, holder) != kind);
        let others: u64 = others.map(|one| one.more_bytes).sum();
        explained = of.saturating_sub(others);
    }
    Some(Held { process, at: *at, kind, holders, graphs, explained: explained.min(of), of, seen, rise })
}

/// Bytes that came to all of them; what lies in another of them counts there.
fn distinct(holders: &[&Holder]) -> u64 {
    let inside = |one: &Holder| {
        holders.iter().any(|other| {
            let rest = one.name.strip_prefix(other.name.as_str()).filter(|_| !other.name.is_empty());
            one.place == other.place && rest.is_some_and(|rest| rest.starts_with(['[', '.']))
        })
    };
    let own = holders.iter().filter(|holder| !inside(holder));
    own.map(|holder| holder.more_bytes).fold(0, u64::saturating_add)
}

/// `same`: other processes in which it is so too.
fn finding(case: &Case, rule: &Rule, held: &Held, same: &[Held]) -> Option<Finding> {
    let share = held.explained as f64 / held.of.max(1) as f64;
    let hooks = held.holders.iter().any(|one| is_hooks(one) && one.length >= one.before.unwrap_or(0) + HOOKS);
    if share < SHARE && !hooks {
        return None;
    }
    let known = match (held.seen, share >= CERTAIN) {
        (true, true) => (Status::Established, 0.9),
        (true, false) => (Status::Supported, 0.65),
        // A graph that a backward pass has freed is long and holds nothing: in an older torch it looks the same.
        (false, _) => (Status::Hypothesis, 0.5),
    };
    let severity = severity(case, held, share);
    let mut evidence = vec![growth_sentence(held.process, &held.rise)];
    evidence.extend(graph_sentence(held));
    for holder in held.holders.iter().take(NAMED) {
        evidence.push(holder_sentence(held, holder));
    }
    evidence.push(share_sentence(held, share));
    evidence.extend(same_sentence(held, same));
    let mut setting = case.setting_of(Some(held.process));
    let name = held.holders.first().map(|one| &one.name).or(held.graphs.first().map(|one| &one.name));
    setting.path = name.filter(|name| plain(name)).cloned();
    let mut finding = of_job(rule, severity, known, evidence, &setting);
    finding.process = Some(say::process_ref(held.process));
    finding.at = Some(At::from_seconds(held.rise.since));
    Some(finding)
}

/// It can stand in a line of code.
fn plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._".contains(c))
}

fn severity(case: &Case, held: &Held, share: f64) -> Severity {
    let much = is_much(held.process, &held.rise);
    let bounded = held.holders.iter().all(|holder| holder.bounded) && held.graphs.is_empty();
    match held.kind {
        _ if bounded && held.kind != Kind::Hook => Severity::Note,
        Kind::Cache if is_persistent_workers(case, held) => Severity::Note,
        Kind::Graph if !held.seen => Severity::Note,
        Kind::Graph | Kind::View | Kind::Error | Kind::Hook => Severity::Warning,
        Kind::Cache | Kind::Output if much && share >= CERTAIN => Severity::Warning,
        Kind::Cache | Kind::Output => Severity::Note,
    }
}

/// What workers keep that are never ended is persistent-workers-growth's, unless it is looked up by a key.
fn is_persistent_workers(case: &Case, held: &Held) -> bool {
    let copy = Copy { process: held.process, bytes: 0, error: 0, at: held.at };
    let settings = starter(case, &[copy]).and_then(|starter| starter.loader.as_ref());
    matches!(held.process.role, Role::LoaderWorker(_))
        && held.holders.iter().all(|holder| Kind::of(holder) == Kind::Output)
        && settings.is_some_and(|settings| settings.persistent_workers)
}

/// Enough to be a warning where it may be meant to be so.
pub(crate) fn is_much(process: &ProcessHistory, rise: &Rise) -> bool {
    let private = process.private().peak().map_or(0.0, |(_, bytes)| bytes);
    rise.by >= WARN as f64 && rise.by >= WARN_SHARE * private
}

fn source(held: &Held) -> String {
    format!("agent in {}", held.process.id.pid)
}

pub(crate) fn growth_sentence(process: &ProcessHistory, rise: &Rise) -> Evidence {
    let sentence = format!(
        "{} grew by {} of private memory in the last {} of the run, and did so to its end.",
        say::capital(&say::who(process)),
        say::bytes(rise.by as u64),
        say::seconds(rise.until - rise.since),
    );
    let source = format!("/proc/{}/status", process.id.pid);
    let at = At::from_seconds(rise.until);
    say::number("private memory that came", rise.by as u64, "bytes", &source, at, sentence)
}

/// `list losses in train(), train.py:31 (it grows at train.py:27)`.
fn spelt(type_name: &str, name: &str, place: &str, owner: &str, line: &str) -> String {
    let mut text = match (type_name, name) {
        (_, "") => format!("a {type_name} that no name was found for"),
        ("lru_cache", _) => format!("the results that the cached function {name}() keeps"),
        _ => format!("the {type_name} {name}"),
    };
    if !place.is_empty() {
        text.push_str(&format!(" in {place}"));
    }
    let mut more = Vec::new();
    if !owner.is_empty() {
        more.push(format!("an attribute of {owner}"));
    }
    if !line.is_empty() {
        let made = if type_name == "lru_cache" { "made" } else { "it grows" };
        more.push(format!("{made} at {line}"));
    }
    if !more.is_empty() {
        text.push_str(&format!(" ({})", more.join("; ")));
    }
    text
}

fn holder_sentence(held: &Held, holder: &Holder) -> Evidence {
    let spelt = spelt(&holder.type_name, &holder.name, &holder.place, &holder.owner, &holder.line);
    let before = holder.before.unwrap_or(0);
    let of_value =
        ["Tensor", "ndarray", "bytes", "bytearray"].iter().any(|kind| holder.type_name.ends_with(kind));
    let became = if of_value {
        format!("became larger, from {} to {}", say::bytes(before), say::bytes(holder.length))
    } else {
        let what = if holder.element.is_empty() { String::new() } else { format!(" ({})", holder.element) };
        format!("became longer, from {} to {} elements{what}", say::count(before), say::count(holder.length))
    };
    let keeps = match held.kind {
        Kind::Graph if holder.hidden_bytes > 0 => format!(
            "; {:.0} % of them carry the graph that made them, which keeps about {} more than before",
            100.0 * holder.graph,
            say::bytes(holder.hidden_bytes)
        ),
        Kind::Graph => format!("; {:.0} % of them carry the graph that made them", 100.0 * holder.graph),
        Kind::View => format!(
            "; they show {} and keep {}: each is a small part of a storage that lives as long as it does",
            say::bytes(holder.own_bytes),
            say::bytes(holder.bytes)
        ),
        Kind::Error => {
            format!(
                "; with the frames that they passed they keep {} more than before",
                say::bytes(holder.more_bytes)
            )
        }
        Kind::Hook if is_hooks(holder) => {
            "; a hook lives until its handle is removed, with all that it refers to".into()
        }
        _ => format!("; that is {} more", say::bytes(holder.more_bytes)),
    };
    let sentence = format!("{} {became}{keeps}.", say::capital(&spelt));
    let value = holder.more_bytes.saturating_add(holder.hidden_bytes);
    let what = if holder.name.is_empty() { holder.type_name.clone() } else { holder.name.clone() };
    say::number(&format!("memory held by {what}"), value, "bytes", &source(held), held.at, sentence)
}

fn graph_sentence(held: &Held) -> Option<Evidence> {
    let graph = held.graphs.first()?;
    let saved = if graph.more_bytes > 0 {
        format!("they saved about {} for a backward pass", say::bytes(graph.more_bytes))
    } else {
        "what they saved for a backward pass cannot be seen in this version of torch".into()
    };
    let sentence = format!(
        "{} reaches back over {} operations, and did over {} before: a graph that becomes ever longer, with all that its steps saved; {saved}.",
        say::capital(&spelt("Tensor", &graph.name, &graph.place, &graph.owner, &graph.line)),
        say::count(graph.operations),
        say::count(graph.before),
    );
    let what = format!("memory held by the graph of {}", graph.name);
    Some(say::number(&what, graph.more_bytes, "bytes", &source(held), held.at, sentence))
}

fn same_sentence(held: &Held, same: &[Held]) -> Option<Evidence> {
    if same.is_empty() {
        return None;
    }
    let bytes: u64 = same.iter().map(|held| held.explained).fold(0, u64::saturating_add);
    let sentence = format!(
        "The same holds {} more in {}.",
        say::bytes(bytes),
        say::plural(same.len() as u64, "other process", "other processes")
    );
    Some(say::number("memory held in other processes", bytes, "bytes", &source(held), held.at, sentence))
}

fn share_sentence(held: &Held, share: f64) -> Evidence {
    let how = if held.seen { "explains" } else { "explains at most" };
    let sentence = format!(
        "This {how} {} of the {} by which the process grew between two censuses: {:.0} %.",
        say::bytes(held.explained),
        say::bytes(held.of),
        100.0 * share
    );
    let evidence = say::number("growth explained", held.explained, "bytes", &source(held), held.at, sentence);
    say::of(evidence, held.of)
}

/// What holds most of the growth of a process, for another rule to name.
pub(crate) fn what_grows(process: &ProcessHistory) -> Option<Evidence> {
    let kinds = [Kind::Cache, Kind::Graph, Kind::View, Kind::Error, Kind::Hook, Kind::Output];
    let rise = still_rises(process, LEAST as f64)?;
    let held = kinds.into_iter().filter_map(|kind| held(process, rise, kind));
    let most = held.max_by_key(|held| held.explained)?;
    let much = most.explained as f64 >= SHARE * most.of as f64;
    most.holders.first().filter(|_| much).map(|holder| holder_sentence(&most, holder))
}

/// A Python that grew to its end, into which nobody looked.
pub(crate) fn unseen(case: &Case) -> Option<String> {
    rising(case, UNSEEN as f64).into_iter().find_map(|(process, rise)| {
        let python = process.agent || process.name().starts_with("python");
        let counted =
            process.censuses.iter().any(|(at, census)| census.number > 1 && at.seconds() >= rise.since);
        if !python || counted || is_not_live(process, &rise) {
            return None;
        }
        let why = if process.agent {
            "the agent in it found too few moments to look at what holds it"
        } else {
            "what holds it is seen from inside only, and the agent was not there"
        };
        Some(format!(
            "{} grew by {} of private memory to the end of the run; {why}",
            say::who(process),
            say::bytes(rise.by as u64)
        ))
    })
}

/// Most of what came is free inside the allocator.
fn is_not_live(process: &ProcessHistory, rise: &Rise) -> bool {
    let parts = process.looks.split(rise.since, rise.by, rise.rests(process.last_seen)).unwrap_or_default();
    let free: f64 = parts.iter().filter(|part| part.0 == GrowthClass::FreedButHeld).map(|part| part.1).sum();
    free > 0.5 * rise.by
}
