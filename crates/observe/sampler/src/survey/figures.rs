//! What was seen, as bytes of the whole: estimates scaled to the sizes that the kernel counts exactly.
//!
//! RssAnon of each process is known to the page. Where an estimate of it is off by no more than chance explains, all parts
//! of it are scaled to it, so that they sum to the whole. Where less was found, the rest is unexplained, and told. Where
//! more was found, it was the page of zeros, which is mapped, shared by all, and counted nowhere.

use super::spans::Subject;
use super::tally::{Part, Seen};
use ullage_kernel::process::pagemap::PAGE;
use ullage_model::{Bytes, Counted, PageKind, Pages};

/// Rows of processes with less than this of a kind are left out, unless it is private memory.
const LEAST: f64 = (1 << 20) as f64;
const HALF_INTERVAL: f64 = 1.96;

/// The rows of a survey: the job's first, then those of processes.
pub(crate) fn rows(parts: &[Part], subjects: &[Subject]) -> Vec<Pages> {
    let scales: Vec<Scale> = (0..subjects.len()).map(|number| Scale::own(parts, subjects, number)).collect();
    let mut job: Vec<Pages> = Vec::new();
    let mut processes: Vec<Pages> = Vec::new();
    for counted in [Counted::Shared, Counted::File, Counted::Not] {
        of_files(parts, subjects, counted, &mut job, &mut processes);
    }
    own(parts, subjects, &scales, &mut job, &mut processes);
    job.sort_by_key(|row| row.kind);
    processes.sort_by_key(|row| (row.of, row.kind));
    job.append(&mut processes);
    job
}

/// How a process's estimates of private memory become its real sizes.
#[derive(Clone, Copy, Debug)]
struct Scale {
    exclusive: f64,
    shared: f64,
    unexplained: f64,
    /// What it holds could not be looked at.
    blind: f64,
}

impl Scale {
    fn own(parts: &[Part], subjects: &[Subject], number: usize) -> Scale {
        let real = subjects[number].sizes.anonymous.0 as f64;
        let (mut seen, mut variance) = (Seen::default(), 0.0);
        for part in parts.iter().filter(|part| part.own) {
            if let Some((sums, spread)) = part.subjects.get(&(number as u32)) {
                seen.add(sums, part.weight() * PAGE as f64);
                let present = sums.present / part.places.max(1) as f64;
                // Of the present ones alone: as if none were exclusive.
                variance += part.variance(spread.yy / (2.0 * spread.pairs.max(1.0)), present);
            }
        }
        let (found, shared) = (seen.present, seen.present - seen.exclusive);
        let moved = subjects[number].moved as f64;
        let chance = 3.0 * variance.sqrt() * PAGE as f64 + 0.01 * real + LEAST / 4.0 + moved;
        let plain = |scale| Scale { exclusive: scale, shared: scale, unexplained: 0.0, blind: 0.0 };
        if found <= 0.0 {
            return Scale { blind: real, ..plain(0.0) };
        }
        if real > found + chance {
            return Scale { unexplained: real - found, ..plain(1.0) };
        }
        let too_much = found - real;
        if too_much > chance && shared > too_much {
            return Scale { shared: (shared - too_much) / shared, ..plain(1.0) };
        }
        plain(real / found)
    }

    fn apply(&self, seen: &Seen, pages: &mut Pages) {
        let shared_in_process = (seen.present - seen.exclusive) * self.shared;
        let exclusive = seen.exclusive * self.exclusive;
        pages.bytes = add(pages.bytes, exclusive + shared_in_process);
        pages.exclusive = add(pages.exclusive, exclusive);
        pages.outside = add(pages.outside, seen.outside * self.shared);
        pages.shared = add(pages.shared, shared_in_process - seen.outside * self.shared);
        pages.proportional = add(pages.proportional, exclusive + seen.proportional_shared * self.shared);
        pages.beside_shared = add(pages.beside_shared, seen.beside_shared * self.exclusive);
        pages.beside_own = add(pages.beside_own, seen.beside_own * self.exclusive);
        pages.swapped = add(pages.swapped, seen.swapped);
    }
}

