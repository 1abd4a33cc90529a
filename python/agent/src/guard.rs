//! How does Python code of the agent run, so that no signal handler of the program runs in it? In a thread of its own.
//!
//! CPython runs handlers in the main thread only, between two steps of its byte code. The thread that came by waits
//! meanwhile without the interpreter's lock, and what its handlers raise is raised in its own code as it goes on.
//! Where no thread can be started (the limit may be the very thing that is reported), or none that could map memory,
//! the code runs in place, with signals blocked. So it does in a program of one thread whose address space is limited: glibc
//! reserves an arena for each thread that allocates, and never gives it back. The surprise: whoever waits may hold a lock, so that code of the
//! agent imports nothing, calls nothing of the program's, and is waited for `LONGEST_S` at most.

use crate::ffi::{self, Object};
use crate::{collector, malloc, sandbox};
use std::cell::Cell;
use std::ffi::{c_int, c_long, c_uint, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};

/// After this the program goes on, and the agent's thread ends when it can.
pub(crate) const LONGEST_S: i64 = 5;
const STACK: usize = 2 << 20;
/// Bytes of address space that a program of several threads may have before the agent adds a thread to them: its stack and
/// glibc's arena, for which 128 MiB are mapped and 64 MiB stay, are below 2 % of that.
const AMPLE: u64 = 8 << 30;

thread_local! {
    /// This thread is the agent's own.
    static OURS: Cell<bool> = const { Cell::new(false) };
    /// The thread for which this one runs code of the agent.
    static CALLER: Cell<ffi::Pthread> = const { Cell::new(0) };
}

/// Called before anything else in a process that was forked, once.
pub(crate) static RESET: AtomicPtr<ffi::PyObject> = AtomicPtr::new(null_mut());
pub(crate) static FORKED: AtomicBool = AtomicBool::new(false);
/// Exceptions of the agent's own are printed: for who works on it.
pub(crate) static LOUD: AtomicBool = AtomicBool::new(false);
/// The program has an audit hook: it would run for what the agent's Python code does, in the agent's thread, and may wait
/// there for a lock of the thread that waits for the agent. So no such code runs any more.
pub(crate) static AUDITED: AtomicBool = AtomicBool::new(false);
/// `PyTraceMalloc_Untrack`, where the end of tracing can crash a thread that is about to take the interpreter's lock.
static UNTRACK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Threads that were not waited for to their end.
static LEFT_BEHIND: AtomicUsize = AtomicUsize::new(0);

struct Job {
    caller: ffi::Pthread,
    callable: Object,
    arguments: Object,
    result: Object,
    gives_way: bool,
    done: AtomicBool,
    /// Nobody waits any more: the thread frees this itself.
    left: AtomicBool,
}

/// `is_audited()`: the program has an audit hook.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn is_audited(_module: Object, _arguments: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { ffi::PyBool_FromLong(AUDITED.load(SeqCst).into()) }
}

pub(crate) fn in_ours() -> bool {
    OURS.get()
}

/// Asked by code of the agent, in the thread that runs it.
pub(crate) fn caller() -> ffi::Pthread {
    CALLER.get()
}

pub(crate) fn after_fork() {
    LEFT_BEHIND.store(0, SeqCst);
    FORKED.store(true, SeqCst);
}

/// From now on threads give way to a program that traces (gh-128679): what it allocates for the thread's state waits for the
/// interpreter's lock in the middle of tracing, and goes on when another thread may have ended that.
pub(crate) fn give_way() {
    UNTRACK.store(malloc::symbol(c"PyTraceMalloc_Untrack"), SeqCst);
}

