//! Does a run show unnamed-growth? page.md says what that is, and how it differs from its look-alikes.

use super::large_preallocation_lazy_touch;
use crate::analysis::goes_on::goes_on;
use crate::analysis::growth_class::{began, is_start, least, rising};
use crate::analysis::retainers::{is_not_live, most_private, part};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::given::CLOCK_TICKS;
use crate::policy::growth::{
    EXPLAINS, GROWTH_WARN_BYTES, GROWTH_WARN_SHARE, UNNAMED_EACH_BYTES, UNNAMED_HALF, UNNAMED_LASTED,
};
use crate::policy::sizes::MOST;
use crate::policy::trends::{FORECAST_REACH, GROWTH_LEAST_S, LEAST_SPAN_S};
use crate::rule::allocators::{is_free_growth, retained_by_allocator};
use crate::rule::finding::of_job;
use crate::rule::retainers::{growth_sentence, is_without_a_name, line_sentence};
use crate::rule::{Judgement, Rule};
use crate::trend::{flattens, rise, Rise};
use ullage_model::{
    At, Evidence, Finding, Fix, GrowthClass, LimitKind, LimitState, OutcomeKind, ProcessId, ProcessRef,
    Proof, Role, Severity, Status, TensorGroup,
};

pub(super) const RULE: Rule = Rule { judge, fixes };
const ID: &str = "unnamed-growth";

/// A process that grows to its end.
struct Grower<'a> {
    process: &'a ProcessHistory,
    rise: Rise,
    /// Without what libraries brought.
    by: f64,
}

fn judge(analysis: &Analysis) -> Judgement {
    let all = growers(analysis);
    match (together(analysis, &all.iter().collect::<Vec<_>>()), all.first()) {
        (Some(limit), Some(_)) => Judgement::one(finding(analysis, &all.iter().collect::<Vec<_>>(), limit)),
        _ => shared(analysis).map_or(Judgement::Nothing, Judgement::one),
    }
}

/// What evidence of shared memory is called: no process has that for itself.
const SHARED: &str = "shared memory that came";

/// Shared memory that grows to the end, as much as private memory would have to.
fn shared(analysis: &Analysis) -> Option<Finding> {
    let (growth, _) = analysis
        .growth
        .as_ref()
        .filter(|(growth, ongoing)| *ongoing && growth.class == GrowthClass::SharedMemoryBacklog)?;
    let (since, end) = (growth.since?, analysis.timeline.last_alive()?);
    let lasted = end.since(since);
    let held = analysis.timeline.tree.peak().map_or(0.0, |(_, bytes)| bytes);
    let much = (GROWTH_WARN_BYTES as f64).max(GROWTH_WARN_SHARE * held);
    // Segments that wait in descriptors are in no process's memory: then their number is what rises.
    let mapped = &analysis.timeline.groups.shared;
    // Who held them may have ended before the last process of the job did.
    let mapped_rise = rise(mapped, began(analysis), least(analysis));
    let (came, until) = mapped_rise.map_or((0.0, end.seconds()), |rise| (rise.by, rise.until));
    let is_mapped = came >= MOST * growth.bytes as f64;
    let main = analysis.main().and_then(|id| analysis.timeline.process(id));
    if (growth.bytes as f64) < much
        || main.is_some_and(|main| is_start(main, end.seconds()))
        || lasted < GROWTH_LEAST_S.max(UNNAMED_LASTED * end.seconds())
        || is_mapped && flattens(mapped, since.seconds(), until, UNNAMED_HALF * much)
    {
        return None;
    }
    let source = evidence::Source::Named("/dev/shm");
    let came = evidence::number(SHARED, growth.bytes, "bytes", source, end, growth.because.clone());
    let context = analysis.remedy_context_of(None);
    let mut finding = of_job(&RULE, Severity::Warning, Proof::SeenOutside, vec![came], &context);
    finding.fixes = vec![Fix::new(
        "See which processes keep the segments open",
        "for p in /proc/[0-9]*; do echo \"$(ls -l $p/fd 2>/dev/null | grep -c -e /dev/shm/ -e memfd:) $p\"; done | sort -n | tail -3",
    )];
    let running = analysis.plain_outcome().kind == OutcomeKind::StillRunning;
    finding.title = format!(
        "Shared memory {}, by {} a second; cause not found",
        if running { "is growing" } else { "grows to the end" },
        evidence::bytes(growth.per_second as u64)
    );
    finding.process = growth.process.clone();
    finding.at = Some(since);
    Some(finding)
}

