//! Who looks at memory in a program that only computes, or whose threads come and go? Its own allocations ask.
//!
//! CPython takes pieces of more than 512 bytes from malloc through one table of functions, and room for all smaller ones in arenas
//! through another (`PyMem_SetAllocator` of the raw domain, `PyObject_SetArenaAllocator`). Ours stand in front of both and count.
//! After some of them, where a look is due and private memory has risen, CPython is asked to call us in the main thread, between
//! two steps of its byte code, as waker.rs does from a thread. No thread, no signal, no lock, and no system call in an allocation.
//!
//! Only in front of CPython's own, which have no context: whoever stands in front of those (debug hooks, tracemalloc) may put itself
//! in front of ours once more, and would call us while we call it.
//!
//! The surprise: numpy's arrays are malloc's own, and come by all the same: each one that is kept takes a piece for its shape.

use crate::ffi::{self, Object};
use crate::malloc::symbol;
use crate::{safe_points, sandbox, waker};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

/// Of `PyMemAllocatorDomain`: pieces that are taken without the interpreter's lock.
const RAW: c_int = 0;
/// Bytes after which the clock is read.
const STEP: i64 = 1 << 20;
/// What a piece counts at least, so that many small ones are a step too.
const LEAST: usize = 4 << 10;
/// Nanoseconds between two questions whether memory has risen.
const APART_NS: i64 = 1_000_000_000;

type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);
type FreeArena = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);

/// `PyMemAllocatorEx`, the same from CPython 3.5 on.
#[repr(C)]
struct Pieces {
    context: *mut c_void,
    malloc: Option<Malloc>,
    calloc: Option<Calloc>,
    realloc: Option<Realloc>,
    free: Option<Free>,
}

/// `PyObjectArenaAllocator`, the same from CPython 3.4 on.
#[repr(C)]
struct Arenas {
    context: *mut c_void,
    malloc: Option<Malloc>,
    free: Option<FreeArena>,
}

/// What stood there before: the context of ours, which lives for good.
struct Before<T> {
    context: *mut c_void,
    functions: T,
}

type BeforePieces = Before<(Malloc, Calloc, Realloc, Free)>;
type BeforeArenas = Before<(Malloc, FreeArena)>;

/// Bytes since the clock was read. Threads may overwrite each other's sums: it only says how soon it is read again.
static SUM: AtomicI64 = AtomicI64::new(0);
/// When memory may be asked for again, by the monotonic clock.
static NEXT_QUESTION: AtomicI64 = AtomicI64::new(0);
static ASKED: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// CPython's function for the thread that has the interpreter's lock, where it is known.
static RUNNING: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// No other thread forks now, and the pending calls' lock, which its child would know nothing of, may be taken: forks are made with the
/// interpreter's lock, and this thread has it.
fn may_ask() -> bool {
    let running = RUNNING.load(Relaxed);
    if running.is_null() {
        return sandbox::is_main();
    }
    // SAFETY: the first two may be called by any thread at any time, and all only read; `RUNNING` has this signature (CPython's pystate.h).
    unsafe {
        let ours = ffi::PyGILState_GetThisThreadState();
        let has_lock = !ours.is_null()
            && ours == std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(running)();
        // Another interpreter may have a lock of its own.
        has_lock && ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0
    }
}

#[inline]
fn passed(bytes: usize) {
    let sum = SUM.load(Relaxed).saturating_add(bytes.clamp(LEAST, STEP as usize) as i64);
    SUM.store(if sum < STEP { sum } else { 0 }, Relaxed);
    if sum >= STEP {
        step();
    }
}

#[cold]
fn step() {
    let (now, due) = (ffi::now(), safe_points::NEXT.load(SeqCst));
    let is_due = due != safe_points::NEVER && now >= due;
    if !is_due || now < NEXT_QUESTION.load(SeqCst) || !may_ask() || ASKED.swap(true, SeqCst) {
        return;
    }
    // SAFETY: it may be called without the interpreter's lock. A full queue says no.
    if unsafe { ffi::Py_AddPendingCall(come_by, null_mut()) } != 0 {
        ASKED.store(false, SeqCst);
    }
}

/// In the main thread, with the interpreter's lock.
extern "C-unwind" fn come_by(_nothing: *mut c_void) -> c_int {
    ASKED.store(false, SeqCst);
    NEXT_QUESTION.store(ffi::now().saturating_add(APART_NS), SeqCst);
    if sandbox::private_if_open_here().is_some_and(|(private, _)| waker::is_worth_it(private)) {
        // SAFETY: CPython holds the lock.
        unsafe { waker::read() };
    }
    0
}

/// In a forked child.
pub(crate) fn in_child(asks_in_vain: bool) {
    ASKED.store(asks_in_vain, SeqCst);
    NEXT_QUESTION.store(0, SeqCst);
}

// SAFETY: CPython hands over the context that stands in the table, which is ours, and what it would hand to those before.
unsafe extern "C" fn malloc(before: *mut c_void, bytes: usize) -> *mut c_void {
    passed(bytes);
    // SAFETY: as above.
    unsafe {
        let before = &*before.cast::<BeforePieces>();
        (before.functions.0)(before.context, bytes)
    }
}

