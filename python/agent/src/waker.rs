//! Who looks at memory in a program that comes by nowhere: a loop of native calls, a main that waits for others, a server?
//!
//! A thread that sleeps, without Python and without the interpreter's lock. Where a look is overdue and private memory has
//! risen, it asks CPython to call us from the main thread (`Py_AddPendingCall`), between two steps of its byte code, as it
//! calls handlers of signals.
//!
//! The surprise: a process of one thread may do what others may not (unshare(2), setns(2), exit(2) by its number, a fork that
//! CPython 3.12 does not warn of). So only a program that has another thread gets this one. It ends before a fork, since a
//! child would meet the lock of the pending calls, and begins again at a later collection.

use crate::ffi::{self, Object};
use crate::{first_fork, guard, safe_points, sandbox};
use std::ffi::{c_int, c_long, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Seconds by which a look is overdue before the program is asked.
const LATE_S: i64 = 3;
/// Seconds between two questions whether it is, at least and at most.
const SOON_S: i64 = 1;
const LATEST_S: i64 = 5;
/// Nanoseconds after which it is asked again whether the program has another thread.
const AGAIN_NS: i64 = SECOND / 10;
/// The main thread, and this one.
const ALONE: i64 = 2;
const SECOND: i64 = 1_000_000_000;
/// Private bytes that came since it was asked last.
const RISEN: i64 = 4 << 20;
/// So many of them are worth a look as soon as it is due: a program that grows so fast may not have long. Measured at 100 MiB/s:
/// the third census, which names what grows, came after 12 s, and after 22 s without this.
const FAST: i64 = 32 << 20;
/// Room for what libraries keep for each thread, too; pages that are not touched cost nothing.
const STACK: usize = 256 << 10;

/// Not zero: the thread is to end. It sleeps on this word.
static END: AtomicU32 = AtomicU32::new(0);
static THREAD: AtomicU64 = AtomicU64::new(0);
/// Its number in the kernel; 0 before it runs.
static NUMBER: AtomicI64 = AtomicI64::new(0);
/// The process that it was started in: a child that a C library forked has none.
static OWNER: AtomicI64 = AtomicI64::new(0);
static LIVES: AtomicBool = AtomicBool::new(false);
static WANTED: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
static BEFORE: AtomicI64 = AtomicI64::new(0);
/// Not zero: the main thread is in a look that a pending call began. Who forks sleeps on this word.
static READING: AtomicU32 = AtomicU32::new(0);
static FORKS_WAIT: AtomicBool = AtomicBool::new(false);
/// When it may begin, by the monotonic clock.
static NEXT_TRY: AtomicI64 = AtomicI64::new(0);

/// By which whoever lists threads tells it from the program's: a zygote forks beside it (python/ullage/_zygote/main.py).
const NAME: &CStr = c"ullage-waker";

/// By their numbers: not every library of C has functions for them.
const GETTID: c_long = 186;
const PRCTL: c_long = 157;
const SET_NAME: c_long = 15;
const TGKILL: c_long = 234;
const FUTEX: c_long = 202;
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

fn sleep(nanoseconds: i64) {
    let time = ffi::Timespec { seconds: nanoseconds / SECOND, nanoseconds: nanoseconds % SECOND };
    // SAFETY: the word lives for good; it is woken early where the word has changed.
    unsafe { ffi::syscall(FUTEX, END.as_ptr(), FUTEX_WAIT_PRIVATE, 0 as c_int, &raw const time) };
}

extern "C-unwind" fn wake(_nothing: *mut c_void) -> *mut c_void {
    // SAFETY: no arguments; the name ends with a zero.
    unsafe {
        NUMBER.store(ffi::syscall(GETTID), SeqCst);
        ffi::syscall(PRCTL, SET_NAME, NAME.as_ptr());
    }
    let mut late = LATE_S;
    loop {
        let due = safe_points::NEXT.load(SeqCst);
        let left = due.saturating_sub(ffi::now()).saturating_add(late * SECOND);
        sleep(left.clamp(SOON_S * SECOND, LATEST_S * SECOND));
        // Behind a filter of system calls, or where that cannot be told, it makes none any more but the one that ends it.
        let Some((private, threads)) = (END.load(SeqCst) == 0).then(sandbox::private_if_open).flatten()
        else {
            return null_mut();
        };
        if threads <= ALONE {
            return null_mut();
        }
        late = late_s(private);
        let asks = !ASKED.load(SeqCst) && is_worth_it(private) && !ASKED.swap(true, SeqCst);
        // SAFETY: it may be called without the interpreter's lock. A full queue says no.
        if asks && unsafe { ffi::Py_AddPendingCall(come_by, null_mut()) } != 0 {
            ASKED.store(false, SeqCst);
        }
    }
}

/// In the main thread, with the interpreter's lock.
extern "C-unwind" fn come_by(_nothing: *mut c_void) -> c_int {
    ASKED.store(false, SeqCst);
    // SAFETY: CPython holds the lock.
    unsafe { read() };
    0
}

/// A look from a pending call, of this file or of allocated.rs.
///
/// # Safety
/// The interpreter's lock is held, in the main thread.
pub(crate) unsafe fn read() {
    READING.store(1, SeqCst);
    // SAFETY: as the caller promises; the word lives for good.
    unsafe {
        safe_points::safe_point(false, false);
        READING.store(0, SeqCst);
        if FORKS_WAIT.load(SeqCst) {
            ffi::syscall(FUTEX, READING.as_ptr(), FUTEX_WAKE_PRIVATE, c_int::MAX);
        }
    }
}

/// A thread that forks waits until a pending call has returned: the child would have none to end it, would never make another
/// pending call, and would wait for its own at its end (CPython 3.13). A look is waited for `guard::LONGEST_S`, so this is too.
///
/// # Safety
/// The interpreter's lock is held; it is given up meanwhile.
unsafe fn wait_for_reading() {
    let until = ffi::now().saturating_add((guard::LONGEST_S + 1) * SECOND);
    // SAFETY: as the caller promises; the word lives for good.
    unsafe {
        while READING.load(SeqCst) != 0 && !sandbox::is_main() && ffi::now() < until {
            let time = ffi::Timespec { seconds: 0, nanoseconds: SECOND / 10 };
            FORKS_WAIT.store(true, SeqCst);
            let state = ffi::PyEval_SaveThread();
            ffi::syscall(FUTEX, READING.as_ptr(), FUTEX_WAIT_PRIVATE, 1 as c_int, &raw const time);
            ffi::PyEval_RestoreThread(state);
        }
        FORKS_WAIT.store(false, SeqCst);
    }
}

/// In a forked child, once: was a pending call of ours in the midst of a look, that was not waited for? Then CPython makes none
/// here.
pub(crate) fn was_reading() -> bool {
    READING.swap(0, SeqCst) != 0
}

/// This process alone has half of the threads that its user may have: then the program needs the place. What the user's
/// other processes have is not known without a walk over /proc.
fn is_near_limit(threads: i64) -> bool {
    const PRLIMIT: c_long = 302;
    const THIS_PROCESS: c_int = 0;
    const RLIMIT_NPROC: c_int = 6;
    let mut limits = [0u64; 2];
    let none = null_mut::<c_void>();
    // SAFETY: reads no new limit, and writes a struct rlimit of two words.
    let failed = unsafe { ffi::syscall(PRLIMIT, THIS_PROCESS, RLIMIT_NPROC, none, limits.as_mut_ptr()) };
    failed != 0 || threads.unsigned_abs() >= limits[0] / 2
}

/// Where there is none and one is wanted, in a program of several threads. Nothing where none can be started.
fn start() {
    if sandbox::private_if_open_here().is_none_or(|(_, threads)| threads < ALONE || is_near_limit(threads)) {
        return;
    }
    END.store(0, SeqCst);
    NUMBER.store(0, SeqCst);
    let (mut all, mut before): (ffi::SignalSet, ffi::SignalSet) = ([0; 16], [0; 16]);
    let mut attributes: ffi::Attributes = [0; 16];
    let mut thread = 0;
    // SAFETY: it takes no handler of the program's, and is joined before this library could go.
    let started = unsafe {
        ffi::sigfillset(&mut all);
        ffi::pthread_sigmask(ffi::SIG_SETMASK, &all, &mut before);
        let started = ffi::pthread_attr_init(&mut attributes) == 0
            && ffi::pthread_attr_setstacksize(&mut attributes, STACK) == 0
            && ffi::pthread_create(&mut thread, &attributes, wake, null_mut()) == 0;
        ffi::pthread_sigmask(ffi::SIG_SETMASK, &before, null_mut());
        started
    };
    THREAD.store(thread, SeqCst);
    // SAFETY: no arguments.
    OWNER.store(unsafe { ffi::getpid() }.into(), SeqCst);
    LIVES.store(started, SeqCst);
    // Not again at each collection where none can be started.
    WANTED.store(started, SeqCst);
}

/// Ends it and waits until the kernel does not count it any more.
fn stop() {
    // SAFETY: no arguments.
    let ours = OWNER.load(SeqCst) == i64::from(unsafe { ffi::getpid() });
    if !LIVES.swap(false, SeqCst) || !ours {
        return;
    }
    END.store(1, SeqCst);
    // SAFETY: the word lives for good; the thread was started here and is joined once. Signal 0 only asks.
    unsafe {
        ffi::syscall(FUTEX, END.as_ptr(), FUTEX_WAKE_PRIVATE, 1 as c_int);
        ffi::pthread_join(THREAD.load(SeqCst), null_mut());
        let (number, process) = (NUMBER.load(SeqCst), ffi::getpid());
        for _ in 0..1000 {
            if number == 0 || ffi::syscall(TGKILL, process, number as c_int, 0 as c_int) != 0 {
                break;
            }
            ffi::sched_yield();
        }
    }
}

/// For os.register_at_fork: before, and after in the parent.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn before_fork(_module: Object, _arguments: Object) -> Object {
    if sandbox::is_open() {
        // SAFETY: as above.
        unsafe {
            wait_for_reading();
            first_fork::load_once();
            wait_for_reading();
        }
        // A collection of another thread would begin it again before the fork.
        later();
        stop();
    }
    ffi::none()
}

// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn after_fork(_module: Object, _arguments: Object) -> Object {
    later();
    ffi::none()
}

/// CPython 3.13 counts the threads beside a fork after this.
fn later() {
    NEXT_TRY.store(ffi::now().saturating_add(AGAIN_NS), SeqCst);
}

/// Seconds by which a look has to be overdue.
fn late_s(private: i64) -> i64 {
    if private - BEFORE.load(SeqCst).min(private) >= FAST {
        0
    } else {
        LATE_S
    }
}

/// A look is overdue, and private memory rose since it was asked last, by enough for one.
pub(crate) fn is_worth_it(private: i64) -> bool {
    let due = safe_points::NEXT.load(SeqCst);
    if due == safe_points::NEVER || ffi::now() < due.saturating_add(late_s(private) * SECOND) {
        return false;
    }
    let before = BEFORE.load(SeqCst).min(private);
    let risen = private - before >= RISEN;
    BEFORE.store(if risen { private } else { before }, SeqCst);
    risen
}

/// In a forked child, which has no thread but the one that forked.
pub(crate) fn in_child(asks_in_vain: bool) {
    LIVES.store(false, SeqCst);
    ASKED.store(asks_in_vain, SeqCst);
    BEFORE.store(0, SeqCst);
    later();
}

/// `wake(wanted)`: such a thread from a collection on, which a program of some size comes to soon.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn wanted(_module: Object, wanted: Object) -> Object {
    // SAFETY: the lock is held.
    WANTED.store(unsafe { ffi::PyObject_IsTrue(wanted) } == 1, SeqCst);
    ffi::none()
}

/// At a collection of the program's.
pub(crate) fn at_collection() {
    let wanted = WANTED.load(SeqCst) && !LIVES.load(SeqCst) && !guard::in_ours();
    if wanted && ffi::now() >= NEXT_TRY.load(SeqCst) {
        later();
        start();
    }
}

/// `wakes()`: how many threads of this kind there are: none or one.
// SAFETY: called by CPython, which holds the lock.
pub(crate) unsafe extern "C-unwind" fn wakes(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyLong_FromLong(LIVES.load(SeqCst).into()) }
}
