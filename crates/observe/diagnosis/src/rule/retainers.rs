//! What do the rules say of growth that something in Python retains? One rule for each kind of retainer; this is what they
//! have in common.
//!
//! The surprise: a container that is filled to the end of a run, because the
//! run was that long, looks like one that is never emptied. So containers alone must hold much before it is a warning; a
//! graph, a view or a traceback that is kept is one without that.

use crate::analysis::copies::{starter, Copy};
use crate::analysis::failures::Symptom;
use crate::analysis::growth_class::{rising, rising_with_shared, shared_during, still_rises};
use crate::analysis::retainers::{
    are_much, are_much_in_use, held, is_finalizers, is_held_by_c, is_hooks, is_keyed, is_not_live, is_timers,
    part, Kind, RetainedGrowth,
};
use crate::analysis::unheld::{line, unheld, Unheld};
use crate::analysis::{readable, Analysis, Collection, RemedyContext, RetainerInCode};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, EXPLAINS_MOST, GROWTH_BYTES, HOOKS_MORE};
use crate::policy::sizes::{MOST, NOTE_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Evidence, Finding, Fix, GrowthClass, Proof, Retainer, Role, Severity};

/// What evidence of processes is called in which the same holds as much, besides the one that a finding is about.
pub(crate) const ELSEWHERE: &str = "memory held in other processes";

/// How evidence is called of all that a name leads to; the name follows.
pub(crate) const LEADS_TO: &str = "memory behind ";
/// And of what it holds itself.
pub(crate) const HELD_BY: &str = "memory held by ";

/// Holders that are named.
const MOST_NAMED: usize = 3;

/// What a rule about one kind of retainer says.
pub(crate) fn judge(analysis: &Analysis, rule: &Rule, kind: Kind) -> Judgement {
    let rising = rising_with_shared(analysis, GROWTH_BYTES as f64).into_iter();
    let mut all: Vec<RetainedGrowth> =
        rising.filter_map(|(process, rise)| held(process, rise, kind)).collect();
    all.sort_by_key(|held| std::cmp::Reverse(held.explained));
    let mut found = Vec::new();
    while !all.is_empty() {
        let first = all.remove(0);
        // Workers of one loader, ranks of one job: the same line in each of them is one finding.
        let (same, others): (Vec<RetainedGrowth>, Vec<RetainedGrowth>) =
            all.into_iter().partition(|held| first.is_alike(held));
        all = others;
        found.extend(finding(analysis, rule, &first, &same));
    }
    if found.is_empty() {
        return unseen(analysis).map_or(Judgement::Nothing, Judgement::undetermined);
    }
    Judgement::Found(found)
}

/// The same, and where no name holds what came: tensors of one shape. `grows`: whether a process
/// grows as one does that is neither at its start nor in a phase.
pub(crate) fn judge_with_unheld(
    analysis: &Analysis,
    rule: &Rule,
    kind: Kind,
    grows: impl Fn(&ProcessHistory) -> bool,
) -> Judgement {
    let by_name = judge(analysis, rule, kind);
    if matches!(by_name, Judgement::Found(_)) {
        return by_name;
    }
    let rising = rising(analysis, GROWTH_BYTES as f64).into_iter();
    let mut all: Vec<(&ProcessHistory, Rise, Unheld)> = rising
        .filter(|(process, _)| grows(process))
        .filter_map(|(process, rise)| Some((process, rise, unheld(process, rise)?)))
        .filter(|(_, _, unheld)| unheld.kind() == kind)
        .collect();
    all.sort_by(|a, b| b.1.by.total_cmp(&a.1.by));
    let Some((process, rise, unheld)) = all.first() else { return by_name };
    let evidence = vec![unheld_sentence(process, unheld), growth_sentence(process, rise)];
    let context = analysis.remedy_context_of(Some(process));
    // That they have a graph says why they stay; without one they may as well be models, or what anything else keeps.
    let proof = if kind == Kind::Graph { Proof::InPart } else { Proof::Consistent };
    let mut finding = of_job(rule, Severity::Warning, proof, evidence, &context);
    // What holds them is not known, so that there is nothing to empty yet.
    finding.fixes = vec![Fix::new("Find what holds them: put this where the job has grown", REFERRERS)];
    finding.process = Some(evidence::process_ref(process));
    finding.at = Some(At::from_seconds(rise.since));
    Judgement::Found(vec![finding])
}