fn is_shared(finding: &Finding) -> bool {
    finding.cause == ID && finding.evidence.first().is_some_and(|evidence| evidence.what == SHARED)
}

/// Whether a finding may be why shared memory grows: any that is no note, and notes of the whole of something.
fn may_explain_shared(finding: &Finding) -> bool {
    let whole = finding.status() >= Status::Supported && finding.proof != Proof::InPart;
    finding.cause != ID
        && (finding.severity > Severity::Note || whole && retained_by_allocator(finding).is_none())
}

/// Takes it back where other findings explain so much of the growth that the rest is no story, and where a failure does that
/// ended the run, or the process that grew: a kill says more of it, also where the run went on. `is_growth`: whether a cause is a
/// growth of private memory.
pub(super) fn yield_to_others(
    analysis: &Analysis,
    findings: &mut Vec<Finding>,
    is_growth: impl Fn(&str) -> bool,
) {
    // Tensors of one shape are not what retains them: a queue, a graph or a cache may be.
    let named = |one: &Finding, nameless: &Finding| {
        let process = analysis
            .timeline
            .processes()
            .find(|process| nameless.process.as_ref().is_some_and(|reference| reference.id == process.id));
        let other = one.cause != ID && !is_without_a_name(one) && is_growth(&one.cause);
        other && process.is_some_and(|process| explains(analysis, one, process, 0.0, &[]))
    };
    let yields: Vec<bool> = findings
        .iter()
        .map(|finding| is_without_a_name(finding) && findings.iter().any(|one| named(one, finding)))
        .collect();
    let mut yields = yields.into_iter();
    findings.retain(|_| !yields.next().unwrap_or(false));
    if findings.iter().any(is_shared) {
        if findings.iter().any(may_explain_shared) {
            findings.retain(|finding| finding.cause != ID);
        }
        return;
    }
    if findings.iter().all(|finding| finding.cause != ID) {
        return;
    }
    let fatal =
        |finding: &Finding| finding.severity == Severity::Fatal && finding.status() >= Status::Supported;
    let all = growers(analysis);
    let rest: Vec<&Grower> = all
        .iter()
        .filter(|grower| {
            let explains = |finding: &Finding| explains(analysis, finding, grower.process, grower.by, &all);
            let is_it = |id: ProcessId| id == grower.process.id;
            let mut victims = analysis.oom_victims.iter().filter_map(|victim| victim.process);
            let is_reported = |finding: &Finding| {
                let of_it = finding.process.as_ref().is_some_and(|process| is_it(process.id));
                finding.cause != ID && finding.severity > Severity::Note && of_it
            };
            let was_killed = victims.any(|victim| is_it(victim.id)) && findings.iter().any(is_reported);
            !was_killed && !findings.iter().any(|finding| is_growth(&finding.cause) && explains(finding))
        })
        .collect();
    match together(analysis, &rest).filter(|_| !findings.iter().any(fatal)) {
        None => findings.retain(|finding| finding.cause != ID),
        // What is left is told by those that are left.
        Some(limit) if rest.len() < all.len() => {
            for one in findings.iter_mut().filter(|finding| finding.cause == ID) {
                let of_rest = self::finding(analysis, &rest, limit);
                let (cause, explains) = (std::mem::take(&mut one.cause), std::mem::take(&mut one.explains));
                *one = Finding { cause, explains, headline: of_rest.title.clone(), ..of_rest };
            }
        }
        Some(_) => {}
    }
}

