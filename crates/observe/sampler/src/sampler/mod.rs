//! The tick: discovery, readings, roles and events in one pass, and when to look again.
//!
//! Each part has what it needs handed in, and names only parts before it: files, news, meter; nearness to limits;
//! membership; then the readings of processes, segments, pages and neighbours. The tick alone knows them all.

mod files;
mod membership;
mod meter;
mod nearness;
mod neighbours;
mod news;
mod reading;
mod segments;
mod surveying;

pub use self::membership::Ended;

use self::files::Files;
use self::membership::Membership;
use self::meter::Meter;
use self::nearness::{sooner, Nearness};
use self::neighbours::NeighbourReadings;
use self::news::News;
use self::reading::{ending_of_zombie, Reader};
use self::segments::SegmentReader;
use self::surveying::Surveying;
use crate::groups::Groups;
use crate::pace::{jitter, Pace};
use crate::places::Places;
use crate::segments::Segments;
use crate::settings::SamplerSettings;
use std::time::Duration;
use ullage_kernel::host::kmsg::{KernelLog, KernelNews};
use ullage_kernel::{KernelError, KernelRoot};
use ullage_model::{
    AgentMessage, At, Ending, Event, EventKind, Limit, Measured, ProcessId, ProcessReading, ProcessState,
    Role, Sample,
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

/// Watches one job.
#[derive(Debug)]
pub struct Sampler {
    settings: SamplerSettings,
    files: Files,
    news: News,
    meter: Meter,
    nearness: Nearness,
    membership: Membership,
    places: Places,
    log: Option<KernelLog>,
    segments: Segments,
    neighbours: NeighbourReadings,
    surveying: Surveying,
    /// Forks of the machine so far.
    forks: Option<u64>,
    slow_reported: bool,
    jitter: u64,
}

impl Sampler {
    /// Starts to watch. Reads nothing of the job yet, but remembers the end of the kernel log.
    pub fn new(root: KernelRoot, settings: SamplerSettings, main: ProcessId) -> Sampler {
        let (mut files, mut news) = (Files::of(root), News::default());
        let log = settings.kernel_log.then(|| KernelLog::open(&files.root));
        let log = log.and_then(|log| log.map_err(|error| news.not_seen(At(0), log_unreadable(&error))).ok());
        let groups = Groups::find(&files.root, &mut files.buffer);
        let max_map_count = files.root.sysctl("vm/max_map_count", &mut files.buffer).known();
        Sampler {
            news,
            meter: Meter::new(settings.cpu_share, settings.whole_process),
            nearness: Nearness::new(max_map_count.map_or(Limit::Unlimited, Limit::At)),
            membership: Membership::new(main, settings.reaper, groups),
            places: Places::new(settings.temporary.clone()),
            log,
            segments: Segments::default(),
            neighbours: NeighbourReadings::default(),
            surveying: Surveying::new(settings.cpu_share),
            forks: None,
            slow_reported: false,
            jitter: 0x9E37_79B9_7F4A_7C15 ^ (main.start.0 << 20) ^ main.pid as u64,
            files,
            settings,
        }
    }

    /// One tick. `now` must not run backwards.
    pub fn tick(&mut self, now: At) -> Tick {
        self.sample(now, true)
    }

    /// A quick look at everything but mappings and links, for the moment a process ended or failed: the counters
    /// that tell why are in it.
    pub fn final_sample(&mut self, now: At) -> Tick {
        self.sample(now, false)
    }

    /// A quick look once more when the run is over, with what it leaves in shared memory.
    pub fn last_sample(&mut self, now: At) -> Tick {
        self.segments.last_sample = true;
        self.sample(now, false)
    }

    /// Whether one look more, between two ticks, is within the budget: as near to a limit.
    pub fn may_sample(&self) -> bool {
        self.meter.allows_a_tick()
    }

    /// Whether ticks may follow faster than usual for something that can wait: none of a large job's.
    pub fn may_hurry(&self) -> bool {
        self.meter.affordable() <= self.settings.interval
    }

    /// What the job has used of a budget that the sampler does not read itself: it sets the pace as any limit does, from
    /// the next tick on.
    pub fn used_of_budget(&mut self, now: At, used: u64, limit: u64) {
        self.nearness.used_of_budget(now, used, limit);
    }

    /// The agent in process `pid` said something: its role may be known exactly now. Told as events of the next tick.
    pub fn agent_said(&mut self, pid: i32, message: &AgentMessage) {
        self.membership.agent_said(&self.files.root, pid, message);
    }

    /// A child of the reaper that is not of the job.
    pub fn ignore(&mut self, pid: i32) {
        self.membership.ignore(pid);
    }

    /// The identity of a pid of the job, read now; the process becomes a member by this.
    pub fn identify(&mut self, pid: i32) -> Option<ProcessId> {
        self.membership.admit(&self.files.root, pid)
    }

    /// Processes of the job that were there at the last tick.
    pub fn alive(&self) -> Vec<ProcessId> {
        let mut alive: Vec<ProcessId> = self.membership.members().values().map(|member| member.id).collect();
        alive.sort_unstable();
        alive
    }

    /// Role and comm of a process that was there at the last tick.
    pub fn describe(&self, id: ProcessId) -> Option<(Role, String)> {
        let member = self.membership.members().get(&id.pid).filter(|member| member.id == id)?;
        Some((member.role.clone(), member.comm.clone()))
    }

    /// How a process ended, from its zombie, if it is one at this moment.
    pub fn zombie_ending(&mut self, id: ProcessId) -> Option<Measured<Ending>> {
        let process = self.files.root.process(id.pid).ok()?;
        let stat = process.stat(&mut self.files.buffer).ok().filter(|stat| stat.id == id)?;
        let (state, exit_code) = (stat.state, stat.exit_code);
        (state == ProcessState::Zombie).then(|| ending_of_zombie(&process, exit_code, &mut self.files.buffer))
    }

    fn sample(&mut self, now: At, deep: bool) -> Tick {
        self.meter.begin(now);
        if let Some(group) = &self.settings.own_cgroup {
            self.membership.admit_group(&mut self.files, group);
        }
        self.membership.groups.begin(&self.files.root, &mut self.files.buffer);
        let before = self.meter.clock();
        let moved = self.membership.refresh(&mut self.files, &mut self.news, now);
        // What is read once in the life of a process is no part of what a tick costs.
        if !moved.none_listed {
            self.meter.spend(self.meter.clock().saturating_sub(before) as f64);
        }
        for id in moved.joined {
            self.segments.joined(id);
        }

        let through = self.representatives();
        let filesystems = self.places.read(&self.files.root, &through);
        let mut time_left = sooner(self.nearness.budget_left(), self.nearness.room_left(now, &filesystems));
        let mut ended = moved.ended;
        let mut processes = self.read_processes(now, deep, &mut time_left, &mut ended);
        let members = self.membership.members();
        time_left = sooner(time_left, self.nearness.tasks_left(now, &processes, members));
        let survey = if deep {
            let (files, meter, bits) = (&mut self.files, &mut self.meter, &mut self.jitter);
            self.surveying.pages(files, meter, members, bits, now, &mut processes)
        } else {
            Vec::new()
        };
        self.membership.roles(&mut self.news, now);
        let mut reader = SegmentReader {
            files: &mut self.files,
            news: &mut self.news,
            meter: &mut self.meter,
            segments: &mut self.segments,
            members: self.membership.members(),
            settings: &self.settings,
            now,
        };
        let segments = reader.read(&through, &filesystems, &processes, deep);
        let cgroups = self.membership.groups.read(&self.files.root, &mut self.files.buffer);
        time_left = sooner(time_left, self.nearness.groups_left(now, &cgroups));
        let host = self.files.root.host(&mut self.files.buffer);
        time_left = sooner(time_left, self.nearness.host_left(now, &host));
        if deep {
            let of_job = |pid: i32| self.membership.members().contains_key(&pid);
            let found = self.neighbours.read(&mut self.files, &mut self.meter, of_job, now, &host);
            if let Some(neighbours) = found {
                self.news.say(now, EventKind::Neighbours(neighbours));
            }
        }
        let forks = self.files.root.forks(&mut self.files.buffer).known();
        let forks_since_last =
            forks.zip(self.forks).map_or(0, |(forks, before)| forks.saturating_sub(before));
        self.forks = forks.or(self.forks);
        self.kernel_log(now);

        let cost = self.meter.end(now, &mut self.files.buffer);
        let affordable = self.meter.affordable();
        self.report_pace(now, affordable);
        let pace = Pace {
            interval: self.settings.interval,
            since_start: now.seconds(),
            time_left,
            affordable,
            exhausted: self.meter.is_exhausted(),
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
            events: self.news.take(),
            ended,
            next_after: jitter(pace.next_after(), &mut self.jitter),
        }
    }

    /// In the order of pids.
    fn read_processes(
        &mut self,
        now: At,
        deep: bool,
        time_left: &mut Option<f64>,
        ended: &mut Vec<Ended>,
    ) -> Vec<ProcessReading> {
        let mut pids: Vec<i32> = self.membership.members().keys().copied().collect();
        pids.sort_unstable();
        let mut readings = Vec::with_capacity(pids.len());
        for pid in pids {
            let Some(mut member) = self.membership.take(pid) else { continue };
            let mut reader = Reader {
                files: &mut self.files,
                news: &mut self.news,
                meter: &mut self.meter,
                membership: &mut self.membership,
                nearness: &self.nearness,
                places: &self.places,
                now,
                deep,
            };
            if let Some(reading) = reader.read(&mut member) {
                *time_left = sooner(*time_left, self.nearness.process_left(&member));
                readings.push(reading);
                self.membership.put_back(member);
            } else {
                ended.push(self.membership.lose(&self.files.root, &mut self.news, &member, now));
            }
        }
        readings
    }

    /// One living process of each mount namespace, main's first; ullage itself where none lives.
    fn representatives(&self) -> Vec<(Option<u64>, i32)> {
        let mut found = self.membership.representatives();
        if found.is_empty() {
            found.extend(self.settings.reaper.map(|reaper| (None, reaper)));
        }
        found
    }

    /// Says once that the job is looked at less often than was asked for. Not in its first seconds, when all is new.
    fn report_pace(&mut self, now: At, affordable: Duration) {
        let asked = self.settings.interval;
        if self.slow_reported || now.seconds() < SETTLED_S || affordable < asked.mul_f64(1.5) {
            return;
        }
        self.slow_reported = true;
        let text = format!(
            "The job was sampled less often than every {} s, about every {:.1} s: a sample of its {} processes takes {:.1} ms, and \
             ullage may use {} % of a core.",
            asked.as_secs_f64(),
            affordable.as_secs_f64(),
            self.membership.members().len(),
            self.meter.tick_ns() / 1e6,
            self.settings.cpu_share * 100.0,
        );
        self.news.not_seen(now, text);
    }

    fn kernel_log(&mut self, now: At) {
        let Some(log) = &mut self.log else { return };
        let mut news = Vec::new();
        log.poll(&mut news);
        for item in news {
            self.news.say(
                now,
                match item {
                    KernelNews::OomKill(kill) => EventKind::KernelOomKill(kill),
                    KernelNews::ForkRejected(cgroup) => EventKind::KernelForkRejected { cgroup },
                },
            );
        }
    }
}

fn log_unreadable(error: &KernelError) -> String {
    format!(
        "The kernel log cannot be read ({}): OOM kills are known from cgroup counters only.",
        error.missing_feature().reason()
    )
}
