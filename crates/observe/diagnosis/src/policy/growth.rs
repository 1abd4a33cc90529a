//! When is memory that came growth, of which kind is it, and does what was found explain it?

/// Growth of less is none: an interpreter that only runs scatters by less. And of what the job holds.
pub(crate) const GROWTH_BYTES: u64 = 32 << 20;
pub(crate) const GROWTH_SHARE: f64 = 0.05;
/// Of many processes that grow together, each grows by one n-th of that at least.
pub(crate) const OF_MANY_PART: f64 = 16.0;

/// How long loading libraries may take, of the life of a process: the smaller of both, without what it waited for a core. On a slow
/// disk torch takes as long.
pub(crate) const LOADING_S: f64 = 15.0;
pub(crate) const LOADING_SHARE: f64 = 1.0 / 3.0;
/// Libraries are mapped when so much of them is,
pub(crate) const LOADED: f64 = 0.9;
/// and may still be read from disk so long afterwards. In any run: a program is loaded once.
pub(crate) const LOADS_ON_S: f64 = 2.0;
/// The first part of a run, in which the processes begin that it is about.
pub(crate) const EARLY: f64 = 0.25;
/// A process that ended longer before the end is no part of what is there, of its life: the larger of both, so that of
/// processes that follow each other only the last one is,
pub(crate) const GONE_S: f64 = 5.0;
pub(crate) const GONE_SHARE: f64 = 0.1;
/// but no more than what a job takes to save and to clean up, however long it was.
pub(crate) const GONE_MOST_S: f64 = 600.0;
/// What rests since so early was the start of the program, of the run: the larger of both,
pub(crate) const START_S: f64 = 4.0;
pub(crate) const START_SHARE: f64 = 0.12;
/// but no more than what reading a large model takes (100 GB at 170 MB a second): a start does not stretch with the run.
pub(crate) const START_MOST_S: f64 = 600.0;
/// A rise that began in this part of the run and was over in that one is a warm-up.
pub(crate) const WARM_UP_BEGINS: f64 = 0.25;
pub(crate) const WARM_UP_ENDS: f64 = 0.6;
/// What came to rest and was less than this share of what the job held is no story.
pub(crate) const RESTED_SHARE: f64 = 0.1;
/// Mapped files that came to rest below this are code,
pub(crate) const LATE_FILES_BYTES: u64 = 64 << 20;
/// and so are those that came so early without a data file. In any run: a program is loaded once, here from a slow disk.
pub(crate) const CODE_S: f64 = 15.0;
/// Of what rises, a worker before it took and gave back as much: no growth.
pub(crate) const GIVEN_BACK: f64 = 0.5;
/// Every forked process copies a share of what it began with, at once: of a Python with torch some 50 MiB.
pub(crate) const COPIED_SHARE: f64 = 0.15;
pub(crate) const COPIED_BYTES: u64 = 64 << 20;
/// Copies whose time was not read go on where they came in so late a part of the process's life.
pub(crate) const COPIED_ONGOING: f64 = 0.75;
/// Of a class, or of all that grew: below it a sentence says which share it is of.
pub(crate) const ALL_OF_IT: f64 = 0.95;
/// A line that allocated this share is named.
pub(crate) const LINE_NAMED: f64 = 0.1;

/// Descriptors, mappings or processes more than at first: what a healthy program adds in its course is less.
pub(crate) const DESCRIPTORS_MORE: f64 = 100.0;
pub(crate) const MAPPINGS_MORE: f64 = 1000.0;
pub(crate) const PROCESSES_MORE: f64 = 8.0;
/// A descriptor or mapping holds less than this, or its bytes are the story.
pub(crate) const EACH_HANDLE_BYTES: f64 = (64 << 10) as f64;
/// Swapped in and out in the second half of a run: of the machine, and as fast as SWAP_PAGES on average: any machine
/// moves as much within days;
pub(crate) const SWAPPED_BYTES: f64 = (32 << 20) as f64;
/// and of the job's own in swap: less, and a machine that thrashes is not this job's trouble.
pub(crate) const OWN_SWAP_BYTES: f64 = (16 << 20) as f64;
/// Less free memory than this share: files push out other files, and the cache does not grow.
pub(crate) const CACHE_FULL: f64 = 0.1;

/// A reading that saw this share of the growth stands for all of it.
pub(crate) const SAW_ENOUGH: f64 = 0.4;
/// A walk from before so little of it was made before it.
pub(crate) const SAW_NOTHING: f64 = 0.1;
/// A reading just after the growth began is one from before it. In any run: half a tick.
pub(crate) const BEFORE_GROWTH_S: f64 = 0.5;

/// After the agent's last message, what a process gives back within this time, seconds, goes with its interpreter (seen: 270 MiB in
/// 2 s beside four other processes). In any run: it is a matter of what is freed. What goes on for longer are its threads.
pub(crate) const TAKEN_DOWN_S: f64 = 60.0;

