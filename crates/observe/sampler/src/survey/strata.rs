//! Where is looked, when not everywhere can be? Spans are divided into parts of like size, and each part gets places of
//! its own: few at first, then more where they differed.
//!
//! The surprise: address space says little about memory. A reserve of a terabyte may hold a megabyte, at its beginning
//! mostly: spans that are far larger than what their processes hold are cut ever longer from their beginning on.

use super::spans::{Span, Spans, Subject};
use ullage_kernel::process::pagemap::{PAGE, TOGETHER};
use ullage_model::Counted;

/// Parts that the whole is divided into, about.
const PARTS: u64 = 48;
/// Where a file is mapped, few pages are a process's own: parts are larger there by this.
const SELDOM: u64 = 8;
const NEIGHBOURS: u64 = TOGETHER as u64;

/// A run of pages to look at: at most [`TOGETHER`], in one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) span: u32,
    pub(crate) offset: u64,
    pub(crate) pages: usize,
}

/// One part: a piece of a large span, or many small ones.
#[derive(Debug, Default)]
pub(crate) struct Stratum {
    pieces: Vec<Piece>,
    pub(crate) pages: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    span: u32,
    offset: u64,
    pages: u64,
    /// Pages of the pieces before it.
    before: u64,
}

impl Stratum {
    fn push(&mut self, span: u32, offset: u64, pages: u64) {
        self.pieces.push(Piece { span, offset, pages, before: self.pages });
        self.pages += pages;
    }

    /// Any span of it: all are of one kind.
    pub(crate) fn span(&self) -> u32 {
        self.pieces.first().map_or(0, |piece| piece.span)
    }

    /// More places than this show nothing new.
    pub(crate) fn most_places(&self) -> u64 {
        self.pages.div_ceil(NEIGHBOURS)
    }

    /// Place `index` of `number`: somewhere in its own share of the part, by `random` bits. Pieces are divided into runs of
    /// pages, and one is looked at as a whole: a run that began anywhere would see the ends of pieces too often.
    pub(crate) fn place(&self, index: u64, number: u64, random: u64) -> Option<Place> {
        let at = |index: u64| (u128::from(self.pages) * u128::from(index) / u128::from(number.max(1))) as u64;
        let (low, high) = (at(index), at(index + 1));
        let position = low + random % (high - low).max(1);
        let piece = self.pieces[..self.pieces.partition_point(|piece| piece.before <= position)].last()?;
        let inside = (position - piece.before) / NEIGHBOURS * NEIGHBOURS;
        let pages = (piece.pages - inside).min(NEIGHBOURS);
        Some(Place { span: piece.span, offset: piece.offset + inside, pages: pages as usize })
    }
}

/// Divides them. Parts are of one kind each, and shared or not as a whole.
pub(crate) fn divide(spans: &Spans, subjects: &[Subject]) -> Vec<Stratum> {
    let most: Vec<u64> = spans.list.iter().map(|span| most_resident(span, spans, subjects)).collect();
    let share = |index: usize| if spans.list[index].seldom { SELDOM } else { 1 };
    let size = |index: usize| spans.list[index].pages.min(most[index].max(1)) / share(index);
    let whole: u64 = (0..spans.list.len()).map(size).fold(0, u64::saturating_add);
    let cut = (whole / PARTS).max(NEIGHBOURS);
    let alike = |index: usize| {
        let span = &spans.list[index];
        (span.own, span.seldom, span.kind, spans.views(span).len() > 1)
    };
    let mut order: Vec<usize> = (0..spans.list.len()).collect();
    order.sort_by_key(|index| alike(*index));
    let mut strata = Vec::new();
    for group in order.chunk_by(|a, b| alike(*a) == alike(*b)) {
        let mut small = Stratum::default();
        for &index in group {
            let (span, number) = (&spans.list[index], index as u32);
            let cut = cut * share(index);
            if span.pages >= cut {
                cut_large(&mut strata, number, span.pages, cut, most[index]);
                continue;
            }
            small.push(number, 0, span.pages);
            if small.pages >= cut {
                strata.push(std::mem::take(&mut small));
            }
        }
        if small.pages > 0 {
            strata.push(small);
        }
    }
    strata
}

fn cut_large(strata: &mut Vec<Stratum>, span: u32, pages: u64, cut: u64, most: u64) {
    let even = pages.min(most.max(cut).saturating_mul(2));
    let parts = even.div_ceil(cut).max(1);
    let mut offset = 0;
    let mut push = |end: u64| {
        let mut stratum = Stratum::default();
        stratum.push(span, offset, end - offset);
        offset = end;
        strata.push(stratum);
    };
    (1..=parts).for_each(|part| push((u128::from(even) * u128::from(part) / u128::from(parts)) as u64));
    let mut end = even;
    while end < pages {
        end = end.saturating_mul(4).min(pages);
        push(end);
    }
}

