//! How often has this process forked, and which one of a line of forks is it? Counted before each fork and in each child.
//!
//! The surprise: this runs in `pthread_atfork` handlers, where another thread of the parent may have held any
//! lock: atomics and system calls only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU64 = AtomicU64::new(1);
/// The process that is forking, or has forked last.
static FORKING: AtomicU64 = AtomicU64::new(0);

/// Forks of this process so far.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Acquire)
}

/// Another number in every process of a line of forks.
pub(crate) fn process() -> u64 {
    PROCESS.load(Ordering::Acquire)
}

/// For a handler in the child of a fork: its parent's number, whether [`process`] is the child's already or not. Handlers
/// run in the order in which they were entered, and which one was first is chance.
pub(crate) fn parent() -> u64 {
    FORKING.load(Ordering::Acquire)
}

/// Lets forks be counted. No `Once`: it is a lock, and a child that was forked meanwhile would wait for it. Two threads
/// may both come through, and the handlers run twice: the counts then go up by two.
pub(crate) fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        // SAFETY: the handlers touch atomics only, as a forked child may.
        unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
        WATCHED.store(true, Ordering::Release);
    }
}

extern "C" fn before() {
    FORKS.fetch_add(1, Ordering::AcqRel);
    FORKING.store(process(), Ordering::Release);
}

extern "C" fn in_child() {
    PROCESS.fetch_add(1, Ordering::AcqRel);
}
