//! One run, watched live: the loop that lets supervisor, sampler, recording and timeline meet.
//!
//! The surprise: whatever fails in here (a panic included) only ends the watching. The supervisor goes on
//! waiting for COMMAND and passes its status through.

use crate::metrics_file::MetricsFile;
use crate::narrator::Narrator;
use crate::now_file::NowFile;
use crate::printer;
use crate::verdict_file;
use crate::warnings::Warnings;
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ullage_diagnosis::Timeline;
use ullage_model::{
    AgentMessage, At, Cost, Ending, EndingSource, Event, EventKind, Item, Measured, Outcome, OutcomeKind,
    ProcessId, RunFacts, Sample, Verdict,
};
use ullage_recording::Writer;
use ullage_report::format;
use ullage_sampler::{Sampler, Tick};
use ullage_supervisor::budget::Budget;
use ullage_supervisor::{Happening, Supervisor};

/// How long survivors of COMMAND are given to end by themselves before they are named: helpers of multiprocessing (resource
/// tracker, forkserver) see the end of a pipe within milliseconds, a loader's workers look for their trainer every five seconds.
const SURVIVORS_LEAVE_WITHIN: Duration = Duration::from_secs(6);
/// The same where the job is ended for its budget.
const ENDED_LEAVE_WITHIN: Duration = Duration::from_millis(700);

/// How long a job runs before a line says that it is recorded.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);

/// How soon a tick follows when a Python says that it has started: many start together, and one tick sees them.
const AFTER_A_NEWCOMER: Duration = Duration::from_millis(200);

/// Marks that are recorded, and characters of each.
const MOST_MARKS: u32 = 10_000;
const MARK_LENGTH: usize = 200;

/// Everything that watches. Dropped on a panic, after which the supervisor waits alone.
pub struct Watch {
    started: Instant,
    sampler: Sampler,
    writer: Option<Writer>,
    timeline: Timeline,
    budget: Option<Budget>,
    quiet: bool,
    keep_arguments: bool,
    warnings: Warnings,
    /// How the job stands, beside its recording.
    now: Option<NowFile>,
    /// Tells how the job stands, where somebody looks on.
    narrator: Option<Narrator>,
    /// What is said once the job has run for a moment.
    announcement: Option<String>,
    next_tick: Instant,
    reported: HashSet<ProcessId>,
    /// How often torchrun has started its workers again.
    attempt: u32,
    marks: u32,
    /// A process was killed since the last look.
    killed: bool,
    cost: Option<Cost>,
}

/// What is left when COMMAND has ended.
pub struct Watched {
    /// How COMMAND's process ended; none where only the watching did.
    pub ending: Option<Ending>,
    /// The budget ended it.
    pub by_budget: bool,
    /// The watch, unless it failed.
    pub watch: Option<Watch>,
    /// What went wrong in ullage, in one sentence.
    pub failure: Option<String>,
}

impl Watch {
    /// Begins to watch; `started` is the zero of all times.
    /// `quiet`: no line when the budget or a limit is near.
    pub fn new(
        run: RunFacts,
        started: Instant,
        sampler: Sampler,
        writer: Option<Writer>,
        budget: Option<Budget>,
        quiet: bool,
    ) -> Watch {
        // Below a torchrun that has started this run again, the first worker is no news.
        let attempt = crate::launcher::restarts_by_torchrun(|name| std::env::var(name).ok()).unwrap_or(0);
        let now = Some(NowFile::begin(writer.as_ref().map(Writer::dir), &run));
        Watch {
            started,
            sampler,
            writer,
            now,
            timeline: Timeline::default(),
            budget,
            quiet,
            keep_arguments: false,
            warnings: Warnings::new(run),
            narrator: None,
            announcement: None,
            next_tick: Instant::now(),
            reported: HashSet::new(),
            attempt,
            marks: 0,
            killed: false,
            cost: None,
        }
    }

    /// Prints lines about how the job stands.
    pub fn narrated(mut self, narrator: Narrator) -> Watch {
        self.narrator = Some(narrator);
        self
    }

    /// Says once by which name the job is recorded.
    pub fn announced(mut self, recording: Option<&str>) -> Watch {
        self.announcement = recording.map(|name| format!("recording {name} · ullage watch shows it live"));
        self
    }

