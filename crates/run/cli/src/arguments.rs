//! What may be typed: every command, flag and environment variable of `ullage`. What it means is decided
//! where it is used.

use crate::complete;
use crate::remedies::{parse_remedies, Remedies};
use crate::size::{parse_interval, parse_length, parse_percent, parse_size};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Examples below the help of a command; each is a text of its own, so that `tests/commands.py` finds and types it.
macro_rules! examples {
    ($($line:literal),* $(,)?) => { concat!("Examples:\n", $("  ", $line, "\n"),*) };
}

/// Track host memory across a multi-process PyTorch job, warn which limit it will hit next, and name the cause
/// when it dies.
#[derive(Debug, Parser)]
#[command(name = "ullage", version = env!("ULLAGE_VERSION"), max_term_width = 100)]
#[command(after_help = examples![
    "ullage run -- python train.py",
    "ullage explain train.log",
    "ullage check",
    "ullage help run",
])]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run COMMAND and report why it died or grew
    Run(RunArguments),
    /// Attach to a running job, or replay a recording
    Watch(WatchArguments),
    /// Show the verdict of a recorded run (default: the newest)
    Report(ReportArguments),
    /// Explain a cause, or find known messages in the log of a failed job
    Explain(ExplainArguments),
    /// Check whether this machine or container is fit for a multi-process PyTorch job
    Check(CheckArguments),
    /// Save the facts of this machine that affect memory, to compare it with another
    Snapshot(SnapshotArguments),
    /// Rank the differences between a good machine or run and others by how well they explain the failure
    Compare(CompareArguments),
    /// Find which of many recordings failed first, of what, and what is different about its node
    Fleet(FleetArguments),
    /// List, copy or remove recordings
    Runs(RunsArguments),
    /// Serve metrics of all live runs of this user to Prometheus
    Serve(ServeArguments),
    /// Mark this moment in the recording of the run that this command is part of
    Mark(MarkArguments),
    /// Export a recording as Parquet, CSV or JSON
    Export(ExportArguments),
    /// Print the script by which a shell completes commands, runs and causes at <TAB>
    Completions(CompletionsArguments),
    /// What copies a recording beside `ullage run --fleet`
    #[command(hide = true)]
    FleetCopier(CopierArguments),
}

/// `ullage run`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "ullage run -- python train.py",
    "ullage run --fix -- python train.py",
    "ullage run --memory-max 16GiB --json verdict.json -- python train.py",
])]
pub struct RunArguments {
    /// Also remove known causes: apply the remedies in LIST (arena, nofile, zygote; -NAME excludes one). Without LIST: all but zygote
    #[arg(long, value_name = "LIST", env = "ULLAGE_FIX", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_parser = parse_remedies, add = complete::remedies())]
    pub fix: Option<Remedies>,
    /// Memory budget of the whole job: a warning at 90 %; above it SIGTERM, then SIGKILL, and exit status 53
    #[arg(long, value_name = "SIZE", env = "ULLAGE_MEMORY_MAX", value_parser = parse_size)]
    pub memory_max: Option<u64>,
    /// Run the job under another machine's limits, variables, cores and /dev/shm, as far as possible here
    #[arg(long = "as", value_name = "SNAPSHOT", env = "ULLAGE_AS")]
    pub as_machine: Option<PathBuf>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", env = "ULLAGE_INTERVAL", default_value = "1s", value_parser = parse_interval)]
    pub interval: f64,
    /// CPU time that ullage may use, in percent of one core
    #[arg(long, value_name = "PERCENT", env = "ULLAGE_WATCH_CPU", default_value = "0.5", value_parser = parse_percent)]
    pub watch_cpu: f64,
    /// Record into this directory instead of a new one under $ULLAGE_HOME
    #[arg(long, value_name = "DIR", env = "ULLAGE_RECORD")]
    pub record: Option<PathBuf>,
    /// Also copy the recording to DIR on a shared disk, each minute and at the end (docs/guide/fleet-launchers.md)
    #[arg(long, value_name = "DIR", env = "ULLAGE_FLEET")]
    pub fleet: Option<PathBuf>,
    /// Write the verdict as JSON to FILE when the job exits (- for standard output)
    #[arg(long, value_name = "FILE", env = "ULLAGE_JSON")]
    pub json: Option<PathBuf>,
    /// Write the verdict as an HTML page with plots to FILE when the job exits
    #[arg(long, value_name = "FILE", env = "ULLAGE_HTML")]
    pub html: Option<PathBuf>,
    /// Keep metrics of the live job in FILE, for node_exporter's textfile collector (docs/guide/metrics.md)
    #[arg(long, value_name = "FILE.prom", env = "ULLAGE_METRICS_FILE")]
    pub metrics_file: Option<PathBuf>,
    /// If something was found, set the comment of the Slurm job, where it has none
    #[arg(long, env = "ULLAGE_SLURM_COMMENT", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub slurm_comment: bool,
    /// Keep the agent out of the job's Pythons
    #[arg(long, env = "ULLAGE_NO_AGENT", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub no_agent: bool,
    /// Store arguments, addresses and messages unchanged, even if they look like secrets
    #[arg(long, env = "ULLAGE_KEEP_ARGUMENTS", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub keep_arguments: bool,
    /// Print the whole report when the job has ended, as `ullage report` does
    #[arg(short, long, env = "ULLAGE_VERBOSE", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true", conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print only errors
    #[arg(short, long, env = "ULLAGE_QUIET", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub quiet: bool,
    /// The job: a program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", add = complete::job())]
    pub job: Vec<OsString>,
}

