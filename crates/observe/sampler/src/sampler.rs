//! The tick: discovery, readings, roles and events in one pass, and when to look again.

use crate::budget::Budget;
use crate::forecast::{Counted, Signs, Trend};
use crate::groups::Groups;
use crate::job::Job;
use crate::member::Member;
use crate::pace::{jitter, Pace};
use crate::places::Places;
use crate::roles::{self, Seen};
use crate::settings::SamplerSettings;
use rustix::time::{clock_gettime, ClockId};
use std::collections::HashMap;
use std::time::Duration;
use ullage_kernel::host::kmsg::{KernelLog, KernelNews};
use ullage_kernel::process::cgroup::lines_of_interest;
use ullage_kernel::{KernelError, KernelRoot, ProcessDir};
use ullage_model::{
    AgentMessage, At, Bytes, CgroupReading, Cost, Descriptors, Ending, Event, EventKind, FilesystemReading,
    HostReading, Limit, Measured, Missing, ProcessFacts, ProcessId, ProcessMemory, ProcessReading,
    ProcessState, Role, Sample,
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

/// One tick's harvest.
#[derive(Debug)]
pub struct Tick {
    /// What was read.
    pub sample: Sample,
    /// What happened since the last tick; processes before anything that names them.
    pub events: Vec<Event>,
    /// Processes of the job that are gone since the last tick.
    pub ended: Vec<Ended>,
    /// When to call again.
    pub next_after: Duration,
}

/// A process that is no longer there. Whoever waits for processes knows better how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub id: ProcessId,
    /// From its zombie's stat, where one was seen.
    pub ending: Measured<Ending>,
}

/// Watches one job.
#[derive(Debug)]
pub struct Sampler {
    root: KernelRoot,
    settings: SamplerSettings,
    main: ProcessId,
    job: Job,
    members: HashMap<i32, Member>,
    groups: Groups,
    places: Places,
    log: Option<KernelLog>,
    budget: Budget,
    /// Measured cost of one mapping or link, nanoseconds.
    each_ns: f64,
    max_map_count: Limit,
    trends: HashMap<(u8, String), Trend>,
    forks: Option<u64>,
    events: Vec<Event>,
    pending_roles: HashMap<i32, Role>,
    told: Vec<String>,
    jitter: u64,
    buffer: Vec<u8>,
    maps_buffer: Vec<u8>,
}

impl Sampler {
    /// Starts to watch. Reads nothing of the job yet, but remembers the end of the kernel log.
    pub fn new(root: KernelRoot, settings: SamplerSettings, main: ProcessId) -> Sampler {
        let mut buffer = Vec::new();
        let log = settings.kernel_log.then(|| KernelLog::open(&root));
        let groups = Groups::find(&root, &mut buffer);
        let max_map_count =
            root.sysctl("vm/max_map_count", &mut buffer).known().map_or(Limit::Unlimited, Limit::At);
        let mut sampler = Sampler {
            job: Job::new(main, settings.reaper),
            members: HashMap::new(),
            groups,
            places: Places::new(settings.temporary.clone()),
            log: None,
            budget: Budget::new(settings.cpu_share),
            each_ns: 1200.0,
            max_map_count,
            trends: HashMap::new(),
            forks: None,
            events: Vec::new(),
            pending_roles: HashMap::new(),
            told: Vec::new(),
            jitter: 0x9E37_79B9_7F4A_7C15 ^ (main.start.0 << 20) ^ main.pid as u64,
            buffer,
            maps_buffer: Vec::new(),
            root,
            settings,
            main,
        };
        match log {
            Some(Ok(log)) => sampler.log = Some(log),
            Some(Err(error)) => sampler.not_seen(At(0), log_unreadable(&error)),
            None => {}
        }
        sampler
    }

    /// One tick. `now` must not run backwards.
    pub fn tick(&mut self, now: At) -> Tick {
        self.look(now, true)
    }

    /// A quick look at everything but mappings and links, for the moment a process ended or failed: the counters
    /// that tell why are in it.
    pub fn final_look(&mut self, now: At) -> Tick {
        self.look(now, false)
    }