/// `by`: bytes by which it grew; `all`: every process that did.
fn explains(
    analysis: &Analysis,
    finding: &Finding,
    grower: &ProcessHistory,
    by: f64,
    all: &[Grower],
) -> bool {
    // A note of a part of a growth leaves the rest of it open: it may be a growth for itself.
    let held = || most_private(analysis.timeline, &[grower]);
    let is_much = |rest: f64| rest >= GROWTH_WARN_BYTES as f64 && rest >= GROWTH_WARN_SHARE * held();
    let rise = all.iter().find(|one| one.process.id == grower.id).map(|one| one.rise);
    // What was free before it came is no part of it.
    let came = rise.map_or(f64::INFINITY, |rise| part(grower, &rise, GrowthClass::FreedButHeld));
    let leaves = |bytes: f64| bytes.min(came) < EXPLAINS * by || is_much(by - bytes.min(came));
    let in_part = finding.proof == Proof::InPart || retained_by_allocator(finding).is_some_and(leaves);
    let sure = finding.severity > Severity::Note || (finding.status() >= Status::Supported && !in_part);
    // Of workers, or ranks, that do the same, one stands for all.
    let alike = |role: &Role| std::mem::discriminant(role) == std::mem::discriminant(&grower.role);
    let of_it = finding.process.as_ref().is_none_or(|process| {
        process.id == grower.id
            || (alike(&process.role)
                && (matches!(process.role, Role::LoaderWorker(_) | Role::PoolWorker | Role::Rank(_))
                    || all.iter().any(|named| {
                        named.process.id == process.id && is_sibling(named, grower) && MOST * by <= named.by
                    })))
    });
    sure && of_it
}

/// multiprocessing started both, for the same parent.
fn is_sibling(named: &Grower, other: &ProcessHistory) -> bool {
    let works = |process: &ProcessHistory| {
        matches!(process.role, Role::Trainer | Role::Other) && process.started_by.is_some()
    };
    works(named.process) && works(other) && named.process.born_to() == other.born_to()
}

/// Whether a process grows to its end, and neither in its start nor in a phase.
pub(super) fn grows(analysis: &Analysis, process: &ProcessHistory) -> bool {
    growers(analysis).iter().any(|grower| grower.process.id == process.id)
}

/// Every process that grows to its end, the one that grew most first.
fn growers<'a>(analysis: &Analysis<'a>) -> Vec<Grower<'a>> {
    let mut all: Vec<Grower> = rising(analysis, UNNAMED_EACH_BYTES)
        .into_iter()
        .filter(|(process, rise)| goes_on(analysis, process, rise))
        .filter(|(process, rise)| !is_not_live(process, rise) || is_free_growth(analysis, process, rise))
        .filter(|(process, _)| !large_preallocation_lazy_touch::touches(analysis, process))
        .map(|(process, rise)| Grower { process, rise, by: rise.by - libraries(process, &rise) })
        .filter(|grower| grower.by >= UNNAMED_EACH_BYTES)
        .collect();
    all.sort_by(|a, b| b.by.total_cmp(&a.by));
    all
}

/// Mapped files that came with a rise, without those that are data.
fn libraries(process: &ProcessHistory, rise: &Rise) -> f64 {
    let at = |seconds: f64| process.files.at_or_before(At::from_seconds(seconds)).or(process.files.first());
    let data = process.mappings.map_or(0.0, |(_, mappings)| mappings.data_file_bytes.0 as f64);
    at(rise.until).zip(at(rise.since)).map_or(0.0, |(now, before)| (now.1 - before.1 - data).max(0.0))
}

/// Whether growth is much, or meets a limit that is foreseen: which one. None where it is neither.
fn together<'c>(analysis: &'c Analysis, all: &[&Grower]) -> Option<Option<&'c LimitState>> {
    let by: f64 = all.iter().map(|grower| grower.by).sum();
    let held = most_private(analysis.timeline, &all.iter().map(|grower| grower.process).collect::<Vec<_>>());
    let limit = (by > 0.0).then(|| foreseen(analysis, all, by)).flatten();
    let share: f64 = all.iter().map(|grower| grower.by * unwatched(analysis, grower)).sum();
    let much = by >= GROWTH_WARN_BYTES as f64 && share >= GROWTH_WARN_SHARE * held;
    (much || limit.is_some()).then_some(limit)
}