const OF_TENSORS: &str = "memory of tensors";
const REFERRERS: &str = "import collections, gc, torch\n\
    tensors = [one for one in gc.get_objects() if type(one) is torch.Tensor]\n\
    shape = collections.Counter(one.shape for one in tensors).most_common(1)[0][0]\n\
    last = [one for one in tensors if one.shape == shape][-1]\n\
    print(shape, [type(holder) for holder in gc.get_referrers(last) if holder is not tensors])";

/// Of a container of tasks that each serve somebody: their end empties it. None of others.
pub(crate) fn end_tasks(context: &RemedyContext, name: &str) -> Option<Fix> {
    let retainer = context.retainer.as_ref().filter(|retainer| retainer.of_tasks && !retainer.deep)?;
    let takes_out = match retainer.collection {
        Collection::Dict => format!("task.add_done_callback(lambda _: {name}.pop(key, None))"),
        Collection::Set => format!("task.add_done_callback({name}.discard)"),
        _ => format!("task.add_done_callback({name}.remove)"),
    };
    Some(Fix::new(
        "End each task when whom it serves has gone: what it holds goes with it",
        format!("{takes_out}\ntask.cancel()  # when its client has gone, or has not been heard of for long"),
    ))
}

/// A finding of what grew where no name holds it.
pub(crate) fn is_without_a_name(finding: &Finding) -> bool {
    finding.evidence.first().is_some_and(|first| first.what == OF_TENSORS)
}

fn unheld_sentence(process: &ProcessHistory, unheld: &Unheld) -> Evidence {
    let Unheld { at, group, of } = unheld;
    let sentence = format!(
        "{} tensors {} hold {}; there were {} before. They are most of the {} that came. What holds them was not found.",
        evidence::count(group.count),
        group.tensors,
        evidence::bytes(group.bytes),
        evidence::count(group.count_before.unwrap_or(0)),
        evidence::bytes(*of)
    );
    let source = evidence::Source::Agent(process.id.pid);
    evidence::number(OF_TENSORS, group.bytes, "bytes", source, *at, sentence)
}

/// The line that allocated most of what came, where no name holds it.
pub(crate) fn line_sentence(process: &ProcessHistory, rise: Rise) -> Option<Evidence> {
    let (at, site, sites) = line(process, rise)?;
    let sentence = format!(
        "{} allocated {} that stayed in use, of {} that came in {}. What holds them was not found.",
        site.line,
        evidence::bytes(site.bytes),
        evidence::bytes(sites.came.max(0) as u64),
        evidence::seconds(sites.seconds)
    );
    let source = evidence::Source::Agent(process.id.pid);
    Some(evidence::number("memory allocated by a line", site.bytes, "bytes", source, at, sentence))
}

