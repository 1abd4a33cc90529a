//! `ullage run`: starts COMMAND, watches it, says why it died or grew, and ends with its exit status.
//!
//! The surprise: everything that watching needs may fail (no place to record, no socket, no /proc) and COMMAND
//! is started all the same; only COMMAND itself that cannot be started ends in 126 or 127.

use crate::agent_files::AgentFiles;
use crate::arguments::RunArguments;
use crate::fleet_copy::FleetCopy;
use crate::imitated::Imitated;
use crate::live::{self, Watch};
use crate::remedies::{self, Remedies};
use crate::{environment, exit, home, machine, mailboxes, printer};
use anyhow::Context;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ullage_kernel::KernelRoot;
use ullage_model::{
    names, Ending, EventKind, Fact, Facts, MachineFacts, Missing, Outcome, OutcomeKind, RunFacts, Verdict,
};
use ullage_recording::Writer;
use ullage_report::secrets;
use ullage_sampler::{Sampler, SamplerSettings};
use ullage_supervisor::budget::Budget;
use ullage_supervisor::{SpawnSettings, StartError, Supervisor};

/// Runs the job.
pub fn run(arguments: &RunArguments) -> anyhow::Result<u8> {
    let started = Started::now();
    refuse_unwritable(arguments.json.as_deref(), "the verdict", "--json")?;
    refuse_unwritable(arguments.html.as_deref(), "the page", "--html")?;
    let root = KernelRoot::live();
    let command = arguments.job.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut facts = run_facts(command, started, arguments.interval, &root, arguments.keep_arguments);
    facts.memory_max = arguments.memory_max;
    if arguments.fleet.is_some() {
        facts.machine.others.extend(machine::clock());
    }
    let mut not_seen = Vec::new();

    let agent = if arguments.no_agent || disabled() {
        None
    } else {
        AgentFiles::create()
            .map_err(|error| not_seen.push(format!("The agent could not be added to the job: {error:#}.")))
            .ok()
    };
    facts.agent = agent.is_some();
    if let Some(remedies) = &arguments.fix {
        facts.remedies = remedies::apply(remedies, agent.is_some());
        if !arguments.quiet {
            facts.remedies.iter().for_each(|line| printer::note(&format!("fix: {line}")));
        }
    }

    let budget = arguments.memory_max.map(|bytes| Budget::prepare(bytes, &root));
    let mut imitated = match &arguments.as_machine {
        Some(path) => Some(Imitated::prepare(path, &facts, &root, arguments.memory_max.is_some())?),
        None => None,
    };
    let spawn = SpawnSettings {
        command: arguments.job.clone(),
        environment: variables(agent.as_ref(), arguments.fix.as_ref()),
        agent_socket: agent.as_ref().map(AgentFiles::socket),
        cgroup: budget.as_ref().and_then(Budget::cgroup),
        imitation: imitated.as_mut().map(Imitated::take).unwrap_or_default(),
    };
    let mut supervisor = match Supervisor::start(&spawn) {
        Ok(supervisor) => supervisor,
        Err(error) => return Ok(not_started(arguments, facts, &error)),
    };
    let main = supervisor.main();
    facts.main = Some(main);
    if let (Some(imitated), false) = (&imitated, arguments.quiet) {
        imitated.lines(supervisor.refused()).iter().for_each(|line| printer::note(line));
    }

    let writer = open_recording(arguments.record.as_deref(), &facts, &mut not_seen);
    let recording = writer.is_some().then(|| home::name_of(&facts.run, arguments.record.as_deref()));
    let fleet = FleetCopy::begin(arguments.fleet.as_deref(), writer.as_ref().map(Writer::dir));
    let settings = SamplerSettings {
        interval: Duration::from_secs_f64(arguments.interval),
        cpu_share: arguments.watch_cpu,
        reaper: i32::try_from(std::process::id()).ok(),
        own_cgroup: budget
            .as_ref()
            .and_then(Budget::cgroup_name)
            .or_else(|| imitated.as_ref().and_then(Imitated::memory_group)),
        started_unix: facts.started_unix,
        ..SamplerSettings::default()
    };
    let mut sampler = Sampler::new(root, settings, main);
    fleet.iter().for_each(|copier| sampler.ignore(copier.pid()));
    let mut watch = Watch::new(facts.clone(), started.instant, sampler, writer, budget, arguments.quiet)
        .keeping_arguments(arguments.keep_arguments)
        .measured(arguments.metrics_file.as_deref())
        .announced(recording.as_deref().filter(|_| !arguments.quiet));
    // What only a comparison reads stands in run.json alone.
    let machine = MachineFacts { others: Facts::new(), ..facts.machine.clone() };
    watch.event(EventKind::Machine { facts: Box::new(machine) });
    for text in not_seen {
        watch.event(EventKind::NotSeen { text });
    }

    let watched = live::watch_until_end(&mut supervisor, watch, main, None);
    drop(agent);
    // The groups went with the job; survivors keep theirs.
    drop(imitated);
    let ending = watched.ending.unwrap_or(Ending::NotSeen(Missing::Vanished));
    let outcome = live::first_outcome(ending, watched.by_budget);
    let status = if watched.by_budget { exit::BUDGET } else { ullage_supervisor::exit_status(ending) };

    match watched.watch {
        Some(watch) => {
            let verdict = watch.conclude(&mut facts, outcome);
            let removed = recording.as_ref().and_then(|_| home::bound(&facts.run));
            removed.filter(|_| !arguments.quiet).iter().for_each(|said| printer::remark(said));
            report_verdict(arguments, &verdict, recording.as_deref());
            deliver(arguments, &verdict, recording.as_deref());
            write_page(arguments, recording.as_deref());
        }
        None => printer::note(&format!(
            "watching failed ({}); the job was not touched, and its exit status is passed on",
            watched.failure.as_deref().unwrap_or("no reason given")
        )),
    }
    if let Some(fleet) = fleet {
        fleet.finish();
    }
    supervisor.end_as_interrupted(ending);
    Ok(status)
}

