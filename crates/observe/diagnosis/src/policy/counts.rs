//! How many threads, processes, descriptors, segments are more than a healthy job has?

/// Threads more than before that are no pool that fills, where nothing failed,
pub(crate) const THREADS_MORE: f64 = 100.0;
/// watched for so long. In any run: a pool starts all of its threads within seconds.
pub(crate) const THREADS_LASTED_S: f64 = 10.0;
/// So many more are enough where the next could not be started.
pub(crate) const THREADS_REFUSED: f64 = 24.0;
/// Libraries that may each start as many threads as the machine has cores, when they are imported: OpenMP and OpenBLAS.
pub(crate) const LIBRARY_POOLS: u64 = 2;
/// Where they are as many as no pool has, or rose for this long through the middle of their rise,
pub(crate) const THREADS_CAME_S: f64 = 1.0;
/// which is all of it but this share at either end, and by that share at least.
pub(crate) const THREADS_RISE_END: f64 = 0.25;
/// And they are this many times as many as at first: less is a pool beside those of torch.
pub(crate) const THREADS_TIMES: f64 = 3.0;
/// A rate from here on is written without a fraction.
pub(crate) const WHOLE_RATE: f64 = 10.0;
/// Threads that any Python with torch has besides those that compute.
pub(crate) const OTHER_THREADS: u64 = 8;
/// The machine's cores, so many times those allowed: a job sized by the machine waits for itself.
pub(crate) const CORES_TIMES: u64 = 4;
/// A stack from here on is no usual size.
pub(crate) const LARGE_STACK_BYTES: u64 = 256 << 20;

/// Process groups more than at first: a program's start makes fewer.
pub(crate) const GROUPS_MORE: u64 = 12;
/// Threads and descriptors that one group has, at most.
pub(crate) const OF_A_GROUP: f64 = 8.0;

/// Zombies: fewer may be a batch that is about to be reaped,
pub(crate) const ZOMBIES: f64 = 10.0;
/// and of the most, so many are left in the end where nobody reaps.
pub(crate) const ZOMBIES_LEFT: f64 = 0.8;
/// A process that exits hands its zombies on within this time. In any run: its exit, half a second.
pub(crate) const EXIT_TAKES_NS: u64 = 500_000_000;
/// Iterators whose workers live at one time: an evaluation loader or two beside the first is healthy.
pub(crate) const GENERATIONS: usize = 5;
/// Of all workers that were started, so many live at once: most were never ended.
pub(crate) const GENERATIONS_ALIVE: f64 = 0.75;
/// A process left behind by those who started later uses no more of the time since for itself: it waits for work that
/// never comes, and only looks at a clock.
pub(crate) const LEFT_BEHIND: f64 = 0.02;
/// Workers of one iterator are started within this time, in clock ticks of 10 ms. In any run: one loop of forks.
pub(crate) const GENERATION_TICKS: u64 = 30;
/// Programs that workers started, seen at least: fewer is a tool that is asked once.
pub(crate) const PROGRAMS_SEEN: usize = 10;
/// Managers of shared memory more than processes that share: each of those has one.
pub(crate) const MANAGERS: usize = 8;

/// Segments of torch in a process that nobody spoke from: more than its loader's prefetched batches.
pub(crate) const UNHEARD_SEGMENTS: u64 = 48;
/// So many below the number that fails: what was given back as the exception left.
pub(crate) const TENSORS_CLOSED: u64 = 10;
/// System V segments held after the end of a run that was well: from here on a warning.
pub(crate) const SEGMENTS_LEFT_BYTES: u64 = 64 << 20;
/// RLIMIT_MEMLOCK from here on is no default: somebody set it for RDMA.
pub(crate) const LARGE_MEMLOCK_BYTES: u64 = 4 << 30;

/// A worker whose parent was killed lives on as an orphan from here on, seconds: torch's workers ask every 5 s whether it lives
/// (MP_STATUS_CHECK_INTERVAL), and leave. In any run: it is torch's constant, twice.
pub(crate) const ORPHANED_S: f64 = 10.0;
/// Processes of one program, each left behind by another parent: one may be meant to stay, and two be a server and its successor.
pub(crate) const ORPHANED_TIMES: usize = 3;
/// How far up an orphan's ancestors are gone through: a script, a program, a launcher and its agent are four. Bounds the work where a
/// pid was given out again; it decides nothing else.
pub(crate) const MOST_ANCESTORS: usize = 16;
/// Entries that a remedy bounds a cache by, where nothing is known of it; one that was seen is bounded below what it had. It
/// decides nothing.
pub(crate) const CACHE_BOUND: u64 = 1024;