/// `same`: other processes in which it is so too.
fn finding(
    analysis: &Analysis,
    rule: &Rule,
    held: &RetainedGrowth,
    same: &[RetainedGrowth],
) -> Option<Finding> {
    let share = held.share();
    let hooks =
        held.retainers.iter().any(|one| is_hooks(one) && one.length >= one.before.unwrap_or(0) + HOOKS_MORE);
    if share < EXPLAINS && !hooks && in_use_share(held) < EXPLAINS {
        return None;
    }
    let earlier = held.at.seconds() < held.rise.since;
    let known = match (held.seen, share >= EXPLAINS_MOST && !earlier) {
        (true, true) => Proof::SeenInside,
        (true, false) => Proof::InPart,
        // A graph that a backward pass has freed is long and holds nothing: in an older torch it looks the same.
        (false, _) => Proof::Consistent,
    };
    let severity = severity(analysis, held, same, share);
    // The largest first: its sentence is the headline, and the remedy goes into it.
    let graph_leads = graph_leads(held);
    let mut evidence: Vec<Evidence> = graph_sentence(held).filter(|_| graph_leads).into_iter().collect();
    for retainer in held.retainers.iter().take(MOST_NAMED) {
        evidence.push(retainer_sentence(held, retainer));
        evidence.extend(detail_sentence(held, retainer));
    }
    evidence.extend(graph_sentence(held).filter(|_| !graph_leads));
    evidence.push(share_sentence(held, share));
    evidence.extend(same_sentence(held, same));
    evidence.push(growth_sentence(held.process, &held.rise));
    let mut context = analysis.remedy_context_of(Some(held.process));
    context.retainer = match (held.retainers.first(), held.graphs.first()) {
        (Some(retainer), _) if !graph_leads => Some(RetainerInCode::of(retainer)),
        (_, graph) => graph.map(|graph| RetainerInCode::tensor(&graph.name)),
    };
    let mut finding = of_job(rule, severity, known, evidence, &context);
    finding.process = Some(evidence::process_ref(held.process));
    finding.at = Some(At::from_seconds(held.rise.since));
    Some(finding)
}

/// Of what came and is in use: what malloc holds free below live blocks is nobody's, and may be many times as much. Where nearly all
/// of it is free, what is left is no more than the error of both readings: less than counts as growth is not divided by.
fn in_use_share(held: &RetainedGrowth) -> f64 {
    let free = part(held.process, &held.rise, GrowthClass::FreedButHeld) / held.rise.by.max(1.0);
    held.explained as f64 / (held.of as f64 * (1.0 - free)).max(GROWTH_BYTES as f64)
}

/// The graph of a tensor retains more than the first container.
fn graph_leads(held: &RetainedGrowth) -> bool {
    let weight = |retainer: &&Retainer| retainer.more_bytes.saturating_add(retainer.hidden_bytes);
    held.graphs.first().is_some_and(|graph| {
        held.retainers.first().is_none_or(|retainer| graph.more_bytes > weight(retainer))
    })
}

fn severity(analysis: &Analysis, held: &RetainedGrowth, same: &[RetainedGrowth], share: f64) -> Severity {
    // Of those without a name or a line nobody knows whether they are the same.
    let alike = same.iter().filter(|one| held.is_known() && one.share() >= EXPLAINS_MOST);
    let all: Vec<_> = std::iter::once(held).chain(alike).map(|one| (one.process, &one.rise)).collect();
    // Where most of what came is free, what is in use counts. A census sees a part of the growth, of which less may be free.
    let in_use = is_not_live(held.process, &held.rise);
    let much =
        if in_use { are_much_in_use(analysis.timeline, &all) } else { are_much(analysis.timeline, &all) };
    let share = if in_use && held.explained >= GROWTH_BYTES { in_use_share(held) } else { share };
    let bounded = held.retainers.iter().all(|retainer| retainer.bounded) && held.graphs.is_empty();
    match held.kind {
        // What exceptions among a function's arguments retain was in nobody's mind who bounded its cache.
        Kind::Error if bounded && held.retainers.iter().all(|one| one.type_name == "lru_cache") => {
            if much {
                Severity::Warning
            } else {
                Severity::Note
            }
        }
        _ if bounded && held.kind != Kind::Hook => Severity::Note,
        // What an object is made of: it is whole when its constructor returns, and something else ended that.
        Kind::Cache | Kind::Output
            if is_being_made(held) && !analysis.ran_out && has_raised(analysis, held.process) =>
        {
            Severity::Note
        }
        Kind::Cache if is_persistent_workers(analysis, held) => Severity::Note,
        // Those that are due later: as many as a loop of events is busy with.
        Kind::Hook
            if held.retainers.iter().all(|one| is_timers(one)) && !(much && share >= EXPLAINS_MOST) =>
        {
            Severity::Note
        }
        // Libraries register finalizers for what they compile and cache.
        Kind::Hook if !much && held.retainers.first().is_some_and(|one| is_finalizers(one)) => Severity::Note,
        Kind::Graph if !held.seen => Severity::Note,
        Kind::Graph | Kind::View | Kind::Error | Kind::Hook | Kind::Cycle => Severity::Warning,
        Kind::Queue | Kind::Early | Kind::Cache | Kind::Output | Kind::Thread
            if much && share >= EXPLAINS_MOST =>
        {
            Severity::Warning
        }
        Kind::Queue | Kind::Early | Kind::Cache | Kind::Output | Kind::Thread | Kind::Shuffled => {
            Severity::Note
        }
    }
}