/// What came while nobody watched may have come as fast: how many times as long as it was watched the process lives. 1 of one
/// that was watched from its start, and no more than a forecast reaches.
fn unwatched(analysis: &Analysis, grower: &Grower) -> f64 {
    let Some(recorder) = analysis.facts.recorder else { return 1.0 };
    let before = recorder.start.0.saturating_sub(grower.process.id.start.0) as f64 / CLOCK_TICKS;
    let watched = (grower.rise.until - grower.process.first_seen.seconds()).max(LEAST_SPAN_S);
    1.0 + (before / watched).min(FORECAST_REACH)
}

/// The limit of memory that this growth meets first, no further ahead than can be foreseen.
fn foreseen<'c>(analysis: &'c Analysis, all: &[&Grower], by: f64) -> Option<&'c LimitState> {
    let of_one = |state: &LimitState| {
        state.scope.process().is_some_and(|id| all.iter().any(|grower| grower.process.id == id))
    };
    let of_memory = |state: &&LimitState| match state.kind {
        LimitKind::CgroupMemory | LimitKind::MemoryBudget | LimitKind::HostMemory => true,
        LimitKind::AddressSpace => of_one(state),
        _ => false,
    };
    let near = analysis.limits.iter().filter(of_memory).filter_map(|state| Some((state, state.headroom()?)));
    near.filter(|(_, left)| *left as f64 <= FORECAST_REACH * by)
        .min_by_key(|(_, left)| *left)
        .map(|(state, _)| state)
}

fn finding(analysis: &Analysis, all: &[&Grower], limit: Option<&LimitState>) -> Finding {
    let rate: f64 = all.iter().map(|grower| grower.by / (grower.rise.until - grower.rise.since)).sum();
    let first = all[0];
    let mut evidence: Vec<Evidence> = line_sentence(first.process, first.rise).into_iter().collect();
    evidence.extend(tensors_sentence(first));
    evidence.push(growth_sentence(first.process, &first.rise));
    evidence.extend(locked_sentence(first));
    evidence.extend(others_sentence(all));
    evidence.extend(limit.and_then(|limit| limit_sentence(limit, rate, first.rise.until)));
    let why = why_not_found(analysis, first);
    let at = At::from_seconds(first.rise.until);
    evidence.push(evidence::text(
        "cause",
        "not found",
        why.source(first.process),
        Some(at),
        why.sentence(first),
    ));
    let context = analysis.remedy_context_of(Some(first.process));
    let mut finding = of_job(&RULE, Severity::Warning, Proof::SeenOutside, evidence, &context);
    finding.fixes = settle(&why, class(analysis, all), context.command.as_deref());
    let running = analysis.plain_outcome().kind == OutcomeKind::StillRunning;
    let end = if running { "is growing" } else { "grows to the end" };
    finding.title = format!(
        "Memory {end}, by {} a second{}{}; cause not found",
        evidence::bytes(rate as u64),
        if locked(first).is_some() { " (locked memory)".into() } else { kind(class(analysis, all)) },
        limit.and_then(|limit| deadline(limit, rate)).unwrap_or_default()
    );
    finding.process = Some(evidence::process_ref(first.process));
    finding.at = Some(At::from_seconds(first.rise.since));
    finding
}

/// The class of the job's growth, where it is that of one of these.
fn class(analysis: &Analysis, all: &[&Grower]) -> Option<GrowthClass> {
    let (growth, _) = analysis.growth.as_ref()?;
    let of_these = |process: &ProcessRef| all.iter().any(|grower| grower.process.id == process.id);
    growth.process.as_ref().is_none_or(of_these).then_some(growth.class)
}

/// Of which kind, where the class of the growth says one: ` (live tensors)`.
fn kind(class: Option<GrowthClass>) -> String {
    match class {
        None | Some(GrowthClass::LiveGrowth | GrowthClass::None) => String::new(),
        Some(class) => format!(" ({})", class.id().replace('-', " ")),
    }
}

fn deadline(limit: &LimitState, rate: f64) -> Option<String> {
    let left = evidence::seconds(limit.headroom()? as f64 / rate.max(1.0));
    Some(format!("; {} of {} full in {left}", limit.kind.name(), limit.scope))
}

