//! A survey of pages: whose memory is of which kind, who shares it, and what forked processes no longer share.
//!
//! Reads `maps` of each process once, and `pagemap` at places picked at random, the same in all processes that can have
//! the same page there. Its cost grows with the number of processes and mappings, not with the size of memory, and no
//! single read takes a target's address space for longer than 16 pages. The surprise: the address space moves on while it
//! is looked at; sizes are read before and after, and their mean is what estimates are scaled to.

mod figures;
mod huge;
pub(crate) mod schedule;
mod spans;
mod strata;
mod tally;

use self::spans::{Spans, Subject};
use self::tally::{read_place, PageReader, Part};
use ullage_kernel::process::pagemap::{PageEntry, PageMap};
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{Bytes, Pages, ProcessId, ProcessMemory};

/// Processes looked at in one survey, the largest.
pub(crate) const MOST_PROCESSES: usize = 128;
/// Places of each part before it is known where more are worth it.
const FIRST_PLACES: u64 = 4;

/// A process of the job that may be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: ProcessId,
    pub(crate) family: u64,
    pub(crate) forked_from: Option<ProcessId>,
    pub(crate) sizes: ProcessMemory,
}

/// What a survey may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Reads of pages, about.
    pub(crate) reads: u64,
    /// After so much CPU time of this thread no further places are looked at, nanoseconds.
    pub(crate) most_ns: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) rows: Vec<Pages>,
    /// Reads of pages made.
    pub(crate) reads: u64,
    /// CPU time of these reads alone, nanoseconds.
    pub(crate) reads_ns: u64,
    /// Processes that this user may not look at.
    pub(crate) refused: Vec<ProcessId>,
}

/// Makes one. None where not a single process could be looked at.
pub(crate) fn survey(
    root: &KernelRoot,
    candidates: &[Candidate],
    effort: Effort,
    buffer: &mut Vec<u8>,
    clock: impl Fn() -> u64,
    mut random: impl FnMut() -> u64,
) -> Option<Surveyed> {
    let begun = clock();
    let (mut subjects, mut maps) = (Vec::new(), Maps::default());
    let mut refused = Vec::new();
    for candidate in candidates {
        match open(root, candidate, buffer) {
            Ok(Some((dir, map, subject))) => {
                subjects.push(subject);
                maps.list.push((dir, Some(map)));
            }
            Ok(None) => {}
            Err(()) => refused.push(candidate.id),
        }
    }
    if subjects.is_empty() {
        return (!refused.is_empty()).then_some(Surveyed {
            rows: Vec::new(),
            reads: 0,
            reads_ns: 0,
            refused,
        });
    }
    let before = clock();
    let ids: Vec<ProcessId> = subjects.iter().map(|subject| subject.id).collect();
    for (subject, candidate) in
        subjects.iter_mut().filter_map(|s| candidates.iter().find(|c| c.id == s.id).map(|c| (s, c)))
    {
        subject.parent = candidate.forked_from.and_then(|parent| ids.iter().position(|id| *id == parent));
    }
    let spans = Spans::of(&mut subjects);
    let strata = strata::divide(&spans, &subjects);
    let mut parts: Vec<Part> = strata.iter().map(|stratum| Part::new(stratum, &spans)).collect();
    let mut reads = 0;
    let views = |stratum: &strata::Stratum| {
        spans.list.get(stratum.span() as usize).map_or(1, |span| spans.views(span).len().max(1)) as f64
    };
    let in_all: f64 = strata.iter().map(views).sum();
    let first = ((effort.reads as f64 / 3.0 / in_all.max(1.0)) as u64).clamp(FIRST_PLACES, 64);
    let late = |reads: u64| reads.is_multiple_of(8) && clock().saturating_sub(begun) > effort.most_ns;
    let mut round = |parts: &mut [Part], wanted: &[u64], reads: &mut u64| {
        for ((part, stratum), wanted) in parts.iter_mut().zip(&strata).zip(wanted) {
            part.again();
            for index in 0..*wanted {
                if late(*reads) && part.places > 0 {
                    break;
                }
                let Some(place) = stratum.place(index, *wanted, random()) else { continue };
                *reads += read_place(part, place, index, &spans, &subjects, random(), &mut maps);
            }
        }
    };
    let wanted: Vec<u64> = strata.iter().map(|stratum| first.min(stratum.most_places())).collect();
    round(&mut parts, &wanted, &mut reads);
    let left = effort.reads.saturating_sub(reads) as f64;
    let worth: Vec<f64> = parts.iter().map(Part::worth).collect();
    let whole: f64 = worth.iter().zip(&strata).map(|(worth, stratum)| worth * views(stratum).sqrt()).sum();
    let wanted: Vec<u64> = worth
        .iter()
        .zip(&strata)
        .zip(&parts)
        .map(|((worth, stratum), part)| {
            let more = left * worth / views(stratum).sqrt() / whole.max(1.0);
            (more as u64).min(stratum.most_places().saturating_sub(part.places))
        })
        .collect();
    round(&mut parts, &wanted, &mut reads);
    let reads_ns = clock().saturating_sub(before);
    settle(&mut subjects, &maps, buffer);
    Some(Surveyed { rows: figures::rows(&parts, &subjects), reads, reads_ns, refused })
}