/// All of it is what the constructor of an object fills, which has not returned yet.
fn is_being_made(held: &RetainedGrowth) -> bool {
    held.graphs.is_empty() && held.retainers.iter().all(|retainer| retainer.in_constructor)
}

/// An exception ended it that is not of memory, nor of whoever had seen enough of it.
fn has_raised(analysis: &Analysis, process: &ProcessHistory) -> bool {
    analysis.failures.iter().any(|failure| {
        failure.process.is_some_and(|failed| failed.id == process.id)
            && failure.exception.is_some()
            && failure.symptom() == Symptom::Other
            && !failure.text().contains("KeyboardInterrupt")
    })
}

/// What workers keep that are never ended is persistent-workers-growth's, unless it is looked up by a key.
fn is_persistent_workers(analysis: &Analysis, held: &RetainedGrowth) -> bool {
    let copy = Copy { process: held.process, bytes: 0, error: 0, at: held.at };
    let settings = starter(analysis, &[copy]).and_then(|starter| starter.loader.as_ref());
    matches!(held.process.role, Role::LoaderWorker(_))
        && !held.retainers.iter().any(|retainer| is_keyed(retainer))
        && settings.is_some_and(|settings| settings.persistent_workers)
}

fn source(held: &RetainedGrowth) -> evidence::Source {
    evidence::Source::Agent(held.process.id.pid)
}

pub(crate) fn growth_sentence(process: &ProcessHistory, rise: &Rise) -> Evidence {
    let (kind, what) = match shared_during(process, rise) >= MOST * rise.by {
        true => ("shared memory", "shared memory that came to it"),
        false => ("private memory", "private memory that came"),
    };
    let sentence = format!(
        "{} grew by {} of {kind} in the last {} of the run.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(rise.by as u64),
        evidence::seconds(rise.until - rise.since),
    );
    let source = evidence::Source::Process(process.id.pid, "status");
    let at = At::from_seconds(rise.until);
    evidence::number(what, rise.by as u64, "bytes", source, at, sentence)
}

/// What the agent calls tracebacks that no container of exceptions explains.
const TRACEBACKS: &str = "tracebacks";

/// ``The list `losses` in train() (train.py:31)``.
fn spelt(type_name: &str, name: &str, place: &str) -> String {
    let mut text = match (type_name, name) {
        (TRACEBACKS, _) => "What tracebacks retain".into(),
        ("callbacks", _) if name.starts_with('(') => format!("The arguments `{name}` of callbacks"),
        (_, "") => format!("An unnamed {type_name}"),
        // Behind a decorator of the program's own it is a variable of the function that stands in front of it.
        ("lru_cache", _) => {
            format!("The cache of `{}()`", name.split(", closure variable").next().unwrap_or(name))
        }
        _ => format!("The {type_name} `{}`", readable(name)),
    };
    match place.rsplit_once(", ") {
        Some((function, line)) => text.push_str(&format!(" in {function} ({line})")),
        None if !place.is_empty() => text.push_str(&format!(" in {place}")),
        None => {}
    }
    text
}

