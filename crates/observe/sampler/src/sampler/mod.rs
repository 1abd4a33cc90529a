//! The tick: discovery, readings, roles and events in one pass, and when to look again.

mod cost;
mod membership;
mod nearness;
mod neighbours;
mod reading;
mod segments;
mod surveying;

use self::cost::{own_cost, own_files, watching_cpu_ns};
use self::membership::GONE;
use self::nearness::sooner;
use self::reading::ending_of_zombie;
use crate::budget::Budget;
use crate::forecast::Trend;
use crate::groups::Groups;
use crate::job::Job;
use crate::learned::Learned;
use crate::member::Member;
use crate::pace::{jitter, Pace};
use crate::places::Places;
use crate::roles::{self, Generations};
use crate::segments::Segments;
use crate::settings::SamplerSettings;
use crate::survey::schedule::Schedule;
use std::collections::HashMap;
use std::time::Duration;
use ullage_kernel::host::kmsg::{KernelLog, KernelNews};
use ullage_kernel::root::DESCRIPTORS_KEPT;
use ullage_kernel::{KernelError, KernelRoot, ProcessDir};
use ullage_model::{
    AgentMessage, At, Ending, Event, EventKind, Limit, Measured, ProcessId, ProcessState, Role, Sample,
};

/// After so many seconds a job has settled.
const SETTLED_S: f64 = 5.0;

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
    segments: Segments,
    neighbours: neighbours::Looks,
    schedule: Schedule,
    /// CPU time of this process when the last tick was read.
    cpu_at_end: Option<u64>,
    /// Cost of a tick without what is not read at every tick, nanoseconds, smoothed.
    tick_ns: f64,
    /// Costs of one mapping counted, one link read.
    each_mapping: Learned,
    each_link: Learned,
    max_map_count: Limit,
    trends: HashMap<(u8, String), Trend>,
    /// Seconds until a budget is met that others hold.
    budget_left: Option<f64>,
    forks: Option<u64>,
    events: Vec<Event>,
    pending_roles: HashMap<i32, Role>,
    /// Something moved that roles are told by.
    roles_moved: bool,
    generations: Generations,
    /// Members whose files may still be kept open.
    to_keep: u64,
    own: Option<ProcessDir>,
    slow_told: bool,
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
            segments: Segments::default(),
            neighbours: neighbours::Looks::default(),
            schedule: Schedule::default(),
            cpu_at_end: None,
            tick_ns: 0.0,
            each_mapping: Learned::guess(1200.0),
            each_link: Learned::guess(1200.0),
            max_map_count,
            trends: HashMap::new(),
            budget_left: None,
            forks: None,
            events: Vec::new(),
            pending_roles: HashMap::new(),
            roles_moved: true,
            generations: Generations::default(),
            to_keep: members_kept_open(),
            own: own_files(),
            slow_told: false,
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

    /// A quick look once more when the run is over, with what it leaves in shared memory.
    pub fn last_look(&mut self, now: At) -> Tick {
        self.segments.last_look = true;
        self.look(now, false)
    }

    /// Whether one look more, between two ticks, is within the budget: as near to a limit.
    pub fn may_look(&self) -> bool {
        self.budget.allows(self.tick_ns, true)
    }

    /// Whether ticks may follow faster than usual for something that can wait: none of a large job's.
    pub fn may_hurry(&self) -> bool {
        self.budget.pace(self.tick_ns) <= self.settings.interval
    }

    /// What the job has used of a budget that the sampler does not read itself: it sets the pace as any limit does, from
    /// the next tick on.
    pub fn used_of_budget(&mut self, now: At, used: u64, limit: u64) {
        self.budget_left = self.trend(now, 6, "", used, Limit::At(limit));
    }

    /// The agent in process `pid` said something: its role may be known exactly now. Told as events of the next tick.
    pub fn agent_said(&mut self, pid: i32, message: &AgentMessage) {
        if let Some(role) = roles::role_by_agent(message) {
            self.job.admit(&self.root, pid);
            self.pending_roles.insert(pid, role);
            self.roles_moved = true;
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
        let cpu_before = watching_cpu_ns(self.settings.whole_process);
        // What was done with the last tick belongs to it.
        let between_ns = cpu_before.saturating_sub(self.cpu_at_end.unwrap_or(cpu_before)) as f64;
        self.budget.update(now.0, cpu_before);
        let mut ended = Vec::new();
        if let Some(group) = self.settings.own_cgroup.clone() {
            for pid in self.groups.processes(&self.root, &group, &mut self.buffer) {
                self.job.admit(&self.root, pid);
            }
        }
        self.groups.begin(&self.root, &mut self.buffer);
        let looking = watching_cpu_ns(self.settings.whole_process);
        let changes = self.job.look(&self.root, now);
        let known = changes.joined.is_empty();
        for id in changes.left {
            self.leave(id, now, &mut ended);
        }
        for id in changes.joined {
            self.join(id, now, &mut ended);
        }
        // Admitted ones (agent, cgroup) are members of the job that no listing reported.
        let unseen = |id: &ProcessId| self.members.get(&id.pid).is_none_or(|member| member.id != *id);
        for id in self.job.members().filter(unseen).collect::<Vec<_>>() {
            self.join(id, now, &mut ended);
        }
        // What is read once in the life of a process is no part of what a tick costs.
        let mut spent_ns = if known {
            0.0
        } else {
            watching_cpu_ns(self.settings.whole_process).saturating_sub(looking) as f64
        };

        let through = self.representatives();
        let filesystems = self.places.read(&self.root, &through);
        let mut time_left = sooner(self.budget_left, self.room_left(now, &filesystems));
        let mut processes = Vec::with_capacity(self.members.len());
        let mut pids: Vec<i32> = self.members.keys().copied().collect();
        pids.sort_unstable();
        for pid in pids {
            let Some(mut member) = self.members.remove(&pid) else { continue };
            if let Some(reading) = self.read_process(&mut member, now, deep, &mut spent_ns) {
                time_left = sooner(time_left, self.process_left(&member));
                processes.push(reading);
                self.members.insert(pid, member);
            } else {
                // It ended between the listing and the reading; the next listing would not tell.
                self.job.forget(member.id);
                self.let_go(&member, now);
                ended.push(Ended { id: member.id, ending: member.ending.unwrap_or(GONE) });
            }
        }
        time_left = sooner(time_left, self.tasks_left(now, &processes));
        let survey = if deep { self.survey_pages(now, &mut processes, &mut spent_ns) } else { Vec::new() };
        self.roles(now);
        let segments = self.read_segments(now, &through, &filesystems, &processes, deep, &mut spent_ns);
        let cgroups = self.groups.read(&self.root, &mut self.buffer);
        time_left = sooner(time_left, self.groups_left(now, &cgroups));
        let host = self.root.host(&mut self.buffer);
        time_left = sooner(time_left, self.host_left(now, &host));
        if deep {
            self.look_at_neighbours(now, &host, &mut spent_ns);
        }
        let forks = self.root.forks(&mut self.buffer).known();
        let forks_since_last =
            forks.zip(self.forks).map_or(0, |(forks, before)| forks.saturating_sub(before));
        self.forks = forks.or(self.forks);
        self.kernel_log(now);

        let cpu_ns = watching_cpu_ns(self.settings.whole_process);
        let cost = own_cost(self.own.as_ref(), cpu_ns, &mut self.buffer);
        self.budget.update(now.0, cost.cpu_ns);
        self.cpu_at_end = Some(cost.cpu_ns);
        let cheap_ns = (between_ns + cost.cpu_ns.saturating_sub(cpu_before) as f64 - spent_ns).max(0.0);
        self.tick_ns = smoothed(self.tick_ns, cheap_ns);
        let affordable = self.budget.pace(self.tick_ns);
        self.tell_pace(now, affordable);
        let pace = Pace {
            interval: self.settings.interval,
            since_start: now.seconds(),
            time_left,
            affordable,
            exhausted: !self.budget.allows(0.0, true),
        };
        Tick {
            sample: Sample {
                at: now,
                processes,
                host,
                filesystems,
                cgroups,
                segments,
                survey,
                forks_since_last,
                cost,
            },
            events: std::mem::take(&mut self.events),
            ended,
            next_after: jitter(pace.next_after(), &mut self.jitter),
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

    /// Says once that the job is looked at less often than was asked for. Not in its first seconds, when all is new.
    fn tell_pace(&mut self, now: At, affordable: Duration) {
        let asked = self.settings.interval;
        if self.slow_told || now.seconds() < SETTLED_S || affordable < asked.mul_f64(1.5) {
            return;
        }
        self.slow_told = true;
        let text = format!(
            "The job was looked at less often than every {} s, about every {:.1} s: a look at its {} processes takes {:.1} ms, and \
             watching may take {} % of a core.",
            asked.as_secs_f64(),
            affordable.as_secs_f64(),
            self.members.len(),
            self.tick_ns / 1e6,
            self.settings.cpu_share * 100.0,
        );
        self.not_seen(now, text);
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

/// Half of the descriptors that this process may open: the others are for pidfds and agents, one each a process.
fn members_kept_open() -> u64 {
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    open_files.unwrap_or(u64::MAX) / 2 / DESCRIPTORS_KEPT
}

/// A single dear tick (a part of the recording was written) moves it little; that is paid from what was saved.
fn smoothed(before: f64, now: f64) -> f64 {
    if before == 0.0 {
        now
    } else {
        0.7 * before + 0.3 * now.min(2.0 * before)
    }
}

fn log_unreadable(error: &KernelError) -> String {
    format!(
        "The kernel log cannot be read ({}): OOM kills are known from cgroup counters only.",
        error.missing_feature().reason()
    )
}