/// The program traces its allocations, and another thread of it may end that. Needs no interpreter's lock.
fn is_traced() -> bool {
    const NO_DOMAIN: c_uint = 0x756c_6c61;
    const DISABLED: c_int = -2;
    let untrack = UNTRACK.load(SeqCst);
    // SAFETY: it has this signature from CPython 3.7 on, and changes nothing of a domain that nobody has used.
    !untrack.is_null()
        && unsafe {
            let untrack: unsafe extern "C" fn(c_uint, usize) -> c_int = std::mem::transmute(untrack);
            untrack(NO_DOMAIN, 0) != DISABLED
        }
}

fn is_alone() -> bool {
    sandbox::private_if_open_here().is_some_and(|(_, threads)| threads == 1)
}

/// The program's address space, where it is limited (`ulimit -v`).
fn address_space() -> Option<u64> {
    const PRLIMIT: c_long = 302;
    const THIS_PROCESS: c_int = 0;
    const RLIMIT_AS: c_int = 9;
    const UNLIMITED: u64 = u64::MAX;
    let mut limits = [UNLIMITED; 2];
    let none = null_mut::<c_void>();
    // SAFETY: reads no new limit, and writes a struct rlimit of two words.
    unsafe { ffi::syscall(PRLIMIT, THIS_PROCESS, RLIMIT_AS, none, limits.as_mut_ptr()) };
    (limits[0] != UNLIMITED).then_some(limits[0])
}

/// The program's own tracer or profiler would be called for code of the agent that runs in its thread: CPython before 3.11 has
/// no way to say that it shall not.
///
/// # Safety
/// The interpreter's lock is held and no exception is set.
unsafe fn is_observed() -> bool {
    // SAFETY: as the caller promises; the functions of `sys` are borrowed, and null is passed by.
    unsafe {
        ffi::dlsym(null_mut(), c"PyThreadState_EnterTracing".as_ptr()).is_null()
            && [c"gettrace", c"getprofile"].into_iter().any(|name| {
                let function = ffi::PySys_GetObject(name.as_ptr());
                let is_builtin = !function.is_null() && (*function).kind == &raw mut ffi::PyCFunction_Type;
                let set =
                    if is_builtin { ffi::PyObject_CallObject(function, null_mut()) } else { null_mut() };
                ffi::PyErr_Clear();
                let is_none = set == &raw mut ffi::_Py_NoneStruct;
                ffi::Py_DecRef(set);
                !is_none
            })
    }
}

/// An exception, as `PyErr_Fetch` hands it out.
type Exception = [Object; 3];

/// Handlers of signals that came before signals were blocked: they would run in code of the agent, and what they raise would be
/// lost. What they raise here, or null.
///
/// # Safety
/// The interpreter's lock is held and no exception is set.
unsafe fn handle_signals() -> *mut Exception {
    // SAFETY: as the caller promises; the exception's references are handed on.
    unsafe {
        if !sandbox::is_main() || ffi::PyErr_CheckSignals() == 0 {
            return null_mut();
        }
        let mut raised: Exception = [null_mut(); 3];
        let [kind, value, traceback] = &mut raised;
        ffi::PyErr_Fetch(kind, value, traceback);
        Box::into_raw(Box::new(raised))
    }
}

/// Raises it between two steps of the program's byte code, once no code of the agent runs in this thread.
///
/// # Safety
/// The interpreter's lock is held, and it is what `handle_signals` returned.
unsafe fn raise_soon(raised: *mut Exception) {
    // SAFETY: as the caller promises; where the queue is full, nobody else has it.
    unsafe {
        if ffi::Py_AddPendingCall(raise, raised.cast()) != 0 {
            Box::from_raw(raised).into_iter().for_each(|part| ffi::Py_DecRef(part));
        }
    }
}

/// In the main thread, with the interpreter's lock.
extern "C-unwind" fn raise(raised: *mut c_void) -> c_int {
    // SAFETY: CPython hands over what it was given, once, and holds the lock.
    unsafe {
        let [kind, value, traceback] = *Box::from_raw(raised.cast::<Exception>());
        ffi::PyErr_Restore(kind, value, traceback);
    }
    -1
}

