//! A reading's segments as they are recorded: large ones one by one, alike small ones together.

use super::table::{Entry, Key, Sets, SMALL};
use std::collections::{BTreeMap, HashMap};
use ullage_model::{Bytes, Creator, Maker, Measured, Missing, ProcessId, Segment, SegmentKind};

/// Segments told one by one at most.
const SINGLES: usize = 64;
/// Rows of a reading at most, before those of equal kind and maker become one.
const ROWS: usize = 256;

/// What alike ones have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    kind: SegmentKind,
    device: u64,
    creator: Measured<Creator>,
    mappers: u32,
    openers: u32,
    deleted: bool,
    before: bool,
    missing: Option<Missing>,
    at_least: bool,
    outsiders: Measured<bool>,
}

/// A segment with what was found out about it.
pub(crate) struct Judged<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) creator: Measured<Creator>,
    pub(crate) before: bool,
    pub(crate) outsiders: Measured<bool>,
}

/// Rows for the recording, largest first.
pub(crate) fn group(judged: &[Judged<'_>], sets: &Sets, processes: &[ProcessId]) -> Vec<Segment> {
    let mut order: Vec<usize> = (0..judged.len()).filter(|&at| bytes(judged[at].entry) >= SMALL).collect();
    order.sort_unstable_by_key(|&at| std::cmp::Reverse(bytes(judged[at].entry)));
    order.truncate(SINGLES);
    let singles: std::collections::HashSet<usize> = order.iter().copied().collect();
    let processes_of =
        |set: u32| sets.members(set).iter().map(|&number| processes[number as usize]).collect();
    let mut rows: Vec<Segment> = order
        .iter()
        .map(|&at| {
            row(&judged[at], processes_of(judged[at].entry.mappers), processes_of(judged[at].entry.openers))
        })
        .collect();
    let mut groups: HashMap<Alike, Vec<usize>> = HashMap::new();
    for (at, one) in judged.iter().enumerate().filter(|(at, _)| !singles.contains(at)) {
        groups.entry(alike(one)).or_default().push(at);
    }
    for (alike, members) in groups {
        let mut members = members.into_iter();
        let Some(first) = members.next() else { continue };
        let mut sum = row(&judged[first], processes_of(alike.mappers), processes_of(alike.openers));
        let mut largest = bytes(judged[first].entry);
        for at in members {
            add(&mut sum, row(&judged[at], Vec::new(), Vec::new()), &mut largest);
        }
        rows.push(sum);
    }
    sort(&mut rows);
    if rows.len() > ROWS {
        let rest = rows.split_off(ROWS / 2);
        rows.extend(merge(rest));
        sort(&mut rows);
    }
    rows
}

fn sort(rows: &mut [Segment]) {
    rows.sort_by(|a, b| {
        let size = |row: &Segment| row.allocated.known().unwrap_or(row.size).0;
        size(b).cmp(&size(a)).then_with(|| (&a.name, a.device, a.inode).cmp(&(&b.name, b.device, b.inode)))
    });
}

fn bytes(entry: &Entry) -> u64 {
    entry.allocated.known().map_or(entry.size, |bytes| bytes.0)
}

fn alike(one: &Judged<'_>) -> Alike {
    let entry = one.entry;
    Alike {
        kind: entry.kind,
        device: place(entry.key).0,
        creator: one.creator,
        mappers: entry.mappers,
        openers: entry.openers,
        deleted: entry.deleted,
        before: one.before,
        missing: entry.allocated.missing(),
        at_least: entry.at_least,
        outsiders: one.outsiders,
    }
}

/// Device and inode as they are recorded.
fn place(key: Key) -> (u64, u64) {
    match key {
        Key::Inode(device, inode) => (device, inode),
        Key::Sysv(_, id) => (0, id),
    }
}

fn row(one: &Judged<'_>, mappers: Vec<ProcessId>, openers: Vec<ProcessId>) -> Segment {
    let entry = one.entry;
    let (device, inode) = place(entry.key);
    let name = match (&entry.name, entry.pid) {
        (Some(name), _) => name.to_string(),
        (None, Some(pid)) => format!("torch_{pid}_*"),
        (None, None) => "*".into(),
    };
    Segment {
        kind: entry.kind,
        name,
        count: 1,
        device,
        inode,
        size: Bytes(entry.size),
        allocated: entry.allocated,
        at_least: entry.at_least,
        deleted: entry.deleted,
        before: one.before,
        creator: one.creator,
        mappers,
        openers,
        outsiders: one.outsiders,
    }
}

/// Adds a segment, or several, to one that is alike. The largest one's inode stands for all.
fn add(sum: &mut Segment, more: Segment, largest: &mut u64) {
    let size = more.allocated.known().unwrap_or(more.size).0;
    if size > *largest {
        *largest = size;
        sum.inode = more.inode;
    }
    sum.name = common(&sum.name, &more.name);
    sum.count += more.count;
    sum.size = sum.size.saturating_add(more.size);
    if let (Measured::Known(a), Measured::Known(b)) = (sum.allocated, more.allocated) {
        sum.allocated = Measured::Known(a.saturating_add(b));
    }
}

/// What both names begin with, and a star.
fn common(a: &str, b: &str) -> String {
    if a == b {
        return a.to_owned();
    }
    let stem = |name: &str| name.strip_suffix('*').unwrap_or(name).to_owned();
    let (a, b) = (stem(a), stem(b));
    let shared: String = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    format!("{shared}*")
}

/// Rows that agree in kind, maker and what decides whether they are left behind become one, with the users of all.
/// Where even these are too many, the smallest lose their maker.
fn merge(rows: Vec<Segment>) -> Vec<Segment> {
    type Coarse = (SegmentKind, u64, bool, bool, bool, Option<(Maker, u8)>, u8);
    let word = |by| ullage_model::CreatorSource::ALL.iter().position(|known| *known == by).unwrap_or(0) as u8;
    let coarse = |row: &Segment, makers: bool| -> Coarse {
        let maker = row.creator.known().filter(|_| makers).map(|creator| (creator.maker, word(creator.by)));
        let missing = u8::from(row.allocated.missing().is_some()) + 2 * u8::from(row.at_least);
        (row.kind, row.device, row.deleted, row.before, row.unused(), maker, missing)
    };
    let fold = |rows: Vec<Segment>, makers: bool| -> Vec<Segment> {
        let mut merged: BTreeMap<Coarse, (Segment, u64)> = BTreeMap::new();
        for mut row in rows {
            if !makers && row.creator.known().is_some() {
                row.creator = Measured::Missing(Missing::NotAsked);
            }
            match merged.entry(coarse(&row, makers)) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    let size = row.allocated.known().unwrap_or(row.size).0;
                    place.insert((row, size));
                }
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    let (sum, largest) = place.get_mut();
                    for (mine, theirs) in [(&mut sum.mappers, &row.mappers), (&mut sum.openers, &row.openers)]
                    {
                        mine.extend_from_slice(theirs);
                        mine.sort_unstable();
                        mine.dedup();
                    }
                    if sum.outsiders != row.outsiders {
                        sum.outsiders = Measured::default();
                    }
                    add(sum, row, largest);
                }
            }
        }
        merged.into_values().map(|(row, _)| row).collect()
    };
    let mut merged = fold(rows, true);
    if merged.len() > ROWS * 4 {
        sort(&mut merged);
        let rest = merged.split_off(ROWS * 2);
        merged.extend(fold(rest, false));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_kernel::process::segment_stat::SegmentStat;
    use ullage_model::{ClockTicks, CreatorSource};

    fn id(pid: i32) -> ProcessId {
        ProcessId { pid, start: ClockTicks(pid as u64) }
    }

    fn by(pid: i32) -> Measured<Creator> {
        Measured::Known(Creator { maker: Maker::Process(id(pid)), by: CreatorSource::Name })
    }

    fn grouped(names: &[(String, u64)], creator: impl Fn(usize) -> i32) -> Vec<Segment> {
        let mut table = super::super::table::Table::default();
        for (inode, (name, size)) in (0..).zip(names) {
            let (size, allocated) = (Bytes(*size), Bytes(*size));
            table.file(
                name.as_bytes(),
                &SegmentStat { device: 9, inode, size, allocated, ..Default::default() },
            );
        }
        let judged: Vec<Judged<'_>> = table
            .entries
            .iter()
            .enumerate()
            .map(|(at, entry)| Judged {
                entry,
                creator: by(creator(at)),
                before: false,
                outsiders: Measured::default(),
            })
            .collect();
        group(&judged, &table.sets, &[])
    }

    #[test]
    fn seventy_thousand_tensors_are_one_row_and_large_ones_stand_alone() {
        let mut names: Vec<_> = (0..70_000).map(|n| (format!("torch_5_1_{n}"), 4096)).collect();
        names.push(("torch_5_2_0".into(), 5 << 20));
        names.push(("psm_aa".into(), 3 << 20));
        let rows = grouped(&names, |_| 5);
        let shown: Vec<(&str, u64, u64)> =
            rows.iter().map(|row| (row.name.as_str(), row.count, row.size.0)).collect();
        assert_eq!(
            shown,
            [("torch_5_*", 70_000, 70_000 * 4096), ("torch_5_2_0", 1, 5 << 20), ("psm_aa", 1, 3 << 20)]
        );
    }

    #[test]
    fn names_of_a_group_keep_what_they_begin_with() {
        let rows = grouped(&[("psm_abcd".into(), 1), ("psm_abff".into(), 9), ("psm_ax".into(), 1)], |_| 5);
        assert_eq!((rows[0].name.as_str(), rows[0].count, rows[0].inode), ("psm_a*", 3, 1));
    }

    #[test]
    fn many_makers_stay_apart_and_very_many_are_bounded() {
        let names: Vec<_> = (0..800).map(|n| (format!("psm_{n}"), 4096 + n)).collect();
        let rows = grouped(&names, |at| at as i32 + 1);
        assert_eq!(rows.len(), 800, "each has its own maker");
        let names: Vec<_> = (0..5000).map(|n| (format!("psm_{n}"), 4096 + n)).collect();
        let rows = grouped(&names, |at| at as i32 + 1);
        assert!(rows.len() <= ROWS * 4, "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 5000);
        assert_eq!(
            rows.iter().map(|row| row.size.0).sum::<u64>(),
            names.iter().map(|(_, size)| size).sum::<u64>()
        );
    }
}
