//! When is it the machine or the cgroup, and not what the job holds: cache, kernel memory, swap, neighbours, left-over files?

use ullage_model::At;

/// Charged to a cgroup before the job did anything, of its limit,
pub(crate) const LEFTOVER_SHARE: f64 = 0.2;
/// as read by then; a later first reading is not one of the beginning. In any run: its first three ticks.
pub(crate) const LEFTOVER_READ_BY: At = At(3_000_000_000);
/// Stale files: share of /dev/shm from which its loss is felt.
pub(crate) const STALE_SHARE: f64 = 0.25;
/// No program that has just been started has written into /dev/shm by then. In any run: 20 ms after its start.
pub(crate) const STALE_READ_BY: At = At(20_000_000);
/// In a run that was well they are worth a note from here on.
pub(crate) const STALE_NOTE_BYTES: u64 = 256 << 20;
/// Up to here a /dev/shm fills within a tick,
pub(crate) const FILLS_AT_ONCE_BYTES: u64 = 1 << 30;
/// where one n-th of it was in use.
pub(crate) const FILLS_AT_ONCE_PART: u64 = 4;
/// A /dev/shm so full may have refused what mappings are blamed for.
pub(crate) const SHM_NEARLY_FULL: f64 = 0.95;
/// A size larger than what is in use by more than one n-th did not bound it.
pub(crate) const UNBOUNDED_PART: u64 = 8;

/// memory.high: fewer hits are the line being met by page cache,
pub(crate) const HIGH_HITS: u64 = 10;
/// and of the time since the first, some task waited for memory so long.
pub(crate) const HIGH_WAITED: f64 = 0.1;
/// Page cache: what cannot be dropped is less than this share of the limit.
pub(crate) const CACHE_STAYS: f64 = 0.7;
/// Kernel memory: growth that is reported where no limit is near.
pub(crate) const SLAB_BYTES: f64 = (1u64 << 30) as f64;
/// Where it is one n-th of a limit,
pub(crate) const SLAB_LIMIT_PART: f64 = 4.0;
/// less growth is the usual share of a small job.
pub(crate) const SLAB_LITTLE_BYTES: f64 = (32u64 << 20) as f64;
/// Kernels 3.10: memory was refused while one n-th of the machine was free.
pub(crate) const FREE_PART: f64 = 4.0;
/// Memory that nobody owns, of the machine, and at least: below it, it is the usual rest.
pub(crate) const UNOWNED_SHARE: f64 = 0.2;
pub(crate) const UNOWNED_BYTES: f64 = (2u64 << 30) as f64;
/// Huge pages reserved and unused, of the machine: missed when memory runs out,
pub(crate) const HUGE_MISSED: f64 = 0.1;
/// worth a note at all times,
pub(crate) const HUGE_NOTED: f64 = 0.25;
/// and left of memory when it has run out.
pub(crate) const HUGE_LEFT: f64 = 0.05;

/// Swap: a shorter time is a burst, memory being made room in. In any run: five ticks.
pub(crate) const SWAP_LASTS_S: f64 = 5.0;
/// Two readings are never closer. In any run: a thousandth of a tick.
pub(crate) const SWAP_STEP_S: f64 = 1e-3;
/// Pages a second, in and out each: below it a disk answers at once.
pub(crate) const SWAP_PAGES: f64 = 200.0;
/// Faults of the job a second that wait for a disk.
pub(crate) const SWAP_FAULTS: f64 = 50.0;
/// Of the time, some task of the job waited for memory: less is what others' trouble costs on a shared machine.
pub(crate) const SWAP_WAITED: f64 = 0.05;
/// So many times as much in memory and swap at the end: something grows as well.
pub(crate) const SWAP_GROWS: f64 = 1.2;

/// Neighbours: what went must be so much of the machine's memory.
pub(crate) const NEIGHBOURS_FELL: f64 = 0.05;
/// A job that took less of what went stood still.
pub(crate) const NEIGHBOURS_FLAT: f64 = 0.25;
/// Of the last seconds, everything waited for memory: systemd-oomd's default is 0.6 of 30 s.
pub(crate) const DAEMON_STALLED: f64 = 0.4;
/// How many. In any run: within the daemon's 30 s.
pub(crate) const DAEMON_WINDOW_S: f64 = 20.0;
/// A sum of resident sizes is looked for so far back. In any run: Slurm's accounting reads every 30 s by default.
pub(crate) const SLURM_WINDOW_S: f64 = 45.0;

/// Overcommit: so many times memory and swap is address space of a driver's, of which none is promised.
pub(crate) const RESERVED_TIMES: u64 = 8;
/// Address space so many times the machine's memory, and what is resident: none of it is used.
pub(crate) const VIRTUAL_TIMES: u64 = 2;
pub(crate) const VIRTUAL_OF_RESIDENT: u64 = 20;
/// A limit of address space, one n-th of which was in use, may have been met by one request.
pub(crate) const ADDRESS_SPACE_PART: u64 = 4;
