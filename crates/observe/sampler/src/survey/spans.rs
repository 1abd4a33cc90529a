//! Which pages of address space can hold one and the same page of memory?
//!
//! From the areas of all processes: relatives by fork share what lies at the same address, everybody what lies at the
//! same place of the same file. A span is a run of pages that the same processes have; each of them is a view of it.
//! The surprise: an area of a file that may be written to privately is in two spans, since it holds pages of the file and
//! pages of the process's own.

use std::ops::Range;
use ullage_kernel::process::areas::Area;
use ullage_model::{PageKind, ProcessId, ProcessMemory};

/// Relocated and variable data of a library is smaller, in pages, and mostly written to; what is larger was read from the
/// file as it is, but for a page here and there.
const LARGE_FILE: u64 = 1024;

/// A process that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) id: ProcessId,
    /// The same number for those that were forked from one another.
    pub(crate) family: u64,
    /// Where among the subjects the process is that it was forked from.
    pub(crate) parent: Option<usize>,
    /// Sizes, in the middle of the survey.
    pub(crate) sizes: ProcessMemory,
    /// Bytes by which these sizes changed during the survey.
    pub(crate) moved: u64,
    pub(crate) areas: Vec<Area>,
}

/// Where one process has the first page of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) subject: u32,
    pub(crate) page: u64,
}

/// A run of pages that the same processes have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: PageKind,
    /// Pages of the processes' own, without a file.
    pub(crate) own: bool,
    /// Few of these pages were ever written to: a large piece of a file lies there.
    pub(crate) seldom: bool,
    pub(crate) pages: u64,
    views: Range<u32>,
}

/// All of them, those of one object together and in order.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) list: Vec<Span>,
    views: Vec<View>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Family(u64),
    File(u64, u64),
}

/// One area's part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    object: Object,
    start: u64,
    subject: u32,
    end: u64,
    page: u64,
    seldom: bool,
    kind: PageKind,
}

impl Spans {
    /// Takes the areas out of the subjects.
    pub(crate) fn of(subjects: &mut [Subject]) -> Spans {
        let mut stretches = Vec::new();
        for (subject, number) in subjects.iter_mut().zip(0..) {
            for area in std::mem::take(&mut subject.areas) {
                let (page, length) = (area.pages.start, area.pages.end - area.pages.start);
                let seldom = area.file.is_some() && length > LARGE_FILE;
                if let Some(kind) = area.own {
                    let (object, end) = (Object::Family(subject.family), area.pages.end);
                    stretches.push(Stretch { object, start: page, subject: number, end, page, seldom, kind });
                }
                if let Some((device, inode)) = area.file {
                    let (object, start) = (Object::File(device, inode), area.offset);
                    let end = start.saturating_add(length);
                    stretches.push(Stretch {
                        object,
                        start,
                        subject: number,
                        end,
                        page,
                        seldom: false,
                        kind: area.kind,
                    });
                }
            }
        }
        stretches.sort_unstable();
        let mut spans = Spans::default();
        for object in stretches.chunk_by(|a, b| a.object == b.object) {
            spans.sweep(object);
        }
        spans
    }

    /// The views of a span, by number of the process.
    pub(crate) fn views(&self, span: &Span) -> &[View] {
        &self.views[span.views.start as usize..span.views.end as usize]
    }

    /// Cuts the stretches of one object where one of them begins or ends.
    fn sweep(&mut self, stretches: &[Stretch]) {
        let mut points: Vec<u64> =
            stretches.iter().flat_map(|stretch| [stretch.start, stretch.end]).collect();
        points.sort_unstable();
        points.dedup();
        let mut coming = stretches.iter().peekable();
        let mut here: Vec<&Stretch> = Vec::new();
        for pair in points.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            here.retain(|stretch| stretch.end > start);
            while let Some(stretch) = coming.next_if(|stretch| stretch.start == start) {
                here.push(stretch);
            }
            let Some(first) = here.iter().min_by_key(|stretch| stretch.subject) else { continue };
            let before = self.views.len() as u32;
            self.views.extend(
                here.iter().map(|one| View { subject: one.subject, page: one.page + (start - one.start) }),
            );
            self.views[before as usize..].sort_unstable_by_key(|view| (view.subject, view.page));
            self.list.push(Span {
                kind: first.kind,
                own: matches!(first.object, Object::Family(_)),
                seldom: here.iter().all(|stretch| stretch.seldom),
                pages: end - start,
                views: before..self.views.len() as u32,
            });
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ullage_model::ClockTicks;

    pub(crate) fn own(pages: Range<u64>) -> Area {
        Area { pages, offset: 0, file: None, kind: PageKind::Anonymous, own: Some(PageKind::Anonymous) }
    }

    pub(crate) fn of_file(pages: Range<u64>, offset: u64, kind: PageKind) -> Area {
        Area { pages, offset, file: Some((1, 7)), kind, own: None }
    }

    pub(crate) fn subject(pid: i32, family: u64, areas: Vec<Area>) -> Subject {
        let id = ProcessId { pid, start: ClockTicks(1) };
        Subject { id, family, parent: None, sizes: ProcessMemory::default(), moved: 0, areas }
    }

    fn shape(spans: &Spans) -> Vec<(u64, Vec<(u32, u64)>)> {
        let views = |span| spans.views(span).iter().map(|view| (view.subject, view.page)).collect();
        spans.list.iter().map(|span| (span.pages, views(span))).collect()
    }

    #[test]
    fn relatives_share_what_lies_at_the_same_address_and_strangers_nothing() {
        let mut subjects = [
            subject(1, 5, vec![own(10..20)]),
            subject(2, 5, vec![own(10..25)]),
            subject(3, 6, vec![own(10..20)]),
        ];
        let spans = Spans::of(&mut subjects);
        assert_eq!(shape(&spans), [(10, vec![(0, 10), (1, 10)]), (5, vec![(1, 20)]), (10, vec![(2, 10)])]);
    }

    #[test]
    fn everybody_shares_a_place_of_a_file_wherever_it_is_mapped() {
        let kind = PageKind::Memfd;
        let mut subjects = [
            subject(1, 5, vec![of_file(100..110, 0, kind)]),
            subject(2, 6, vec![of_file(900..904, 4, kind), of_file(800..802, 5, kind)]),
        ];
        let spans = Spans::of(&mut subjects);
        let both = |a, b| vec![(0, a), (1, b)];
        assert_eq!(
            shape(&spans),
            [
                (4, vec![(0, 100)]),
                (1, both(104, 900)),
                (2, vec![(0, 105), (1, 800), (1, 901)]),
                (1, both(107, 903)),
                (2, vec![(0, 108)]),
            ]
        );
        assert!(spans.list.iter().all(|span| !span.own && span.kind == kind));
    }

    #[test]
    fn a_private_area_of_a_file_holds_pages_of_both_kinds() {
        let area = Area { own: Some(PageKind::Anonymous), ..of_file(3..5, 0, PageKind::MappedFiles) };
        let spans = Spans::of(&mut [subject(1, 5, vec![area])]);
        let kinds: Vec<_> = spans.list.iter().map(|span| (span.own, span.kind)).collect();
        assert_eq!(kinds, [(true, PageKind::Anonymous), (false, PageKind::MappedFiles)]);
    }
}