fn others_sentence(all: &[&Grower]) -> Option<Evidence> {
    let (first, others) = all.split_first()?;
    let bytes = others.iter().map(|grower| grower.by).sum::<f64>() as u64;
    let sentence = format!(
        "{} grew the same way, by {} together.",
        evidence::plural(others.len() as u64, "other process", "other processes"),
        evidence::bytes(bytes)
    );
    let at = At::from_seconds(first.rise.until);
    let evidence =
        evidence::number("private memory of others", bytes, "bytes", "/proc/PID/status", at, sentence);
    (!others.is_empty()).then_some(evidence)
}

fn limit_sentence(limit: &LimitState, rate: f64, at: f64) -> Option<Evidence> {
    let (left, used, most) = (limit.headroom()?, limit.used.known()?, limit.limit.known()?.at()?);
    let sentence = format!(
        "At this rate it reaches the {} of {} in {} ({} of {} in use).",
        limit.kind.name(),
        limit.scope,
        evidence::seconds(left as f64 / rate.max(1.0)),
        evidence::bytes(used),
        evidence::bytes(most)
    );
    let evidence = evidence::number(
        limit.kind.name(),
        used,
        "bytes",
        evidence::Source::Limit(limit.scope.clone()),
        At::from_seconds(at),
        sentence,
    );
    Some(evidence::with_limit(evidence, most))
}

/// Why nobody can say what holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The job ran when ullage came.
    FromOutside,
    /// The agent was switched off, or could not be offered.
    NoAgent,
    /// It was there, and not in this process.
    NotInside,
    /// No agent can be: it is no Python.
    NotPython,
    /// It found no moment for a second census.
    NoSafePoint,
    /// So many censuses named nothing that is enough.
    NotNamed(usize),
    /// The program let go of most of it.
    Freed,
}

fn why_not_found(analysis: &Analysis, grower: &Grower) -> Why {
    let process = grower.process;
    let inspected = process
        .censuses
        .iter()
        .filter(|(at, census)| census.number > 1 && at.seconds() >= grower.rise.since)
        .count();
    let main = analysis.main().and_then(|id| analysis.timeline.process(id));
    let attached =
        analysis.facts.recorder.zip(main).is_some_and(|(recorder, main)| main.born_to() != recorder.pid);
    if is_not_live(process, &grower.rise) {
        return Why::Freed;
    }
    match (process.agent, inspected) {
        (true, 0) => Why::NoSafePoint,
        (true, inspected) => Why::NotNamed(inspected),
        (false, _) if analysis.facts.agent && !process.is_python() => Why::NotPython,
        (false, _) if attached && !analysis.facts.agent => Why::FromOutside,
        (false, _) if !analysis.facts.agent => Why::NoAgent,
        (false, _) => Why::NotInside,
    }
}

impl Why {
    fn source(self, process: &ProcessHistory) -> evidence::Source {
        match self {
            Why::NoSafePoint | Why::NotNamed(_) | Why::Freed => evidence::Source::Agent(process.id.pid),
            Why::FromOutside | Why::NoAgent | Why::NotInside | Why::NotPython => evidence::Source::Named(""),
        }
    }

    fn sentence(self, grower: &Grower) -> String {
        let process = grower.process;
        match self {
            Why::FromOutside => {
                "Only an agent inside the job can name what grows; this job was watched from outside.".into()
            }
            Why::NoAgent => {
                "Only an agent inside the job can name what grows, and this job had none.".into()
            }
            Why::NotInside => {
                format!("No agent was in {} ({}) to name the container.", evidence::describe(process), process.name())
            }
            Why::NotPython => {
                format!("{} ({}) is no Python program: no agent can look inside.", evidence::describe(process), process.name())
            }
            Why::Freed => {
                "The program freed most of it. malloc holds it free, in no heap so much that one is the cause.".into()
            }
            Why::NoSafePoint => {
                "The agent found too few moments to inspect it: no loader, optimizer or model was called often enough."
                    .into()
            }
            Why::NotNamed(inspected) => format!(
                "The agent inspected it {}; no container, graph or hook explains half of it.",
                if inspected == 1 { "once".to_owned() } else { format!("{} times", evidence::count(inspected as u64)) }
            ),
        }
    }
}