fn retainer_sentence(held: &RetainedGrowth, retainer: &Retainer) -> Evidence {
    // The line where it grows; that of its name is where its function happened to stand.
    let grows =
        Some(retainer.line.as_str()).filter(|line| !line.is_empty() && retainer.type_name != "lru_cache");
    let place = match (grows, retainer.place.rsplit_once(", ")) {
        (Some(_), Some((function, _))) => function,
        _ => &retainer.place,
    };
    let mut spelt = spelt(&retainer.type_name, &retainer.name, place);
    if retainer.deep {
        let leads = if is_held_by_c(retainer) { "lead" } else { "leads" };
        spelt = format!("What t{} {leads} to", spelt.trim_start_matches('T'));
    }
    let at = grows.map_or(String::new(), |line| format!(" at {line}"));
    let before = retainer.before.unwrap_or(0);
    let value = retainer.more_bytes.saturating_add(retainer.hidden_bytes);
    let of_value =
        ["Tensor", "ndarray", "bytes", "bytearray"].iter().any(|kind| retainer.type_name.ends_with(kind));
    let from_to = if of_value {
        format!("from {} to {}", evidence::bytes(before), evidence::bytes(retainer.length))
    } else {
        let elements = match retainer.type_name.as_str() {
            "lru_cache" if !retainer.deep => "results",
            // An exception itself, not a container of them.
            _ if held.kind == Kind::Error && retainer.element.is_empty() => TRACEBACKS,
            _ if is_hooks(retainer) => "hooks",
            _ if is_held_by_c(retainer) => "registrations",
            _ if retainer.deep => "objects",
            _ if retainer.nested => "elements of its elements",
            _ => "elements",
        };
        format!("from {} to {} {elements}", evidence::count(before), evidence::count(retainer.length))
    };
    let sentence = match held.kind {
        // A hook weighs little, and a graph whose saved tensors cannot be seen seems to.
        Kind::Hook if is_hooks(retainer) => format!("{spelt} grew{at} {from_to}."),
        Kind::Graph if retainer.hidden_bytes == 0 => format!("{spelt} grew{at} {from_to}."),
        Kind::Graph => format!("{spelt} grew by {}{at} with its graphs, {from_to}.", evidence::bytes(value)),
        _ => format!("{spelt} grew by {}{at}, {from_to}.", evidence::bytes(value)),
    };
    let what = if retainer.name.is_empty() { retainer.type_name.clone() } else { retainer.name.clone() };
    let what = format!("{}{what}", if retainer.deep { LEADS_TO } else { HELD_BY });
    evidence::number(&what, value, "bytes", source(held), held.at, sentence)
}

/// What it belongs to, and what its elements are.
fn detail_sentence(held: &RetainedGrowth, retainer: &Retainer) -> Option<Evidence> {
    let mut parts = Vec::new();
    if !retainer.owner.is_empty() {
        let instances = match retainer.alike {
            0 | 1 => String::new(),
            alike => format!("{} instances of ", evidence::count(alike)),
        };
        parts.push(format!("it is an attribute of {instances}{}", retainer.owner));
    }
    if retainer.type_name == "lru_cache" && !retainer.line.is_empty() {
        parts.push(format!("it was made at {}", retainer.line));
    }
    if retainer.in_constructor {
        parts.push("the constructor of this object fills it, and had not returned yet".into());
    }
    if !retainer.element.is_empty() && !is_held_by_c(retainer) {
        parts.push(format!("its elements: {}", retainer.element));
    }
    match held.kind {
        Kind::Graph => {
            parts.push(format!("{:.0} % of its elements carry an autograd graph", 100.0 * retainer.graph));
        }
        Kind::View => parts.push(format!(
            "its views show {} and retain {}",
            evidence::bytes(retainer.own_bytes),
            evidence::bytes(retainer.bytes)
        )),
        Kind::Error if retainer.type_name == TRACEBACKS => {
            parts.push(
                "exceptions that something still refers to, and with them the frames that they passed".into(),
            );
        }
        Kind::Error if retainer.element.is_empty() => {
            parts.push("each time it is raised, it retains the frames that it passes".into());
        }
        Kind::Error => parts.push("its exceptions retain the frames that they passed".into()),
        Kind::Hook if is_held_by_c(retainer) => parts.push(
            match retainer.element.as_str() {
                "hook" => {
                    "a graph of torch's holds them, in C++, as its hooks; nothing in Python refers to them"
                }
                _ => {
                    "native code holds them, such as `atexit` or a library; nothing in Python refers to them"
                }
            }
            .into(),
        ),
        Kind::Hook if is_hooks(retainer) => {
            parts.push("a hook lives until its handle is removed".into());
        }
        Kind::Early => parts
            .push("the program takes its elements in order: an early one waits for one that is late".into()),
        Kind::Queue if retainer.drained => {
            parts.push("its first elements left it meanwhile: it fills faster than it is emptied".into());
        }
        Kind::Queue if retainer.taken_from => {
            let end = match retainer.type_name.as_str() {
                "collections.deque" => "from its left",
                "list" => "by heapq.heappop",
                _ => "by their keys",
            };
            parts.push(format!("the program has code that takes elements {end}"));
        }
        _ => {}
    }
    if parts.is_empty() {
        return None;
    }
    let sentence = format!("{}.", evidence::capital(&parts.join("; ")));
    let line = if retainer.line.is_empty() { &retainer.element } else { &retainer.line };
    Some(evidence::text("where it grows", line, source(held), Some(held.at), sentence))
}

