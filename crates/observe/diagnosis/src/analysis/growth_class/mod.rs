//! Is it a leak? One word for the kind of growth that a run shows.
//!
//! What goes on at the end counts before what has come to rest (but pages that forked processes copied stay copied, and
//! count as long as these live), and what holds bytes before what only grows in number,
//! unless each holds next to nothing. Of growth that came to rest, memory that is mapped, shared with a parent or free
//! inside the allocator keeps its word; the rest was a warm-up, or a plateau.
//!
//! The surprise: page cache is asked for only where nothing else grows. A job that reads its dataset and leaks besides
//! has a leak.

mod counts;
mod sources;
pub(crate) mod split;
mod words;

pub(crate) use sources::{began, is_start, least, loaded, start, still_rises};

use super::run::Run;
use crate::history::{process_ref, ProcessHistory};
use crate::policy::growth::{CODE_S, LATE_FILES_BYTES, RESTED_SHARE, WARM_UP_BEGINS, WARM_UP_ENDS};
use crate::policy::sizes::MOST;
use crate::policy::trends::{GROWTH_LEAST_READINGS, GROWTH_LEAST_S, LEAST_SPAN_S};
use crate::trend::{rise, Rise};
use counts::CountedGrowth;
use sources::GrowthSource;
use std::collections::BTreeMap;
use ullage_model::{At, Growth, GrowthClass, GrowthLimit, GrowthPart, LimitKind, LimitState, ProcessId};

/// Processes whose private memory rose to the end of the run, or to their own where that was a failure, and how.
pub(crate) fn rising<'a>(run: &Run<'a>, least: f64) -> Vec<(&'a ProcessHistory, Rise)> {
    let rose = sources::not_done(run)
        .into_iter()
        .filter_map(|process| Some((process, still_rises(process, least)?)));
    rose.filter(|(process, rise)| !sources::gave_back(run, process, rise)).collect()
}

/// Those, and processes that rose so by what they share, where the job's shared memory rises as well: batches that loader
/// workers sent lie there, and live as long as somebody retains them. What more and more processes touch is no growth.
pub(crate) fn rising_with_shared<'a>(run: &Run<'a>, least: f64) -> Vec<(&'a ProcessHistory, Rise)> {
    let mut all = rising(run, least);
    if !sources::shared_still_rises(run, least) {
        return all;
    }
    for process in sources::not_done(run) {
        let shared = rise(&process.shared, loaded(process), least).filter(|rise| rise.ongoing);
        let Some(shared) = shared else { continue };
        match all.iter_mut().find(|(other, _)| other.id == process.id) {
            Some((_, private)) if private.by >= shared.by => {}
            Some((_, private)) => *private = shared,
            None => all.push((process, shared)),
        }
    }
    all
}

/// Shared bytes that came to a process during a rise.
pub(crate) fn shared_during(process: &ProcessHistory, rise: &Rise) -> f64 {
    let at =
        |seconds: f64| process.shared.at_or_before(At::from_seconds(seconds)).map_or(0.0, |(_, bytes)| bytes);
    at(rise.until) - at(rise.since)
}