fn variables(agent: Option<&AgentFiles>, fix: Option<&Remedies>) -> Vec<(OsString, OsString)> {
    let mut variables = agent.map(AgentFiles::environment).unwrap_or_default();
    if let Some(remedies) = fix {
        variables.push((names::ENV_FIX.into(), remedies.to_string().into()));
    }
    variables
}

fn disabled() -> bool {
    std::env::var_os(names::ENV_DISABLE).is_some_and(|value| value == "1")
}

/// The start of a run by both clocks. Read together: what lies between them is an error of every reading's time.
#[derive(Clone, Copy)]
pub(super) struct Started {
    pub(super) instant: Instant,
    unix: f64,
}

impl Started {
    pub(super) fn now() -> Started {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Started { instant: Instant::now(), unix }
    }
}

/// What is known of a run before its first reading.
pub(super) fn run_facts(
    mut command: Vec<String>,
    started: Started,
    interval_s: f64,
    root: &KernelRoot,
    keep_arguments: bool,
) -> RunFacts {
    let mut environment = environment::recorded();
    if !keep_arguments {
        command = secrets::arguments(&command);
        environment.values_mut().for_each(|value| *value = secrets::text(value));
    }
    let place = crate::launcher::place(|name| std::env::var(name).ok());
    RunFacts {
        format: ullage_recording::FORMAT,
        run: ullage_recording::run_id(started.unix, &command, std::process::id()),
        command,
        started_unix: started.unix,
        main: None,
        recorder: i32::try_from(std::process::id()).ok().and_then(|pid| machine::identity(root, pid)),
        interval_s,
        agent: false,
        node: place.node,
        job: place.job,
        rank: place.rank,
        node_rank: place.node_rank,
        attempt: place.attempt,
        launcher: place.launcher.map(str::to_owned),
        environment,
        machine: of_now(super::snapshot::machine(root), root),
        outcome: None,
        duration_s: None,
        cost: None,
        not_seen: Vec::new(),
        memory_max: None,
        remedies: Vec::new(),
    }
}

/// The same, with what a comparison of machines leaves out: how far their clocks may be apart, and which boot this is.
fn of_now(mut facts: MachineFacts, root: &KernelRoot) -> MachineFacts {
    // A filter of system calls may end a process that asks for the clock: there only a fleet is worth it.
    if facts.others.get("seccomp.mode") == Some(&Fact::Text("off".into())) {
        facts.others.extend(machine::clock());
    }
    facts.others.extend(machine::boot(root));
    facts
}

/// The recording's writer; without one the run goes on, and the report says so.
pub(super) fn open_recording(
    record: Option<&Path>,
    facts: &RunFacts,
    not_seen: &mut Vec<String>,
) -> Option<Writer> {
    let opened = match record {
        Some(directory) => Ok(directory.to_path_buf()),
        None => home::home().map(|home| home.join(&facts.run.0)),
    }
    .and_then(|directory| Ok(Writer::create(directory, facts)?));
    match opened {
        Ok(writer) => Some(writer),
        Err(error) => {
            printer::note(&format!("nothing will be recorded: {error}"));
            not_seen.push(format!("Nothing was recorded: {error}."));
            None
        }
    }
}

