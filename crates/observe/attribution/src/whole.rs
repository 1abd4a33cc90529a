//! The memory of the tree at one sample: private memory by the last survey and what changed since, shared memory and files
//! once, page tables, swap, and what is left unexplained.

use crate::bounds;
use crate::lives::{Lives, Reading};
use crate::malloc;
use crate::parts::{Parts, UNEXPLAINED};
use crate::surveyed::{by_process, sum, Surveyed};
use std::collections::BTreeMap;
use ullage_model::{Bytes, Counted, FilesystemUse, MemoryAt, ProcessId, Sample, Sharing};

const PAGE: u64 = 4096;

/// A number of bytes, and half of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figure {
    bytes: u64,
    error: u64,
}

/// `shm_at_start`: what was in /dev/shm before the job did anything.
pub(crate) fn memory(
    sample: &Sample,
    surveyed: Option<&Surveyed>,
    lives: &Lives,
    shm_at_start: Option<u64>,
) -> MemoryAt {
    if !sample.processes.iter().any(|reading| Reading::of(reading).is_some()) {
        return MemoryAt { at: sample.at, source: "no process".to_owned(), ..MemoryAt::default() };
    }
    let (own, mut of_each) = private(sample, surveyed, lives);
    let shared = carried(surveyed, Counted::Shared, &by_process(sample, |memory| memory.shared.0));
    let file = carried(surveyed, Counted::File, &by_process(sample, |memory| memory.file.0));
    let unmapped = unmapped_shm(sample, surveyed, shared, shm_at_start);
    let page_tables = sum(sample, |memory| memory.page_tables.0);
    let swap = swapped(sample, surveyed);

    let mut parts = Parts::default();
    let group = |parts: &mut Parts, counted, bytes| {
        let mut these = Parts::default();
        let rows: Vec<_> = surveyed.map(|s| s.rows(counted).copied().collect()).unwrap_or_default();
        these.spread(rows.iter(), counted, bytes);
        these.by_id.iter().for_each(|(id, bytes)| parts.add(id, *bytes));
    };
    let mut beside = BTreeMap::new();
    if unmapped > 0 {
        beside.insert("shm-unmapped".to_owned(), unmapped);
    }
    let gpu = surveyed.map_or(0, |surveyed| surveyed.bytes(Counted::Not));
    if gpu > 0 {
        beside.insert("gpu-mappings".to_owned(), gpu);
    }
    let (source, error);
    if let Some((memory, counted)) = bounds::own_group(sample) {
        group(&mut parts, Counted::Anonymous, counted.anonymous.0);
        group(&mut parts, Counted::Shared, counted.shared.0);
        let cache = counted.file.saturating_sub(counted.shared).0;
        let mapped = file.min(cache);
        group(&mut parts, Counted::File, mapped);
        parts.add("page-tables", page_tables.min(counted.kernel.0));
        parts.add("kernel", counted.kernel.0.saturating_sub(page_tables));
        parts.add("swap", memory.swap.known().map_or(swap, |swap| swap.0));
        beside.insert("page-cache".to_owned(), cache - mapped);
        let in_ram = counted.anonymous.0 + counted.shared.0 + cache + counted.kernel.0;
        parts.add(UNEXPLAINED, memory.current.0.saturating_sub(in_ram));
        (source, error) = ("own memory cgroup", 0);
    } else {
        if let Some(counted) = bounds::counted(sample, lives) {
            let cache = counted.file.saturating_sub(counted.shared).saturating_sub(Bytes(file));
            let kernel = counted.kernel.saturating_sub(Bytes(page_tables));
            for (id, bytes) in [("page-cache", cache.0), ("kernel", kernel.0)] {
                if bytes > 0 {
                    beside.insert(id.to_owned(), bytes);
                }
            }
        }
        group(&mut parts, Counted::Anonymous, own.bytes);
        group(&mut parts, Counted::Shared, shared);
        group(&mut parts, Counted::File, file);
        parts.add("page-tables", page_tables);
        parts.add("swap", swap);
        let unexplained = |s: &Surveyed| {
            [Counted::Anonymous, Counted::Shared, Counted::File].map(|c| s.unexplained(c)).iter().sum()
        };
        parts.add(UNEXPLAINED, surveyed.map_or(0, unexplained));
        let chance = surveyed.map_or(0.0, |s| {
            [Counted::Shared, Counted::File].map(|c| (s.error(c) as f64).powi(2)).iter().sum::<f64>()
        });
        error = ((own.error as f64).powi(2) + chance).sqrt() as u64;
        let forked = sample
            .processes
            .iter()
            .any(|reading| lives.get(reading.id).is_some_and(|life| life.forked_from.is_some()));
        source = match (surveyed.is_some(), forked) {
            (true, true) => "probes over the fork family, scaled to the sizes of each process",
            (true, false) => "sizes of each process, shared memory and files by probes",
            (false, true) => "sizes of each process; what forked ones share bounded by their page faults",
            (false, false) => "sum over processes: anonymous in each, shared and file-mapped once",
        };
    }
    if let Some(surveyed) = surveyed {
        malloc::split(&mut parts, surveyed, lives);
    }
    let most = bounds::most(sample, lives).unwrap_or(u64::MAX);
    let whole = parts.sum();
    let source = if whole > most {
        parts.shrink(most);
        format!("{source}; held to what its cgroup or the machine has in use")
    } else {
        source.to_owned()
    };
    let bytes = parts.sum();
    if whole > bytes {
        of_each.iter_mut().for_each(|(_, own)| *own = (*own as f64 * bytes as f64 / whole as f64) as u64);
    }
    MemoryAt {
        at: sample.at,
        bytes,
        error_bytes: error.max(whole.saturating_sub(bytes)),
        source,
        categories: parts.by_id,
        beside,
        own: of_each,
        sharing: surveyed.map(|surveyed| sharing(surveyed, bytes)),
    }
}