/// Private memory. The job's rows are the sums of each process's part, so that both agree.
fn own(
    parts: &[Part],
    subjects: &[Subject],
    scales: &[Scale],
    job: &mut Vec<Pages>,
    processes: &mut Vec<Pages>,
) {
    for kind in PageKind::ALL.into_iter().filter(|kind| kind.counted() == Counted::Anonymous) {
        let of_kind = || parts.iter().filter(|part| part.own && part.kind == kind);
        let mut whole = Pages::none(None, kind);
        for (number, subject) in subjects.iter().enumerate() {
            let (mut seen, mut row) = (Seen::default(), Pages::none(Some(subject.id), kind));
            for part in of_kind() {
                if let Some((sums, _)) = part.subjects.get(&(number as u32)) {
                    seen.add(sums, part.weight() * PAGE as f64);
                }
            }
            let scale = &scales[number];
            scale.apply(&seen, &mut row);
            let ratio = if seen.present > 0.0 { seen.exclusive / seen.present } else { 0.0 };
            let variance: f64 = of_kind()
                .filter_map(|part| part.subjects.get(&(number as u32)).map(|of| (part, of)))
                .map(|(part, (sums, spread))| {
                    part.variance(spread.variance(ratio), sums.present / part.places.max(1) as f64)
                })
                .sum();
            row.error = bytes(HALF_INTERVAL * variance.sqrt() * PAGE as f64);
            if kind == PageKind::Anonymous {
                row.unexplained = bytes(scale.unexplained);
                let blind = bytes(scale.blind);
                row.bytes = row.bytes.saturating_add(blind);
                row.exclusive = row.exclusive.saturating_add(blind);
                row.proportional = row.proportional.saturating_add(blind);
                row.error = row.error.saturating_add(blind);
            }
            whole.exclusive = whole.exclusive.saturating_add(row.exclusive);
            whole.outside = whole.outside.saturating_add(row.outside);
            whole.bytes = whole.bytes.saturating_add(row.proportional);
            whole.unexplained = whole.unexplained.saturating_add(row.unexplained);
            if row.bytes.0 > 0 || row.swapped.0 > 0 || row.unexplained.0 > 0 {
                processes.push(row);
            }
        }
        let (mut seen, mut summed) = (Seen::default(), 0.0);
        for part in of_kind() {
            seen.add(&part.job, part.weight());
            summed += part.subjects.values().map(|(sums, _)| sums.present).sum::<f64>() * part.weight();
        }
        let ratio = if summed > 0.0 { seen.present / summed } else { 0.0 };
        let variance: f64 = of_kind()
            .map(|part| {
                part.variance(part.spread.variance(ratio), part.job.present / part.places.max(1) as f64)
            })
            .sum();
        whole.error = bytes(HALF_INTERVAL * variance.sqrt() * PAGE as f64);
        whole.shared = whole.bytes.saturating_sub(whole.exclusive).saturating_sub(whole.outside);
        whole.proportional = whole.bytes;
        whole.swapped = bytes(seen.swapped * PAGE as f64);
        if whole.bytes.0 > 0 || whole.swapped.0 > 0 || whole.unexplained.0 > 0 {
            job.push(whole);
        }
    }
}

