//! What may be typed: every command, flag and environment variable of `ullage`. What it means is decided
//! where it is used.

use crate::remedies::{parse_remedies, Remedies};
use crate::size::{parse_interval, parse_length, parse_percent, parse_size};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Sees where every byte of host memory of a multi-process PyTorch job goes, says which limit it meets next,
/// and names the cause when it dies.
#[derive(Debug, Parser)]
#[command(name = "ullage", version, disable_help_subcommand = true, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run COMMAND, watch it, and say why it died or grew
    Run(RunArguments),
    /// Watch a job that runs already, or see again how a recorded run went
    Watch(WatchArguments),
    /// Show the verdict of a run (default: the newest)
    Report(ReportArguments),
    /// Explain a cause, or a log of a job that failed without ullage
    Explain(ExplainArguments),
    /// Say whether this machine or container is fit for a multi-process PyTorch job
    Check(CheckArguments),
    /// Write the facts of this machine that change how memory behaves, to compare it with another
    Snapshot(SnapshotArguments),
    /// Rank the differences between a good machine or run and others by what they explain
    Compare(CompareArguments),
    /// List the recorded runs, or remove some
    Runs(RunsArguments),
    /// Give everything that a recording holds to other tools
    Export(ExportArguments),
}

/// `ullage run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Remove causes as well: apply the remedies in LIST (arena, nofile, zygote; -NAME leaves one out), or all but zygote
    #[arg(long, value_name = "LIST", env = "ULLAGE_FIX", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_parser = parse_remedies)]
    pub fix: Option<Remedies>,
    /// Budget for the whole job: at 90 % a warning, then SIGTERM, a grace, SIGKILL, and exit status 53
    #[arg(long, value_name = "SIZE", env = "ULLAGE_MEMORY_MAX", value_parser = parse_size)]
    pub memory_max: Option<u64>,
    /// Give the job the limits, variables, cores and /dev/shm of another machine, as far as they can be had here
    #[arg(long = "as", value_name = "SNAPSHOT", env = "ULLAGE_AS")]
    pub as_machine: Option<PathBuf>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", env = "ULLAGE_INTERVAL", default_value = "1s", value_parser = parse_interval)]
    pub interval: f64,
    /// CPU time that watching may take, in percent of one core
    #[arg(long, value_name = "PERCENT", env = "ULLAGE_WATCH_CPU", default_value = "0.5", value_parser = parse_percent)]
    pub watch_cpu: f64,
    /// Record into this directory instead of a new one under $ULLAGE_HOME
    #[arg(long, value_name = "DIR", env = "ULLAGE_RECORD")]
    pub record: Option<PathBuf>,
    /// Write the verdict as JSON to FILE (- for standard output) when the job has ended
    #[arg(long, value_name = "FILE", env = "ULLAGE_JSON")]
    pub json: Option<PathBuf>,
    /// Keep the agent out of the job's Pythons
    #[arg(long, env = "ULLAGE_NO_AGENT", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub no_agent: bool,
    /// Store arguments, addresses and messages as they are; otherwise what looks like a secret in them is replaced
    #[arg(long, env = "ULLAGE_KEEP_ARGUMENTS", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub keep_arguments: bool,
    /// Print the whole report when the job has ended, as `ullage report` does
    #[arg(short, long, env = "ULLAGE_VERBOSE", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true", conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print nothing but errors
    #[arg(short, long, env = "ULLAGE_QUIET", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub quiet: bool,
    /// The job: a program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub job: Vec<OsString>,
}

/// `ullage watch`.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The pid of a job's first process, or the name of a run, the beginning of one, or a directory (default: the newest run)
    #[arg(value_name = "RUN|PID")]
    pub what: Option<String>,
    /// Watch so long, then give the verdict; without it until the job ends, or Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    pub r#for: Option<f64>,
    /// Time between two lines
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_length)]
    pub every: f64,
    /// Time between two samples
    #[arg(long, value_name = "TIME", env = "ULLAGE_INTERVAL", default_value = "1s", value_parser = parse_interval)]
    pub interval: f64,
    /// CPU time that watching may take, in percent of one core
    #[arg(long, value_name = "PERCENT", env = "ULLAGE_WATCH_CPU", default_value = "0.5", value_parser = parse_percent)]
    pub watch_cpu: f64,
    /// Record into this directory instead of a new one under $ULLAGE_HOME
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Store arguments, addresses and messages as they are; otherwise what looks like a secret in them is replaced
    #[arg(long, env = "ULLAGE_KEEP_ARGUMENTS", value_parser = clap::builder::BoolishValueParser::new(), num_args = 0, default_missing_value = "true")]
    pub keep_arguments: bool,
    /// Write the verdict as JSON to FILE (- for standard output instead of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `ullage report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Name of a run, the beginning of one, or a directory
    pub run: Option<String>,
    /// As JSON, schema 1
    #[arg(long, conflicts_with = "text")]
    pub json: bool,
    /// As text (the default)
    #[arg(long)]
    pub text: bool,
}

/// `ullage explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A cause (max-map-count-exhausted), a log file, or - for standard input; nothing: the list of causes
    pub what: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `ullage check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// List the shared memory that dead processes of yours left, and remove what you confirm
    #[arg(long)]
    pub clean: bool,
    /// With --clean: remove all that is listed, and ask nothing
    #[arg(long, requires = "clean")]
    pub yes: bool,
    /// The Python that runs the jobs, whose libraries are looked at (default: python3 on $PATH)
    #[arg(long, value_name = "PATH", conflicts_with = "clean")]
    pub python: Option<PathBuf>,
}

/// `ullage snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The Python that runs the jobs (default: python3 on $PATH)
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// How long to wait for Python, which imports torch and numpy to look at them
    #[arg(long, value_name = "TIME", default_value = "1.8s", value_parser = parse_interval)]
    pub deadline: f64,
    /// Keep paths, host and user names, which are left out otherwise
    #[arg(long)]
    pub full: bool,
}

/// `ullage compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The good one: a snapshot, the name of a run, the beginning of one, or a directory
    #[arg(value_name = "GOOD")]
    pub good: String,
    /// The others
    #[arg(required = true, value_name = "BAD")]
    pub others: Vec<String>,
    /// As JSON, schema 1
    #[arg(long)]
    pub json: bool,
}

/// `ullage runs`.
#[derive(Debug, Args)]
pub struct RunsArguments {
    /// What to do with them (default: list)
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

/// `ullage runs rm`.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// Remove recordings
    Rm {
        /// Names of runs, or the beginnings of names
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
}

/// `ullage export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Name of a run, the beginning of one, or a directory
    pub run: String,
    /// How
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Directory for the files; default: RUN-parquet or RUN-csv here, and standard output for JSON
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
}

/// Formats of `ullage export`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportFormat {
    /// One file a table, for data tools
    Parquet,
    /// One file a table, with a header; an empty field is a null
    Csv,
    /// One JSON object a line: {"sample": …} or {"event": …}
    Json,
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
