//! `ullage watch`: how a job stands that runs already, or how a recorded run went; then the verdict. In a terminal it is a
//! live view, else lines.
//!
//! The surprise: a process that ullage did not start is not its child. Its memory, limits and descendants are read as
//! ever, but there is no agent in it, orphans do not come to ullage, and how it ended is told by a pidfd.

use crate::arguments::WatchArguments;
use crate::commands::run::refuse_unwritable;
use crate::commands::{report, run};
use crate::live::{self, Watch};
use crate::narrator::Narrator;
use crate::viewer::{Left, Viewer};
use crate::{exit, home, machine, printer, terminal};
use anyhow::{bail, Context};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ullage_diagnosis::Timeline;
use ullage_kernel::KernelRoot;
use ullage_model::{EventKind, Item, Outcome, OutcomeKind, ProcessId, Source, Verdict};
use ullage_recording::{Recording, RunState};
use ullage_sampler::{Sampler, SamplerSettings};
use ullage_supervisor::Supervisor;

/// Lines that a replayed run gets.
const LINES_OF_A_REPLAY: f64 = 20.0;

/// Watches.
pub fn run(arguments: &WatchArguments) -> anyhow::Result<u8> {
    let pid = arguments.what.as_deref().and_then(|what| what.parse().ok()).filter(|pid: &i32| *pid > 0);
    refuse_unwritable(arguments.json.as_deref(), "the verdict", "--json")?;
    let watched = match (pid, arguments.what.as_deref()) {
        (Some(pid), what) => match recorded_by(pid)?.or_else(|| of_time(pid, what)) {
            Some(directory) => recorded(arguments, &directory)?,
            None => process(arguments, pid)?,
        },
        (None, None) => recorded(arguments, &running_or_newest()?)?,
        (None, what) => recorded(arguments, &home::find(what)?)?,
    };
    let (verdict, recording) = match watched {
        Watched::Verdict(verdict, recording) => (verdict, recording),
        // As a shell says of a program that the signal ended.
        Watched::Signal(number) => return Ok(u8::try_from(128 + number).unwrap_or(exit::FAILED)),
    };
    run::write_json(arguments.json.as_deref(), &verdict);
    if arguments.json.as_deref().is_none_or(|file| file != Path::new("-")) {
        printer::out(&ullage_report::text::summary(
            &verdict,
            recording.as_deref(),
            &printer::stdout_style(),
        ))?;
    }
    Ok(0)
}

/// How it was left.
enum Watched {
    /// With a verdict, and the name of the recording.
    Verdict(Box<Verdict>, Option<String>),
    /// This signal ended it, or the terminal hung up.
    Signal(i32),
}

/// SIGHUP of signal(7): what a terminal that is gone stands for.
const HANG_UP: i32 = 1;

/// A live view is wanted, and there is a terminal for it.
fn as_view(arguments: &WatchArguments) -> bool {
    let to_stdout = arguments.json.as_deref().is_some_and(|file| file == Path::new("-"));
    !arguments.plain && !to_stdout && terminal::can_be_taken()
}

/// A recording that is named by a number, its time, where no process has it.
fn of_time(pid: i32, what: Option<&str>) -> Option<PathBuf> {
    machine::identity(&KernelRoot::live(), pid).is_none().then(|| home::find(what).ok()).flatten()
}

/// The run that goes on, the newest of several; else the newest that is over.
fn running_or_newest() -> anyhow::Result<PathBuf> {
    let runs = ullage_recording::list_runs(&home::home()?, |id| machine::is_alive(*id))?;
    match runs.into_iter().find(|run| run.state == RunState::Running) {
        Some(run) => Ok(run.path),
        None => home::find(None),
    }
}

/// The recording that this process makes, where it is an ullage at work: `pgrep -f train.py` finds it before the job.
fn recorded_by(pid: i32) -> anyhow::Result<Option<PathBuf>> {
    let root = KernelRoot::live();
    let Some(id) = machine::identity(&root, pid) else { return Ok(None) };
    let runs = ullage_recording::list_runs(&home::home()?, |recorder| machine::is_alive(*recorder));
    let of_it = runs.into_iter().flatten().find(|run| {
        run.state == RunState::Running && run.facts.as_ref().is_ok_and(|facts| facts.recorder == Some(id))
    });
    if let Some(run) = of_it {
        return Ok(Some(run.path));
    }
    let command = root.process(pid).ok().and_then(|process| process.command_line(&mut Vec::new()).ok());
    if command.as_deref().is_some_and(is_ullage_run) {
        bail!("process {pid} is `ullage run` itself, which watches its job already; give the directory of its recording (--record), or the pid of the job")
    }
    Ok(None)
}

fn is_ullage_run(command: &[String]) -> bool {
    let [program, verb, ..] = command else { return false };
    Path::new(program).file_name().is_some_and(|name| name == "ullage") && verb == "run"
}