fn graph_sentence(held: &RetainedGrowth) -> Option<Evidence> {
    let graph = held.graphs.first()?;
    let spelt = spelt("Tensor", &graph.name, &graph.place);
    let from_to =
        format!("from {} to {} operations", evidence::count(graph.before), evidence::count(graph.operations));
    let sentence = if graph.more_bytes > 0 {
        format!(
            "{spelt} retains {} more by its graph, which grew {from_to}.",
            evidence::bytes(graph.more_bytes)
        )
    } else {
        format!("{spelt} retains a graph that grew {from_to}; this torch hides its size.")
    };
    let what = format!("memory held by the graph of {}", graph.name);
    Some(evidence::number(&what, graph.more_bytes, "bytes", source(held), held.at, sentence))
}

fn same_sentence(held: &RetainedGrowth, same: &[RetainedGrowth]) -> Option<Evidence> {
    if same.is_empty() {
        return None;
    }
    let bytes: u64 = same.iter().map(|held| held.explained).fold(0, u64::saturating_add);
    let sentence = format!(
        "{} more are held in the same way in {}.",
        evidence::bytes(bytes),
        evidence::plural(same.len() as u64, "other process", "other processes")
    );
    Some(evidence::number(ELSEWHERE, bytes, "bytes", source(held), held.at, sentence))
}

fn share_sentence(held: &RetainedGrowth, share: f64) -> Evidence {
    let how = if held.seen { "explains" } else { "explains at most" };
    let sentence = format!(
        "This {how} {} of {} that came between two readings ({:.0} %).",
        evidence::bytes(held.explained),
        evidence::bytes(held.of),
        100.0 * share
    );
    let evidence =
        evidence::number("growth explained", held.explained, "bytes", source(held), held.at, sentence);
    evidence::with_limit(evidence, held.of)
}

/// What holds most of the growth of a process, for another rule to name.
pub(crate) fn what_grows(process: &ProcessHistory) -> Option<Evidence> {
    let rise = still_rises(process, GROWTH_BYTES as f64)?;
    let held = Kind::ALL.into_iter().filter_map(|kind| held(process, rise, kind));
    let most = held.max_by_key(|held| held.explained)?;
    let much = most.explained as f64 >= EXPLAINS * most.of as f64;
    most.retainers.first().filter(|_| much).map(|retainer| retainer_sentence(&most, retainer))
}

/// A Python that grew to its end, into which nobody looked.
pub(crate) fn unseen(analysis: &Analysis) -> Option<String> {
    rising(analysis, NOTE_BYTES as f64).into_iter().find_map(|(process, rise)| {
        let python = process.agent || process.name().starts_with("python");
        let counted =
            process.censuses.iter().any(|(at, census)| census.number > 1 && at.seconds() >= rise.since);
        if !python || counted || is_not_live(process, &rise) {
            return None;
        }
        let why = if process.agent {
            "its agent found too few moments to inspect it"
        } else {
            "no agent was inside to see what holds it"
        };
        Some(format!(
            "{} grew by {} of private memory to the end of the run; {why}",
            evidence::describe(process),
            evidence::bytes(rise.by as u64)
        ))
    })
}
