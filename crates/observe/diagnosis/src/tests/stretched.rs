//! A job of one shape, as long as it is asked to be, in the readings that a sampler makes of it: where the replays come from.
//!
//! What the work sets is stretched with the run: leaks, epochs, phases. What the machine, a program's start or a timeout sets is
//! not: libraries load within 1.5 s, ticks are a second apart, or up to thirty where a tick is expensive, and who waits for a
//! process notices its end as soon as in any run.

use super::build::*;
use super::hours::Random;
use std::collections::BTreeMap;
use ullage_model::{
    AgentMessage, Bytes, Ending, EventKind, Item, LoaderSettings, Mappings, Measured, ProcessReading, Role,
    Sample,
};

/// How long a run lasts, and how far apart its ticks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
    apart: f64,
    /// Those of the last ten minutes.
    apart_late: f64,
}

/// The last two are three days: read each second, of which a series keeps the last two minutes and one reading in many of
/// what was before; and read every thirty seconds, as a job is whose ticks are expensive.
pub(super) const LENGTHS: [Length; 4] = [
    Length { name: "30 s", seconds: 30.0, apart: 1.0, apart_late: 1.0 },
    Length { name: "1 h", seconds: 3600.0, apart: 1.0, apart_late: 1.0 },
    Length { name: "72 h", seconds: 259_200.0, apart: 60.0, apart_late: 1.0 },
    Length { name: "72 h, slow", seconds: 259_200.0, apart: 30.0, apart_late: 30.0 },
];

/// When a program with torch has loaded its libraries, seconds.
pub(super) const LOADED_S: f64 = 1.5;

/// A worker, or another child of main.
pub(super) const CHILD: i32 = 300;

/// What a process holds: MiB, and numbers.
#[derive(Clone, Copy)]
pub(super) struct Holds {
    pub(super) private: f64,
    pub(super) shared: f64,
    pub(super) swap: f64,
    pub(super) descriptors: u64,
    /// More than those of a program at rest.
    pub(super) mappings: f64,
    pub(super) threads: u32,
    /// Of which it had the address space from the beginning.
    pub(super) reserved: f64,
}

impl Holds {
    pub(super) fn private(mib: f64) -> Holds {
        Holds {
            private: mib,
            shared: 1.0,
            swap: 0.0,
            descriptors: 12,
            mappings: 0.0,
            threads: 4,
            reserved: 0.0,
        }
    }
}

/// A run in the making.
pub(super) struct Job {
    pub(super) run: Run,
    pub(super) random: Random,
    pub(super) length: Length,
    /// The most that each process was ever seen with.
    peaks: BTreeMap<i32, u64>,
}

/// A moment of it: in seconds, and as a share of the run.
#[derive(Clone, Copy)]
pub(super) struct JobTime {
    pub(super) at: f64,
    pub(super) x: f64,
    /// Mappings are counted at one tick in so many, and at the last one.
    counted: bool,
}

impl Job {
    /// Without the agent in it.
    pub(super) fn new(length: Length, seed: u64) -> Job {
        let mut run = Run::new();
        run.facts.agent = false;
        Job { run, random: Random::new(seed), length, peaks: BTreeMap::new() }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.length.seconds
    }

