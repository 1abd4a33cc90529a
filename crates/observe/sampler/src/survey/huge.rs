//! What is mapped as a huge page shows the state of its first 4 KiB for all of them. Whose are the others?
//!
//! From `pagemap` of all processes that have the place. A parent that still maps a huge page shows all of it as its own where
//! every child has copied the first piece, and shared where one has not, whatever became of the piece that is looked at.
//! What the children show there is right: they map it piece by piece since they wrote to it. So where what the parent shows
//! is the same all over the huge page, and is what the first piece explains, the children's word counts.
//!
//! The surprise: it must be the parent. A sibling that copied all of it looks the same, and has it all alone.

use super::spans::{Span, Subject, View};
use super::tally::Look;
use ullage_kernel::process::pagemap::{PageEntry, TOGETHER};

/// Pages of a huge page.
const PIECES: u64 = 512;

/// Puts right what such processes show of these pages, which begin at `offset` of the span. Returns how many reads it took.
pub(super) fn put_right(
    entries: &mut [[PageEntry; TOGETHER]],
    views: &[View],
    span: &Span,
    offset: u64,
    subjects: &[Subject],
    look: &mut impl Look,
) -> u64 {
    let doubts = doubtful(entries, views, subjects);
    let Some(first) = views.first().filter(|_| doubts.iter().any(Option::is_some)) else { return 0 };
    // Relatives have the place at the same address.
    let head = (first.page + offset) / PIECES * PIECES;
    if head < first.page || head + PIECES > first.page + span.pages {
        return 0;
    }
    let mut reads = views.len() as u64;
    let heads: Vec<PageEntry> = views.iter().map(|view| one(view, head, look)).collect();
    let shares = |number: usize| heads[number].is_anonymous() && !heads[number].is_exclusive();
    for (number, doubt) in doubts.iter().enumerate() {
        let Some(exclusive) = *doubt else { continue };
        let others_share = (0..views.len()).any(|other| other != number && shares(other));
        let explained = heads[number].is_anonymous()
            && heads[number].is_exclusive() == exclusive
            && others_share != exclusive;
        if !explained {
            continue;
        }
        reads += 2;
        if [head + 1, head + PIECES - TOGETHER as u64]
            .into_iter()
            .all(|page| alike(&views[number], page, exclusive, look))
        {
            for page in 0..TOGETHER {
                let others = (0..views.len()).any(|other| other != number && is_shared(entries[other][page]));
                if entries[number][page].is_anonymous() {
                    entries[number][page] = entries[number][page].with_exclusive(!others);
                }
            }
        }
    }
    reads
}

fn is_shared(entry: PageEntry) -> bool {
    entry.is_anonymous() && !entry.is_exclusive()
}

/// By view: what it shows all over the place, where the others contradict it. A parent says that it alone has what a child
/// of it shares; or a process shares with nobody.
fn doubtful(entries: &[[PageEntry; TOGETHER]], views: &[View], subjects: &[Subject]) -> Vec<Option<bool>> {
    let is_child = |other: usize, number: usize| {
        subjects[views[other].subject as usize].parent == Some(views[number].subject as usize)
    };
    (0..entries.len())
        .map(|number| {
            let others = |page: usize| {
                (0..entries.len()).filter(move |other| *other != number && is_shared(entries[*other][page]))
            };
            let present = || (0..TOGETHER).filter(|page| entries[number][*page].is_anonymous());
            let exclusive = entries[number][present().next()?].is_exclusive();
            if present().any(|page| entries[number][page].is_exclusive() != exclusive) {
                return None;
            }
            let contradicted = present().any(|page| match exclusive {
                true => others(page).any(|other| is_child(other, number)),
                false => others(page).next().is_none(),
            });
            contradicted.then_some(exclusive)
        })
        .collect()
}

fn one(view: &View, page: u64, look: &mut impl Look) -> PageEntry {
    let mut read = [PageEntry::default()];
    look.look(view.subject as usize, page, &mut read);
    read[0]
}

/// All pages from there on are this process's, and show this.
fn alike(view: &View, page: u64, exclusive: bool, look: &mut impl Look) -> bool {
    let mut read = [PageEntry::default(); TOGETHER];
    look.look(view.subject as usize, page, &mut read)
        && read.iter().all(|entry| entry.is_anonymous() && entry.is_exclusive() == exclusive)
}