/// Calls it. Its result is a new reference; null where it raised, or was not called. What comes `again` and again is not called
/// where that could crash, or would take address space that a program of several threads may need.
///
/// # Safety
/// The interpreter's lock is held; `callable` and `arguments` (a tuple) are alive.
pub(crate) unsafe fn run(callable: Object, arguments: Object, again: bool) -> Object {
    if callable.is_null()
        || arguments.is_null()
        || OURS.get()
        || LEFT_BEHIND.load(SeqCst) != 0
        || AUDITED.load(SeqCst)
        || !sandbox::is_open()
    {
        return null_mut();
    }
    let limit = address_space();
    let in_place = limit.is_some_and(|limit| limit < AMPLE || is_alone());
    if in_place && again && !is_alone() {
        return null_mut();
    }
    let (mut kind, mut value, mut traceback) = (null_mut(), null_mut(), null_mut());
    let mut before: ffi::SignalSet = [0; 16];
    // SAFETY: the lock is held; the job lives until the thread has ended, or frees itself.
    unsafe {
        let errno = *ffi::__errno_location();
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        let job = Box::into_raw(Box::new(Job {
            caller: ffi::pthread_self(),
            callable: ffi::held(callable),
            arguments: ffi::held(arguments),
            result: null_mut(),
            gives_way: again && !UNTRACK.load(SeqCst).is_null() && !is_alone(),
            done: AtomicBool::new(false),
            left: AtomicBool::new(false),
        }));
        let mut all: ffi::SignalSet = [0; 16];
        ffi::sigfillset(&mut all);
        ffi::pthread_sigmask(ffi::SIG_SETMASK, &all, &mut before);
        let mut attributes: ffi::Attributes = [0; 16];
        let mut thread = 0;
        let started = !in_place
            && can_map()
            && ffi::pthread_attr_init(&mut attributes) == 0
            && ffi::pthread_attr_setstacksize(&mut attributes, STACK) == 0
            && ffi::pthread_create(&mut thread, &attributes, start, job.cast()) == 0;
        let mut result = null_mut();
        if started {
            ffi::pthread_sigmask(ffi::SIG_SETMASK, &before, null_mut());
            let state = ffi::PyEval_SaveThread();
            let ended = join(thread);
            ffi::PyEval_RestoreThread(state);
            if ended || (*job).done.load(SeqCst) {
                if !ended {
                    ffi::pthread_detach(thread);
                }
                result = (*job).result;
                release(job);
            } else {
                // The lock is held: the thread cannot end in between.
                LEFT_BEHIND.fetch_add(1, SeqCst);
                collector::go_on();
                (*job).left.store(true, SeqCst);
                ffi::pthread_detach(thread);
            }
        } else {
            OURS.set(true);
            let raised = handle_signals();
            if !is_observed() {
                call(job);
            }
            if !raised.is_null() {
                raise_soon(raised);
            }
            OURS.set(false);
            result = (*job).result;
            release(job);
            ffi::pthread_sigmask(ffi::SIG_SETMASK, &before, null_mut());
        }
        ffi::PyErr_Restore(kind, value, traceback);
        *ffi::__errno_location() = errno;
        result
    }
}

/// Calls it and forgets the result.
///
/// # Safety
/// As of `run`; the reference to `arguments` is taken over.
pub(crate) unsafe fn notify(callable: Object, arguments: Object) {
    // SAFETY: as the caller promises; null is passed by.
    unsafe {
        let result = run(callable, arguments, false);
        ffi::Py_DecRef(result);
        ffi::Py_DecRef(arguments);
    }
}