/// Container or graph: of the growth, what it must explain to be named,
pub(crate) const EXPLAINS: f64 = 0.3;
/// and to be certain.
pub(crate) const EXPLAINS_MOST: f64 = 0.5;
/// A container that only becomes longer, or growth without a name, is a warning from here on, and of the process.
pub(crate) const GROWTH_WARN_BYTES: u64 = 96 << 20;
pub(crate) const GROWTH_WARN_SHARE: f64 = 0.25;
/// Views keep so many times what they show, or they are no views of a larger storage.
pub(crate) const VIEWS_KEEP: u64 = 4;
/// Hooks that one module has more than before: registered in each step, not once.
pub(crate) const HOOKS_MORE: u64 = 16;
/// Free in an allocator, of a process's private memory: what every allocator keeps is less.
pub(crate) const RETAINED_SHARE: f64 = 0.2;
/// A reading that old says nothing of a process that held much more or less then, of its life: the larger of both,
pub(crate) const RECENT_S: f64 = 5.0;
pub(crate) const RECENT_SHARE: f64 = 0.1;
/// but no more than this. In any run: memory is given back and taken at once, however long a process has lived. The agent looks
/// every twentieth of its life, so that in a long one the other answer, whether it holds as much, is the usual one.
pub(crate) const RECENT_MOST_S: f64 = 60.0;
pub(crate) const HELD_MORE: f64 = 0.25;
/// Memory ran out, and this share of it was retained.
pub(crate) const RETAINED_MUCH: f64 = 0.3;
/// It grows by what it retains where much of that stands for this last share of its growth.
pub(crate) const RETAINED_LATE: f64 = 1.0 / 3.0;
/// So much of it: of a straight line two thirds stand all through its last third, and of what goes back next to nothing.
pub(crate) const RETAINED_STANDS: f64 = 1.0 / 3.0;
/// Threads from which arenas count: fewer share those that every process has.
pub(crate) const ARENA_THREADS: f64 = 4.0;
/// What a piece of Python takes where readings came too late to say: between the smallest and most objects.
pub(crate) const PIECE_BYTES: f64 = 64.0;
/// So many more pieces say what one takes.
pub(crate) const PIECES_MORE: f64 = 100_000.0;

/// Unnamed growth: of what a process lived since it had loaded, a rise that is no phase of it,
pub(crate) const UNNAMED_LASTED: f64 = 0.5;
/// or this part, where it was read so often and is this share of what the process holds.
pub(crate) const UNNAMED_LATE: f64 = 0.25;
pub(crate) const UNNAMED_LATE_READINGS: usize = 32;
pub(crate) const UNNAMED_LATE_SHARE: f64 = 0.5;
/// One of many processes that grow together.
pub(crate) const UNNAMED_EACH_BYTES: f64 = GROWTH_WARN_BYTES as f64 / OF_MANY_PART;
/// A rise of which a part is faster, or slower, is one where it is so many times as fast at least, and at most: a program runs at half
/// of its speed beside others, and what it loads as it starts comes ten times as fast as a leak.
pub(crate) const ONE_RISE: [f64; 2] = [0.5, 2.5];
/// Intervals that it lasts: of the run's own reading, however far apart.
pub(crate) const UNNAMED_INTERVALS: f64 = 3.0;
/// Intervals within which a process that ends is read for the last time: what was freed longer before was freed by the work.
pub(crate) const UNNAMED_END_INTERVALS: f64 = 2.0;
/// Of what counts as much in a whole rise, the part that counts in its second half.
pub(crate) const UNNAMED_HALF: f64 = 0.5;
/// Of a rise: what is given back at once is no small swing, and a high-water mark that rises by less stands still.
pub(crate) const UNNAMED_GIVEN_BACK: f64 = 0.25;

/// Touched buffer: worth a word from this share of private memory on.
pub(crate) const TOUCHED_SHARE: f64 = 0.2;
/// Address space that came meanwhile, of the rise: more, and it was allocated, not touched.
pub(crate) const TOUCHED_STILL: f64 = 0.1;
/// By this part of the rise the buffer was there,
pub(crate) const TOUCHED_MADE: f64 = 0.2;
/// and malloc took no more than this of it.
pub(crate) const TOUCHED_TAKEN: f64 = 0.2;
/// Of the rise, what readings must have seen that are to say what it was.
pub(crate) const TOUCHED_SEEN: f64 = 0.5;
/// A reading just after the end of the rise still is of it. In any run: a tick.
pub(crate) const TOUCHED_AFTER_S: f64 = 1.0;

/// Workers that live on: growth of one that is worth a look,
pub(crate) const WORKER_BYTES: f64 = (16 << 20) as f64;
/// for how long, of its life: the larger of both; a cache that warms up is full by then.
pub(crate) const WORKER_LASTED_S: f64 = 15.0;
pub(crate) const WORKER_LASTED: f64 = 0.5;
/// Workers alive at the end were read so long before it. In any run: two ticks.
pub(crate) const WORKER_THERE_S: f64 = 2.0;
/// Python 3.14: rise of private memory between two collections that is worth a word.
pub(crate) const UNCOLLECTED_BYTES: u64 = 512 << 20;

/// A figure that rose to its end was at rest before where, in this part of its life,
pub(crate) const REST_FROM: f64 = 0.25;
pub(crate) const REST_UNTIL: f64 = 0.6;
/// read so many times,
pub(crate) const REST_READINGS: usize = 4;
/// it swung by at most this share of what came later.
pub(crate) const REST_SWING: f64 = 0.2;
/// Or had come as far as that until shortly before its end, for at least this share of its life.
pub(crate) const REST_BEFORE: f64 = 0.2;