/// `ullage watch`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "ullage watch",
    "ullage watch PID",
    "ullage watch --for 10s --json verdict.json PID",
    "ullage watch --plain RUN",
])]
pub struct WatchArguments {
    /// Pid of the job's first process; or name of a run, its beginning, or a directory (default: the run that is live, else the newest)
    #[arg(value_name = "RUN|PID", add = complete::runs())]
    pub what: Option<String>,
    /// Print lines instead of the live view, as where standard output is no terminal
    #[arg(long)]
    pub plain: bool,
    /// Stop after TIME and show the verdict (default: when the job exits, or at Ctrl-C)
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    pub r#for: Option<f64>,
    /// Time between two lines
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_length)]
    pub every: f64,
    /// Time between two samples
    #[arg(long, value_name = "TIME", env = "ULLAGE_INTERVAL", default_value = "1s", value_parser = parse_interval)]
    pub interval: f64,
    /// CPU time that ullage may use, in percent of one core
    #[arg(long, value_name = "PERCENT", env = "ULLAGE_WATCH_CPU", default_value = "0.5", value_parser = parse_percent)]
    pub watch_cpu: f64,
    /// Record into this directory instead of a new one under $ULLAGE_HOME
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Store arguments, addresses and messages unchanged, even if they look like secrets
    #[arg(long, env = "ULLAGE_KEEP_ARGUMENTS", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub keep_arguments: bool,
    /// Write the verdict as JSON to FILE (-: to standard output, instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `ullage serve`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage serve", "ullage serve --listen 0.0.0.0:9477"])]
pub struct ServeArguments {
    /// Address and port, for example 0.0.0.0:9477 for other machines too
    #[arg(long, value_name = "ADDRESS", env = "ULLAGE_LISTEN", default_value = "127.0.0.1:9477")]
    pub listen: String,
    /// Also push the metrics as OTLP (http/protobuf); without URL, to where OTEL_EXPORTER_OTLP_ENDPOINT says
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub otlp: Option<String>,
}

/// `ullage mark`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage mark epoch 3"])]
pub struct MarkArguments {
    /// What happens now; several words are joined
    #[arg(required = true, value_name = "TEXT")]
    pub text: Vec<String>,
}

/// `ullage report`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage report", "ullage report RUN", "ullage report --json", "ullage report --html page.html"])]
pub struct ReportArguments {
    /// Name of a run, its beginning, or a directory (default: the newest run)
    #[arg(add = complete::runs())]
    pub run: Option<String>,
    /// Print JSON (docs/reference/verdict-json.md)
    #[arg(long, conflicts_with = "text")]
    pub json: bool,
    /// Write an HTML page with plots to FILE (- for standard output), instead of the text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "json"])]
    pub html: Option<PathBuf>,
    /// Print text (the default)
    #[arg(long)]
    pub text: bool,
}