// SAFETY: as of malloc.
unsafe extern "C" fn calloc(before: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    passed(count.saturating_mul(bytes));
    // SAFETY: as of malloc.
    unsafe {
        let before = &*before.cast::<BeforePieces>();
        (before.functions.1)(before.context, count, bytes)
    }
}

// SAFETY: as of malloc.
unsafe extern "C" fn realloc(before: *mut c_void, piece: *mut c_void, bytes: usize) -> *mut c_void {
    passed(bytes);
    // SAFETY: as of malloc.
    unsafe {
        let before = &*before.cast::<BeforePieces>();
        (before.functions.2)(before.context, piece, bytes)
    }
}

// SAFETY: as of malloc.
unsafe extern "C" fn free(before: *mut c_void, piece: *mut c_void) {
    // SAFETY: as of malloc.
    unsafe {
        let before = &*before.cast::<BeforePieces>();
        (before.functions.3)(before.context, piece);
    }
}

// SAFETY: as of malloc.
unsafe extern "C" fn malloc_arena(before: *mut c_void, bytes: usize) -> *mut c_void {
    passed(bytes);
    // SAFETY: as of malloc.
    unsafe {
        let before = &*before.cast::<BeforeArenas>();
        (before.functions.0)(before.context, bytes)
    }
}

// SAFETY: as of malloc.
unsafe extern "C" fn free_arena(before: *mut c_void, arena: *mut c_void, bytes: usize) {
    // SAFETY: as of malloc.
    unsafe {
        let before = &*before.cast::<BeforeArenas>();
        (before.functions.1)(before.context, arena, bytes);
    }
}

/// `allocations()`: they come by from now on. Nothing where another thread could be in the middle of one, and where CPython has
/// no such functions. Never taken back: who put others in front would call them on.
// SAFETY: called by CPython, which holds the interpreter's lock; what it hands over is alive for the call.
pub(crate) unsafe extern "C-unwind" fn allocations(_module: Object, _arguments: Object) -> Object {
    let alone = sandbox::private_if_open_here().is_some_and(|(_, threads)| threads == 1);
    if alone && !INSTALLED.swap(true, SeqCst) {
        // SAFETY: the lock is held, and no other thread is there.
        unsafe {
            // Until 3.12, and since.
            let names = [c"_PyThreadState_UncheckedGet", c"PyThreadState_GetUnchecked"];
            let found = names.into_iter().map(symbol).find(|found| !found.is_null());
            RUNNING.store(found.unwrap_or(null_mut()), Relaxed);
            install_pieces();
            install_arenas();
        }
    }
    ffi::none()
}

// SAFETY: called by the only thread, with the interpreter's lock held.
unsafe fn install_pieces() {
    type Table = unsafe extern "C" fn(c_int, *mut Pieces);
    let (get, set) = (symbol(c"PyMem_GetAllocator"), symbol(c"PyMem_SetAllocator"));
    if get.is_null() || set.is_null() {
        return;
    }
    let mut all = Pieces { context: null_mut(), malloc: None, calloc: None, realloc: None, free: None };
    // SAFETY: both have this signature (CPython's pymem.h); they copy the table, whose context lives for good.
    unsafe {
        std::mem::transmute::<*mut c_void, Table>(get)(RAW, &mut all);
        let Pieces { malloc: Some(one), calloc: Some(two), realloc: Some(three), free: Some(four), .. } = all
        else {
            return;
        };
        if !all.context.is_null() {
            return;
        }
        let before: BeforePieces = Before { context: all.context, functions: (one, two, three, four) };
        let mut ours = Pieces {
            context: std::ptr::from_mut(Box::leak(Box::new(before))).cast(),
            malloc: Some(malloc),
            calloc: Some(calloc),
            realloc: Some(realloc),
            free: Some(free),
        };
        std::mem::transmute::<*mut c_void, Table>(set)(RAW, &mut ours);
    }
}

// SAFETY: called by the only thread, with the interpreter's lock held.
unsafe fn install_arenas() {
    type Table = unsafe extern "C" fn(*mut Arenas);
    let (get, set) = (symbol(c"PyObject_GetArenaAllocator"), symbol(c"PyObject_SetArenaAllocator"));
    if get.is_null() || set.is_null() {
        return;
    }
    let mut all = Arenas { context: null_mut(), malloc: None, free: None };
    // SAFETY: as above (CPython's objimpl.h).
    unsafe {
        std::mem::transmute::<*mut c_void, Table>(get)(&mut all);
        let Arenas { malloc: Some(one), free: Some(two), .. } = all else { return };
        if !all.context.is_null() {
            return;
        }
        let before: BeforeArenas = Before { context: all.context, functions: (one, two) };
        let mut ours = Arenas {
            context: std::ptr::from_mut(Box::leak(Box::new(before))).cast(),
            malloc: Some(malloc_arena),
            free: Some(free_arena),
        };
        std::mem::transmute::<*mut c_void, Table>(set)(&mut ours);
    }
}
