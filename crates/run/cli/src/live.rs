//! One run, watched live: the loop that lets supervisor, sampler, recording and timeline meet.
//!
//! The surprise: whatever fails in here (a panic included) only ends the watching. The supervisor goes on
//! waiting for COMMAND and passes its status through.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};
use ullage_diagnosis::Timeline;
use ullage_model::{
    At, Ending, EndingSource, Event, EventKind, Item, Outcome, OutcomeKind, ProcessId, RunFacts, Sample, Verdict,
};
use ullage_recording::Writer;
use ullage_sampler::Sampler;
use ullage_supervisor::budget::Budget;
use ullage_supervisor::{Happening, Supervisor};

/// How long survivors of COMMAND are given to end by themselves before they are named: helpers of
/// multiprocessing (resource tracker, forkserver) see the end of a pipe and leave within milliseconds.
const SURVIVORS_LEAVE_WITHIN: Duration = Duration::from_millis(700);

/// Everything that watches. Dropped on a panic, after which the supervisor waits alone.
pub struct Watch {
    started: Instant,
    sampler: Sampler,
    writer: Option<Writer>,
    timeline: Timeline,
    budget: Option<Budget>,
    next_tick: Instant,
    not_seen: Vec<String>,
}

/// What is left when COMMAND has ended.
pub struct Watched {
    /// How COMMAND's process ended.
    pub ending: Ending,
    /// The budget ended it.
    pub by_budget: bool,
    /// The watch, unless it failed.
    pub watch: Option<Watch>,
    /// What went wrong in ullage, in one sentence.
    pub failure: Option<String>,
}

impl Watch {
    /// Begins to watch; `started` is the zero of all times.
    pub fn new(started: Instant, sampler: Sampler, writer: Option<Writer>, budget: Option<Budget>) -> Watch {
        Watch {
            started,
            sampler,
            writer,
            timeline: Timeline::default(),
            budget,
            next_tick: Instant::now(),
            not_seen: Vec::new(),
        }
    }

