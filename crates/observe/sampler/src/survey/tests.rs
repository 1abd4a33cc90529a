//! Surveys of machines made of page tables in memory, where the truth is known to the page.

use super::spans::tests::{of_file, own, subject};
use super::spans::{Spans, Subject};
use super::strata::divide;
use super::tally::{read_place, PageReader, Part};
use super::*;
use std::collections::HashMap;
use ullage_kernel::process::areas::Area;
use ullage_kernel::process::pagemap::PAGE;
use ullage_model::PageKind;

const PRESENT: u64 = 1 << 63;
const OF_A_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
const MIB: u64 = 1 << 20;

/// By subject and page: which page of memory is there.
#[derive(Default)]
struct Machine {
    tables: Vec<HashMap<u64, (u64, bool)>>,
    mapped: HashMap<u64, u32>,
    next: u64,
    /// One that everybody may map and nobody is charged for.
    zero: u64,
    /// This one has huge pages: each of their pages shows whether the first one is mapped elsewhere.
    huge: Option<usize>,
}

impl Machine {
    fn map(&mut self, subject: usize, page: u64, memory: u64, file: bool) {
        while self.tables.len() <= subject {
            self.tables.push(HashMap::new());
        }
        if let Some((old, _)) = self.tables[subject].insert(page, (memory, file)) {
            *self.mapped.get_mut(&old).unwrap() -= 1;
        }
        *self.mapped.entry(memory).or_default() += 1;
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn write(&mut self, subject: usize, pages: impl IntoIterator<Item = u64>) {
        for page in pages {
            let memory = self.fresh();
            self.map(subject, page, memory, false);
        }
    }

    fn release(&mut self, subject: usize, pages: impl IntoIterator<Item = u64>) {
        for page in pages {
            if let Some((old, _)) = self.tables[subject].remove(&page) {
                *self.mapped.get_mut(&old).unwrap() -= 1;
            }
        }
    }

    fn fork(&mut self, parent: usize) -> usize {
        let child = self.tables.len();
        for (page, (memory, file)) in self.tables[parent].clone() {
            self.map(child, page, memory, file);
        }
        child
    }

    fn of(&self, subject: usize, file: bool) -> u64 {
        let counts = |entry: &&(u64, bool)| entry.1 == file && entry.0 != self.zero;
        self.tables[subject].values().filter(counts).count() as u64 * PAGE
    }

    fn alone(&self, subject: usize) -> u64 {
        let own = |entry: &&(u64, bool)| !entry.1 && self.mapped[&entry.0] == 1 && entry.0 != self.zero;
        self.tables[subject].values().filter(own).count() as u64 * PAGE
    }

    fn once(&self, file: bool) -> u64 {
        let mut all: Vec<u64> = self
            .tables
            .iter()
            .flat_map(|table| table.values())
            .filter(|e| e.1 == file && e.0 != self.zero)
            .map(|e| e.0)
            .collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64 * PAGE
    }

    fn survey(
        &mut self,
        areas: Vec<Vec<Area>>,
        parents: &[Option<usize>],
        reads: u64,
        seed: u64,
    ) -> Vec<Pages> {
        let mut subjects: Vec<Subject> = areas
            .into_iter()
            .enumerate()
            .map(|(number, areas)| {
                let mut one = subject(number as i32 + 1, 1, areas);
                one.parent = parents[number];
                one.sizes.anonymous = Bytes(self.of(number, false));
                one.sizes.shared = Bytes(self.of(number, true));
                one
            })
            .collect();
        let spans = Spans::of(&mut subjects);
        let strata = divide(&spans, &subjects);
        let mut parts: Vec<Part> = strata.iter().map(|stratum| Part::new(stratum, &spans)).collect();
        let mut bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = || crate::pace::random(&mut bits);
        let (mut made, each) = (0, reads / strata.len() as u64 / subjects.len() as u64 + 1);
        for (part, stratum) in parts.iter_mut().zip(&strata) {
            let number = each.min(stratum.most_places());
            for index in 0..number {
                let place = stratum.place(index, number, random()).unwrap();
                made += read_place(part, place, index, &spans, &subjects, random(), self);
            }
        }
        assert!(made > 0);
        figures::rows(&parts, &subjects)
    }
}

impl PageReader for Machine {
    fn read(&mut self, subject: usize, page: u64, entries: &mut [PageEntry]) -> bool {
        for (entry, page) in entries.iter_mut().zip(page..) {
            *entry = match self.tables[subject].get(&page) {
                None => PageEntry(0),
                Some((memory, file)) => {
                    let head = self.tables[subject].get(&(page / 512 * 512)).map_or(*memory, |head| head.0);
                    let memory = if self.huge == Some(subject) { &head } else { memory };
                    let alone = self.mapped[memory] == 1 && *memory != self.zero;
                    let file = if *file { OF_A_FILE } else { 0 };
                    PageEntry(PRESENT | file | if alone { EXCLUSIVE } else { 0 })
                }
            };
        }
        true
    }
}

fn sum(rows: &[Pages], of: Option<i32>, pick: impl Fn(&Pages) -> Bytes) -> u64 {
    rows.iter().filter(|row| row.of.map(|id| id.pid) == of).map(|row| pick(row).0).sum()
}

fn near(what: &str, figure: u64, truth: u64, of: u64, share: f64) {
    let off = figure.abs_diff(truth) as f64 / of as f64;
    assert!(off <= share, "{what}: {figure} for {truth}, off by {:.2} % of {of}", off * 100.0);
}

const PAGES: u64 = 40_000;

#[test]
fn ten_children_of_one_parent_hold_its_memory_once() {
    let mut machine = Machine::default();
    machine.write(0, 1000..1000 + PAGES);
    for _ in 0..10 {
        machine.fork(0);
    }
    machine.write(3, 1000..1500);
    let areas = vec![vec![own(1000..1000 + PAGES + 5000)]; 11];
    let parents: Vec<_> = std::iter::once(None).chain([Some(0); 10]).collect();
    let rows = machine.survey(areas, &parents, 20_000, 1);
    let truth = machine.once(false);
    near("the whole", sum(&rows, None, |row| row.bytes), truth, truth, 0.01);
    near("what child 3 has alone", sum(&rows, Some(4), |row| row.exclusive), 500 * PAGE, PAGES * PAGE, 0.01);
    assert_eq!(sum(&rows, None, |row| row.unexplained), 0);
}

#[test]
fn half_unshared_is_half_wherever_it_lies_and_the_error_holds_nineteen_times_in_twenty() {
    let (mut within, mut asked) = (0, 0);
    for scattered in [false, true] {
        let mut machine = Machine::default();
        machine.write(0, 0..PAGES);
        for child in 1..=4 {
            machine.fork(0);
            let half = (0..PAGES).filter(|page| {
                if scattered {
                    (page / 24).wrapping_mul(0x9E37_79B9) >> 7 & 1 == 0
                } else {
                    page * 2 < PAGES
                }
            });
            machine.write(child, half);
        }
        let parents = [None, Some(0), Some(0), Some(0), Some(0)];
        for seed in 1..=10 {
            let rows = machine.survey(vec![vec![own(0..PAGES)]; 5], &parents, 10_000, seed);
            let truth = machine.once(false);
            near("the whole", sum(&rows, None, |row| row.bytes), truth, truth, 0.02);
            for child in 1..=4 {
                let row = rows.iter().find(|row| row.of.is_some_and(|id| id.pid == child + 1)).unwrap();
                let truth = machine.alone(child as usize);
                near("a child's own", row.exclusive.0, truth, PAGES * PAGE, 0.03);
                asked += 1;
                within += usize::from(row.exclusive.0.abs_diff(truth) <= row.error.0 + PAGE);
            }
        }
    }
    assert!(within * 100 >= asked * 92, "{within} of {asked}");
}

#[test]
fn what_the_parent_rewrote_freed_and_what_the_child_copied_show_differently_to_both() {
    let mut machine = Machine::default();
    machine.write(0, 0..PAGES);
    machine.fork(0);
    machine.fork(0);
    let (quarter, half) = (PAGES / 4, PAGES / 2);
    machine.write(1, 0..quarter); // its sibling still shares these with the parent
    machine.release(0, quarter..half); // the siblings share these
    machine.release(2, quarter..half); // now the first has them alone
    machine.write(0, half..half + quarter);
    machine.release(2, half..half + quarter); // as the parent's, and the child's
    let rows = machine.survey(vec![vec![own(0..PAGES)]; 3], &[None, Some(0), Some(0)], 20_000, 3);
    let row = rows.iter().find(|row| row.of.is_some_and(|id| id.pid == 2)).unwrap();
    let of = PAGES * PAGE;
    near("copied while the sibling shares", row.beside_shared.0, quarter * PAGE, of, 0.01);
    near("both have one of their own", row.beside_own.0, quarter * PAGE, of, 0.01);
    let alone = row.exclusive.0 - row.beside_shared.0 - row.beside_own.0;
    near("the parent has none", alone, quarter * PAGE, of, 0.01);
}

#[test]
fn a_huge_page_that_shows_the_state_of_its_first_piece_is_not_counted_twice() {
    let mut machine = Machine { huge: Some(0), ..Machine::default() };
    machine.write(0, 0..PAGES);
    machine.fork(0);
    // Of half of the huge pages the child has copied the first piece, of the others another.
    machine.write(1, (0..PAGES).filter(|page| page % 512 < 200 && page / 512 % 2 == 0));
    machine.write(1, (0..PAGES).filter(|page| page % 512 > 300 && page / 512 % 2 == 1));
    let rows = machine.survey(vec![vec![own(0..PAGES)]; 2], &[None, Some(0)], 20_000, 9);
    let truth = machine.once(false);
    near("the whole", sum(&rows, None, |row| row.bytes), truth, truth, 0.01);
}

#[test]
fn a_huge_page_of_the_parent_over_four_children_is_attributed_as_the_children_say() {
    let mut machine = Machine { huge: Some(0), ..Machine::default() };
    machine.write(0, 0..PAGES);
    for _ in 0..4 {
        machine.fork(0);
    }
    machine.write(1, 0..PAGES / 2);
    machine.write(2, 0..PAGES / 2);
    // Here and there, each page for itself.
    let picked =
        |child: u64, page: u64| (page * 4 + child).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33 & 1 == 0;
    machine.write(3, (0..PAGES).filter(|page| picked(3, *page)));
    machine.write(4, (0..PAGES).filter(|page| picked(4, *page)));
    let parents = [None, Some(0), Some(0), Some(0), Some(0)];
    let truth = machine.once(false);
    let alone = machine.alone(0);
    let mut sums = (0, 0);
    for seed in 1..=8 {
        let rows = machine.survey(vec![vec![own(0..PAGES)]; 5], &parents, 10_000, seed);
        near("the whole", sum(&rows, None, |row| row.bytes), truth, truth, 0.015);
        sums.0 += sum(&rows, None, |row| row.bytes);
        sums.1 += sum(&rows, Some(1), |row| row.exclusive);
    }
    near("the whole, on average", sums.0 / 8, truth, truth, 0.006);
    near("the parent's own, on average", sums.1 / 8, alone, PAGES * PAGE, 0.01);
}

#[test]
fn pages_of_zeros_are_no_memory() {
    let mut machine = Machine { zero: u64::MAX, ..Machine::default() };
    machine.write(0, 0..PAGES);
    (PAGES..2 * PAGES).for_each(|page| machine.map(0, page, u64::MAX, false));
    machine.fork(0);
    let rows = machine.survey(vec![vec![own(0..2 * PAGES)]; 2], &[None, Some(0)], 20_000, 5);
    near("the whole", sum(&rows, None, |row| row.bytes), PAGES * PAGE, PAGES * PAGE, 0.02);
    near("alone", sum(&rows, Some(2), |row| row.exclusive), 0, PAGES * PAGE, 0.01);
}

#[test]
fn a_segment_mapped_by_two_is_counted_once_and_what_no_area_explains_is_reported() {
    let mut machine = Machine::default();
    for page in 0..PAGES {
        machine.map(0, 100 + page, 1 + page, true);
        if page < PAGES / 2 {
            machine.map(1, 900_000 + page, 1 + page, true);
        }
    }
    machine.next = PAGES + 1;
    machine.write(0, 500_000..500_000 + 2560); // 10 MiB that no area shows
    let kind = PageKind::TorchShared;
    let areas = vec![
        vec![of_file(100..100 + PAGES, 0, kind), own(600_000..600_001)],
        vec![of_file(900_000..900_000 + PAGES / 2, 0, kind)],
    ];
    machine.write(0, 600_000..600_001);
    let rows = machine.survey(areas, &[None, None], 20_000, 7);
    let of_kind = rows.iter().find(|row| row.of.is_none() && row.kind == kind).unwrap();
    let whole = PAGES * PAGE;
    near("the segment", of_kind.bytes.0, whole, whole, 0.01);
    near("what both have", of_kind.shared.0, whole / 2, whole, 0.01);
    near("what one has", of_kind.exclusive.0, whole / 2, whole, 0.01);
    near("unexplained", sum(&rows, None, |row| row.unexplained), 10 * MIB, 10 * MIB, 0.01);
}

#[test]
fn this_very_process_is_surveyed() {
    let root = KernelRoot::live();
    let me = std::process::id() as i32;
    let mut buffer = Vec::new();
    let dir = root.process(me).unwrap();
    if dir.page_map().is_err() {
        return; // not offered here
    }
    let held = std::hint::black_box(vec![1u8; 200 << 20]);
    let id = dir.stat(&mut buffer).unwrap().id;
    let sizes = dir.status(&mut buffer).unwrap().memory.unwrap();
    let candidate = Candidate { id, family: 1, forked_from: None, sizes };
    let effort = Effort { reads: 10_000, most_ns: u64::MAX };
    let mut bits = 77;
    let found =
        survey(&root, &[candidate], effort, &mut buffer, || 0, || crate::pace::random(&mut bits)).unwrap();
    let whole = sum(&found.rows, None, |row| row.bytes) + sum(&found.rows, None, |row| row.unexplained);
    let real = sizes.resident().0;
    near("resident", whole, real, real, 0.05);
    let private = sum(&found.rows, None, |row| row.exclusive);
    assert!(private >= 190 << 20, "{private}");
    assert_eq!(held[5], 1);
}