/// `ullage explain`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "ullage explain",
    "ullage explain max-map-count-exhausted",
    "ullage explain train.log",
])]
pub struct ExplainArguments {
    /// Id of a cause, or its beginning; or a log file, or - for standard input (default: list all causes)
    #[arg(add = complete::causes_and_files())]
    pub what: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `ullage check`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "ullage check",
    "ullage check --python .venv/bin/python",
    "ullage check --clean",
])]
pub struct CheckArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List shared memory left by your dead processes, and remove it after you confirm
    #[arg(long)]
    pub clean: bool,
    /// With --clean: remove everything listed, without asking
    #[arg(long, requires = "clean")]
    pub yes: bool,
    /// The jobs' Python, whose libraries are checked (default: python3 on $PATH)
    #[arg(long, value_name = "PATH", conflicts_with = "clean")]
    pub python: Option<PathBuf>,
}

/// `ullage snapshot`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage snapshot -o good.json", "ullage snapshot --python .venv/bin/python --deadline 30s"])]
pub struct SnapshotArguments {
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The jobs' Python (default: python3 on $PATH)
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// How long to wait for Python, which imports torch and numpy
    #[arg(long, value_name = "TIME", default_value = "1.8s", value_parser = parse_interval)]
    pub deadline: f64,
    /// Keep paths, host names and user names (default: removed)
    #[arg(long)]
    pub full: bool,
}

/// `ullage compare`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage compare good.json bad.json", "ullage compare good bad --json"])]
pub struct CompareArguments {
    /// The good one: a snapshot file, the name of a run or its beginning, or a directory
    #[arg(value_name = "GOOD", add = complete::runs_and_files())]
    pub good: String,
    /// The bad ones
    #[arg(required = true, value_name = "BAD", add = complete::runs_and_files())]
    pub others: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `ullage fleet`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "ullage fleet DIR",
    "ullage fleet DIR --job 4711 --json",
    "ullage fleet DIR --rows rows.parquet --html fleet.html",
])]
pub struct FleetArguments {
    /// Folder with recordings, at any depth (job=…/node=…/rank=…/attempt=…), or one recording
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Id of a job (default: the one that started last; - for recordings without a launcher)
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Print JSON (docs/guide/fleets.md)
    #[arg(long)]
    pub json: bool,
    /// Write an HTML page to FILE (- for standard output), instead of the text
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
    /// Also write a row for each recording to FILE
    #[arg(long, value_name = "FILE.parquet")]
    pub rows: Option<PathBuf>,
}

/// The process that copies for `ullage run --fleet`.
#[derive(Debug, Args)]
pub struct CopierArguments {
    /// Directory of the recording
    #[arg(long)]
    pub from: PathBuf,
    /// The shared disk
    #[arg(long)]
    pub to: PathBuf,
    /// Time between two copies; for tests
    #[arg(long, env = "ULLAGE_FLEET_EVERY", default_value = "60s", value_parser = parse_length)]
    pub every: f64,
}

/// `ullage runs`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage runs", "ullage runs --json", "ullage runs rm RUN", "ullage runs rm --older-than 30d", "ullage runs push RUN DIR"])]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// What to do with the recordings (default: list them)
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

/// `ullage runs rm` and `ullage runs push`.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// Remove recordings
    Rm {
        /// Names of runs, or their beginnings
        #[arg(required_unless_present = "older_than", value_name = "RUN", add = complete::runs())]
        runs: Vec<String>,
        /// Remove each run that nothing was written to for TIME, for example 30d; never one that is still recorded
        #[arg(long, value_name = "TIME", value_parser = parse_length)]
        older_than: Option<f64>,
    },
    /// Copy recordings to DIR on a shared disk, as `ullage run --fleet DIR` does while they are made
    #[command(allow_missing_positional = true)]
    Push {
        /// Name of a run, its beginning, or a directory (default: all of the launcher's job that this is part of, else the newest)
        #[arg(value_name = "RUN", add = complete::runs())]
        run: Option<String>,
        /// The shared disk
        #[arg(required = true, value_name = "DIR")]
        dir: PathBuf,
    },
}

