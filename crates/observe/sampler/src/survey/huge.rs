//! What is mapped as a huge page shows the state of its first 4 KiB for all of them. Whose are the others?
//!
//! From `pagemap` of all processes that have the place. A parent that still maps a huge page shows all of it as its own where
//! every child has copied the first piece, and shared where one has not, whatever became of the piece that is looked at.
//! What the children show there is right: they map it piece by piece since they wrote to it. So where what the parent shows
//! is the same all over the huge page, and is what the first piece explains, the children's word counts.
//!
//! The surprise: it must be the parent. A sibling that copied all of it looks the same, and has it all alone.

use super::spans::{Span, Subject, View};
use super::tally::PageReader;
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
    reader: &mut impl PageReader,
) -> u64 {
    let sharers = sharers(entries);
    let doubts = doubtful(entries, &sharers, views, subjects);
    let Some(first) = views.first().filter(|_| doubts.iter().any(Option::is_some)) else { return 0 };
    // Relatives have the place at the same address.
    let head = (first.page + offset) / PIECES * PIECES;
    if head < first.page || head + PIECES > first.page + span.pages {
        return 0;
    }
    let mut reads = views.len() as u64;
    let heads: Vec<PageEntry> = views.iter().map(|view| one(view, head, reader)).collect();
    let sharing_head = heads.iter().filter(|entry| is_shared(**entry)).count();
    for (number, doubt) in doubts.iter().enumerate() {
        let Some(exclusive) = *doubt else { continue };
        let others_share = sharing_head > usize::from(is_shared(heads[number]));
        let as_head = heads[number].is_anonymous() && heads[number].is_exclusive() == exclusive;
        if !as_head || others_share == exclusive {
            continue;
        }
        reads += 2;
        let ends = [head + 1, head + PIECES - TOGETHER as u64];
        if ends.into_iter().all(|page| alike(&views[number], page, exclusive, reader)) {
            for (entry, sharers) in entries[number].iter_mut().zip(sharers) {
                if entry.is_anonymous() {
                    *entry = entry.with_exclusive(sharers == u32::from(!exclusive));
                }
            }
        }
    }
    reads
}

fn is_shared(entry: PageEntry) -> bool {
    entry.is_anonymous() && !entry.is_exclusive()
}

/// How many show each page as one that others map too.
fn sharers(entries: &[[PageEntry; TOGETHER]]) -> [u32; TOGETHER] {
    let mut sharers = [0; TOGETHER];
    for read in entries {
        sharers.iter_mut().zip(read).for_each(|(sharers, entry)| *sharers += u32::from(is_shared(*entry)));
    }
    sharers
}

/// By view: what it shows all over the place, where the others contradict it. A parent says that it alone has what a child
/// of it shares; or a process shares with nobody.
fn doubtful(
    entries: &[[PageEntry; TOGETHER]],
    sharers: &[u32; TOGETHER],
    views: &[View],
    subjects: &[Subject],
) -> Vec<Option<bool>> {
    let mut by_children: Vec<(usize, usize)> = Vec::new();
    for (read, view) in entries.iter().zip(views) {
        let Some(parent) = subjects[view.subject as usize].parent else { continue };
        by_children.extend((0..TOGETHER).filter(|page| is_shared(read[*page])).map(|page| (parent, page)));
    }
    by_children.sort_unstable();
    entries
        .iter()
        .zip(views)
        .map(|(read, view)| {
            let present = || (0..TOGETHER).filter(|page| read[*page].is_anonymous());
            let exclusive = read[present().next()?].is_exclusive();
            let alike = present().all(|page| read[page].is_exclusive() == exclusive);
            let contradicted = alike
                && present().any(|page| match exclusive {
                    true => by_children.binary_search(&(view.subject as usize, page)).is_ok(),
                    false => sharers[page] == 1,
                });
            contradicted.then_some(exclusive)
        })
        .collect()
}

fn one(view: &View, page: u64, reader: &mut impl PageReader) -> PageEntry {
    let mut read = [PageEntry::default()];
    reader.read(view.subject as usize, page, &mut read);
    read[0]
}

/// All pages from there on are this process's, and show this.
fn alike(view: &View, page: u64, exclusive: bool, reader: &mut impl PageReader) -> bool {
    let mut read = [PageEntry::default(); TOGETHER];
    reader.read(view.subject as usize, page, &mut read)
        && read.iter().all(|entry| entry.is_anonymous() && entry.is_exclusive() == exclusive)
}
