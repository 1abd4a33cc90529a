//! One reading's segments by inode, and who uses each.
//!
//! The surprise: seventy thousand of them are common (a dataset of tensors), and each may be mapped by the same
//! ten processes. So sets of processes are kept once and named by number, and small tensors keep no name but a pid.

use std::collections::HashMap;
use std::ops::Range;
use ullage_kernel::host::sysvipc::SysvSegment;
use ullage_kernel::process::segment_names::pid_in_name;
use ullage_kernel::process::segment_stat::SegmentStat;
use ullage_kernel::process::shared_maps::{file_kind, SharedMapping};
use ullage_model::{Bytes, Measured, Missing, SegmentKind};

/// Device and inode. Of System V, the IPC namespace (0: ullage's own) and the shmid, so that no memfd has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Inode(u64, u64),
    Sysv(u64, u64),
}

/// Tensors below this size are told apart by their maker only, bytes.
pub(crate) const SMALL: u64 = 1 << 20;
/// Mappings whose pages may have to be looked up, at most.
const MOST_AREAS: usize = 4096;

/// A segment in this reading.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) kind: SegmentKind,
    pub(crate) name: Option<Box<str>>,
    /// The pid in its name, or that the kernel keeps.
    pub(crate) pid: Option<i32>,
    pub(crate) size: u64,
    pub(crate) allocated: Measured<Bytes>,
    pub(crate) at_least: bool,
    pub(crate) deleted: bool,
    pub(crate) made: Option<f64>,
    /// Numbers of sets in [`Sets`].
    pub(crate) mappers: u32,
    pub(crate) openers: u32,
    /// Lines of `maps`: as many attachments at least.
    pub(crate) lines: u32,
    /// Attachments that the kernel counts.
    pub(crate) attached: Option<u64>,
}

/// A mapping of a segment whose pages no descriptor tells.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub(crate) entry: u32,
    pub(crate) process: u32,
    pub(crate) range: Range<u64>,
    pub(crate) offset: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    index: HashMap<Key, u32>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) sets: Sets,
    areas: Vec<Area>,
}

impl Table {
    /// With room for so many: growing by doubling would take the most memory of all.
    pub(crate) fn with_room(segments: usize) -> Table {
        let (index, entries) = (HashMap::with_capacity(segments), Vec::with_capacity(segments));
        Table { index, entries, ..Table::default() }
    }

    /// A file in /dev/shm.
    pub(crate) fn file(&mut self, name: &[u8], stat: &SegmentStat) {
        self.stat(file_kind(name), name, stat);
    }

    /// `process` maps it. Processes are told one after the other.
    pub(crate) fn mapped(&mut self, process: u32, key: Key, mapping: &SharedMapping<'_>) {
        let end = mapping.offset.saturating_add(mapping.range.end.saturating_sub(mapping.range.start));
        let at = self.entry(key, mapping.kind, mapping.name, end);
        let entry = &mut self.entries[at as usize];
        if entry.allocated.missing().is_some() {
            // A mapping may begin behind the start and end before the end: the longest one tells most.
            entry.size = entry.size.max(end);
        }
        entry.deleted |= mapping.deleted;
        entry.lines = entry.lines.saturating_add(1);
        entry.mappers = self.sets.with(entry.mappers, process);
        if matches!(key, Key::Inode(..))
            && entry.allocated.missing().is_some()
            && self.areas.len() < MOST_AREAS
        {
            let (range, offset) = (mapping.range.clone(), mapping.offset);
            self.areas.push(Area { entry: at, process, range, offset });
        }
    }

    /// `process` holds it open.
    pub(crate) fn held(&mut self, process: u32, kind: SegmentKind, name: &[u8], stat: &SegmentStat) {
        let at = self.stat(kind, name, stat);
        let entry = &mut self.entries[at as usize];
        if !self.sets.ends_with(entry.mappers, process) {
            entry.openers = self.sets.with(entry.openers, process);
        }
    }

    /// A row of `/proc/sysvipc/shm`.
    pub(crate) fn sysv(&mut self, row: &SysvSegment) {
        let name = format!("shmid {} key {:#x}", row.id, row.key);
        let at = self.entry(Key::Sysv(0, row.id), SegmentKind::Sysv, name.as_bytes(), row.size.0);
        let entry = &mut self.entries[at as usize];
        entry.name = Some(name.into());
        entry.size = row.size.0;
        entry.allocated = Measured::Known(row.allocated);
        entry.pid = (row.creator > 0).then_some(row.creator);
        entry.made = (row.changed > 0).then_some(row.changed as f64);
        entry.attached = Some(row.attached);
    }

    /// True where a process of the job was seen with this segment.
    pub(crate) fn used(&self, key: Key) -> bool {
        self.index.get(&key).is_some_and(|&at| self.entries[at as usize].mappers != 0)
    }

    /// Mappings of what no descriptor told about.
    pub(crate) fn unresolved(&mut self) -> Vec<Area> {
        let mut areas = std::mem::take(&mut self.areas);
        areas.retain(|area| self.entries[area.entry as usize].allocated.missing().is_some());
        areas
    }

    /// What stat says of it, however it was reached.
    pub(crate) fn resolve(&mut self, at: u32, stat: &SegmentStat) {
        let entry = &mut self.entries[at as usize];
        entry.size = stat.size.0;
        entry.allocated = Measured::Known(stat.allocated);
        entry.at_least = false;
        entry.made = Some(stat.made);
        entry.deleted |= stat.unlinked;
    }