    /// The ticks: ten in the first second, then as far apart as the length says, a tenth more or less.
    pub(super) fn times(&mut self) -> Vec<JobTime> {
        const COUNTED_EACH: usize = 5;
        let whole = self.seconds();
        let mut all: Vec<f64> = (1..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
        loop {
            let last = all.last().copied().unwrap_or_default();
            let apart = if last > whole - 600.0 { self.length.apart_late } else { self.length.apart };
            let next = last + apart * self.random.between(0.9, 1.1);
            if next >= whole {
                break;
            }
            all.push(next);
        }
        let last = all.len() - 1;
        all.into_iter()
            .enumerate()
            .map(|(n, at)| JobTime { at, x: at / whole, counted: n % COUNTED_EACH == 0 || n == last })
            .collect()
    }

    /// Main over the whole run, and what else is read.
    pub(super) fn main(
        &mut self,
        holds: impl Fn(JobTime) -> Holds,
        mut more: impl FnMut(JobTime, &mut Sample),
    ) -> &mut Self {
        for time in self.times() {
            let main = self.process(MAIN, 1, 0.0, time, holds(time));
            self.run.tick(time.at, vec![main], |sample| more(time, sample));
        }
        self
    }

    /// Main with so much private memory.
    pub(super) fn private(&mut self, mib: impl Fn(JobTime) -> f64) -> &mut Self {
        self.main(|time| Holds::private(mib(time)), |_, _| {})
    }

    /// A process that began at `born`: it loads its libraries, and its readings scatter by a MiB or two.
    pub(super) fn process(
        &mut self,
        pid: i32,
        parent: i32,
        born: f64,
        now: JobTime,
        holds: Holds,
    ) -> ProcessReading {
        let loaded = ((now.at - born) / LOADED_S).clamp(0.1, 1.0);
        let private = (loaded * holds.private + self.random.between(0.0, 2.0)).max(0.0);
        let bytes = |mib: f64| (mib * MIB as f64) as u64;
        let mut process = reading(pid, parent, "python");
        process.threads = holds.threads;
        process.mappings = Measured::default();
        if now.counted {
            let count = 700 + holds.mappings as u64;
            process.mappings = Measured::Known(Mappings { count, ..Mappings::default() });
        }
        let peak = self.peaks.entry(pid).or_default();
        if let Measured::Known(memory) = &mut process.memory {
            memory.anonymous = Bytes(bytes(private));
            memory.file = Bytes(bytes(100.0 * loaded));
            memory.shared = Bytes(bytes(holds.shared));
            memory.swap = Bytes(bytes(holds.swap));
            memory.virtual_size = Bytes(
                bytes(3000.0 + (private - holds.reserved).max(0.0) + holds.shared)
                    + holds.mappings as u64 * 4096,
            );
            *peak = (*peak).max(memory.resident().0);
            memory.peak_resident = Bytes(*peak);
        }
        with_fds(process, holds.descriptors, 0)
    }

    /// Children of main, one generation after the other: `number` at a time, each generation as long as the next. `holds`
    /// takes the share of its life that has gone.
    pub(super) fn generations(
        &mut self,
        role: &Role,
        (generations, number): (usize, usize),
        holds: impl Fn(f64) -> Holds,
    ) -> &mut Self {
        let life = self.seconds() / generations as f64;
        let mut current = usize::MAX;
        let pid = |generation: usize, of: usize| CHILD + (generation * number + of) as i32;
        for time in self.times() {
            let generation = ((time.at / life) as usize).min(generations - 1);
            let born = (generation as f64 * life).max(0.1);
            if generation != current {
                for of in 0..number {
                    if current != usize::MAX {
                        self.run.ended(born, pid(current, of), Ending::Exited(0));
                    }
                    self.run.process(born, pid(generation, of), MAIN, role.clone(), limits(), 1000);
                }
                current = generation;
            }
            let mut all = vec![self.process(MAIN, 1, 0.0, time, Holds::private(400.0))];
            for of in 0..number {
                let held = holds((time.at - born) / life);
                all.push(self.process(pid(generation, of), MAIN, born, time, held));
            }
            self.run.tick(time.at, all, |_| {});
        }
        for of in 0..number {
            self.run.ended(self.seconds(), pid(current, of), Ending::Exited(0));
        }
        self
    }

    /// A child of main from two seconds on until `end`, where it ends well; main is at rest.
    pub(super) fn child(&mut self, role: Role, end: f64, holds: impl Fn(JobTime) -> Holds) -> &mut Self {
        const BORN: f64 = 2.0;
        let mut role = Some(role);
        for time in self.times() {
            let mut all = vec![self.process(MAIN, 1, 0.0, time, Holds::private(400.0))];
            if (BORN..end).contains(&time.at) {
                if let Some(role) = role.take() {
                    self.run.process(BORN, CHILD, MAIN, role, limits(), 1000);
                }
                all.push(self.process(CHILD, MAIN, BORN, time, holds(time)));
            }
            self.run.tick(time.at, all, |_| {});
        }
        self.run.ended(end, CHILD, Ending::Exited(0));
        self.in_order()
    }

    /// Main makes a loader.
    pub(super) fn loader(&mut self, workers: u32, persistent_workers: bool) -> &mut Self {
        self.run.facts.agent = true;
        let settings = LoaderSettings { workers, persistent_workers, ..LoaderSettings::default() };
        let message = AgentMessage::Loader(Box::new(settings));
        self.run.event(0.05, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
        self
    }

    /// What main's agent says, MiB but for the number of arenas: it looks again when a twentieth of its life has passed, and
    /// says what has moved.
    pub(super) fn readings(
        &mut self,
        until: f64,
        figures: impl Fn(f64) -> [(&'static str, f64); 6],
    ) -> &mut Self {
        self.run.facts.agent = true;
        let mut at = LOADED_S + 0.1;
        let mut before: Option<[(&str, f64); 6]> = None;
        let mut said = Vec::new();
        while at <= until {
            let now = figures(at);
            let moved =
                |before: &[(&str, f64); 6]| before.iter().zip(&now).any(|(a, b)| (a.1 - b.1).abs() > 4.0);
            if before.as_ref().is_none_or(moved) {
                said.push((at, now));
                before = Some(now);
            }
            at += (at / 20.0).max(0.5);
        }
        for (at, figures) in said {
            self.says(at, figures);
        }
        self
    }

    /// One look of it.
    pub(super) fn says(&mut self, at: f64, figures: [(&'static str, f64); 6]) -> &mut Self {
        let plain = |name: &str| name == "malloc_arenas";
        let figures = figures
            .map(|(name, value)| (name.to_owned(), if plain(name) { value } else { value * MIB as f64 }));
        let message = AgentMessage::Memory { figures: figures.into() };
        self.run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
        self
    }

    /// Items in order of time: what was said in between comes between the ticks.
    pub(super) fn in_order(&mut self) -> &mut Self {
        self.run.items.sort_by_key(|item| match item {
            Item::Sample(sample) => sample.at,
            Item::Event(event) => event.at,
        });
        self
    }
}