/// A process that runs, and what descends from it.
fn process(arguments: &WatchArguments, pid: i32) -> anyhow::Result<Watched> {
    let started = run::Started::now();
    let root = KernelRoot::live();
    let main = machine::identity(&root, pid).with_context(|| {
        format!("no process has the pid {pid} here (other containers have their own pids)")
    })?;
    let mut supervisor =
        Supervisor::attach(main).with_context(|| format!("process {pid} has just exited, or is a zombie"))?;
    let command = root.process(pid).ok().and_then(|process| process.command_line(&mut Vec::new()).ok());
    let mut facts = run::run_facts(
        command.unwrap_or_default(),
        started,
        arguments.interval,
        &root,
        arguments.keep_arguments,
    );
    // They are those of the shell, not of the job.
    facts.environment.clear();
    facts.main = Some(main);
    let mut not_seen = vec![format!(
        "ullage attached to process {pid} while it was running: the process has no agent, and earlier events are unknown."
    )];
    let writer = run::open_recording(arguments.record.as_deref(), &facts, &mut not_seen);
    let recording = writer.is_some().then(|| home::name_of(&facts.run, arguments.record.as_deref()));
    let settings = SamplerSettings {
        interval: Duration::from_secs_f64(arguments.interval),
        cpu_share: arguments.watch_cpu,
        started_unix: facts.started_unix,
        ..SamplerSettings::default()
    };
    let sampler = Sampler::new(root, settings, main);
    // The view reads the recording; without one there are lines.
    let directory = writer.as_ref().map(|writer| writer.dir().to_owned()).filter(|_| as_view(arguments));
    let quiet = directory.is_some();
    let mut watch = Watch::new(facts.clone(), started.instant, sampler, writer, None, quiet)
        .keeping_arguments(arguments.keep_arguments);
    if !quiet {
        watch = watch.narrated(Narrator::new(facts.clone(), arguments.every));
    }
    watch.event(EventKind::Machine { facts: Box::new(facts.machine.clone()) });
    for text in not_seen {
        watch.event(EventKind::NotSeen { text });
    }
    let until = arguments.r#for.map(|seconds| started.instant + Duration::from_secs_f64(seconds));
    let leaves = AtomicBool::new(false);
    // Concluded as soon as the job ends: the view shows how.
    let watching = || {
        let watched = live::watch_until_left(&mut supervisor, watch, main, until, &leaves);
        let outcome = match watched.ending {
            Some(ending) => Outcome::from_ending(ending),
            None => Outcome::of(OutcomeKind::StillRunning),
        };
        match watched.watch {
            Some(watch) => Ok(Box::new(watch.conclude(&mut facts, outcome))),
            None => bail!(
                "watching failed ({}); the job was not touched",
                watched.failure.as_deref().unwrap_or("no reason given")
            ),
        }
    };
    let Some(directory) = directory else { return Ok(Watched::Verdict(watching()?, recording)) };
    let (verdict, left) = std::thread::scope(|scope| {
        // The signals are blocked before the thread starts that would else take them.
        let viewer = Viewer::open(&directory)?;
        let watching = scope.spawn(watching);
        // A fault in the view ends the watching too: else the scope would wait for the end of the job.
        let left = catch_unwind(AssertUnwindSafe(|| viewer.show(until)));
        leaves.store(true, Ordering::Relaxed);
        let left =
            left.unwrap_or_else(|panic| bail!("the live view failed: {}", live::panic_text(panic.as_ref())));
        let verdict = watching.join().map_err(|_| anyhow::anyhow!("a fault in ullage"))?;
        anyhow::Ok((verdict?, left?))
    })?;
    Ok(match left {
        Left::Signal(number) => Watched::Signal(number),
        Left::HungUp => Watched::Signal(HANG_UP),
        Left::Quit(_) => Watched::Verdict(verdict, recording),
    })
}

/// A recorded run: its lines again, and where it runs still, those to come.
fn recorded(arguments: &WatchArguments, directory: &Path) -> anyhow::Result<Watched> {
    let begun = Instant::now();
    if as_view(arguments) {
        let until = arguments.r#for.map(|seconds| begun + Duration::from_secs_f64(seconds));
        let verdict = match Viewer::open(directory)?.show(until)? {
            Left::Signal(number) => return Ok(Watched::Signal(number)),
            Left::HungUp => return Ok(Watched::Signal(HANG_UP)),
            Left::Quit(Some(verdict)) => verdict,
            Left::Quit(None) => Box::new(report::verdict_of(directory)?),
        };
        let name = home::name_in(&verdict.run, directory);
        return Ok(Watched::Verdict(verdict, Some(name)));
    }
    let recording = Recording::open(directory)?;
    let runs = |recording: &Recording| {
        recording.run.outcome.is_none() && recording.run.recorder.is_some_and(machine::is_alive)
    };
    let every = match recording.run.duration_s {
        Some(duration) => duration / LINES_OF_A_REPLAY,
        None => arguments.every,
    };
    let mut narrator = Narrator::new(recording.run.clone(), every);
    narrate(&recording, &mut narrator)?;
    let over = |id: Option<ProcessId>| id.is_none_or(|id| !machine::is_alive(id));
    let until = arguments.r#for.map(|seconds| begun + Duration::from_secs_f64(seconds));
    let mut recording = recording;
    while runs(&recording) && until.is_none_or(|until| Instant::now() < until) {
        // Reading it takes longer the longer it is: a twentieth of the time at most.
        let last = Instant::now();
        narrate(&recording, &mut narrator)?;
        let pause = (last.elapsed() * 20).max(Duration::from_secs_f64(arguments.every));
        let next = Instant::now() + pause;
        let next = until.map_or(next, |until| until.min(next));
        while Instant::now() < next && !over(recording.run.recorder) {
            std::thread::sleep(Duration::from_millis(200));
        }
        recording = Recording::open(directory)?;
    }
    let verdict = report::verdict_of(directory)?;
    let name = home::name_in(&verdict.run, directory);
    Ok(Watched::Verdict(Box::new(verdict), Some(name)))
}

/// Lines for what is new in a recording since the narrator last looked.
fn narrate(recording: &Recording, narrator: &mut Narrator) -> anyhow::Result<()> {
    let mut timeline = Timeline::default();
    let mut replay = recording.replay();
    while let Some(item) = replay.next_item().map_err(|error| anyhow::anyhow!("{error}"))? {
        if let Item::Sample(sample) = &item {
            if let Some(line) = narrator.line(sample, &timeline) {
                printer::say(&format!("{line}\n"));
            }
        }
        timeline.push(item);
    }
    Ok(())
}
