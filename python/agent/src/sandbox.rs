//! Has the program put itself behind a seccomp filter since it began? Then not a system call more is made.
//!
//! Counted in a descriptor of /proc/self/status that was opened at the start (seccomp(2), proc_pid_status(5)). The
//! surprise: there is no way to ask that is no system call. `pread64` of a file that is open is one that the dynamic
//! linker makes itself. That file is the main thread's; a filter may be another thread's alone (seccomp(2) without
//! `SECCOMP_FILTER_FLAG_TSYNC`), and whatever that one starts inherits it. So of other threads prctl(2) is asked.

use crate::ffi;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::SeqCst};

const UNKNOWN: i64 = -1;

static STATUS: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
/// Filters that were there before the program began.
static BEFORE: AtomicI64 = AtomicI64::new(UNKNOWN);
static CLOSED: AtomicBool = AtomicBool::new(false);
/// The thread whose status that is; none before the start.
static MAIN: AtomicU64 = AtomicU64::new(0);
/// Whether the program began with "no new privileges", which a thread needs for a filter of its own.
static NO_NEW_PRIVILEGES: AtomicI64 = AtomicI64::new(UNKNOWN);

pub(crate) fn set_up(fd: c_int, filters: i64) {
    let (device, inode) = identity(fd).unwrap_or_default();
    STATUS.store(fd, SeqCst);
    DEVICE.store(device, SeqCst);
    INODE.store(inode, SeqCst);
    BEFORE.store(filters, SeqCst);
    if MAIN.load(SeqCst) == 0 {
        // SAFETY: no arguments.
        MAIN.store(unsafe { ffi::pthread_self() }, SeqCst);
        NO_NEW_PRIVILEGES.store(of_this_thread(GET_NO_NEW_PRIVILEGES), SeqCst);
    }
}

/// This is the program's main thread.
pub(crate) fn is_main() -> bool {
    // SAFETY: no arguments.
    unsafe { ffi::pthread_self() == MAIN.load(SeqCst) }
}

const GET_SECCOMP: c_long = 21;
const GET_NO_NEW_PRIVILEGES: c_long = 39;

/// prctl(2) by its number; its answer.
fn of_this_thread(question: c_long) -> i64 {
    const PRCTL: c_long = 157;
    const NONE: c_long = 0;
    // SAFETY: both questions take no argument, and write nowhere.
    unsafe { ffi::syscall(PRCTL, question, NONE, NONE, NONE, NONE) }
}

/// A thread beside the main one has no filter of its own. Where all began behind one, a new one shows by "no new
/// privileges" alone; where they began with that too, it does not show.
fn thread_is_open() -> bool {
    if BEFORE.load(SeqCst) == 0 {
        of_this_thread(GET_SECCOMP) == 0
    } else {
        of_this_thread(GET_NO_NEW_PRIVILEGES) == NO_NEW_PRIVILEGES.load(SeqCst)
    }
}

/// Device and inode of an open descriptor.
pub(crate) fn identity(fd: c_int) -> Option<(u64, u64)> {
    const FSTAT: std::ffi::c_long = 5;
    let mut facts = [0u64; 18];
    // SAFETY: struct stat of x86-64 has 144 bytes, its device and inode come first. By number, because libraries of C
    // before 2.33 have no function of this name.
    let failed = unsafe { ffi::syscall(FSTAT, fd, facts.as_mut_ptr()) };
    (failed == 0).then_some((facts[0], facts[1]))
}

/// In a forked child: the descriptor is still the one that it was, and the agent may use it. The filters come first,
/// since `fstat` is a system call too.
pub(crate) fn identity_of_ours(fd: c_int, device: u64, inode: u64) -> bool {
    after_fork() && identity(fd) == Some((device, inode))
}

/// Agent code may run: the number of filters is what it was.
pub(crate) fn is_open() -> bool {
    if CLOSED.load(SeqCst) {
        return false;
    }
    let fd = STATUS.load(SeqCst);
    if fd < 0 {
        return true;
    }
    if !is_main() && !thread_is_open() {
        return false;
    }
    match filters(fd) {
        Some(found) if found != BEFORE.load(SeqCst) => {
            CLOSED.store(true, SeqCst);
            false
        }
        // Closed by the program, or its number taken: what was known last.
        _ => true,
    }
}

/// In a forked child, whose descriptor still tells of its parent: opens its own in the same place.
fn after_fork() -> bool {
    let open = is_open();
    // SAFETY: no arguments.
    MAIN.store(unsafe { ffi::pthread_self() }, SeqCst);
    if !open {
        CLOSED.store(true, SeqCst); // for all threads of the child: it has the filter of the one that forked
        return false;
    }
    let fd = STATUS.load(SeqCst);
    if fd < 0 || identity(fd) != Some((DEVICE.load(SeqCst), INODE.load(SeqCst))) {
        return true;
    }
    // SAFETY: the place was proven to be ours.
    unsafe {
        let own = ffi::open(c"/proc/self/status".as_ptr(), ffi::O_RDONLY | ffi::O_CLOEXEC);
        if own >= 0 {
            ffi::dup3(own, fd, ffi::O_CLOEXEC);
            ffi::close(own);
            set_up(fd, BEFORE.load(SeqCst));
        }
    }
    true
}

/// `private_if_open`, for a thread of the program's, which may have a filter of its own: one read answers both.
pub(crate) fn private_if_open_here() -> Option<(i64, i64)> {
    (!CLOSED.load(SeqCst) && (is_main() || thread_is_open())).then(private_if_open).flatten()
}

/// Private bytes of this process, and its threads; none where the filters are not what they were, or that cannot be told.
pub(crate) fn private_if_open() -> Option<(i64, i64)> {
    let fd = STATUS.load(SeqCst);
    if CLOSED.load(SeqCst) || fd < 0 {
        return None;
    }
    let mut text = [0u8; 4096];
    let text = status(fd, &mut text)?;
    if filters_in(text) != Some(BEFORE.load(SeqCst)) {
        return None;
    }
    const KIB: i64 = 1024;
    Some((number(text, b"\nRssAnon:")? * KIB, number(text, b"\nThreads:")?))
}

fn status(fd: c_int, text: &mut [u8; 4096]) -> Option<&[u8]> {
    // SAFETY: writes into `text` only.
    let length = unsafe { ffi::pread(fd, text.as_mut_ptr().cast(), text.len(), 0) };
    text.get(..usize::try_from(length).ok()?)
}

fn filters(fd: c_int) -> Option<i64> {
    filters_in(status(fd, &mut [0u8; 4096])?)
}

fn filters_in(text: &[u8]) -> Option<i64> {
    number(text, b"\nSeccomp_filters:").or_else(|| number(text, b"\nSeccomp:"))
}

fn number(text: &[u8], name: &[u8]) -> Option<i64> {
    let start = text.windows(name.len()).position(|window| window == name)? + name.len();
    let blank = |byte: &&u8| **byte == b' ' || **byte == b'\t';
    let digits = text.get(start..)?.iter().skip_while(blank).take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}