/// Shared memory or files now, by what a survey found and what each process had mapped then and has now. In proportion to
/// the largest, where what came is mapped by all alike; but never more than came to all of them together: what was found
/// may have been mapped by none then (segments on their way), and one small mapping more would multiply it.
fn carried(surveyed: Option<&Surveyed>, counted: Counted, now: &BTreeMap<ProcessId, u64>) -> u64 {
    let most = |of: &BTreeMap<ProcessId, u64>| of.values().copied().max().unwrap_or(0);
    let at_least = most(now);
    let Some(surveyed) = surveyed else { return at_least };
    let figure = surveyed.bytes(counted);
    let then = if counted == Counted::Shared { &surveyed.shared } else { &surveyed.file };
    let in_proportion = match most(then) {
        0 => figure,
        most => (figure as f64 * at_least as f64 / most as f64) as u64,
    };
    let came = now.iter().map(|(id, bytes)| bytes.saturating_sub(then.get(id).copied().unwrap_or(0)));
    in_proportion.min(came.fold(figure, u64::saturating_add)).max(at_least)
}

/// Private memory, each page once; and of each process, but that what is shared since a fork is the ancestor's.
fn private(sample: &Sample, surveyed: Option<&Surveyed>, lives: &Lives) -> (Figure, Vec<(ProcessId, u64)>) {
    let (mut bytes, mut doubt) = (0i128, 0u64);
    let mut chance = 0;
    if let Some(surveyed) = surveyed {
        bytes += i128::from(surveyed.bytes(Counted::Anonymous));
        chance = surveyed.error(Counted::Anonymous);
        for (id, own) in &surveyed.own {
            if !sample.processes.iter().any(|reading| reading.id == *id && Reading::of(reading).is_some()) {
                // What it shared is still there, where others have it.
                bytes -= i128::from(own.exclusive);
            }
        }
    }
    let (mut summed, mut largest) = (0u64, 0);
    let mut of_each = Vec::with_capacity(sample.processes.len());
    // What a forked process shares is its ancestor's, where that still lives.
    let is_forked = |id: ProcessId| {
        let parent = lives.get(id).and_then(|life| life.forked_from);
        parent.is_some_and(|parent| sample.processes.iter().any(|reading| reading.id == parent))
    };
    for reading in &sample.processes {
        let Some(now) = Reading::of(reading) else { continue };
        summed = summed.saturating_add(now.anonymous);
        largest = largest.max(now.anonymous);
        if let Some(before) = surveyed.and_then(|surveyed| surveyed.own.get(&reading.id)) {
            bytes += i128::from(now.anonymous) - i128::from(before.reading.anonymous);
            let touched = now.faults.saturating_sub(before.reading.faults).saturating_mul(PAGE);
            let grown = now.anonymous.saturating_sub(before.reading.anonymous);
            let released = before.reading.anonymous.saturating_sub(now.anonymous);
            let since = before.exclusive.saturating_add(grown).saturating_sub(released);
            of_each.push((reading.id, if is_forked(reading.id) { since } else { now.anonymous }));
            // Copies show in no size. Most faults are none, so that they only widen the interval.
            doubt = doubt.saturating_add(touched.saturating_sub(grown).min(before.shared));
        } else {
            let (low, high) = since_fork(reading.id, now, sample, lives);
            bytes += i128::from(low + (high - low) / 2);
            of_each.push((reading.id, low + (high - low) / 2));
            doubt = doubt.saturating_add((high - low) / 2);
        }
    }
    let bytes = bytes.clamp(i128::from(largest), i128::from(summed)) as u64;
    (Figure { bytes, error: chance.saturating_add(doubt).min(bytes) }, of_each)
}