/// What kind of growth a run shows, and whether it goes on at its end; none where too little was read. `limits` are those of
/// the run.
pub(crate) fn growth(run: &Run, limits: &[LimitState]) -> Option<(Growth, bool)> {
    let end = sources::end(run);
    if run.timeline.tree.stored() < GROWTH_LEAST_READINGS || end < GROWTH_LEAST_S {
        return None;
    }
    let (going, rested): (Vec<GrowthSource>, Vec<GrowthSource>) =
        sources::sources(run).into_iter().partition(|source| source.rise.ongoing || source.copied());
    let grown: f64 = going.iter().map(|source| source.rise.by).sum();
    let answer = Answer { run, limits, end };
    if let Some(counted) = counts::processes(run).filter(|found| found.bytes >= MOST * grown) {
        return Some((answer.of_counted(&counted), counted.rise.ongoing));
    }
    if let Some(counted) = counts::handles(run, grown) {
        return Some((answer.of_counted(&counted), counted.rise.ongoing));
    }
    if !going.is_empty() {
        return Some((answer.of_sources(&going, |_, class| class), true));
    }
    if let Some(counted) = counts::swapping(run) {
        return Some((answer.of_counted(&counted), true));
    }
    let cache = counts::page_cache(run);
    let start = sources::began(run).max(sources::start(run, end));
    let held = run.timeline.tree.peak().map_or(0.0, |(_, bytes)| bytes);
    let mut rested: Vec<GrowthSource> =
        rested.into_iter().filter(|source| is_reported(run, source, start)).collect();
    if rested.iter().map(|source| source.rise.by).sum::<f64>() < RESTED_SHARE * held {
        rested.clear();
    }
    if let Some(counted) =
        cache.filter(|cache| cache.rise.ongoing || rested.iter().all(|source| source.rise.by < cache.bytes))
    {
        return Some((answer.of_counted(&counted), counted.rise.ongoing));
    }
    if !rested.is_empty() {
        return Some((answer.of_sources(&rested, |rise, class| at_rest(rise, class, end)), false));
    }
    Some((answer.nothing(), false))
}

/// Whether a rise that is over is no part of the program's start, and no library that was loaded late.
fn is_reported(run: &Run, source: &GrowthSource, start: f64) -> bool {
    let of = |class| source.parts.iter().filter(|part| part.0 == class).map(|part| part.1).sum::<f64>();
    if of(GrowthClass::MappedFiles) > 0.0 {
        let process = source.process.and_then(|id| run.timeline.process(id));
        let mapped = process.and_then(|process| process.mappings);
        let data = mapped.is_none_or(|(_, mapped)| mapped.data_file_bytes.0 as f64 >= source.rise.by / 2.0);
        let late = source.rise.until > start && (data || source.rise.until > CODE_S);
        return late && source.rise.by >= LATE_FILES_BYTES as f64;
    }
    source.rise.until > start || of(GrowthClass::FreedButHeld) >= MOST * source.rise.by
}

/// The word for a part of a rise that is over.
fn at_rest(rise: &Rise, class: GrowthClass, end: f64) -> GrowthClass {
    let warm_up = rise.since <= WARM_UP_BEGINS * end && rise.until <= WARM_UP_ENDS * end;
    match class {
        GrowthClass::FreedButHeld | GrowthClass::MappedFiles | GrowthClass::KernelMemory => class,
        GrowthClass::SharedMemoryBacklog if rise.until > WARM_UP_ENDS * end => class,
        _ if warm_up => GrowthClass::WarmUp,
        _ => GrowthClass::Plateau,
    }
}

struct Answer<'c, 'r> {
    run: &'c Run<'r>,
    limits: &'c [LimitState],
    end: f64,
}

impl Answer<'_, '_> {
    fn of_counted(&self, counted: &CountedGrowth) -> Growth {
        let rise = &counted.rise;
        let bytes = counted.bytes.max(0.0) as u64;
        Growth {
            explained_by: None,
            class: counted.class,
            because: words::counted(self.run, counted),
            bytes,
            per_second: if counted.number.is_some() {
                counted.bytes / (rise.until - rise.since).max(LEAST_SPAN_S)
            } else {
                rise.per_second
            },
            since: Some(At::from_seconds(rise.since)),
            share: 1.0,
            process: self.named(counted.process),
            until: self.limit(counted.class, counted.process),
            parts: vec![GrowthPart { class: counted.class, bytes, share: 1.0 }],
        }
    }