    /// The agent in process `pid` said something: its role may be known exactly now. Told as events of the next tick.
    pub fn agent_said(&mut self, pid: i32, message: &AgentMessage) {
        if let Some(role) = roles::role_by_agent(message) {
            self.job.admit(&self.root, pid);
            self.pending_roles.insert(pid, role);
        }
    }

    /// A child of the reaper that is not of the job.
    pub fn ignore(&mut self, pid: i32) {
        self.job.ignore(pid);
    }

    /// The identity of a pid of the job, read now; the process becomes a member by this.
    pub fn identify(&mut self, pid: i32) -> Option<ProcessId> {
        self.job.admit(&self.root, pid)
    }

    /// Processes of the job that were there at the last tick.
    pub fn alive(&self) -> Vec<ProcessId> {
        let mut alive: Vec<ProcessId> = self.members.values().map(|member| member.id).collect();
        alive.sort_unstable();
        alive
    }

    /// Role and comm of a process that was there at the last tick.
    pub fn describe(&self, id: ProcessId) -> Option<(Role, String)> {
        let member = self.members.get(&id.pid).filter(|member| member.id == id)?;
        Some((member.role.clone(), member.comm.clone()))
    }

    /// How a process ended, from its zombie, if it is one at this moment.
    pub fn zombie_ending(&mut self, id: ProcessId) -> Option<Measured<Ending>> {
        let process = self.root.process(id.pid).ok()?;
        let stat = process.stat(&mut self.buffer).ok().filter(|stat| stat.id == id)?;
        let (state, exit_code) = (stat.state, stat.exit_code);
        (state == ProcessState::Zombie).then(|| ending_of_zombie(&process, exit_code, &mut self.buffer))
    }

    fn look(&mut self, now: At, deep: bool) -> Tick {
        let cpu_before = process_cpu_ns();
        self.budget.update(now.0, cpu_before);
        let mut ended = Vec::new();
        if let Some(group) = self.settings.own_cgroup.clone() {
            for pid in self.groups.processes(&self.root, &group, &mut self.buffer) {
                self.job.admit(&self.root, pid);
            }
        }
        let changes = self.job.look(&self.root);
        for id in changes.left {
            self.leave(id, &mut ended);
        }
        for id in changes.joined {
            self.join(id, now, &mut ended);
        }
        // Admitted ones (agent, cgroup) are members of the job that no listing reported.
        let unseen = |id: &ProcessId| self.members.get(&id.pid).is_none_or(|member| member.id != *id);
        for id in self.job.members().filter(unseen).collect::<Vec<_>>() {
            self.join(id, now, &mut ended);
        }

        let through = self.representatives();
        let filesystems = self.places.read(&self.root, &through);
        let mut time_left = self.room_left(now, &filesystems);
        let mut processes = Vec::with_capacity(self.members.len());
        let mut pids: Vec<i32> = self.members.keys().copied().collect();
        pids.sort_unstable();
        let mut spent_ns = 0.0;
        for pid in pids {
            let Some(mut member) = self.members.remove(&pid) else { continue };
            if let Some(reading) = self.read_process(&mut member, now, deep, &mut spent_ns) {
                time_left = sooner(time_left, self.process_left(&member));
                processes.push(reading);
                self.members.insert(pid, member);
            } else {
                // It ended between the listing and the reading; the next listing would not tell.
                self.job.forget(member.id);
                ended.push(Ended { id: member.id, ending: member.ending.unwrap_or(GONE) });
            }
        }
        self.roles(now);
        let cgroups = self.groups.read(&self.root, &mut self.buffer);
        time_left = sooner(time_left, self.groups_left(now, &cgroups));
        let host = self.root.host(&mut self.buffer);
        time_left = sooner(time_left, self.host_left(now, &host));
        let forks = self.root.forks(&mut self.buffer).known();
        let forks_since_last =
            forks.zip(self.forks).map_or(0, |(forks, before)| forks.saturating_sub(before));
        self.forks = forks.or(self.forks);
        self.kernel_log(now);

        let cost = own_cost();
        self.budget.update(now.0, cost.cpu_ns);
        let cheap_ns = cost.cpu_ns.saturating_sub(cpu_before) as f64 - spent_ns;
        let pace = Pace {
            interval: self.settings.interval,
            since_start: now.seconds(),
            time_left,
            recovery: self.budget.recovery(cheap_ns),
            exhausted: !self.budget.allows(0.0, true),
        };
        Tick {
            sample: Sample { at: now, processes, host, filesystems, cgroups, forks_since_last, cost },
            events: std::mem::take(&mut self.events),
            ended,
            next_after: jitter(pace.next_after(), &mut self.jitter),
        }
    }

