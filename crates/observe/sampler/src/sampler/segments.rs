//! One reading of the shared segments that the job uses, and of every file in its /dev/shm.

use super::files::Files;
use super::meter::{thread_cpu_ns, Meter};
use super::news::News;
use crate::member::Member;
use crate::segments::creator::{by_users, Clock};
use crate::segments::group::{group, Judged};
use crate::segments::table::{Key, Table};
use crate::segments::{Moves, Segments};
use crate::settings::SamplerSettings;
use rustix::time::{clock_gettime, ClockId};
use std::collections::HashMap;
use ullage_kernel::process::shared_pages::PagesSeen;
use ullage_kernel::ProcessDir;
use ullage_model::{
    At, Bytes, Creator, CreatorSource, FilesystemReading, FilesystemUse, Maker, Measured, Missing, ProcessId,
    ProcessReading, Segment, SegmentKind,
};

/// Entries of /dev/shm and descriptors of a process that are looked at, at most.
const MOST: u64 = 200_000;
/// The last reading of a run may cost this without asking the budget, nanoseconds.
const LAST_NS: f64 = 1e9;
/// Pages that are looked up one by one in a reading, at most: 2 GiB.
const MOST_PAGES: u64 = 512 * 1024;
/// Measured: nanoseconds for a file or a descriptor, and mappings of a process that were never counted.
const EACH_FILE_NS: f64 = 2000.0;
const USUAL_MAPPINGS: u64 = 1500;
/// The clock of files runs behind by a kernel's tick at most, seconds.
const FILE_CLOCK_S: f64 = 0.02;
/// Makers remembered at most.
const MOST_MAKERS: usize = 100_000;

/// A process of the job, open for this reading.
struct Reader {
    id: ProcessId,
    dir: ProcessDir,
}

/// What a reading of the segments needs.
pub(super) struct SegmentReader<'a> {
    pub(super) files: &'a mut Files,
    pub(super) news: &'a mut News,
    pub(super) meter: &'a mut Meter,
    pub(super) segments: &'a mut Segments,
    pub(super) members: &'a HashMap<i32, Member>,
    pub(super) settings: &'a SamplerSettings,
    pub(super) now: At,
}

