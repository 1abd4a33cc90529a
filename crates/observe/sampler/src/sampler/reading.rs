//! One process in one tick: the cheap files always, mappings and links when they are worth their cost.

use super::files::Files;
use super::membership::{describe, whole_files, Membership};
use super::meter::{thread_cpu_ns, Meter};
use super::nearness::{near, Nearness};
use super::news::News;
use crate::forecast::{Counted, Signs};
use crate::member::{Counting, Member, Quiet};
use crate::places::Places;
use ullage_kernel::process::cgroup::lines_of_interest;
use ullage_kernel::ProcessDir;
use ullage_model::process::DescriptorKinds;
use ullage_model::{
    At, Descriptors, Ending, EventKind, Mappings, Measured, Missing, ProcessFacts, ProcessMemory,
    ProcessReading, ProcessState,
};

/// Limits and cgroups of a process are read again after this many seconds; those of a young one, which may still be put
/// where it shall run, after a second and four times its age.
const SETTINGS_EVERY_S: f64 = 30.0;
/// How long after its first sight it is asked what a process waited for a core: a start is over by then, on a machine that is
/// busier by far than it has cores.
const YOUNG_S: f64 = 120.0;
/// A process that moved without telling signs is counted again after this many seconds; a young one, which loads
/// its libraries, after its age and two more.
const RECOUNT_MOVED_S: f64 = 30.0;
/// And one that did not move at all.
const RECOUNT_CALM_S: f64 = 300.0;
/// A count of mappings takes at most so much of one tick, CPU nanoseconds: twice what the default limit of 65,530 takes. Of more
/// mappings the count goes on at later ticks.
const PART_NS: f64 = 0.1e9;
/// And is not gone on with for less.
const LEAST_PART_NS: f64 = 1e6;
/// Left in the bucket by the first count of a forked process, nanoseconds: its mappings are its parent's, and where a
/// thousand are forked at once, they are counted as time goes by.
const INHERITED_CAN_WAIT_NS: f64 = 0.15e9;
/// Links of more descriptors than this are not read: it would take half a second.
const MOST_LINKS: u64 = 200_000;

/// What a reading of one process needs.
pub(super) struct Reader<'a> {
    pub(super) files: &'a mut Files,
    pub(super) news: &'a mut News,
    pub(super) meter: &'a mut Meter,
    pub(super) membership: &'a mut Membership,
    pub(super) nearness: &'a Nearness,
    pub(super) places: &'a Places,
    pub(super) now: At,
    /// With mappings and links.
    pub(super) deep: bool,
}