    fn join(&mut self, id: ProcessId, now: At, ended: &mut Vec<Ended>) {
        if let Some(old) = self.members.get(&id.pid).map(|member| member.id).filter(|old| *old != id) {
            self.leave(old, ended);
        }
        let Ok(process) = self.root.process(id.pid) else { return };
        let Some(facts) = self.facts(&process, id) else { return };
        let mut member = Member::new(&facts, now);
        member.mount_namespace = process.namespace("mnt").ok().flatten();
        self.groups.watch(&facts.cgroups);
        self.identify_program(&process, &mut member, &facts.command_line);
        self.members.insert(id.pid, member);
        let role = self.role_from_outside(id.pid);
        if let Some(member) = self.members.get_mut(&id.pid) {
            member.role = role.clone();
        }
        self.say(now, EventKind::ProcessSeen { facts: Box::new(ProcessFacts { role, ..facts }) });
    }

    fn leave(&mut self, id: ProcessId, ended: &mut Vec<Ended>) {
        if self.members.get(&id.pid).is_some_and(|member| member.id == id) {
            let member = self.members.remove(&id.pid);
            ended.push(Ended { id, ending: member.and_then(|member| member.ending).unwrap_or(GONE) });
            self.pending_roles.remove(&id.pid);
        }
    }

    fn facts(&mut self, process: &ProcessDir, id: ProcessId) -> Option<ProcessFacts> {
        let buffer = &mut self.buffer;
        let stat = process.stat(buffer).ok().filter(|stat| stat.id == id)?;
        let (parent, comm) = (stat.parent, String::from_utf8_lossy(stat.comm).into_owned());
        let uid = match process.status(buffer) {
            Ok(status) => status.uid.into(),
            Err(error) => Measured::Missing(error.missing()),
        };
        let limits = match process.limits(buffer) {
            Ok(limits) => Measured::Known(limits),
            Err(error) => Measured::Missing(error.missing()),
        };
        let command_line = process.command_line(buffer).unwrap_or_default();
        let cgroups = process.cgroup(buffer).map(|()| lines_of_interest(buffer)).unwrap_or_default();
        Some(ProcessFacts { id, parent, uid, command_line, comm, limits, cgroups, role: Role::Other })
    }

    fn identify_program(&mut self, process: &ProcessDir, member: &mut Member, command_line: &[String]) {
        member.program = roles::program(command_line, &member.comm);
        member.image = process.stat(&mut self.buffer).map_or(0, |stat| stat.program);
        let parent = self.members.get(&member.born_to);
        // Without the right to know the image, the same kind of program counts as forked.
        member.forked = parent.is_some_and(|parent| match (parent.image, member.image) {
            (0, _) | (_, 0) => parent.program == member.program && parent.comm == member.comm,
            (parent, child) => parent == child,
        });
        if parent.is_some_and(|parent| parent.program == roles::Program::Launcher) {
            let rank = process.environment_variable("RANK", &mut self.buffer).ok().flatten();
            member.rank = rank.and_then(|rank| rank.parse().ok());
        }
    }