/// Pages of it that can be resident in the process that holds most, as its sizes say.
fn most_resident(span: &Span, spans: &Spans, subjects: &[Subject]) -> u64 {
    let most = |view: &super::spans::View| {
        let sizes = &subjects[view.subject as usize].sizes;
        let counted = if span.own { Counted::Anonymous } else { span.kind.counted() };
        match counted {
            Counted::Anonymous => sizes.anonymous.0.saturating_add(sizes.swap.0),
            Counted::Shared => sizes.shared.0.saturating_add(sizes.swap.0),
            Counted::File => sizes.file.0,
            Counted::Not => 0,
        }
    };
    spans.views(span).iter().map(most).max().unwrap_or(0) / PAGE
}

#[cfg(test)]
mod tests {
    use super::super::spans::tests::{of_file, own, subject};
    use super::*;
    use proptest::prelude::*;
    use ullage_kernel::process::areas::Area;
    use ullage_model::{Bytes, PageKind};

    fn divided(areas: Vec<Area>, resident: u64) -> (Spans, Vec<Stratum>) {
        let mut one = subject(1, 1, areas);
        one.sizes.anonymous = Bytes(resident * PAGE);
        one.sizes.shared = Bytes(resident * PAGE);
        let mut subjects = [one];
        let spans = Spans::of(&mut subjects);
        let strata = divide(&spans, &subjects);
        (spans, strata)
    }

    #[test]
    fn a_large_span_is_cut_and_small_ones_are_taken_together_by_kind() {
        let mut areas: Vec<_> = (0..100).map(|n| own(n * 10..n * 10 + 2)).collect();
        areas.push(own(10_000..110_000));
        areas.push(of_file(200_000..200_010, 0, PageKind::MappedFiles));
        let (spans, strata) = divided(areas, 100_000);
        assert_eq!(strata.iter().map(|stratum| stratum.pages).sum::<u64>(), 100_210);
        assert!((45..60).contains(&strata.len()), "{}", strata.len());
        for stratum in &strata {
            let kinds: Vec<_> =
                stratum.pieces.iter().map(|piece| spans.list[piece.span as usize].kind).collect();
            assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn large_pieces_of_files_take_few_places_from_what_is_written_to() {
        let mapped = |start: u64, pages: u64| Area {
            own: Some(PageKind::Anonymous),
            ..of_file(start..start + pages, start, PageKind::MappedFiles)
        };
        let (spans, strata) =
            divided(vec![own(0..100_000), mapped(200_000, 100_000), mapped(400_000, 100)], 100_000);
        let of = |pieces: std::ops::Range<u64>| {
            let private = |stratum: &&Stratum| spans.list[stratum.span() as usize].own;
            let begins = |stratum: &&Stratum| {
                let first =
                    spans.views(&spans.list[stratum.span() as usize])[0].page + stratum.pieces[0].offset;
                pieces.contains(&first)
            };
            strata.iter().filter(private).filter(begins).count()
        };
        let (written, read, small) = (of(0..200_000), of(200_000..400_000), of(400_000..500_000));
        assert!(written >= 40 && read <= written / 6 && small == 1, "{written}, {read}, {small}");
    }

    #[test]
    fn a_reserve_is_read_where_its_pages_can_be() {
        let (_, strata) = divided(vec![of_file(0..1 << 28, 0, PageKind::UllageArena)], 4096);
        let low = strata.iter().filter(|stratum| stratum.pieces[0].offset < 8192).count();
        assert!(low >= 40 && strata.len() < low + 20, "{low} of {}", strata.len());
        assert_eq!(strata.iter().map(|stratum| stratum.pages).sum::<u64>(), 1 << 28);
    }

    proptest! {
        #[test]
        fn places_lie_inside_and_in_order(sizes in proptest::collection::vec(1..5000u64, 1..40), number in 1..300u64, random: u64) {
            let mut at = 0;
            let areas = sizes.iter().map(|size| { at += size + 3; own(at - size..at) }).collect();
            let (spans, strata) = divided(areas, 3000);
            for stratum in &strata {
                let number = number.min(stratum.most_places());
                let mut before = 0;
                for index in 0..number {
                    let place = stratum.place(index, number, random).unwrap();
                    let span = &spans.list[place.span as usize];
                    prop_assert!(place.pages >= 1 && place.offset + place.pages as u64 <= span.pages);
                    let piece = stratum.pieces.iter().find(|piece| {
                        piece.span == place.span && (piece.offset..piece.offset + piece.pages).contains(&place.offset)
                    }).unwrap();
                    let position = piece.before + place.offset - piece.offset;
                    prop_assert!(position >= before);
                    before = position;
                }
            }
        }
    }
}