/// At least and at most what a process adds to its relatives' memory, from its own sizes.
fn since_fork(id: ProcessId, now: Reading, sample: &Sample, lives: &Lives) -> (u64, u64) {
    let Some(life) = lives.get(id).filter(|life| life.forked_from.is_some()) else {
        return (now.anonymous, now.anonymous);
    };
    let parent = life.forked_from.and_then(|parent| {
        sample.processes.iter().find(|reading| reading.id == parent).and_then(Reading::of)
    });
    let inherited = match (life.fork, parent) {
        (Some(fork), _) => fork.inherited.min(now.anonymous),
        (None, Some(parent)) => parent.anonymous.min(now.anonymous),
        (None, None) => 0,
    };
    let grown = now.anonymous - inherited;
    let touched = grown.saturating_add(now.faults.saturating_mul(PAGE));
    (grown, touched.min(now.anonymous))
}

/// What lies in the job's /dev/shm since it started, and no process of it maps: its own, or another job's.
fn unmapped_shm(sample: &Sample, surveyed: Option<&Surveyed>, mapped: u64, at_start: Option<u64>) -> u64 {
    let Some(at_start) = at_start.filter(|_| surveyed.is_none_or(|surveyed| !surveyed.exact)) else {
        return 0;
    };
    let shm = sample.filesystems.iter().find(|reading| reading.used_for == FilesystemUse::Shm);
    let grown = shm.map_or(0, |reading| reading.used.0.saturating_sub(at_start));
    // Without a survey it is not known how much of what is mapped lies there.
    grown.saturating_sub(surveyed.map_or(mapped, |surveyed| surveyed.in_dev_shm().min(mapped)))
}

fn swapped(sample: &Sample, surveyed: Option<&Surveyed>) -> u64 {
    let summed = sum(sample, |memory| memory.swap.0);
    let once = (summed as f64 * surveyed.map_or(1.0, |surveyed| surveyed.swapped_once)) as u64;
    let host = sample.host.memory.as_known();
    host.map_or(once, |memory| once.min(memory.swap_total.saturating_sub(memory.swap_free).0))
}

fn sharing(surveyed: &Surveyed, bytes: u64) -> Sharing {
    let counted = |row: &&ullage_model::Pages| row.kind.counted() != Counted::Not;
    let rows = || surveyed.job.iter().filter(counted);
    let within_job: u64 = rows().map(|row| row.shared.0).sum();
    let with_others: u64 = rows().map(|row| row.outside.0).sum();
    let within_job = within_job.min(bytes);
    let with_others = with_others.min(bytes - within_job);
    Sharing { private: bytes - within_job - with_others, within_job, with_others }
}