    fn role_from_outside(&self, pid: i32) -> Role {
        let Some(member) = self.members.get(&pid) else { return Role::Other };
        let parent = self.members.get(&member.born_to);
        let sibling = |other: &&Member| {
            other.born_to == member.born_to && other.id != member.id && other.program == member.program
        };
        let seen = Seen {
            main: member.id == self.main,
            comm: &member.comm,
            program: member.program,
            forked: member.forked,
            parent: parent.map(|parent| parent.program),
            parent_role: parent.map(|parent| &parent.role),
            rank: member.rank,
            elder: false,
            twin: false,
        };
        if !roles::multiprocessing_child(&seen) {
            return roles::role(&seen);
        }
        let (mut elder, mut twin) = (false, false);
        for other in self.members.values().filter(sibling).filter(|other| other.forked == member.forked) {
            let apart = member.id.start.0 as i64 - other.id.start.0 as i64;
            // 50 clock ticks are half a second.
            twin |= apart.abs() <= 50;
            elder |= apart > 50;
        }
        roles::role(&Seen { elder, twin, ..seen })
    }

    /// Decides all roles again; what the agent said stands.
    fn roles(&mut self, now: At) {
        for pid in self.members.keys().copied().collect::<Vec<_>>() {
            let said = self.pending_roles.remove(&pid);
            let Some(member) = self.members.get(&pid) else { continue };
            // A number, once known, is not lost to a message that does not know it.
            let vague =
                said == Some(Role::LoaderWorker(None)) && matches!(member.role, Role::LoaderWorker(Some(_)));
            let (role, exact) = match said {
                _ if member.id == self.main => continue,
                Some(role) if !vague => (role, true),
                _ if member.role_exact || member.ending.is_some() => continue,
                _ => (self.role_from_outside(pid), false),
            };
            let Some(member) = self.members.get_mut(&pid) else { continue };
            member.role_exact |= exact;
            if member.role != role {
                member.role = role.clone();
                let id = member.id;
                self.say(now, EventKind::RoleKnown { id, role });
            }
        }
    }