    fn stat(&mut self, kind: SegmentKind, name: &[u8], stat: &SegmentStat) -> u32 {
        let at = self.entry(Key::Inode(stat.device, stat.inode), kind, name, stat.size.0);
        self.resolve(at, stat);
        at
    }

    fn entry(&mut self, key: Key, kind: SegmentKind, name: &[u8], size: u64) -> u32 {
        let entries = &mut self.entries;
        *self.index.entry(key).or_insert_with(|| {
            let pid = pid_in_name(name);
            let small = kind == SegmentKind::Torch && pid.is_some() && size < SMALL;
            entries.push(Entry {
                key,
                kind,
                name: (!small).then(|| String::from_utf8_lossy(name).into()),
                pid,
                size,
                allocated: Measured::Missing(Missing::NoPermission),
                at_least: false,
                deleted: false,
                made: None,
                mappers: 0,
                openers: 0,
                lines: 0,
                attached: None,
            });
            (entries.len() - 1) as u32
        })
    }
}

/// Sets of processes, each kept once. Number 0 is the empty one.
#[derive(Debug)]
pub(crate) struct Sets {
    members: Vec<Vec<u32>>,
    grown: HashMap<(u32, u32), u32>,
}

impl Default for Sets {
    fn default() -> Self {
        Sets { members: vec![Vec::new()], grown: HashMap::new() }
    }
}

impl Sets {
    /// The set with one more member, which is the last of all told so far.
    pub(crate) fn with(&mut self, set: u32, process: u32) -> u32 {
        if self.ends_with(set, process) {
            return set;
        }
        *self.grown.entry((set, process)).or_insert_with(|| {
            let mut members = self.members[set as usize].clone();
            members.push(process);
            self.members.push(members);
            (self.members.len() - 1) as u32
        })
    }

    fn ends_with(&self, set: u32, process: u32) -> bool {
        self.members[set as usize].last() == Some(&process)
    }

    /// Who is in it, ascending.
    pub(crate) fn members(&self, set: u32) -> &[u32] {
        &self.members[set as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(inode: u64, name: &[u8]) -> SharedMapping<'_> {
        SharedMapping {
            kind: SegmentKind::Memfd,
            range: 0x1000..0x5000,
            offset: 0x1000,
            device: 1,
            inode,
            name,
            deleted: true,
        }
    }

    fn stat(inode: u64, pages: u64) -> SegmentStat {
        let (size, allocated) = (Bytes(pages * 4096), Bytes(pages * 4096));
        SegmentStat { device: 1, inode, size, allocated, unlinked: true, made: 5.0, ..SegmentStat::default() }
    }

    #[test]
    fn a_process_that_maps_and_holds_is_a_mapper() {
        let mut table = Table::default();
        table.mapped(0, Key::Inode(1, 7), &mapping(7, b"memfd:x"));
        table.mapped(0, Key::Inode(1, 7), &mapping(7, b"memfd:x"));
        table.held(0, SegmentKind::Memfd, b"memfd:x", &stat(7, 9));
        table.held(1, SegmentKind::Memfd, b"memfd:x", &stat(7, 9));
        let entry = &table.entries[0];
        assert_eq!(table.entries.len(), 1);
        assert_eq!(table.sets.members(entry.mappers), [0]);
        assert_eq!(table.sets.members(entry.openers), [1]);
        assert_eq!(
            (entry.lines, entry.size, entry.allocated),
            (2, 9 * 4096, Measured::Known(Bytes(9 * 4096)))
        );
        assert!(table.unresolved().is_empty(), "a descriptor told its pages");
    }

    #[test]
    fn what_is_only_mapped_waits_for_its_pages() {
        let mut table = Table::default();
        table.mapped(3, Key::Inode(1, 7), &mapping(7, b"memfd:x"));
        assert_eq!(table.entries[0].size, 0x5000, "as far as its mapping reaches");
        let areas = table.unresolved();
        assert_eq!((areas.len(), areas[0].process, areas[0].offset), (1, 3, 0x1000));
    }

    #[test]
    fn a_system_v_segment_is_no_memfd_of_the_same_number() {
        let mut table = Table::default();
        table.mapped(0, Key::Inode(1, 5), &mapping(5, b"memfd:x"));
        table.sysv(&SysvSegment { id: 5, size: Bytes(4096), creator: 9, ..SysvSegment::default() });
        assert_eq!(table.entries.len(), 2);
        assert_eq!(table.entries[1].pid, Some(9));
        assert!(!table.used(Key::Sysv(0, 5)));
    }

    #[test]
    fn small_tensors_keep_no_name_and_equal_sets_are_one() {
        let mut table = Table::default();
        for inode in 0..1000 {
            table.file(format!("torch_4711_1_{inode}").as_bytes(), &SegmentStat { inode, ..stat(inode, 1) });
        }
        for process in 0..3 {
            for inode in 0..1000 {
                table.held(process, SegmentKind::Torch, b"torch_4711_1_0", &stat(inode, 1));
            }
        }
        assert!(table.entries.iter().all(|entry| entry.name.is_none() && entry.pid == Some(4711)));
        assert!(table.entries.iter().all(|entry| entry.openers == table.entries[0].openers));
        assert_eq!(table.sets.members.len(), 4);
    }
}
