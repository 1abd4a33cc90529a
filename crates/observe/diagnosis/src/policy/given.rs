//! Which numbers did others set? The kernel, libc, CPython, torch, the speed of machines. Nothing here is a choice.

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const THOUSAND: f64 = 1000.0;
pub(crate) const US_PER_S: f64 = 1e6;
pub(crate) const NS_PER_S: f64 = 1e9;
/// sysconf(_SC_CLK_TCK), the unit of CPU times in /proc: 100 on every Linux.
pub(crate) const CLOCK_TICKS: f64 = 100.0;

/// signal(7), x86-64: from the terminal.
pub(crate) const SIGINT: i32 = 2;
/// What a shell ends with whose command that ended.
pub(crate) const INTERRUPTED: i32 = 130;
/// abort(3).
pub(crate) const SIGABRT: i32 = 6;
/// What the kernel was asked to read or fill could not be had.
pub(crate) const EFAULT: i32 = 14;
/// A page that could not be had.
pub(crate) const SIGBUS: i32 = 7;
/// Nobody can handle it.
pub(crate) const SIGKILL: i32 = 9;
/// A wrong address.
pub(crate) const SIGSEGV: i32 = 11;
/// What a batch system or a daemon sends first.
pub(crate) const SIGTERM: i32 = 15;
/// `Seccomp:` of /proc/PID/status, proc(5): a filter that may refuse calls.
pub(crate) const SECCOMP_FILTER: u64 = 2;

/// A page where the machine did not say; also the least that a segment takes.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// The kernel's default of vm.max_map_count.
pub(crate) const DEFAULT_MAPPINGS: u64 = 65_530;
/// The kernel's default of kernel.shmmni.
pub(crate) const DEFAULT_SEGMENTS: u64 = 4096;
/// The usual limit of a stack, ulimit -s.
pub(crate) const USUAL_STACK_BYTES: u64 = 8 << 20;
/// The default of RLIMIT_MEMLOCK of today's kernels.
pub(crate) const DEFAULT_MEMLOCK_BYTES: u64 = 8 << 20;
/// The usual soft limit of open files, above which a hard limit leaves room.
pub(crate) const USUAL_FILES: u64 = 1024;

/// glibc: address space of one arena of a thread, HEAP_MAX_SIZE, which it has from the beginning.
pub(crate) const ARENA_BYTES: f64 = (64 << 20) as f64;
/// CPython's own allocator hands out pieces of 16 to 512 bytes (obmalloc).
pub(crate) const SMALLEST_PIECE_BYTES: f64 = 16.0;
pub(crate) const LARGEST_PIECE_BYTES: f64 = 512.0;
/// A Python int above 256 (32 bytes) and a reference to it (8).
pub(crate) const LISTED_INT_BYTES: u64 = 40;
/// MAXFDS_TO_SEND of multiprocessing/forkserver.py.
pub(crate) const FORKSERVER_DESCRIPTORS: u64 = 256;
/// Tensors from which on it fails: the forkserver adds a few descriptors of its own.
pub(crate) const FORKSERVER_TENSORS: u64 = 250;
/// Channels of a pixel in RGB, one byte each.
pub(crate) const PIXEL_BYTES: u64 = 3;

/// Bytes read from a disk for a byte of a mapped library: the kernel reads ahead.
pub(crate) const READ_AHEAD: f64 = 1.5;
/// Tensors that any machine shares in a second: torch takes 100 µs or more for one (about 100 system calls).
pub(crate) const SHARED_A_SECOND: f64 = 20_000.0;
/// Threads that no machine starts faster, a second.
pub(crate) const STARTED_A_SECOND: f64 = 20_000.0;
/// Bytes that no machine writes faster, a second.
pub(crate) const WRITTEN_A_SECOND: f64 = 4e9;
/// Files that no machine makes faster, a second.
pub(crate) const MADE_A_SECOND: f64 = 50_000.0;
