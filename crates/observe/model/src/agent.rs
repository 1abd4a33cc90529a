//! What the agent inside a Python of the job says: one JSON object a datagram, tagged by `kind`.
//!
//! Written by `python/ullage/agent/agent.py`; every field may be absent, because at a limit the agent says
//! what it can. Numbers are counts or bytes.

use crate::{Census, Collective, Facts, Sites, TorchCount, Waiting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One message of the agent. `pid` is checked against the sender's credentials by the receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentMessage {
    /// A Python started and the agent is in it.
    Hello {
        /// `3.11.7`.
        python: String,
        /// True in a child that was forked (no new interpreter).
        #[serde(default)]
        forked: bool,
        /// False where the Python cannot load `python/agent`: it tells of exceptions only.
        #[serde(default)]
        native: Option<bool>,
        /// TORCHELASTIC_RESTART_COUNT: how often torchrun had started its workers again.
        #[serde(default)]
        attempt: Option<u32>,
    },
    /// The job marks this moment; said by the package or by `ullage mark`, not by the agent itself.
    Mark {
        /// What it is.
        text: String,
    },
    /// What this Python is made of, once a program: when it has imported torch, else as it ends.
    Inside {
        /// Versions, builds, mapped libraries and variables by the names of a snapshot.
        facts: Facts,
    },
    /// A `multiprocessing.Process` began to run in this process.
    Process {
        /// `Process-1`, as CPython names it.
        name: String,
        /// Module and name of the target, `torch.utils.data._utils.worker._worker_loop`.
        #[serde(default)]
        target: String,
        /// Number of the loader worker, where it is one.
        #[serde(default)]
        worker: Option<u32>,
        /// `fork`, `spawn`, `forkserver`: how this process was started.
        #[serde(default)]
        start_method: Option<String>,
        /// RssAnon before its target runs, bytes. Not told by forked processes.
        #[serde(default)]
        anonymous: Option<u64>,
        /// What the dataset of a loader worker weighs here, before its first item. Not told by forked processes.
        #[serde(default)]
        dataset: Option<Weight>,
        /// What any other process was given weighs here: its target and arguments, before it runs. Not told by forked
        /// processes.
        #[serde(default)]
        arguments: Option<Weight>,
    },
    /// Large globals of the program's own modules in a worker of a Pool or an executor, after a task of it.
    Holds {
        /// The largest ones.
        globals: Vec<Held>,
    },
    /// A queue holds twice as many items as when it was last told of.
    Backlog(Backlog),
    /// A DataLoader makes a multi-process iterator.
    Loader(Box<LoaderSettings>),
    /// An exception leaves a main program, a Process, a thread, a loader or an executor worker.
    Exception(Box<ExceptionReport>),
    /// A remedy of `--fix` that the job itself applies was applied, or not.
    Fix {
        /// Its name, `arena`.
        remedy: String,
        /// Why it could not be applied; none where it was.
        #[serde(default)]
        failed: Option<String>,
    },
    /// What holds the private memory of this Python, at a moment in passing.
    Memory {
        /// By name; bytes, but for `blocks`. Those that could not be read are left out.
        #[serde(default)]
        figures: BTreeMap<String, f64>,
    },
    /// Much memory came, and this is where the program's threads were then.
    Work {
        /// Of each thread, the innermost functions, the outermost of them first: `train.py:31 load`.
        #[serde(default)]
        stacks: Vec<Vec<String>>,
    },
    /// What a library keeps in this Python has become more.
    #[serde(rename = "kept")]
    TorchCount(TorchCount),
    /// Finished batches wait behind a late one.
    Waiting(Waiting),
    /// An object goes through a collective.
    Collective(Collective),
    /// What holds the memory by which this Python grows.
    Census(Box<Census>),
    /// Where that is allocated which no name holds.
    Sites(Sites),
    /// The process ends normally; the figures at that moment.
    Bye {
        /// Allocator, collector and other figures by name.
        #[serde(default)]
        figures: BTreeMap<String, f64>,
        /// What iterators that keep all they have seen hold, in a process that made loaders.
        #[serde(default, rename = "kept_by_iterators")]
        retained_by_iterators: Option<RetainedByIterators>,
    },
}