/// Memory of files and shared memory: each page once, scaled by what all processes have of it together.
fn of_files(
    parts: &[Part],
    subjects: &[Subject],
    counted: Counted,
    job: &mut Vec<Pages>,
    processes: &mut Vec<Pages>,
) {
    let real: f64 = subjects
        .iter()
        .map(|subject| match counted {
            Counted::Shared => subject.sizes.shared.0 as f64,
            Counted::File => subject.sizes.file.0 as f64,
            _ => 0.0,
        })
        .sum();
    let all = || parts.iter().filter(|part| !part.own && part.kind.counted() == counted);
    let (mut union, mut summed, mut variance) = (0.0, 0.0, 0.0);
    for part in all() {
        let present: f64 = part.subjects.values().map(|(sums, _)| sums.present).sum();
        union += part.job.present * part.weight() * PAGE as f64;
        summed += present * part.weight() * PAGE as f64;
        let here = part.spread.yy / (2.0 * part.spread.pairs.max(1.0));
        variance += part.variance(here, present / part.places.max(1) as f64);
    }
    let moved: u64 = subjects.iter().map(|subject| subject.moved).sum();
    let chance = 3.0 * variance.sqrt() * PAGE as f64 + 0.02 * real + LEAST + moved as f64;
    let (scale, missing) = match counted {
        Counted::Not => (1.0, 0.0),
        _ if summed <= 0.0 => (1.0, real),
        _ if real > summed + chance => (1.0, real - summed),
        _ => (real / summed, 0.0),
    };
    // What nobody found is taken to be as common as what was found.
    let once = if summed > 0.0 { union / summed } else { 1.0 / subjects.len().max(1) as f64 };
    let first = job.len();
    for kind in PageKind::ALL.into_iter().filter(|kind| kind.counted() == counted) {
        let of_kind = || all().filter(|part| part.kind == kind);
        let (mut seen, mut variance) = (Seen::default(), 0.0);
        let (mut whole, mut summed) = (Pages::none(None, kind), 0.0);
        for part in of_kind() {
            seen.add(&part.job, part.weight() * PAGE as f64);
            summed += part.subjects.values().map(|(sums, _)| sums.present).sum::<f64>()
                * part.weight()
                * PAGE as f64;
        }
        let ratio = if summed > 0.0 { seen.present / summed } else { 0.0 };
        for part in of_kind() {
            let spread = if counted == Counted::Not { 0.0 } else { ratio };
            variance +=
                part.variance(part.spread.variance(spread), part.job.present / part.places.max(1) as f64);
        }
        whole.bytes = bytes(seen.present * scale);
        whole.exclusive = bytes(seen.exclusive * scale).min(whole.bytes);
        let rest = whole.bytes.saturating_sub(whole.exclusive);
        whole.outside = bytes(seen.outside * scale).min(rest);
        whole.shared = rest.saturating_sub(whole.outside);
        whole.proportional = whole.bytes;
        whole.swapped = bytes(seen.swapped);
        whole.error = bytes(HALF_INTERVAL * variance.sqrt() * PAGE as f64);
        if whole.bytes.0 > 0 || whole.swapped.0 > 0 {
            job.push(whole);
        }
        for (number, subject) in subjects.iter().enumerate() {
            let (mut seen, mut variance) = (Seen::default(), 0.0);
            for part in of_kind() {
                if let Some((sums, spread)) = part.subjects.get(&(number as u32)) {
                    seen.add(sums, part.weight() * PAGE as f64);
                    variance += part.variance(spread.variance(0.0), 0.0);
                }
            }
            if seen.present * scale >= LEAST {
                let mut row = Pages::none(Some(subject.id), kind);
                let plain = Scale { exclusive: scale, shared: scale, unexplained: 0.0, blind: 0.0 };
                plain.apply(&seen, &mut row);
                row.error = bytes(HALF_INTERVAL * variance.sqrt() * PAGE as f64);
                processes.push(row);
            }
        }
    }
    if missing * once >= LEAST {
        let kind = if counted == Counted::Shared { PageKind::OtherShared } else { PageKind::MappedFiles };
        let unexplained = bytes(missing * once);
        match job[first..].iter_mut().find(|row| row.kind == kind) {
            Some(row) => row.unexplained = unexplained,
            None => job.push(Pages { unexplained, ..Pages::none(None, kind) }),
        }
    }
}

fn bytes(amount: f64) -> Bytes {
    Bytes(amount.max(0.0) as u64)
}

fn add(to: Bytes, amount: f64) -> Bytes {
    to.saturating_add(bytes(amount))
}
