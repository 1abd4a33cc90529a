//! What did the places show, and how far may that be off?
//!
//! At each place the same pages are read in every process that has them, so that a page shared by ten is seen to be one.
//! Sums are kept by part of the job, and by part and process. Errors come from differences between neighbouring places of
//! a part: places in a row that are alike say that what lies between them is alike too.
//!
//! The surprise: pages that one process alone maps count each, but those at one place that are mapped by several are one
//! page. (After a fork of a fork they may be two versions of it, each shared; without page frames nobody can tell.)

use super::huge;
use super::spans::{Spans, Subject, View};
use super::strata::{Place, Stratum};
use std::collections::BTreeMap;
use ullage_kernel::process::pagemap::{PageEntry, TOGETHER};
use ullage_model::{Counted, PageKind};

/// Processes that are asked for their view of a place of a file: whether it is in memory one of them mostly knows.
const FILE_VIEWS: usize = 8;

/// Reads pages of a subject; false where it cannot be read any more.
pub(crate) trait PageReader {
    /// Fills `entries` with those of so many pages from `page` on.
    fn read(&mut self, subject: usize, page: u64, entries: &mut [PageEntry]) -> bool;
}

/// Sums of what was seen, in pages; over places of a part, or estimates of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Resident: in a process, or (of the job) each once.
    pub(crate) present: f64,
    pub(crate) exclusive: f64,
    /// Mapped by others too, but by no other process of the job.
    pub(crate) outside: f64,
    pub(crate) proportional: f64,
    /// Of `proportional`, what is of shared pages.
    pub(crate) proportional_shared: f64,
    pub(crate) beside_shared: f64,
    pub(crate) beside_own: f64,
    pub(crate) swapped: f64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen, times: f64) {
        self.present += other.present * times;
        self.exclusive += other.exclusive * times;
        self.outside += other.outside * times;
        self.proportional += other.proportional * times;
        self.proportional_shared += other.proportional_shared * times;
        self.beside_shared += other.beside_shared * times;
        self.beside_own += other.beside_own * times;
        self.swapped += other.swapped * times;
    }
}

/// Squares of the differences of neighbours, of two figures and of both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    last: Option<(u64, f64, f64)>,
    pub(crate) xx: f64,
    pub(crate) xy: f64,
    pub(crate) yy: f64,
    pub(crate) pairs: f64,
}

impl Spread {
    /// The figures of place `index`; a place that was left out had none.
    fn note(&mut self, index: u64, x: f64, y: f64) {
        if let Some((before, last_x, last_y)) = self.last {
            if before + 1 == index {
                self.pair(x - last_x, y - last_y);
            } else {
                self.pair(last_x, last_y);
                self.pair(x, y);
            }
        }
        self.last = Some((index, x, y));
    }

    fn pair(&mut self, dx: f64, dy: f64) {
        self.xx += dx * dx;
        self.xy += dx * dy;
        self.yy += dy * dy;
        self.pairs += 1.0;
    }

    /// Variance of `x - ratio * y` at one place.
    pub(crate) fn variance(&self, ratio: f64) -> f64 {
        let sum = self.xx - 2.0 * ratio * self.xy + ratio * ratio * self.yy;
        (sum / (2.0 * self.pairs.max(1.0))).max(0.0)
    }
}

/// Of one part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) kind: PageKind,
    pub(crate) own: bool,
    pub(crate) pages: f64,
    pub(crate) places: u64,
    pages_read: u64,
    /// The job.
    pub(crate) job: Seen,
    /// Pages that exist, beside those present summed over processes.
    pub(crate) spread: Spread,
    /// By process: exclusive pages beside present ones.
    pub(crate) subjects: BTreeMap<u32, (Seen, Spread)>,
}

impl Part {
    pub(crate) fn new(stratum: &Stratum, spans: &Spans) -> Part {
        let span = &spans.list[stratum.span() as usize];
        Part {
            kind: span.kind,
            own: span.own,
            pages: stratum.pages as f64,
            places: 0,
            pages_read: 0,
            job: Seen::default(),
            spread: Spread::default(),
            subjects: BTreeMap::new(),
        }
    }

    /// Pages of the part for each page seen at a place on average.
    pub(crate) fn weight(&self) -> f64 {
        self.pages / self.places.max(1) as f64
    }

    /// Variance of the part's total where one place has this `variance`, and this much is present of a page. What was not
    /// seen in so many places may still be there in one of the next.
    pub(crate) fn variance(&self, variance: f64, present: f64) -> f64 {
        let places = self.places.max(1) as f64;
        // Of as many pages as there are, some were looked at twice.
        let left = 1.0 - 0.7 * (self.pages_read as f64 / self.pages.max(1.0)).min(1.0);
        let unseen = present * 0.7 / places;
        self.pages * self.pages * (variance / places + unseen * unseen) * left
    }

    /// How much more places would tell: pages times the difference that two places are apart.
    pub(crate) fn worth(&self) -> f64 {
        let share = self.job.present / self.places.max(1) as f64;
        let apart: f64 = self.subjects.values().map(|(_, spread)| spread.variance(0.0)).sum();
        let mean = apart / self.subjects.len().max(1) as f64;
        let floor = (0.05 + share.min(1.0)) * 0.3 / self.places.max(1) as f64;
        self.pages * (self.spread.variance(0.0).sqrt() + mean.sqrt() + floor)
    }

