//! One process in one tick: the cheap files always, mappings and links when they are worth their cost.

use super::cost::thread_cpu_ns;
use super::nearness::near;
use super::Sampler;
use crate::forecast::{Counted, Signs};
use crate::member::Member;
use ullage_kernel::process::cgroup::lines_of_interest;
use ullage_kernel::ProcessDir;
use ullage_model::process::DescriptorKinds;
use ullage_model::{
    At, Descriptors, Ending, EventKind, Mappings, Measured, Missing, ProcessFacts, ProcessMemory,
    ProcessReading, ProcessState,
};

/// Limits and cgroups of a process are read again after this many seconds.
const SETTINGS_EVERY_S: f64 = 30.0;
/// A process that moved without telling signs is counted again after this many seconds; a young one, which loads
/// its libraries, after its age and two more.
const RECOUNT_MOVED_S: f64 = 30.0;
/// And one that did not move at all.
const RECOUNT_CALM_S: f64 = 300.0;
/// Links of more descriptors than this are not read: it would take half a second.
const MOST_LINKS: u64 = 200_000;

impl Sampler {
    pub(super) fn read_process(
        &mut self,
        member: &mut Member,
        now: At,
        deep: bool,
        spent_ns: &mut f64,
    ) -> Option<ProcessReading> {
        let process = self.root.process(member.id.pid).ok()?;
        let stat = process.stat(&mut self.buffer).ok().filter(|stat| stat.id == member.id)?;
        let (image, exit_code) = (stat.program, stat.exit_code);
        let renamed = stat.comm != member.comm.as_bytes();
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
        };
        member.parent = stat.parent;
        if matches!(reading.state, ProcessState::Zombie | ProcessState::Dead) {
            if member.ending.is_none() {
                member.ending = Some(ending_of_zombie(&process, exit_code, &mut self.buffer));
            }
            return Some(reading);
        }
        if renamed || (image != 0 && member.image != 0 && image != member.image) {
            member.comm.clone_from(&reading.comm);
            if image != member.image || image == 0 {
                self.executed(&process, member, now);
            }
        }
        let memory = match process.status(&mut self.buffer) {
            Ok(status) => status.memory.map_or(Measured::Missing(Missing::Vanished), Measured::Known),
            Err(error) => Measured::Missing(error.missing()),
        };
        let count = process.descriptor_count();
        reading.memory = memory;
        if memory == Measured::Missing(Missing::Vanished) {
            // Ending, and not a zombie yet: what is left of its descriptors and mappings says nothing.
            return Some(reading);
        }
        reading.mappings = Measured::Missing(Missing::NotAsked);
        reading.exclusive = Measured::Missing(Missing::NotAsked);
        let memory = memory.known().unwrap_or_default();
        let signs = self.signs(member, &memory, count.as_ref().copied().unwrap_or(0));
        member.address_space.push(now, memory.virtual_size.0);
        reading.descriptors = match count {
            Ok(count) => {
                member.descriptors.push(now, count);
                let kinds = self.kinds(&process, member, count, deep, spent_ns);
                Measured::Known(Descriptors { count, kinds })
            }
            Err(error) => Measured::Missing(error.missing()),
        };
        if deep && self.wants_count(member, signs, now, *spent_ns) {
            reading.mappings = self.count_mappings(&process, member, signs, now, spent_ns);
        }
        if let Some(estimate) = member.estimate(signs) {
            member.mappings.push(now, estimate);
        }
        self.refresh_settings(&process, member, now);
        Some(reading)
    }

    pub(super) fn signs(&self, member: &Member, memory: &ProcessMemory, descriptors: u64) -> Signs {
        Signs {
            shm_inodes: self.places.shm_inodes(member.mount_namespace),
            shared_pages: memory.shared.0 / 4096,
            virtual_pages: memory.virtual_size.0 / 4096,
            descriptors,
        }
    }

    /// Another program runs in it: it is described anew, and nothing counted before holds.
    pub(super) fn executed(&mut self, process: &ProcessDir, member: &mut Member, now: At) {
        let Some(facts) = self.facts(process, member.id) else { return };
        let before = member.program;
        self.identify_program(process, member, &facts.command_line);
        member.limits = facts.limits;
        member.counted = None;
        member.counted_at = None;
        if before != member.program || !member.role_exact {
            member.role_exact = false;
            self.say(
                now,
                EventKind::ProcessSeen {
                    facts: Box::new(ProcessFacts {
                        role: member.role.clone(),
                        forked_from: member.forked_from,
                        ..facts
                    }),
                },
            );
        }
    }

    pub(super) fn kinds(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        count: u64,
        deep: bool,
        spent_ns: &mut f64,
    ) -> Measured<DescriptorKinds> {
        let near = near(count, member.open_files());
        let expected = count as f64 * self.each_ns;
        if !deep
            || count > MOST_LINKS
            || !member.kinds_stale(count)
            || !self.budget.allows(*spent_ns + expected, near)
        {
            return Measured::Missing(Missing::NotAsked);
        }
        let before = thread_cpu_ns();
        let kinds = process.descriptor_kinds(MOST_LINKS);
        *spent_ns += (thread_cpu_ns() - before) as f64;
        member.kinds_at_count = Some(count);
        kinds.map_or_else(|error| Measured::Missing(error.missing()), Measured::Known)
    }

    pub(super) fn wants_count(&self, member: &Member, signs: Signs, now: At, spent_ns: f64) -> bool {
        let limit = self.max_map_count.at().unwrap_or(u64::MAX);
        let Some(counted) = member.counted else {
            // Never counted: once at first sight, again later where it could not be read.
            return member.counted_at.is_none_or(|at| now.since(at) >= RECOUNT_MOVED_S)
                && self.budget.allows(spent_ns + 1e6, false);
        };
        let estimate = counted.estimate(signs);
        let age = now.since(counted.at);
        let moved = signs != counted.signs;
        let again = (counted.at.since(member.joined_at) + 2.0).min(RECOUNT_MOVED_S);
        let due = age >= if moved { again } else { RECOUNT_CALM_S };
        let expected = spent_ns + estimate as f64 * self.each_ns;
        let near = near(estimate, self.max_map_count);
        // A due recount of many mappings pays for itself only when it is seldom enough for the share.
        let affordable = age * self.settings.cpu_share * 1e9 * 0.5 >= estimate as f64 * self.each_ns;
        (counted.stale(estimate, limit) && self.budget.allows(expected, near))
            || (due && affordable && self.budget.allows(expected, false))
    }

    pub(super) fn count_mappings(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        signs: Signs,
        now: At,
        spent_ns: &mut f64,
    ) -> Measured<Mappings> {
        let before = thread_cpu_ns();
        let result = process.mappings(&mut self.maps_buffer);
        let cost = (thread_cpu_ns() - before) as f64;
        *spent_ns += cost;
        member.counted_at = Some(now);
        let mappings = match result {
            Ok(mappings) => mappings,
            Err(error) => return Measured::Missing(error.missing()),
        };
        if mappings.count >= 1000 {
            self.each_ns = (self.each_ns * 0.5 + cost / mappings.count as f64 * 0.5).clamp(100.0, 20_000.0);
        }
        member.counted = Some(match member.counted {
            Some(counted) => counted.next(now, mappings.count, signs),
            None => Counted::first(now, mappings.count, signs),
        });
        Measured::Known(mappings)
    }

    pub(super) fn refresh_settings(&mut self, process: &ProcessDir, member: &mut Member, now: At) {
        let soon = self.process_left(member).is_some_and(|left| left < 5.0);
        let due = now.since(member.settings_at) >= if soon { 1.0 } else { SETTINGS_EVERY_S };
        if !due {
            return;
        }
        member.settings_at = now;
        if let Ok(limits) = process.limits(&mut self.buffer) {
            if member.limits != Measured::Known(limits) {
                member.limits = Measured::Known(limits);
                self.say(now, EventKind::LimitsChanged { id: member.id, limits });
            }
        }
        if process.cgroup(&mut self.buffer).is_ok() {
            let cgroups = lines_of_interest(&self.buffer);
            if cgroups != member.cgroups {
                if let Some(hidden) = self.groups.watch(&cgroups) {
                    self.not_seen(now, hidden);
                }
                member.cgroups = cgroups;
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