/// There is room for a few mappings more. A thread's stack may be one that an earlier thread left, so that it starts where
/// nothing can be mapped any more; but CPython maps a new thread's frames (from 3.11 on), and ends it by MemoryError.
fn can_map() -> bool {
    const PAGE: usize = 4096;
    const PAGES: usize = 7;
    const NONE: c_int = 0;
    // SAFETY: a place of the kernel's choice, which nobody else knows of and which is given back at once.
    unsafe {
        let place = ffi::mmap(null_mut(), PAGES * PAGE, NONE, ffi::MAP_PRIVATE_AND_ANONYMOUS, -1, 0);
        if place as isize == -1 {
            return false;
        }
        // Each other page is a mapping of its own.
        let room = (1..PAGES).step_by(2).all(|page| {
            ffi::mprotect(place.wrapping_byte_add(page * PAGE), PAGE, ffi::PROT_READ_AND_WRITE) == 0
        });
        ffi::munmap(place, PAGES * PAGE);
        room
    }
}

fn join(thread: ffi::Pthread) -> bool {
    let mut time = ffi::Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the thread was started here and is joined once; CLOCK_REALTIME is 0.
    unsafe {
        ffi::clock_gettime(0, &mut time);
        time.seconds += LONGEST_S;
        ffi::pthread_timedjoin_np(thread, null_mut(), &time) == 0
    }
}

extern "C-unwind" fn start(job: *mut c_void) -> *mut c_void {
    OURS.set(true);
    let job = job.cast::<Job>();
    // SAFETY: who started this thread keeps the job, or has left it to this thread.
    unsafe {
        // Asked as late as can be. One that began so late that nobody waits any more leaves the agent silent.
        if (*job).gives_way && is_traced() {
            return null_mut();
        }
        let state: c_int = ffi::PyGILState_Ensure();
        call(job);
        (*job).done.store(true, SeqCst);
        if (*job).left.load(SeqCst) {
            ffi::Py_DecRef((*job).result);
            release(job);
            LEFT_BEHIND.fetch_sub(1, SeqCst);
        }
        ffi::PyGILState_Release(state);
    }
    null_mut()
}

/// Profilers, debuggers and `sys.monitoring` of the program are told of nothing in this thread: from CPython 3.12 on they
/// observe all threads. By name, since older ones lack it.
///
/// # Safety
/// The interpreter's lock is held; the name is of a function that takes the state of a thread and returns nothing.
unsafe fn unobserved(name: &CStr) -> bool {
    // SAFETY: as the caller promises; RTLD_DEFAULT is null.
    unsafe {
        let function = ffi::dlsym(null_mut(), name.as_ptr());
        if !function.is_null() {
            let function: unsafe extern "C-unwind" fn(*mut c_void) = std::mem::transmute(function);
            function(ffi::PyThreadState_Get());
        }
        !function.is_null()
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn call(job: *mut Job) {
    // SAFETY: the lock is held, no exception is set, and the job's references are its own.
    unsafe {
        CALLER.set((*job).caller);
        collector::stop();
        let untraced = unobserved(c"PyThreadState_EnterTracing");
        if FORKED.swap(false, SeqCst) {
            let none = ffi::PyObject_CallObject(RESET.load(SeqCst), null_mut());
            finish(none);
            ffi::Py_DecRef(none);
        }
        (*job).result = ffi::PyObject_CallObject((*job).callable, (*job).arguments);
        finish((*job).result);
        if untraced {
            unobserved(c"PyThreadState_LeaveTracing");
        }
        if !(*job).left.load(SeqCst) {
            collector::go_on();
        }
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn finish(result: Object) {
    // SAFETY: the lock is held.
    unsafe {
        if result.is_null() {
            if LOUD.load(SeqCst) {
                ffi::PyErr_Print();
            }
            ffi::PyErr_Clear();
        }
    }
}

// SAFETY: called with the interpreter's lock held and objects that are alive.
unsafe fn release(job: *mut Job) {
    // SAFETY: nobody else knows of it any more; the lock is held.
    unsafe {
        let job = Box::from_raw(job);
        ffi::Py_DecRef(job.callable);
        ffi::Py_DecRef(job.arguments);
    }
}