/// Bytes that it locked meanwhile, where they are most of what came.
fn locked(grower: &Grower) -> Option<f64> {
    let at = |seconds: f64| grower.process.locked.at_or_before(At::from_seconds(seconds.max(0.0)));
    let before = at(grower.rise.since).or(grower.process.locked.first())?.1;
    let came = at(grower.rise.until)?.1 - before;
    (came >= MOST * grower.by).then_some(came)
}

/// Who locks memory pins it for a device, or against swapping: no allocator of Python's does.
fn locked_sentence(grower: &Grower) -> Option<Evidence> {
    let bytes = locked(grower)? as u64;
    let sentence = format!(
        "{} of it is locked in memory (mlock): buffers that are pinned for a device, or kept from swap.",
        evidence::bytes(bytes)
    );
    let source = evidence::Source::Process(grower.process.id.pid, "status");
    let at = At::from_seconds(grower.rise.until);
    Some(evidence::number("locked memory that came", bytes, "bytes", source, at, sentence))
}

/// Tensors that became more, where they are half of what came: a shape often tells whose they are.
fn tensors_sentence(grower: &Grower) -> Option<Evidence> {
    let (at, census) = grower.process.censuses.last()?;
    let more = |group: &TensorGroup| group.bytes.saturating_sub(group.bytes_before.unwrap_or(group.bytes));
    let group = census.tensors.as_ref()?.groups.iter().max_by_key(|group| more(group))?;
    if at.seconds() < grower.rise.since || 2 * more(group) < census.grown || more(group) == 0 {
        return None;
    }
    let sentence = format!(
        "{} tensors {} hold {}, up from {}; their container was not found.",
        evidence::count(group.count),
        group.tensors,
        evidence::bytes(group.bytes),
        evidence::plural(group.count_before.unwrap_or(0), "tensor", "tensors")
    );
    let source = evidence::Source::Agent(grower.process.id.pid);
    Some(evidence::number("memory of tensors", group.bytes, "bytes", source, *at, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    settle(&Why::NoAgent, None, context.command.as_deref())
}

/// What settles it, by what stood in the way.
fn settle(why: &Why, class: Option<GrowthClass>, command: Option<&str>) -> Vec<Fix> {
    let fix = |title: &str, command: String| Fix::new(title, command);
    let command = command.unwrap_or("python train.py");
    let inspect = fix("Let ullage look inside", format!("ullage run -- {command}"));
    let script = command.strip_prefix("python3 ").or(command.strip_prefix("python "));
    let native = fix(
        "Trace malloc in native code",
        format!(
            "memray run --native -o growth.bin {}\nmemray flamegraph --leaks growth.bin",
            script.unwrap_or("train.py")
        ),
    );
    let python = fix(
        "Compare Python's allocations after some steps and after many",
        "import tracemalloc\ntracemalloc.start(8)\nbefore = tracemalloc.take_snapshot()  # after some steps\n\
         print(*tracemalloc.take_snapshot().compare_to(before, \"lineno\")[:10], sep=\"\\n\")  # after many"
            .into(),
    );
    let tensors = fix(
        "Count live tensors by shape after some steps and after many",
        "import collections, gc, torch\n\
         print(collections.Counter(tuple(o.shape) for o in gc.get_objects() if isinstance(o, torch.Tensor)).most_common(5))"
            .into(),
    );
    let heap = fix(
        "Start that program under heaptrack",
        "heaptrack PROGRAM\nheaptrack_print --print-leaks 1 heaptrack.PROGRAM.*  # who allocated what was never freed".into(),
    );
    match (why, class) {
        (Why::NotPython, _) => vec![heap],
        (Why::FromOutside | Why::NoAgent, _) => vec![inspect, native],
        (Why::Freed, _) => vec![
            fix(
                "Return it at the end of each epoch",
                "import ctypes\nctypes.CDLL(\"libc.so.6\").malloc_trim(0)".into(),
            ),
            fix("Or let threads share two heaps", "export MALLOC_ARENA_MAX=2".into()),
        ],
        (_, Some(GrowthClass::LiveTensors)) => vec![tensors, native],
        (_, Some(GrowthClass::LivePythonObjects)) => vec![python],
        _ => vec![native, python],
    }
}