/// What glibc's malloc said of itself at such a moment; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MallocFigures {
    /// In use in its heap and arenas.
    pub used: f64,
    /// In use in blocks that are mappings of their own.
    pub mapped: f64,
    /// Free in heap and arenas, and kept.
    pub free: f64,
    /// Of these, what `malloc_trim(0)` would give back.
    pub trimmable: f64,
    /// What is free in the first heap, and how many heaps there are with it: the others are arenas of threads. None of a
    /// version that did not tell.
    pub arenas: Option<(f64, f64)>,
}

impl MallocFigures {
    /// Out of the figures of a look; none where malloc was not asked, or could not be.
    pub fn of(figures: &BTreeMap<String, f64>) -> Option<MallocFigures> {
        Some(MallocFigures {
            used: figure(figures, "malloc_used")?,
            mapped: figure(figures, "malloc_mapped").unwrap_or(0.0),
            free: figure(figures, "malloc_free")?,
            trimmable: figure(figures, "malloc_trimmable").unwrap_or(0.0),
            arenas: figure(figures, "malloc_free_main").zip(figure(figures, "malloc_arenas")),
        })
    }
}

/// A figure of this name that can be one.
pub fn figure(figures: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    figures.get(name).copied().filter(|value| value.is_finite() && *value >= 0.0)
}

/// Settings of one DataLoader iterator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoaderSettings {
    /// num_workers.
    pub workers: u32,
    /// Start method of its workers: `fork`, `spawn`, `forkserver`.
    pub start_method: Option<String>,
    /// True where multiprocessing_context was not given, so that the process's default decided.
    pub start_method_is_default: bool,
    /// torch.multiprocessing.get_sharing_strategy().
    pub sharing_strategy: Option<String>,
    /// batch_size.
    pub batch_size: Option<u64>,
    /// prefetch_factor.
    pub prefetch_factor: Option<u64>,
    /// pin_memory.
    pub pin_memory: bool,
    /// persistent_workers.
    pub persistent_workers: bool,
    /// Type of the dataset, `__main__.Tensors`.
    pub dataset: Option<String>,
    /// len(dataset), where it has one.
    pub dataset_len: Option<u64>,
    /// Length of the list of indices that its sampler makes for each epoch; none where it makes none, as far as known.
    pub index_list: Option<u64>,
    /// What it weighs in the process that makes the iterator.
    pub weight: Option<Weight>,
}

/// Bytes that an object holds with all that hangs below it, estimated from a bounded number of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weight {
    /// Python objects of less than 64 KiB each: what reading writes reference counts into.
    pub objects: u64,
    /// Payload in larger pieces, numpy's mostly. What lies in mapped files or in another's buffer is left out.
    pub arrays: u64,
    /// Storages of torch tensors of the CPU.
    pub tensors: u64,
}

impl Weight {
    /// What a spawned process gets a copy of: torch sends its storages through shared memory.
    pub fn copied_by_pickle(&self) -> u64 {
        self.objects.saturating_add(self.arrays)
    }

    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.copied_by_pickle().saturating_add(self.tensors)
    }
}

/// Items that were put into a queue and not taken out of it yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backlog {
    /// Tells the queues of a process apart.
    pub number: u64,
    /// `multiprocessing.Queue` (what its process has not sent yet), `queue.Queue`, `asyncio.Queue`, `Pool.imap`.
    pub of: String,
    /// Items in it.
    pub items: u64,
    /// The most that it takes; none where it has no bound.
    pub maxsize: Option<u64>,
    /// What the item put last weighs.
    pub item: Option<Weight>,
    /// Seconds since it was made.
    pub age_s: f64,
}

impl Backlog {
    /// What waits in it, where its last item stands for all.
    pub fn bytes(&self) -> u64 {
        self.item.map_or(0, |item| item.bytes().saturating_mul(self.items))
    }
}

/// What `itertools.cycle` and `itertools.tee` keep for later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetainedByIterators {
    /// Items that cycle objects keep, of all of them.
    pub cycle: u64,
    /// Items that tee objects keep.
    pub tee: u64,
    /// What those items weigh.
    pub weight: Weight,
}

/// A large global variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// Its name, with the module where that is not the main one.
    pub name: String,
    /// Its type, `numpy.ndarray`.
    pub type_name: String,
    /// What it weighs.
    pub bytes: u64,
    /// A hash of bytes picked from the same places of it in every process; none for what is no buffer.
    pub picked: Option<String>,
}