/// None: it has ended. An error: it may not be looked at.
fn open(
    root: &KernelRoot,
    candidate: &Candidate,
    buffer: &mut Vec<u8>,
) -> Result<Option<(ProcessDir, PageMap, Subject)>, ()> {
    let Ok(dir) = root.process(candidate.id.pid) else { return Ok(None) };
    if !dir.stat(buffer).is_ok_and(|stat| stat.id == candidate.id) {
        return Ok(None);
    }
    let refused = |error: ullage_kernel::KernelError| match error.missing() {
        ullage_model::Missing::Vanished => Ok(None),
        _ => Err(()),
    };
    let map = match dir.page_map() {
        Ok(map) => map,
        Err(error) => return refused(error),
    };
    let areas = match dir.areas(buffer) {
        Ok(areas) => areas,
        Err(error) => return refused(error),
    };
    let subject = Subject {
        id: candidate.id,
        family: candidate.family,
        parent: None,
        sizes: candidate.sizes,
        moved: 0,
        areas,
    };
    Ok(Some((dir, map, subject)))
}

/// Sizes in the middle of the survey: the mean of before and after.
fn settle(subjects: &mut [Subject], maps: &Maps, buffer: &mut Vec<u8>) {
    for (subject, (dir, map)) in subjects.iter_mut().zip(&maps.list) {
        let after = dir.status(buffer).ok().and_then(|status| status.memory).filter(|_| map.is_some());
        // It ended meanwhile: what was found of it is gone too.
        let after = after.unwrap_or_default();
        subject.moved = [
            (subject.sizes.anonymous, after.anonymous),
            (subject.sizes.shared, after.shared),
            (subject.sizes.file, after.file),
        ]
        .iter()
        .map(|(before, after)| before.0.abs_diff(after.0))
        .sum();
        let middle = |a: Bytes, b: Bytes| Bytes(a.0 / 2 + b.0 / 2);
        subject.sizes.anonymous = middle(subject.sizes.anonymous, after.anonymous);
        subject.sizes.shared = middle(subject.sizes.shared, after.shared);
        subject.sizes.file = middle(subject.sizes.file, after.file);
        subject.sizes.swap = middle(subject.sizes.swap, after.swap);
    }
}

/// The pagemaps, by subject; none for one that has ended.
#[derive(Debug, Default)]
struct Maps {
    list: Vec<(ProcessDir, Option<PageMap>)>,
}

impl PageReader for Maps {
    fn read(&mut self, subject: usize, page: u64, entries: &mut [PageEntry]) -> bool {
        let Some((_, slot)) = self.list.get_mut(subject) else { return false };
        let Some(map) = slot else { return false };
        if map.read(page, entries).is_ok() {
            return true;
        }
        *slot = None;
        false
    }
}

#[cfg(test)]
mod tests;