    fn now(&self) -> At {
        At(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Adds an event to recording and timeline.
    pub fn event(&mut self, what: EventKind) {
        self.store_event(Event { at: self.now(), what });
    }

    fn store_event(&mut self, event: Event) {
        if let Some(writer) = &mut self.writer {
            writer.event(&event);
        }
        self.timeline.push(Item::Event(event));
    }

    fn store_sample(&mut self, sample: Sample) {
        if let Some(writer) = &mut self.writer {
            writer.sample(&sample);
        }
        self.timeline.push(Item::Sample(Box::new(sample)));
    }

    /// A full tick; processes that were seen for the first time are watched from now on.
    fn tick(&mut self, supervisor: &mut Supervisor) {
        let tick = self.sampler.tick(self.now());
        for event in tick.events {
            if let EventKind::ProcessSeen { facts } = &event.what {
                supervisor.watch(facts.id);
            }
            self.store_event(event);
        }
        if let Some(budget) = &mut self.budget {
            let alive: Vec<ProcessId> = tick.sample.processes.iter().map(|process| process.id).collect();
            let used = ullage_diagnosis::tree_bytes(&tick.sample);
            for event in budget.observe(used, &alive) {
                self.event(event);
            }
        }
        self.store_sample(tick.sample);
        self.next_tick = Instant::now() + tick.next_after;
    }

    /// A quick look at counters, right after something ended or failed.
    fn look(&mut self) {
        let look = self.sampler.final_look(self.now());
        for event in look.events {
            self.store_event(event);
        }
        self.store_sample(look.sample);
    }

    fn happened(&mut self, happening: Happening, supervisor: &mut Supervisor) {
        match happening {
            Happening::DescendantEnded { id, ending, source } => {
                self.event(EventKind::ProcessEnded { id, ending, source });
                if matches!(ending, Ending::Signaled(_)) {
                    self.look();
                }
            }
            Happening::Agent { connection, pid, message } => {
                let failed = message.exception().is_some();
                let id = self.sampler.identity(pid);
                for event in self.sampler.agent_said(pid, &message, self.now()) {
                    self.store_event(event);
                }
                self.event(EventKind::Agent { id, pid, message });
                if failed {
                    // The failing process waits for this look: its counters are still those of the failure.
                    self.look();
                    supervisor.acknowledge(connection);
                }
            }
            Happening::NotSeen(text) => self.event(EventKind::NotSeen { text }),
            Happening::MainEnded { .. } | Happening::Stopped | Happening::Continued => {}
        }
    }

    /// After COMMAND's end: who is left, the last counters, the end of the recording's events.
    fn finish(&mut self, supervisor: &mut Supervisor, main: ProcessId, ending: Ending) {
        self.event(EventKind::ProcessEnded { id: main, ending, source: EndingSource::Wait });
        self.look();
        let deadline = Instant::now() + SURVIVORS_LEAVE_WITHIN;
        let mut alive = self.sampler.alive();
        while !alive.is_empty() && Instant::now() < deadline {
            for happening in supervisor.wait(Duration::from_millis(50)) {
                self.happened(happening, supervisor);
            }
            alive = self.sampler.alive();
        }
        if let Some(budget) = &mut self.budget {
            for event in budget.finish() {
                self.event(event);
            }
        }
        if !alive.is_empty() {
            self.tick(supervisor);
        }
        self.look();
        self.event(EventKind::Finished { survivors: alive });
    }

    /// The verdict, and the recording closed with it.
    pub fn conclude(mut self, run: &mut RunFacts, outcome: Outcome) -> Verdict {
        run.duration_s = Some(self.started.elapsed().as_secs_f64());
        run.cost = Some(self.sampler.cost());
        run.outcome = Some(outcome);
        run.not_seen.append(&mut self.not_seen);
        let mut verdict = ullage_diagnosis::diagnose(run, &self.timeline);
        // Who killed COMMAND is known only after the findings are.
        run.outcome = Some(verdict.outcome.clone());
        if let Some(writer) = self.writer.take() {
            if let Some(trouble) = writer.trouble() {
                let sentence = format!("The recording is incomplete: {trouble}.");
                verdict.not_seen.push(sentence.clone());
                run.not_seen.push(sentence);
            }
            if let Err(error) = writer.close(run) {
                verdict.not_seen.push(format!("The recording could not be closed: {error}."));
            }
        }
        verdict
    }
}

/// Waits for COMMAND's end, watching as long as watching works.
pub fn watch_until_end(supervisor: &mut Supervisor, watch: Watch, main: ProcessId) -> Watched {
    let mut watch = Some(watch);
    let mut failure = None;
    let ending = loop {
        let timeout = watch
            .as_ref()
            .map_or(Duration::from_secs(3600), |watch| watch.next_tick.saturating_duration_since(Instant::now()));
        let happenings = supervisor.wait(timeout);
        let ended = happenings.iter().find_map(|happening| match happening {
            Happening::MainEnded { ending } => Some(*ending),
            _ => None,
        });
        if let Some(watching) = &mut watch {
            let step = catch_unwind(AssertUnwindSafe(|| {
                for happening in happenings {
                    watching.happened(happening, supervisor);
                }
                match ended {
                    Some(ending) => watching.finish(supervisor, main, ending),
                    None if Instant::now() >= watching.next_tick => watching.tick(supervisor),
                    None => {}
                }
            }));
            if let Err(panic) = step {
                failure = Some(panic_text(panic.as_ref()));
                watch = None;
            }
        }
        if let Some(ending) = ended {
            break ending;
        }
    };
    let by_budget = watch.as_ref().is_some_and(|watch| watch.budget.as_ref().is_some_and(Budget::ended_the_job));
    Watched { ending, by_budget, watch, failure }
}

/// The outcome of COMMAND before diagnosis looked for who killed it.
pub fn first_outcome(ending: Ending, by_budget: bool) -> Outcome {
    let mut outcome = Outcome::from_ending(ending);
    if by_budget {
        outcome.kind = OutcomeKind::Budget;
        outcome.by = Some("ullage budget".into());
    }
    outcome
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown panic")
        .to_string()
}
