//! When is what a cause holds in memory enough to be it: copies, batches in flight, queues, generated code?

/// Made by the job's own small steps (graphs, contexts): worth a note from here on.
pub(crate) const SMALL_NOTE_BYTES: u64 = 16 << 20;
/// Lists and buffers that the job asked for are worth a note from here on.
pub(crate) const BUFFER_NOTE_BYTES: u64 = 128 << 20;

/// Contexts of autograd functions more than before,
pub(crate) const CONTEXTS_MORE: u64 = 16;
/// and what they save is worth a warning from here on.
pub(crate) const CONTEXTS_WARN_BYTES: u64 = 64 << 20;
/// Compiled graphs more than before: a model has a few,
pub(crate) const GRAPHS_MORE: u64 = 8;
/// and one takes no more than this.
pub(crate) const GRAPH_BYTES: u64 = 16 << 20;
/// Code that a model of many layers with fixed shapes may generate.
pub(crate) const GENERATED_BYTES: u64 = 64 << 20;
/// Shapes that keep coming go on with it: of all of it, so much in the second half of its time,
pub(crate) const GENERATED_LATE: f64 = 0.1;
/// and so much where it goes on,
pub(crate) const GENERATED_ONGOING: f64 = 0.25;
/// read as long before the end as the half took, or so long: the larger of both.
pub(crate) const GENERATED_AGAIN_S: f64 = 2.0;

/// Copied by every worker: an interpreter that only runs copies as much of what torch has left in the heap.
pub(crate) const WORKER_COPIES_BYTES: u64 = 24 << 20;
/// Faults of a worker of which nobody spoke: so many times as much.
pub(crate) const WORKER_FAULTS_TIMES: u64 = 4;
/// A dataset that weighs less is not worth a word in a worker,
pub(crate) const DATASET_BYTES: u64 = 16 << 20;
/// nor in a rank.
pub(crate) const RANK_DATASET_BYTES: u64 = 32 << 20;
/// Of an estimate, what a process must hold: memory that is not there is no copy.
pub(crate) const HOLDS_COPY: f64 = 0.8;
/// Of a limit, what processes that filled it together can have had, as one was read when it was killed: the others were read a little
/// earlier, or later.
pub(crate) const FILLED_TOGETHER: f64 = 1.25;
/// Copies of one thing: the least is so much of the most; what ranks read of it differs a little,
pub(crate) const RANKS_ALIKE: f64 = 0.9;
/// killed as they load, they are at different places of the same;
pub(crate) const COPY_AT_KILL: f64 = 0.6;
/// and what workers import does not.
pub(crate) const IMPORTS_ALIKE: f64 = 0.95;

/// Batches in flight: of the job's memory, when that ran out.
pub(crate) const IN_FLIGHT: f64 = 0.3;
/// A worker that failed so soon after its loader was made filled /dev/shm with batches. In any run: the first of them.
pub(crate) const LOADER_BEGINS_S: f64 = 3.0;
/// Batches out of order: a failure so long after them is theirs. In any run: a DataLoader notices a dead worker in 5 s.
pub(crate) const REORDER_BEFORE_S: f64 = 20.0;
/// Of what waits in a queue by its items, what is shown in memory.
pub(crate) const QUEUE_SHOWN: f64 = 0.4;
/// It grows to the end where it waits so much of the process's life.
pub(crate) const QUEUE_LIVED: f64 = 0.45;
/// List of a sampler: of its weight, one n-th came as memory ran out.
pub(crate) const LIST_PART: u64 = 4;

/// An object was sent so long before a kill. In any run: one collective takes so long, not the job.
pub(crate) const OBJECT_BEFORE_S: f64 = 30.0;
/// A process that was not read since may be killed within this time. In any run: five ticks.
pub(crate) const OBJECT_UNREAD_S: f64 = 5.0;
/// The ranks took one n-th of the job's peak until one was killed: the kill comes in the midst of it.
pub(crate) const OBJECT_TAKEN_PART: u64 = 8;