/// An exception, as it leaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExceptionReport {
    /// Where it left: `main`, `process`, `thread`, `loader-worker`, `executor-worker`.
    pub left: String,
    /// Name of the `Process` or thread.
    pub name: String,
    /// Type name, `RuntimeError`.
    pub type_name: String,
    /// Text, at most 2000 characters.
    pub text: String,
    /// errno, for an OSError.
    pub errno: Option<i32>,
    /// file, line and function of each frame, innermost last, at most 40, `…/torch/multiprocessing/reductions.py:557 reduce_storage`.
    pub stack: Vec<String>,
    /// Type and text of `__cause__`/`__context__`, innermost last.
    pub chain: Vec<String>,
    /// Counts taken in the process at that moment.
    pub counts: CountsAtFailure,
    /// Settings of the last loader iterator that this process began to make.
    pub loader: Option<LoaderSettings>,
    /// multiprocessing.get_start_method(allow_none=True).
    pub start_method: Option<String>,
    /// torch.multiprocessing.get_sharing_strategy().
    pub sharing_strategy: Option<String>,
    /// How this process was started, where multiprocessing started it.
    pub started_by: Option<String>,
    /// torch.__version__.
    pub torch: Option<String>,
    /// True where the process has initialised CUDA.
    pub cuda_initialized: Option<bool>,
}

/// Counts inside a process at the moment of a failure. None: could not be counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountsAtFailure {
    /// Mappings as the kernel counts them (`[vsyscall]` left out).
    pub mappings: Option<u64>,
    /// Of these, torch's shared segments.
    pub mappings_torch: Option<u64>,
    /// Bytes asked for by the torch segments' names is not known; their address space is this.
    pub mappings_torch_bytes: Option<u64>,
    /// vm.max_map_count as read in the process.
    pub max_map_count: Option<u64>,
    /// Open descriptors.
    pub fds: Option<u64>,
    /// Of these, links to torch's segments.
    pub fds_torch: Option<u64>,
    /// What most of them lead to, and how many: folders of files, with a slash at their end, or `socket`, `pipe`.
    pub fd_places: Vec<(String, u64)>,
    /// RLIMIT_NOFILE soft at that moment.
    pub nofile: Option<u64>,
    /// RLIMIT_NOFILE hard; absent where unlimited.
    pub nofile_hard: Option<u64>,
    /// RLIMIT_AS soft; absent where unlimited.
    pub address_space_limit: Option<u64>,
    /// VmSize.
    pub virtual_size: Option<u64>,
    /// VmRSS.
    pub resident: Option<u64>,
    /// RLIMIT_NPROC soft; absent where unlimited.
    pub nproc: Option<u64>,
    /// Threads of this process.
    pub threads: Option<u64>,
    /// /dev/shm bytes in use, size, inodes in use, inodes.
    pub shm_used: Option<u64>,
    /// Size of /dev/shm.
    pub shm_size: Option<u64>,
    /// Inodes in use in /dev/shm.
    pub shm_inodes_used: Option<u64>,
    /// Inodes of /dev/shm.
    pub shm_inodes: Option<u64>,
    /// Directory of tempfile.gettempdir() where already known, free bytes of it.
    pub tmp_free: Option<u64>,
    /// Path named by the error (OSError.filename), and free bytes of its filesystem.
    pub path: Option<String>,
    /// Free bytes there.
    pub path_free: Option<u64>,
    /// Free inodes there.
    pub path_inodes_free: Option<u64>,
    /// Committed_AS and CommitLimit of /proc/meminfo, bytes.
    pub committed: Option<u64>,
    /// CommitLimit.
    pub commit_limit: Option<u64>,
    /// Live torch tensors seen by the collector, and those shared.
    pub tensors: Option<u64>,
    /// Of these in shared memory.
    pub tensors_shared: Option<u64>,
    /// What iterators that keep all they have seen hold, in a process that made loaders.
    #[serde(rename = "kept_by_iterators")]
    pub retained_by_iterators: Option<RetainedByIterators>,
}

impl AgentMessage {
    /// The exception report, where this is one.
    pub fn exception(&self) -> Option<&ExceptionReport> {
        match self {
            AgentMessage::Exception(report) => Some(report),
            _ => None,
        }
    }
}