fn not_started(arguments: &RunArguments, mut facts: RunFacts, error: &StartError) -> u8 {
    printer::note(&error.to_string());
    facts.outcome = Some(Outcome::of(OutcomeKind::NotStarted));
    let verdict = ullage_diagnosis::diagnose(&facts, &ullage_diagnosis::Timeline::default());
    write_json(arguments.json.as_deref(), &verdict);
    match error {
        StartError::NotFound { .. } => exit::NOT_FOUND,
        StartError::NotExecutable { .. } => exit::NOT_EXECUTABLE,
        _ => exit::FAILED,
    }
}

/// Shows the verdict on standard error, the short block last: standard output belongs to the job.
fn report_verdict(arguments: &RunArguments, verdict: &Verdict, recording: Option<&str>) {
    write_json(arguments.json.as_deref(), verdict);
    if arguments.quiet {
        return;
    }
    let style = printer::stderr_style();
    let summary = ullage_report::text::summary(verdict, recording, &style);
    printer::on_a_line_of_its_own(&match arguments.verbose {
        true => format!("{}\n{summary}", ullage_report::text::verdict(verdict, &style)),
        false => summary,
    });
}

/// The verdict where the environment says that somebody looks.
fn deliver(arguments: &RunArguments, verdict: &Verdict, recording: Option<&str>) {
    let around = mailboxes::Surroundings {
        variable: &|name| std::env::var_os(name),
        termination_log: Path::new(mailboxes::TERMINATION_LOG),
        slurm_comment: arguments.slurm_comment,
    };
    for line in mailboxes::deliver(verdict, recording, &around) {
        printer::on_a_line_of_its_own(&format!("{line}\n"));
    }
}

/// Writes the page where it was asked for. It is made from the recording.
fn write_page(arguments: &RunArguments, recording: Option<&str>) {
    let Some(file) = &arguments.html else { return };
    let written = match recording {
        Some(recording) => {
            home::find(Some(recording)).and_then(|folder| super::report::write_page(&folder, file))
        }
        None => Err(anyhow::anyhow!("no page was written to {}: nothing was recorded", file.display())),
    };
    if let Err(error) = written {
        printer::error(&error);
    }
}

/// A verdict that could not be written is worth an error before the job has run for a week.
pub(super) fn refuse_unwritable(file: Option<&Path>, what: &str, option: &str) -> anyhow::Result<()> {
    let Some(file) = file.filter(|file| file.as_os_str() != "-") else { return Ok(()) };
    let there = std::fs::symlink_metadata(file).is_ok();
    // To open a pipe would wait for its reader, or end it.
    if std::fs::metadata(file).is_ok_and(|what| !what.is_file() && !what.is_dir()) {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(file);
    opened.with_context(|| format!("{what} cannot be written to {} ({option})", file.display()))?;
    if !there {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

/// Writes the verdict where it was asked for.
pub(super) fn write_json(file: Option<&Path>, verdict: &Verdict) {
    let Some(file) = file else { return };
    let text = ullage_report::json::verdict_text(verdict);
    let written = if file.as_os_str() == "-" {
        printer::out(&text)
    } else {
        std::fs::write(file, &text)
            .with_context(|| format!("the verdict could not be written to {}", file.display()))
    };
    if let Err(error) = written {
        printer::error(&error);
    }
}

#[cfg(test)]
mod tests {
    use super::refuse_unwritable;
    use std::path::Path;

    #[test]
    fn a_verdict_that_cannot_be_written_is_refused_and_nothing_is_left_of_the_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("verdict.json");
        assert!(refuse_unwritable(Some(&file), "the verdict", "--json").is_ok() && !file.exists());
        std::fs::write(&file, "before").unwrap();
        assert!(refuse_unwritable(Some(&file), "the verdict", "--json").is_ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
        for bad in [Path::new("/proc/x"), folder.path(), &folder.path().join("none/x")] {
            let error = refuse_unwritable(Some(bad), "the verdict", "--json").unwrap_err().to_string();
            assert!(error.contains("--json"), "{error}");
        }
        for good in [None, Some(Path::new("-")), Some(Path::new("/dev/stderr")), Some(Path::new("/dev/null"))]
        {
            assert!(refuse_unwritable(good, "the verdict", "--json").is_ok());
        }
    }
}