/// `ullage export`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage export RUN --format parquet", "ullage export RUN --format csv -o DIR"])]
pub struct ExportArguments {
    /// Name of a run, its beginning, or a directory
    #[arg(add = complete::runs())]
    pub run: String,
    /// Output format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Directory for the files (default: RUN-parquet or RUN-csv here; standard output for JSON)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// Formats of `ullage export`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportFormat {
    /// One file per table, for data tools
    Parquet,
    /// One file per table, with a header; an empty field is a null
    Csv,
    /// One JSON object per line: {"sample": …} or {"event": …}
    Json,
}

/// `ullage completions`.
#[derive(Debug, Args)]
#[command(after_help = examples!["ullage completions zsh", "source <(ullage completions bash)"])]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

/// Shells that complete the words of `ullage`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// ~/.local/share/bash-completion/completions/ullage
    Bash,
    /// A file _ullage in a folder of $fpath
    Zsh,
    /// ~/.config/fish/completions/ullage.fish
    Fish,
}

impl Shell {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_copier_is_started_by_a_name_that_is_known() {
        let words = ["ullage", crate::fleet_copy::COPIER, "--from", "a", "--to", "b", "--every", "1s"];
        let Command::FleetCopier(copier) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("not the copier")
        };
        assert_eq!((copier.every, copier.to), (1.0, PathBuf::from("b")));
    }

    #[test]
    fn a_run_may_be_left_out_of_a_push() {
        for (words, name) in [(&["d"][..], None), (&["r", "d"], Some("r"))] {
            let parsed = Arguments::try_parse_from(["ullage", "runs", "push"].iter().chain(words)).unwrap();
            let Command::Runs(RunsArguments { action: Some(RunsAction::Push { run, dir }), .. }) =
                parsed.command
            else {
                panic!("not push")
            };
            assert_eq!((run.as_deref(), dir), (name, PathBuf::from("d")));
        }
        assert!(Arguments::try_parse_from(["ullage", "runs", "push"]).is_err());
    }

    #[test]
    fn flags_after_the_command_belong_to_the_job() {
        let parsed = Arguments::try_parse_from(["ullage", "run", "python", "-q", "--json", "x"]).unwrap();
        let Command::Run(run) = parsed.command else { panic!("not run") };
        assert_eq!(run.job.len(), 4);
        assert!(run.json.is_none() && !run.quiet);
    }

    #[test]
    fn flags_before_the_dashes_are_ours() {
        let parsed =
            Arguments::try_parse_from(["ullage", "run", "-q", "--memory-max", "1GiB", "--", "a", "--", "b"])
                .unwrap();
        let Command::Run(run) = parsed.command else { panic!("not run") };
        assert!(run.quiet);
        assert_eq!(run.memory_max, Some(1 << 30));
        assert_eq!(run.job, ["a", "--", "b"]);
    }

    #[test]
    fn every_command_has_help_with_examples() {
        for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let help = Arguments::try_parse_from(["ullage", "help", name]).unwrap_err().to_string();
            assert!(help.contains("Examples:\n  ullage "), "{help}");
            let longest = help.lines().find(|line| line.starts_with("  ullage ") && line.len() > 80);
            assert_eq!(longest, None, "{name}");
        }
    }

    #[test]
    fn no_command_and_unknown_flags_are_usage_errors() {
        for wrong in [
            vec!["ullage", "run"],
            vec!["ullage", "run", "--frobnicate", "x"],
            vec!["ullage", "run", "--frobnicate", "--", "x"],
            vec!["ullage", "run", "--memory-max", "lots", "x"],
            vec!["ullage", "check", "--yes"],
        ] {
            let error = Arguments::try_parse_from(wrong).unwrap_err();
            assert_eq!(error.exit_code(), 2);
        }
    }
}