    /// Before another round of places over the whole part.
    pub(crate) fn again(&mut self) {
        self.spread.last = None;
        self.subjects.values_mut().for_each(|(_, spread)| spread.last = None);
    }
}

/// Looks at one place; returns how many reads that took.
pub(crate) fn read_place(
    part: &mut Part,
    place: Place,
    index: u64,
    spans: &Spans,
    subjects: &[Subject],
    random: u64,
    reader: &mut impl PageReader,
) -> u64 {
    let span = &spans.list[place.span as usize];
    let all = spans.views(span);
    let few: Vec<View>;
    let views = if span.own || all.len() <= FILE_VIEWS {
        all
    } else {
        few = some_of(all, random);
        &few
    };
    // What the views left out would have shown is told by those that were picked in their place.
    let others = (all.len() - 1) as f64 / (views.len() - 1).max(1) as f64;
    let mut entries: Vec<[PageEntry; TOGETHER]> = Vec::with_capacity(views.len());
    for view in views {
        let mut read = [PageEntry::default(); TOGETHER];
        reader.read(view.subject as usize, view.page + place.offset, &mut read[..place.pages]);
        entries.push(read);
    }
    let mut reads = views.len() as u64;
    if span.own && views.len() > 1 {
        reads += huge::put_right(&mut entries, views, span, place.offset, subjects, reader);
    }
    let is_present = |entry: PageEntry| match (span.own, span.kind.counted()) {
        (true, _) => entry.is_anonymous(),
        (false, Counted::Not) => entry.is_anonymous() || entry.is_of_a_file(),
        (false, _) => entry.is_of_a_file(),
    };
    let mut job = Seen::default();
    let mut each = vec![Seen::default(); views.len()];
    for page in 0..place.pages {
        let (mut sharers, mut exclusive, mut swapped) = (0u32, 0u32, false);
        for read in &entries {
            let entry = read[page];
            if is_present(entry) {
                sharers += u32::from(!entry.is_exclusive());
                exclusive += u32::from(entry.is_exclusive());
            }
            swapped |= entry.is_swapped();
        }
        // A page that a child alone shows as shared is its parent's, where that shows it as its own, in a huge page that the
        // span has only a part of.
        let as_own = span.own && sharers == 1 && exclusive > 0 && {
            let lone = entries.iter().position(|read| is_present(read[page]) && !read[page].is_exclusive());
            lone.and_then(|lone| subjects[views[lone].subject as usize].parent)
                .and_then(|parent| views.binary_search_by_key(&(parent as u32), |view| view.subject).ok())
                .is_some_and(|at| is_present(entries[at][page]) && entries[at][page].is_exclusive())
        };
        let exclusive = exclusive - u32::from(as_own);
        job.exclusive += f64::from(exclusive);
        job.present += f64::from(exclusive) + f64::from(u32::from(sharers > 0));
        job.outside += f64::from(u32::from(sharers == 1 && !as_own));
        job.swapped += f64::from(u32::from(swapped));
        for (number, seen) in each.iter_mut().enumerate() {
            let entry = entries[number][page];
            seen.swapped += f64::from(u32::from(entry.is_swapped()));
            if !is_present(entry) {
                continue;
            }
            seen.present += 1.0;
            if !entry.is_exclusive() {
                // The other half is in the exclusive page of whoever shows it so.
                let part = if as_own { 0.0 } else { 1.0 / f64::from(sharers) };
                seen.proportional += part;
                seen.proportional_shared += part;
                seen.outside += f64::from(u32::from(sharers == 1 && !as_own));
                continue;
            }
            seen.exclusive += 1.0;
            seen.proportional += 1.0;
            let parent = subjects[views[number].subject as usize].parent.filter(|_| span.own);
            let beside = parent.and_then(|parent| {
                let at = views.binary_search_by_key(&(parent as u32), |view| view.subject).ok()?;
                Some(entries[at][page]).filter(|entry| is_present(*entry))
            });
            match beside {
                Some(entry) if entry.is_exclusive() => seen.beside_own += 1.0,
                Some(_) => seen.beside_shared += 1.0,
                None => {}
            }
        }
    }
    let page = 1.0 / place.pages as f64;
    let mut present = 0.0;
    for (number, (view, seen)) in views.iter().zip(&each).enumerate() {
        let times = if number == 0 { 1.0 } else { others };
        let (sums, spread) = part.subjects.entry(view.subject).or_default();
        sums.add(seen, page * times);
        spread.note(index, seen.exclusive * page * times, seen.present * page * times);
        present += seen.present * page * times;
    }
    part.job.add(&job, page);
    part.spread.note(index, job.present * page, present);
    part.places += 1;
    part.pages_read += place.pages as u64;
    reads
}

/// The first one, and some others.
fn some_of(all: &[View], random: u64) -> Vec<View> {
    let others = all.len() - 1;
    let step = others / (FILE_VIEWS - 1);
    let begin = (random >> 32) as usize % others;
    let picked = (0..FILE_VIEWS - 1).map(|n| all[1 + (begin + n * step) % others]);
    std::iter::once(all[0]).chain(picked).collect()
}