    fn read_process(
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

    fn signs(&self, member: &Member, memory: &ProcessMemory, descriptors: u64) -> Signs {
        Signs {
            shm_inodes: self.places.shm_inodes(member.mount_namespace),
            shared_pages: memory.shared.0 / 4096,
            virtual_pages: memory.virtual_size.0 / 4096,
            descriptors,
        }
    }

    /// Another program runs in it: it is described anew, and nothing counted before holds.
    fn executed(&mut self, process: &ProcessDir, member: &mut Member, now: At) {
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
                    facts: Box::new(ProcessFacts { role: member.role.clone(), ..facts }),
                },
            );
        }
    }

    fn kinds(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        count: u64,
        deep: bool,
        spent_ns: &mut f64,
    ) -> Measured<ullage_model::process::DescriptorKinds> {
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

    fn wants_count(&self, member: &Member, signs: Signs, now: At, spent_ns: f64) -> bool {
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

    fn count_mappings(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        signs: Signs,
        now: At,
        spent_ns: &mut f64,
    ) -> Measured<ullage_model::Mappings> {
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

    fn refresh_settings(&mut self, process: &ProcessDir, member: &mut Member, now: At) {
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
                self.groups.watch(&cgroups);
                member.cgroups = cgroups;
            }
        }
    }

    /// One living process of each mount namespace, main's first; ullage itself where main is gone.
    fn representatives(&self) -> Vec<(Option<u64>, i32)> {
        let mut found: Vec<(Option<u64>, i32)> = Vec::new();
        let main = self.members.get(&self.main.pid).filter(|main| main.ending.is_none());
        let mut others: Vec<&Member> =
            self.members.values().filter(|member| member.ending.is_none()).collect();
        others.sort_unstable_by_key(|member| member.id);
        for member in main.into_iter().chain(others) {
            if !found.iter().any(|(namespace, _)| *namespace == member.mount_namespace) {
                found.push((member.mount_namespace, member.id.pid));
            }
        }
        if found.is_empty() {
            found.extend(self.settings.reaper.map(|reaper| (None, reaper)));
        }
        found
    }

    fn process_left(&self, member: &Member) -> Option<f64> {
        let address_space = member.limits.as_known().map_or(Limit::Unlimited, |limits| limits.address_space);
        let lefts = [
            member.mappings.time_left(self.max_map_count),
            member.descriptors.time_left(member.open_files()),
            member.address_space.time_left(address_space),
        ];
        lefts.into_iter().fold(None, sooner)
    }

    fn room_left(&mut self, now: At, filesystems: &[FilesystemReading]) -> Option<f64> {
        let mut left = None;
        for filesystem in filesystems {
            let key = filesystem.device.to_string();
            left = sooner(left, self.trend(now, 0, &key, filesystem.used.0, filesystem.size));
            left = sooner(left, self.trend(now, 1, &key, filesystem.inodes_used, filesystem.inodes));
        }
        left
    }

    fn groups_left(&mut self, now: At, groups: &[CgroupReading]) -> Option<f64> {
        let mut left = None;
        for group in groups {
            if let Measured::Known(memory) = &group.memory {
                // What the kernel can give back is no step towards the limit.
                let cache = memory.parts.as_known().map_or(Bytes(0), |parts| parts.inactive_file);
                let used = memory.current.saturating_sub(cache).0;
                left = sooner(left, self.trend(now, 2, &group.path, used, memory.limit));
            }
            if let Measured::Known(pids) = &group.pids {
                left = sooner(left, self.trend(now, 3, &group.path, pids.current, pids.limit));
            }
        }
        left
    }

    fn host_left(&mut self, now: At, host: &HostReading) -> Option<f64> {
        let memory = host.memory.known()?;
        let total = memory.total.saturating_add(memory.swap_total);
        let free = memory.available.saturating_add(memory.swap_free);
        self.trend(now, 4, "", total.saturating_sub(free).0, Limit::At(total.0))
    }

    fn trend(&mut self, now: At, kind: u8, key: &str, used: u64, limit: Limit) -> Option<f64> {
        limit.at()?;
        let trend = self.trends.entry((kind, key.to_owned())).or_default();
        trend.push(now, used);
        trend.time_left(limit)
    }

    fn kernel_log(&mut self, now: At) {
        let Some(log) = &mut self.log else { return };
        let mut news = Vec::new();
        log.poll(&mut news);
        for item in news {
            self.say(
                now,
                match item {
                    KernelNews::OomKill(kill) => EventKind::KernelOomKill(kill),
                    KernelNews::ForkRejected(cgroup) => EventKind::KernelForkRejected { cgroup },
                },
            );
        }
    }

    fn not_seen(&mut self, now: At, text: String) {
        if !self.told.contains(&text) {
            self.told.push(text.clone());
            self.say(now, EventKind::NotSeen { text });
        }
    }

    fn say(&mut self, at: At, what: EventKind) {
        self.events.push(Event { at, what });
    }
}

const GONE: Measured<Ending> = Measured::Missing(Missing::Vanished);

fn near(used: u64, limit: Limit) -> bool {
    limit.at().is_some_and(|limit| used.saturating_mul(10) >= limit.saturating_mul(5))
}

fn sooner(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The kernel prints 0 as exit_code to whoever may not ptrace the process, so that 0 needs the same user to be believed.
fn ending_of_zombie(process: &ProcessDir, exit_code: i32, buffer: &mut Vec<u8>) -> Measured<Ending> {
    let me = rustix::process::geteuid();
    let allowed = me.is_root() || process.status(buffer).is_ok_and(|status| status.uid == Some(me.as_raw()));
    if exit_code != 0 || allowed {
        Measured::Known(Ending::from_wait_status(exit_code))
    } else {
        Measured::Missing(Missing::NoPermission)
    }
}

fn log_unreadable(error: &KernelError) -> String {
    format!(
        "The kernel log cannot be read ({}): OOM kills are known from cgroup counters only.",
        error.missing_feature().reason()
    )
}

fn own_cost() -> Cost {
    // ru_maxrss is in KiB on Linux (getrusage(2)); VmHWM says the same and needs no unsafe call.
    let mut buffer = Vec::new();
    let own = KernelRoot::live().process(rustix::process::getpid().as_raw_nonzero().get());
    let memory = own.and_then(|own| own.status(&mut buffer)).ok().and_then(|status| status.memory);
    Cost { cpu_ns: process_cpu_ns(), peak_rss: memory.map_or(Bytes(0), |memory| memory.peak_resident) }
}

fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