impl Reader<'_> {
    /// None where the process is gone.
    pub(super) fn read(&mut self, member: &mut Member) -> Option<ProcessReading> {
        let (process, was_open) = match member.files.take() {
            Some(files) => (files, true),
            None => (self.files.root.process(member.id.pid).ok()?, false),
        };
        let reading = self.read_open(&process, member);
        member.files = was_open.then_some(process);
        reading
    }

    fn read_open(&mut self, process: &ProcessDir, member: &mut Member) -> Option<ProcessReading> {
        let now = self.now;
        let stat = process.stat(&mut self.files.buffer).ok().filter(|stat| stat.id == member.id)?;
        let (image, exit_code) = (stat.program, stat.exit_code);
        let renamed = stat.comm != member.comm.as_bytes();
        let quiet = Quiet::of(&stat);
        let mut reading = ProcessReading {
            id: stat.id,
            parent: stat.parent,
            state: stat.state,
            comm: if renamed { String::from_utf8_lossy(stat.comm).into_owned() } else { member.comm.clone() },
            threads: stat.threads,
            cpu: stat.cpu,
            minor_faults: stat.minor_faults,
            major_faults: stat.major_faults,
            memory: Measured::Missing(Missing::Vanished),
            descriptors: Measured::Missing(Missing::Vanished),
            mappings: Measured::Missing(Missing::Vanished),
            exclusive: Measured::Missing(Missing::Vanished),
            run_delay_ns: Measured::Missing(Missing::NotAsked),
        };
        member.parent = stat.parent;
        if matches!(reading.state, ProcessState::Zombie | ProcessState::Dead) {
            if member.ending.is_none() {
                member.ending = Some(ending_of_zombie(process, exit_code, &mut self.files.buffer));
            }
            return Some(reading);
        }
        if renamed || (image != 0 && member.image != 0 && image != member.image) {
            member.comm.clone_from(&reading.comm);
            if image != member.image || image == 0 {
                self.executed(process, member);
            }
            self.membership.roles_moved = true;
        }
        let memory = self.sizes(process, member, quiet);
        let count = process.descriptor_count();
        reading.memory = memory;
        if memory == Measured::Missing(Missing::Vanished) {
            // Ending, and not a zombie yet: what is left of its descriptors and mappings says nothing.
            return Some(reading);
        }
        reading.mappings = Measured::Missing(Missing::NotAsked);
        reading.exclusive = Measured::Missing(Missing::NotAsked);
        if now.since(member.joined_at) <= YOUNG_S {
            let delay = process.run_delay(&mut self.files.buffer);
            reading.run_delay_ns = delay.map_or_else(Measured::default, Measured::Known);
        }
        let memory = memory.known().unwrap_or_default();
        let signs = self.signs(member, &memory, count.as_ref().copied().unwrap_or(0));
        member.address_space.push(now, memory.virtual_size.0);
        reading.descriptors = match count {
            Ok(count) => {
                member.descriptors.push(now, count);
                let kinds = self.kinds(process, member, count);
                Measured::Known(Descriptors { count, kinds })
            }
            Err(error) => Measured::Missing(error.missing()),
        };
        if self.deep && self.wants_count(member, signs) {
            reading.mappings = self.count_mappings(process, member, signs);
        }
        let estimate = member.estimate(signs);
        if let Some(estimate) = estimate {
            member.mappings.push(now, estimate);
        }
        self.refresh_settings(process, member);
        Some(reading)
    }

    /// From `status`, or as they were read before where `stat` shows that nothing moved since.
    fn sizes(&mut self, process: &ProcessDir, member: &mut Member, quiet: Quiet) -> Measured<ProcessMemory> {
        if let Some(memory) = member.sizes_unmoved(self.now, quiet) {
            return Measured::Known(memory);
        }
        member.sizes = None;
        match process.status(&mut self.files.buffer) {
            Ok(status) => status.memory.map_or(Measured::Missing(Missing::Vanished), |memory| {
                member.sizes = Some((self.now, quiet, memory));
                Measured::Known(memory)
            }),
            Err(error) => Measured::Missing(error.missing()),
        }
    }

    fn signs(&self, member: &Member, memory: &ProcessMemory, descriptors: u64) -> Signs {
        Signs {
            shm_inodes: self.places.shm_inodes(member.mount_namespace),
            shared_pages: memory.shared.0 / 4096,
            virtual_pages: memory.virtual_size.0 / 4096,
            descriptors,
        }
    }

    /// Another program runs in it: it is described anew, and nothing counted before holds.
    fn executed(&mut self, process: &ProcessDir, member: &mut Member) {
        let Some(described) = describe(process, member.id, &mut self.files.buffer) else { return };
        let before = member.program;
        self.membership.identify_program(process, member, &described, &mut self.files.buffer);
        let facts = described.facts;
        member.limits = facts.limits;
        member.counted = None;
        member.counting = None;
        member.counted_at = None;
        member.sizes = None;
        member.settings_at = self.now;
        // A wrapper joins a cgroup first and then becomes the program that shall run there.
        let moved = self.moved_to(member, &facts.cgroups);
        if moved || before != member.program || !member.role_exact {
            member.role_exact &= before == member.program;
            self.describe_again(member, facts);
        }
    }

    /// Tells what is known of a member once more, after it changed.
    fn describe_again(&mut self, member: &Member, facts: ProcessFacts) {
        let (role, forked_from) = (member.role.clone(), member.forked_from);
        let facts = Box::new(ProcessFacts { role, forked_from, ..facts });
        self.news.say(self.now, EventKind::ProcessSeen { facts });
    }

    /// Whether it is in other cgroups than before; from now on these are watched too.
    fn moved_to(&mut self, member: &mut Member, cgroups: &[String]) -> bool {
        if cgroups.is_empty() || cgroups == member.cgroups {
            return false;
        }
        if let Some(hidden) = self.membership.groups.watch(cgroups) {
            self.news.not_seen(self.now, hidden);
        }
        member.cgroups = cgroups.to_vec();
        true
    }

    fn kinds(&mut self, process: &ProcessDir, member: &mut Member, count: u64) -> Measured<DescriptorKinds> {
        let near = near(count, member.open_files());
        if !self.deep
            || count > MOST_LINKS
            || !member.kinds_stale(count)
            || !self.meter.allows(self.meter.each_link.expect(count), near)
        {
            return Measured::Missing(Missing::NotAsked);
        }
        let before = thread_cpu_ns();
        let kinds = process.descriptor_kinds(MOST_LINKS);
        let cost = (thread_cpu_ns() - before) as f64;
        self.meter.spend(cost);
        self.meter.each_link.took(count, 100, cost);
        member.kinds_at_count = Some(count);
        kinds.map_or_else(|error| Measured::Missing(error.missing()), Measured::Known)
    }

    fn wants_count(&self, member: &Member, signs: Signs) -> bool {
        let now = self.now;
        let limit = self.nearness.max_map_count.at().unwrap_or(u64::MAX);
        if let Some(counting) = &member.counting {
            // Beyond what every process is given, it goes on as fast as a count that is made again and again may.
            let apart = now.since(member.joined_at);
            let near = near(counting.count.so_far(), self.nearness.max_map_count) && signs != counting.signs;
            return self.meter.room(near) >= LEAST_PART_NS
                && (near || counting.spent_ns < PART_NS || self.meter.sustains(counting.spent_ns, apart, 1));
        }
        let Some(counted) = member.counted else {
            // Never counted: once at first sight, again later where it could not be read.
            let left = if member.forked { INHERITED_CAN_WAIT_NS } else { 0.0 };
            return member.counted_at.is_none_or(|at| now.since(at) >= RECOUNT_MOVED_S)
                && self.meter.allows(LEAST_PART_NS + left, false);
        };
        let estimate = counted.estimate(signs);
        let age = now.since(counted.at);
        let moved = signs != counted.signs;
        let again = (counted.at.since(member.joined_at) + 2.0).min(RECOUNT_MOVED_S);
        let due = age >= if moved { again } else { RECOUNT_CALM_S };
        let cost = self.meter.each_mapping.expect(estimate);
        let near = near(estimate, self.nearness.max_map_count);
        // A due recount pays for itself only when all of them are seldom enough for the share. One that costs more than is
        // ever saved up is made in parts.
        let affordable = self.meter.sustains(cost, age, self.membership.members().len());
        (counted.stale(estimate, limit) && self.meter.allows(cost.min(PART_NS), near))
            || (due && affordable && self.meter.allows(cost.min(PART_NS), false))
    }

    fn count_mappings(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        signs: Signs,
    ) -> Measured<Mappings> {
        let near = near(member.estimate(signs).unwrap_or(0), self.nearness.max_map_count);
        let part_ns = self.meter.room(near).clamp(LEAST_PART_NS, PART_NS);
        let before = thread_cpu_ns();
        let begun = match member.counting.take() {
            Some(counting) => Ok(counting),
            None => process.count_mappings().map(|count| Counting { count, signs, spent_ns: 0.0 }),
        };
        let (mut reads, buffer) = (0, &mut self.files.maps);
        let result = begun.and_then(|mut counting| {
            let done = counting.count.go_on(buffer, || {
                reads += 1;
                reads % 16 != 0 || ((thread_cpu_ns() - before) as f64) < part_ns
            })?;
            Ok((counting, done))
        });
        let cost = (thread_cpu_ns() - before) as f64;
        self.meter.spend(cost);
        member.counted_at = Some(self.now);
        let (counting, mappings) = match result {
            Ok((mut counting, None)) => {
                counting.spent_ns += cost;
                member.counting = Some(counting);
                return Measured::Missing(Missing::NotAsked);
            }
            Ok((counting, Some(mappings))) => (counting, mappings),
            Err(error) => return Measured::Missing(error.missing()),
        };
        self.meter.each_mapping.took(mappings.count, 1000, counting.spent_ns + cost);
        member.counted = Some(match member.counted {
            Some(counted) => counted.next(self.now, mappings.count, counting.signs),
            None => Counted::first(self.now, mappings.count, counting.signs),
        });
        member.data_files = whole_files(&self.files.root, counting.count.data_files());
        Measured::Known(mappings)
    }

    fn refresh_settings(&mut self, process: &ProcessDir, member: &mut Member) {
        let now = self.now;
        let soon = self.nearness.process_left(member).is_some_and(|left| left < 5.0);
        let settled = 1.0 + 4.0 * member.settings_at.since(member.joined_at);
        let due = now.since(member.settings_at) >= if soon { 1.0 } else { SETTINGS_EVERY_S.min(settled) };
        if !due {
            return;
        }
        member.settings_at = now;
        if let Ok(limits) = process.limits(&mut self.files.buffer) {
            if member.limits != Measured::Known(limits) {
                member.limits = Measured::Known(limits);
                self.news.say(now, EventKind::LimitsChanged { id: member.id, limits });
            }
        }
        if process.cgroup(&mut self.files.buffer).is_ok() {
            let cgroups = lines_of_interest(&self.files.buffer);
            if self.moved_to(member, &cgroups) {
                if let Some(described) = describe(process, member.id, &mut self.files.buffer) {
                    self.describe_again(member, described.facts);
                }
            }
        }
    }
}

/// The kernel prints 0 as exit_code to whoever may not ptrace the process, so that 0 needs the same user to be believed.
pub(super) fn ending_of_zombie(
    process: &ProcessDir,
    exit_code: i32,
    buffer: &mut Vec<u8>,
) -> Measured<Ending> {
    let me = rustix::process::geteuid();
    let allowed = me.is_root() || process.status(buffer).is_ok_and(|status| status.uid == Some(me.as_raw()));
    if exit_code != 0 || allowed {
        Measured::Known(Ending::from_wait_status(exit_code))
    } else {
        Measured::Missing(Missing::NoPermission)
    }
}