    /// Keeps a file of metrics of the run.
    pub fn measured(mut self, file: Option<&Path>) -> Watch {
        if let (Some(now), Some(file)) = (&mut self.now, file) {
            now.with_metrics(MetricsFile::begin(file));
        }
        self
    }

    /// True: what looks like a secret in command lines and messages is stored as it is.
    pub fn keeping_arguments(mut self, keep: bool) -> Watch {
        self.keep_arguments = keep;
        self
    }

    fn now(&self) -> At {
        At(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Adds an event to recording and timeline.
    pub fn event(&mut self, what: EventKind) {
        self.store_event(Event { at: self.now(), what });
    }

    fn store_event(&mut self, mut event: Event) {
        if !self.keep_arguments {
            ullage_report::secrets::event(&mut event.what);
        }
        if let Some(writer) = &mut self.writer {
            writer.event(&event);
        }
        if let Some(now) = &mut self.now {
            now.event(&event, &self.timeline);
        }
        self.timeline.push(Item::Event(event));
    }

    fn store_sample(&mut self, sample: Sample) {
        if let Some(writer) = &mut self.writer {
            writer.sample(&sample);
        }
        self.cost = Some(sample.cost);
        self.timeline.push_sample(&sample);
        if let Some(now) = &mut self.now {
            now.sample(&sample, &self.timeline);
        }
    }

    /// A full tick; processes that were seen for the first time are watched from now on.
    fn tick(&mut self, supervisor: &mut Supervisor) {
        let mut tick = self.sampler.tick(self.now());
        // Before the budget is asked: who was forked from whom decides what counts twice.
        self.store_events(std::mem::take(&mut tick.events), supervisor);
        if let Some(budget) = &mut self.budget {
            let alive: Vec<ProcessId> = tick.sample.processes.iter().map(|process| process.id).collect();
            let used = self.timeline.tree_bytes(&tick.sample);
            self.sampler.used_of_budget(tick.sample.at, used, budget.bytes());
            if let Some(what) = budget.observe(used, &alive) {
                if let (EventKind::Budget { action, used, budget }, false) = (&what, self.quiet) {
                    printer::remark(&budget_line(action, *used, *budget));
                }
                self.event(what);
            }
        }
        self.next_tick = Instant::now() + tick.next_after;
        let line = self.narrator.as_mut().and_then(|narrator| narrator.line(&tick.sample, &self.timeline));
        self.store_tick(tick, supervisor);
        if self.started.elapsed() >= ANNOUNCED_AFTER {
            self.announcement.take().iter().for_each(|text| printer::announce(text));
        }
        if let Some(line) = line {
            printer::say(&format!("{line}\n"));
        }
        if let Some(states) = self.warnings.judge(self.now(), &self.timeline) {
            let lines = self.warnings.new_ones(&states);
            if !self.quiet {
                lines.iter().for_each(|line| printer::remark(line));
            }
            if let Some(now) = &mut self.now {
                now.limits(states);
            }
        }
    }

    /// A quick look at counters, right after something ended or failed.
    fn sample_now(&mut self, supervisor: &mut Supervisor) {
        let tick = self.sampler.final_sample(self.now());
        self.store_tick(tick, supervisor);
    }

    fn store_events(&mut self, events: Vec<Event>, supervisor: &mut Supervisor) {
        for event in events {
            if let EventKind::ProcessSeen { facts } = &event.what {
                supervisor.watch(facts.id);
            }
            self.store_event(event);
        }
    }

    fn store_tick(&mut self, mut tick: Tick, supervisor: &mut Supervisor) {
        self.store_events(std::mem::take(&mut tick.events), supervisor);
        self.store_sample(tick.sample);
        for gone in tick.ended {
            if !supervisor.knows(gone.id) {
                match gone.ending {
                    Measured::Known(ending) => self.ended(gone.id, ending, EndingSource::ZombieStat),
                    Measured::Missing(why) => {
                        self.ended(gone.id, Ending::NotSeen(why), EndingSource::NotSeen)
                    }
                }
            }
        }
    }

    fn ended(&mut self, id: ProcessId, ending: Ending, source: EndingSource) {
        if self.reported.insert(id) {
            self.event(EventKind::ProcessEnded { id, ending, source });
        }
    }

    fn happened(&mut self, happening: Happening, supervisor: &mut Supervisor) {
        match happening {
            Happening::DescendantEnded { id, ending, source } => {
                self.ended(id, ending, source);
                self.killed |= matches!(ending, Ending::Signaled(_));
            }
            Happening::Agent { connection, pid, message } => {
                let failed = message.exception().is_some();
                let id = self.sampler.identify(pid);
                if let Some(id) = id {
                    // It may end before the next tick: its ending is told from now on.
                    if supervisor.watch(id) && self.sampler.may_hurry() {
                        self.next_tick = self.next_tick.min(Instant::now() + AFTER_A_NEWCOMER);
                    }
                }
                if let AgentMessage::Mark { text } = message {
                    return self.marked(id, pid, &text);
                }
                if let AgentMessage::Hello { attempt: Some(number), .. } = &message {
                    // Of each attempt the first worker; a second torchrun below begins anew, and is not told apart.
                    if *number > self.attempt {
                        self.attempt = *number;
                        self.event(EventKind::Attempt { number: *number });
                    }
                }
                self.sampler.agent_said(pid, &message);
                self.event(EventKind::Agent { id, pid, message });
                if failed {
                    // The failing process waits for this look: its counters are still those of the failure.
                    self.sample_now(supervisor);
                    supervisor.acknowledge(connection);
                }
            }
            Happening::NotSeen(text) => self.event(EventKind::NotSeen { text }),
            Happening::MainEnded { .. } | Happening::Interrupted => {}
        }
    }

    /// A job that marks each step is told once that it is enough.
    fn marked(&mut self, id: Option<ProcessId>, pid: i32, text: &str) {
        self.marks = self.marks.saturating_add(1);
        if self.marks <= MOST_MARKS {
            let text = text.chars().take(MARK_LENGTH).collect();
            self.event(EventKind::Mark { id, pid, text });
        } else if self.marks == MOST_MARKS + 1 {
            let text = format!("The job set more than {MOST_MARKS} marks; later ones are not recorded.");
            self.event(EventKind::NotSeen { text });
        }
    }

    /// Processes were killed: what the counters say now tells why. Once for all that were killed together, and not where a
    /// job that kills its workers all the time would make it dear.
    fn sample_after_kills(&mut self, supervisor: &mut Supervisor) {
        if std::mem::take(&mut self.killed) && self.sampler.may_sample() {
            self.sample_now(supervisor);
        }
    }

    /// After COMMAND's end: who is left, the last counters, the end of the recording's events.
    fn finish(&mut self, supervisor: &mut Supervisor, main: ProcessId, ending: Ending) {
        self.ended(main, ending, EndingSource::Wait);
        self.sample_now(supervisor);
        let ended = self.budget.as_ref().is_some_and(Budget::ended_the_job);
        let deadline = Instant::now() + if ended { ENDED_LEAVE_WITHIN } else { SURVIVORS_LEAVE_WITHIN };
        let mut waits = true;
        while waits && !self.survivors(main).is_empty() && Instant::now() < deadline {
            for happening in supervisor.wait(Duration::from_millis(50)) {
                // Whoever interrupts ullage now does not want to wait.
                waits &= !matches!(happening, Happening::Interrupted);
                self.happened(happening, supervisor);
            }
        }
        let left = self.survivors(main);
        if let Some(what) = self.budget.as_mut().and_then(|budget| budget.finish(&left)) {
            self.event(what);
        }
        let tick = self.sampler.last_sample(self.now());
        self.store_tick(tick, supervisor);
        let survivors = self.survivors(main);
        self.event(EventKind::Finished { survivors });
    }

    /// Processes of the job that still run: neither COMMAND, nor gone, nor a zombie.
    fn survivors(&self, main: ProcessId) -> Vec<ProcessId> {
        self.sampler
            .alive()
            .into_iter()
            .filter(|id| *id != main && !self.reported.contains(id) && crate::machine::is_alive(*id))
            .collect()
    }

    /// The verdict, and the recording closed with it.
    pub fn conclude(mut self, run: &mut RunFacts, outcome: Outcome) -> Verdict {
        run.duration_s = Some(self.started.elapsed().as_secs_f64());
        run.cost = self.cost;
        run.outcome = Some(outcome);
        let metrics = self.now.take().and_then(NowFile::end);
        let mut verdict = ullage_diagnosis::diagnose(run, &self.timeline);
        // Who killed COMMAND is known only after the findings are.
        run.outcome = Some(verdict.outcome.clone());
        if let Some(writer) = self.writer.take() {
            for lost in writer.lost() {
                let sentence = format!("{lost}.");
                verdict.not_seen.push(sentence.clone());
                // A gap that the recording itself tells is the same sentence, and reported once.
                run.not_seen.push(sentence);
            }
            let directory = writer.dir().to_owned();
            match writer.close(run) {
                Ok(()) => verdict_file::write(&directory, &verdict),
                Err(error) => verdict.not_seen.push(format!("The recording could not be closed: {error}.")),
            }
        }
        if let Some(metrics) = metrics {
            let ended_unix = run.started_unix + run.duration_s.unwrap_or(0.0);
            let facts = serde_json::to_value(&*run).unwrap_or_default();
            metrics.end(ullage_report::json::verdict(&verdict), facts, ended_unix);
        }
        verdict
    }
}

/// Waits for COMMAND's end, watching as long as watching works; a job that was not started here is watched until `until` at
/// most.
pub fn watch_until_end(
    supervisor: &mut Supervisor,
    watch: Watch,
    main: ProcessId,
    until: Option<Instant>,
) -> Watched {
    watch_until_left(supervisor, watch, main, until, &AtomicBool::new(false))
}

/// The same where somebody looks on, who may leave.
pub fn watch_until_left(
    supervisor: &mut Supervisor,
    watch: Watch,
    main: ProcessId,
    until: Option<Instant>,
    leaves: &AtomicBool,
) -> Watched {
    let mut watch = Some(watch);
    let mut failure = None;
    let ending = loop {
        let timeout = watch.as_ref().map_or(Duration::from_secs(3600), |watch| {
            let next = until.map_or(watch.next_tick, |until| until.min(watch.next_tick));
            next.saturating_duration_since(Instant::now())
        });
        let happenings = supervisor.wait(timeout);
        let left = happenings.iter().any(|happening| matches!(happening, Happening::Interrupted))
            || until.is_some_and(|until| Instant::now() >= until)
            || leaves.load(Ordering::Relaxed);
        let ended = happenings.iter().find_map(|happening| match happening {
            Happening::MainEnded { ending } => Some(*ending),
            _ => None,
        });
        if let Some(watching) = &mut watch {
            let step = catch_unwind(AssertUnwindSafe(|| {
                for happening in happenings {
                    watching.happened(happening, supervisor);
                }
                watching.sample_after_kills(supervisor);
                match ended {
                    Some(ending) => watching.finish(supervisor, main, ending),
                    None if left => watching.tick(supervisor),
                    None if Instant::now() >= watching.next_tick => watching.tick(supervisor),
                    None => {}
                }
            }));
            if let Err(panic) = step {
                failure = Some(panic_text(panic.as_ref()));
                watch = None;
            }
        }
        if ended.is_some() || left {
            break ended;
        }
    };
    let by_budget =
        watch.as_ref().is_some_and(|watch| watch.budget.as_ref().is_some_and(Budget::ended_the_job));
    Watched { ending, by_budget, watch, failure }
}

/// The outcome of COMMAND before diagnosis looked for who killed it.
pub fn first_outcome(ending: Ending, by_budget: bool) -> Outcome {
    let mut outcome = Outcome::from_ending(ending);
    if by_budget {
        outcome.kind = OutcomeKind::Budget;
        outcome.by = Some(ullage_model::EndedBy::Budget);
    }
    outcome
}

/// What is said of a budget while the job runs.
fn budget_line(action: &str, used: u64, budget: u64) -> String {
    let (used, budget) = (format::bytes(used), format::bytes(budget));
    match action {
        "warn" => format!("the job uses {used} of its {budget} (--memory-max)"),
        "terminate" => format!(
            "the job uses {used}, over its {budget} (--memory-max): sending SIGTERM to all its processes"
        ),
        _ => {
            format!("the job still runs over its {budget} (--memory-max): sending SIGKILL")
        }
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown panic")
        .to_string()
}