    /// The class that most bytes are of; `word` is what a part of a rise is called.
    fn of_sources(
        &self,
        sources: &[GrowthSource],
        word: impl Fn(&Rise, GrowthClass) -> GrowthClass,
    ) -> Growth {
        let mut by_class: BTreeMap<GrowthClass, f64> = BTreeMap::new();
        for source in sources {
            for (class, bytes) in &source.parts {
                *by_class.entry(word(&source.rise, *class)).or_default() += bytes;
            }
        }
        let whole: f64 = by_class.values().sum();
        let mut parts: Vec<(GrowthClass, f64)> = by_class.into_iter().collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let (class, bytes) = parts.first().copied().unwrap_or((GrowthClass::None, 0.0));
        let of_class = |source: &GrowthSource| -> f64 {
            let same = source.parts.iter().filter(|part| word(&source.rise, part.0) == class);
            same.map(|part| part.1).sum()
        };
        let these: Vec<(&GrowthSource, f64)> = sources
            .iter()
            .map(|source| (source, of_class(source)))
            .filter(|(_, bytes)| *bytes > 0.0)
            .collect();
        let largest = these.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(source, _)| *source);
        let process = largest.and_then(|source| source.process);
        let since = these.iter().map(|(source, _)| source.rise.since).fold(f64::INFINITY, f64::min);
        let speed = |(source, bytes): &(&GrowthSource, f64)| source.rise.per_second * bytes / source.rise.by;
        let share = |bytes: f64| if whole > 0.0 { bytes / whole } else { 0.0 };
        Growth {
            explained_by: None,
            class,
            because: words::grew(self.run, class, bytes, share(bytes), &these, self.end),
            bytes: bytes as u64,
            per_second: these.iter().map(speed).sum(),
            since: since.is_finite().then(|| At::from_seconds(since)),
            share: share(bytes),
            process: self.named(process),
            until: largest.filter(|source| source.rise.ongoing).and_then(|_| self.limit(class, process)),
            parts: parts
                .iter()
                .filter(|part| part.1 >= 1.0)
                .map(|(class, bytes)| GrowthPart {
                    class: *class,
                    bytes: *bytes as u64,
                    share: share(*bytes),
                })
                .collect(),
        }
    }

    fn nothing(&self) -> Growth {
        Growth {
            explained_by: None,
            class: GrowthClass::None,
            because: words::nothing(self.run),
            bytes: 0,
            per_second: 0.0,
            since: None,
            share: 0.0,
            process: None,
            until: None,
            parts: Vec::new(),
        }
    }

    fn named(&self, process: Option<ProcessId>) -> Option<ullage_model::ProcessRef> {
        self.run.timeline.process(process?).map(process_ref)
    }

    /// The limit that this growth meets first, among those that it counts for.
    fn limit(&self, class: GrowthClass, process: Option<ProcessId>) -> Option<GrowthLimit> {
        use LimitKind::{AddressSpace, CgroupMemory, HostMemory, MemoryBudget, ShmBytes, ShmInodes};
        let kinds: &[LimitKind] = match class {
            GrowthClass::FdLeak => &[LimitKind::Descriptors],
            GrowthClass::MappingLeak => &[LimitKind::Mappings],
            GrowthClass::ProcessAccumulation => &[LimitKind::CgroupTasks, LimitKind::UserTasks],
            GrowthClass::SharedMemoryBacklog => {
                &[ShmBytes, ShmInodes, CgroupMemory, MemoryBudget, HostMemory]
            }
            GrowthClass::PageCache | GrowthClass::MappedFiles | GrowthClass::SwapThrash => &[],
            _ => &[CgroupMemory, MemoryBudget, HostMemory, AddressSpace],
        };
        let of_another = |state: &LimitState| state.scope.process().is_some_and(|id| Some(id) != process);
        let there = self.limits.iter().filter(|state| kinds.contains(&state.kind) && !of_another(state));
        let left = |state: &LimitState| state.time_left_s.unwrap_or(f64::INFINITY);
        there
            .filter_map(|state| Some((state, state.headroom()?)))
            .min_by(|a, b| left(a.0).total_cmp(&left(b.0)).then(a.1.cmp(&b.1)))
            .map(|(state, _)| GrowthLimit {
                kind: state.kind,
                scope: state.scope.clone(),
                time_left_s: state.time_left_s,
            })
    }
}
