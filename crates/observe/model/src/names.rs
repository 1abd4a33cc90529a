//! Names that two sides must agree on: environment variables and file names.

/// Path of the agent's socket; its presence is what switches the agent on inside a Python.
pub const ENV_AGENT_SOCKET: &str = "ULLAGE_AGENT_SOCKET";
/// How many seccomp filters `ullage run` itself is behind: the agent stays out of a Python that is behind more.
pub const ENV_AGENT_FILTERS: &str = "ULLAGE_AGENT_FILTERS";
/// `1` keeps the agent and the Python package out of the job.
pub const ENV_DISABLE: &str = "ULLAGE_DISABLE";
/// The remedies of `--fix`, as a list; read by the agent too.
pub const ENV_FIX: &str = "ULLAGE_FIX";
/// The directory of all recordings.
pub const ENV_HOME: &str = "ULLAGE_HOME";
/// Bytes that all recordings together may take.
pub const ENV_RECORDINGS_MAX: &str = "ULLAGE_RECORDINGS_MAX";
/// Where torchrun looks for a rank's error; written when set and the job left none.
pub const ENV_TORCHELASTIC_ERROR_FILE: &str = "TORCHELASTIC_ERROR_FILE";
/// Facts of a run: command, machine, outcome.
pub const FILE_RUN: &str = "run.json";
/// How a live run stands: derived, replaced at each tick, gone when the run ends.
pub const FILE_NOW: &str = "now.json";
/// The verdict of a finished run: derived, a cache of one version of ullage.
pub const FILE_VERDICT: &str = "verdict.json";
/// The live tails in the copy of a recording on a shared disk.
pub const FILE_TAILS: &str = "tails.zst";
/// Name of the arena's memfd (`crates/share/arena/src/mapping.rs`).
pub const MEMFD_ARENA: &str = "ullage-arena";
/// Names of memfds that hold shared data: `ullage.share`, and a dataset on its way to a zygote (`python/native`,
/// `python/ullage/_shipping.py`).
pub const MEMFD_SHARES: [&str; 2] = ["ullage-shared", "ullage-dataset"];