impl SegmentReader<'_> {
    /// The reading, where it is due and affordable. `through`: one process of each mount namespace.
    pub(super) fn read(
        &mut self,
        through: &[(Option<u64>, i32)],
        filesystems: &[FilesystemReading],
        processes: &[ProcessReading],
        deep: bool,
    ) -> Measured<Vec<Segment>> {
        let now = self.now;
        let last = self.segments.last_sample;
        if !deep && !last {
            return Measured::Missing(Missing::NotAsked);
        }
        let moves = Moves::of(filesystems, processes);
        let due = self.segments.due(now, moves, self.settings.cpu_share);
        let usual_ns = self.usual_ns(filesystems, processes);
        let expected_ns = self.segments.expected_ns(usual_ns);
        let affordable = self.meter.allows(expected_ns, false);
        if !(due && affordable || last && expected_ns <= LAST_NS) {
            return Measured::Missing(Missing::NotAsked);
        }
        let before = thread_cpu_ns();
        let segments = self.gather(through, filesystems, processes);
        let cost = (thread_cpu_ns() - before) as f64;
        self.meter.spend(cost);
        self.segments.read(now, moves, usual_ns, cost);
        Measured::Known(segments)
    }

    fn usual_ns(&self, filesystems: &[FilesystemReading], processes: &[ProcessReading]) -> f64 {
        let files: u64 = shm(filesystems).map(|reading| reading.inodes_used).sum();
        let of_process = |process: &ProcessReading| {
            let descriptors = process.descriptors.as_known().map_or(0, |descriptors| descriptors.count);
            let mappings = if shares(process) {
                let member = self.members.get(&process.id.pid);
                member.and_then(Member::mappings_to_read).unwrap_or(USUAL_MAPPINGS)
            } else {
                0
            };
            self.meter.each_mapping.expect(mappings) + descriptors as f64 * EACH_FILE_NS
        };
        files as f64 * EACH_FILE_NS + processes.iter().map(of_process).sum::<f64>()
    }

    fn gather(
        &mut self,
        through: &[(Option<u64>, i32)],
        filesystems: &[FilesystemReading],
        processes: &[ProcessReading],
    ) -> Vec<Segment> {
        let files: u64 = shm(filesystems).map(|reading| reading.inodes_used.min(MOST)).sum();
        let mut table = Table::with_room(files as usize + 256);
        let mut complete = self.list_files(through, filesystems, &mut table);
        let (readers, refused) = self.open_readers(processes);
        let mut buffer = std::mem::take(&mut self.files.maps);
        let own_ipc = self.own_namespace("ipc");
        for (number, (reader, maps)) in (0..).zip(&readers) {
            let mut foreign_ipc = None;
            let mut note = |mapping: ullage_kernel::process::shared_maps::SharedMapping<'_>| {
                let key = match mapping.kind {
                    SegmentKind::Sysv => Key::Sysv(
                        *foreign_ipc.get_or_insert_with(|| {
                            reader
                                .dir
                                .namespace("ipc")
                                .ok()
                                .flatten()
                                .filter(|ns| Some(*ns) != own_ipc)
                                .unwrap_or(0)
                        }),
                        mapping.inode,
                    ),
                    _ => Key::Inode(mapping.device, mapping.inode),
                };
                table.mapped(number, key, &mapping);
            };
            if *maps {
                let _ = reader.dir.shared_mappings(&self.segments.devices, &mut buffer, &mut note);
            }
            let held = reader.dir.shared_descriptors(&self.segments.devices, MOST, |kind, name, stat| {
                table.held(number, kind, name, &stat);
            });
            complete &= held.unwrap_or(true);
        }
        self.files.maps = buffer;
        self.add_sysv(&mut table);
        self.find_pages(&mut table, &readers);
        if refused > 0 {
            let text = format!(
                "Shared segments that only {refused} of the processes use may be missing: this user may not read them."
            );
            self.news.not_seen(self.now, text);
        }
        if !complete {
            self.news.not_seen(self.now, "Not all files in /dev/shm were read: there are too many, or folders are closed to this user.".into());
        }
        self.judge(&table, &readers)
    }

    /// Files of every /dev/shm of the job. False where some were left out.
    fn list_files(
        &mut self,
        through: &[(Option<u64>, i32)],
        filesystems: &[FilesystemReading],
        table: &mut Table,
    ) -> bool {
        let found: Vec<u64> =
            shm(filesystems).filter(|reading| reading.tmpfs).map(|reading| reading.device).collect();
        let known = self.segments.devices.clone();
        for device in &found {
            // After the job's end only ullage's own is in sight, which need not be the job's.
            if !self.segments.devices.contains(device) && (!self.segments.last_sample || known.is_empty()) {
                self.segments.devices.push(*device);
            }
        }
        let mut listed: Vec<u64> = Vec::new();
        let mut complete = true;
        for (_, pid) in through {
            let Ok(process) = self.files.root.process(*pid) else { continue };
            let Ok(place) = process.filesystem("/dev/shm", FilesystemUse::Shm) else { continue };
            if listed.contains(&place.device) || !self.segments.devices.contains(&place.device) {
                continue;
            }
            listed.push(place.device);
            let out = process.shared_files("/dev/shm", MOST, |name, stat| table.file(name, &stat));
            complete &= out.is_ok_and(|out| out.folders == 0 && !out.entries);
        }
        complete
    }

    /// Processes to look into, with whether their mappings are worth it; and how many refuse.
    fn open_readers(&mut self, processes: &[ProcessReading]) -> (Vec<(Reader, bool)>, u64) {
        let own_pids = self.own_namespace("pid");
        let (mut readers, mut refused) = (Vec::with_capacity(processes.len()), 0);
        let alive = processes.iter().filter(|process| process.memory.as_known().is_some());
        for process in alive {
            let Ok(dir) = self.files.root.process(process.id.pid) else { continue };
            match dir.namespace("pid") {
                Ok(namespace) if namespace != own_pids && own_pids.is_some() => {
                    if let Ok(Some(inside)) = dir.innermost_pid(&mut self.files.buffer) {
                        self.segments.pids.inside.insert(inside, process.id);
                    }
                }
                Err(error) if error.missing() == Missing::NoPermission => {
                    refused += u64::from(shares(process));
                    continue;
                }
                _ => {}
            }
            readers.push((Reader { id: process.id, dir }, shares(process)));
        }
        (readers, refused)
    }

    fn own_namespace(&self, kind: &str) -> Option<u64> {
        let own = self.files.root.process(rustix::process::getpid().as_raw_nonzero().get()).ok()?;
        own.namespace(kind).ok().flatten()
    }

    fn add_sysv(&mut self, table: &mut Table) {
        let rows = self.files.root.sysv_segments(&mut self.files.buffer).unwrap_or_default();
        for row in rows {
            let clock = self.clock();
            // The kernel keeps whole seconds.
            let made = (row.changed > 0).then_some(row.changed as f64 + 1.0);
            let root = &self.files.root;
            let mut alive = |pid| root.process(pid).ok()?.stat(&mut Vec::new()).ok().map(|stat| stat.id);
            let maker = self.segments.pids.maker(row.creator, made, clock, &mut alive);
            let of_job =
                matches!(maker, Maker::Process(id) if self.segments.pids.job.get(&id.pid) == Some(&id));
            let left =
                matches!(maker, Maker::Gone(_)) && made.is_none_or(|made| made >= self.settings.started_unix);
            if of_job || left || table.used(Key::Sysv(0, row.id)) {
                table.sysv(&row);
            }
        }
    }

    /// Pages of what no descriptor leads to: by map_files where that is allowed, else by its mappers' page tables.
    fn find_pages(&mut self, table: &mut Table, readers: &[(Reader, bool)]) {
        let areas = table.unresolved();
        let mut left = MOST_PAGES;
        let mut seen: HashMap<u32, PagesSeen> = HashMap::new();
        for area in &areas {
            let dir = &readers[area.process as usize].0.dir;
            if table.entries[area.entry as usize].allocated.missing().is_none() {
                continue;
            }
            if self.segments.map_files {
                match dir.mapped_file(&area.range) {
                    Ok(stat) => {
                        table.resolve(area.entry, &stat);
                        continue;
                    }
                    Err(error) => self.segments.map_files = error.missing() != Missing::NoPermission,
                }
            }
            let pages = (area.range.end - area.range.start).div_ceil(4096);
            let size = table.entries[area.entry as usize].size;
            // A mapping far into a sparse file makes it look as large as that.
            if pages > left || size / 4096 > MOST_PAGES {
                continue;
            }
            left -= pages;
            let mut pages = seen.remove(&area.entry).unwrap_or_else(|| PagesSeen::new(size));
            // Of a process that ended, or that this user may not look into, nothing is known: not zero.
            if dir.shared_pages(&area.range, area.offset, &mut pages).is_ok() || pages.bytes() > 0 {
                seen.insert(area.entry, pages);
            }
        }
        for (at, pages) in seen {
            let entry = &mut table.entries[at as usize];
            if entry.allocated.missing().is_some() {
                entry.allocated = Measured::Known(Bytes(pages.bytes()));
                entry.at_least = true;
            }
        }
    }

    fn clock(&self) -> Clock {
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        Clock {
            boot: seconds(ClockId::Realtime) - seconds(ClockId::Boottime),
            ticks: rustix::param::clock_ticks_per_second() as f64,
        }
    }

    /// Makers, and what was there before the job.
    fn judge(&mut self, table: &Table, readers: &[(Reader, bool)]) -> Vec<Segment> {
        let clock = self.clock();
        let ids: Vec<ProcessId> = readers.iter().map(|(reader, _)| reader.id).collect();
        let mut makers = HashMap::new();
        // The same few pids stand in very many names.
        let mut living: HashMap<i32, Option<ProcessId>> = HashMap::new();
        let (root, buffer) = (&self.files.root, &mut self.files.buffer);
        let mut alive = |pid: i32| {
            *living
                .entry(pid)
                .or_insert_with(|| root.process(pid).ok()?.stat(buffer).ok().map(|stat| stat.id))
        };
        let mut judged = Vec::with_capacity(table.entries.len());
        for entry in &table.entries {
            let sysv = entry.kind == SegmentKind::Sysv;
            let made = if sysv { entry.made.map(|made| made + 1.0) } else { entry.made };
            let creator = match entry.pid {
                Some(pid) => Measured::Known(Creator {
                    maker: self.segments.pids.maker(pid, made, clock, &mut alive),
                    by: if sysv { CreatorSource::Kernel } else { CreatorSource::Name },
                }),
                None => {
                    let remembered =
                        self.segments.makers.get(&entry.key).filter(|maker| maker.missing().is_none());
                    let users = || {
                        let numbers =
                            table.sets.members(entry.mappers).iter().chain(table.sets.members(entry.openers));
                        numbers.map(|&number| ids[number as usize])
                    };
                    let creator = remembered.copied().unwrap_or_else(|| by_users(users(), made, clock));
                    if makers.len() < MOST_MAKERS {
                        makers.insert(entry.key, creator);
                    }
                    creator
                }
            };
            judged.push(Judged {
                entry,
                creator,
                before: made.is_some_and(|made| made + FILE_CLOCK_S < self.settings.started_unix),
                outsiders: entry.attached.map_or(Measured::default(), |attached| {
                    Measured::Known(attached > u64::from(entry.lines))
                }),
            });
        }
        let rows = group(&judged, &table.sets, &ids);
        self.segments.makers = makers;
        rows
    }
}

fn shm(filesystems: &[FilesystemReading]) -> impl Iterator<Item = &FilesystemReading> {
    filesystems.iter().filter(|reading| reading.used_for == FilesystemUse::Shm)
}

fn shares(process: &ProcessReading) -> bool {
    process.memory.as_known().is_some_and(|memory| memory.shared.0 > 0)
}
