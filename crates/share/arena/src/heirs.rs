//! What a fork does to leases: the child sees the parent's blocks through the same mapping, without a lease.
//!
//! The parent's count of forks goes up before each one ([`forks`]), and the child enters itself as an heir. A lease that
//! ends in the parent after a fork that it lived through waits until every heir of that fork is gone or has called
//! exec. In the child the inherited leases end nothing.
//!
//! The surprise: a child enters itself in a `pthread_atfork` handler, where another thread of the parent may have held any
//! lock: atomics and system calls only.

use crate::forks;
use crate::layout::{Header, HEIRS};
use crate::member::Member;
use crate::slots;
use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Arenas of one process that forks are seen for; there is one, or two in a test.
const ARENAS: usize = 16;
/// Depth of forks of forks that is followed.
const DEPTH: usize = 16;

static REGISTERED: [AtomicPtr<Member>; ARENAS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; ARENAS];
/// Per arena, whose leases this process inherited: slot and fork count, packed.
static INHERITED: [[AtomicU64; DEPTH]; ARENAS] = [const { [const { AtomicU64::new(0) }; DEPTH] }; ARENAS];

/// Lets forks be seen for an arena, until [`forget`].
pub(crate) fn register(arena: &Member) {
    watch();
    let pointer = std::ptr::from_ref(arena).cast_mut();
    for place in &REGISTERED {
        let free = std::ptr::null_mut();
        if place.compare_exchange(free, pointer, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// The arena is about to go.
pub(crate) fn forget(arena: &Member) {
    let pointer = std::ptr::from_ref(arena).cast_mut();
    for (place, inherited) in REGISTERED.iter().zip(&INHERITED) {
        if place.load(Ordering::Acquire) == pointer {
            inherited.iter().for_each(|entry| entry.store(0, Ordering::Relaxed));
            place.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
}

/// As [`forks::watch`]: where two threads come through, an heir is entered more than once.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    forks::watch();
    if !WATCHED.load(Ordering::Acquire) {
        // SAFETY: the handler touches atomics and mapped memory only, as a forked child may.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        WATCHED.store(true, Ordering::Release);
    }
}

extern "C" fn in_child() {
    let (count, parent) = (forks::forks(), forks::parent());
    for (place, inherited) in REGISTERED.iter().zip(&INHERITED) {
        let pointer = place.load(Ordering::Acquire);
        // SAFETY: `forget` takes the pointer away before the arena goes, and the child has a copy of both.
        let Some(arena) = (unsafe { pointer.as_ref() }) else { continue };
        let header = arena.mapping().header();
        for entry in inherited {
            let packed = entry.load(Ordering::Acquire);
            if packed != 0 {
                enter(header, (packed >> 48) as u32, packed & ((1 << 48) - 1));
            }
        }
        // Who held nothing leaves nothing to inherit.
        if let Some(slot) = arena.slot_with_leases(parent) {
            enter(header, u32::from(slot), count);
            let packed = u64::from(slot) << 48 | (count & ((1 << 48) - 1));
            if let Some(free) = inherited.iter().find(|entry| entry.load(Ordering::Acquire) == 0) {
                free.store(packed, Ordering::Release);
            }
        }
    }
}

/// Enters this process as an heir; where the table is full of the living, the arena is marked: nothing that a fork
/// has seen is used again.
fn enter(header: &Header, of_slot: u32, fork: u64) {
    let pid = std::process::id();
    for of_the_dead in [false, true] {
        for heir in &header.heirs[1..] {
            let found = heir.pid.load(Ordering::Acquire);
            let free = if of_the_dead { !exists(found) } else { found == 0 };
            if free && heir.pid.compare_exchange(found, pid, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                heir.of_slot.store(of_slot, Ordering::Relaxed);
                heir.fork.store(fork, Ordering::Release);
                return;
            }
        }
    }
    header.heirs[0].of_slot.store(1, Ordering::Release);
}

fn exists(pid: u32) -> bool {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

/// True where a living process may still see blocks that `of_slot` leased before its fork number `after` was over
/// and gave up at its fork number `until`.
fn any_heir(header: &Header, of_slot: u16, after: u64, until: u64) -> bool {
    if header.heirs[0].of_slot.load(Ordering::Acquire) != 0 {
        return true;
    }
    let mut any = false;
    for heir in &header.heirs[1..HEIRS] {
        let pid = heir.pid.load(Ordering::Acquire);
        if pid == 0 || heir.of_slot.load(Ordering::Relaxed) != u32::from(of_slot) {
            continue;
        }
        if !still_maps(pid) {
            // Only the place of the very process that was looked at is freed.
            let _ = heir.pid.compare_exchange(pid, 0, Ordering::AcqRel, Ordering::Relaxed);
            continue;
        }
        let fork = heir.fork.load(Ordering::Acquire);
        any |= after < fork && fork <= until;
    }
    any
}

/// True where heirs of any lease of that process live.
pub(crate) fn has_heirs(header: &Header, of_slot: u16) -> bool {
    any_heir(header, of_slot, 0, u64::MAX)
}

/// A process that called exec lives on without the mapping.
fn still_maps(pid: u32) -> bool {
    if !exists(pid) || slots::stat_of(pid).is_some_and(|stat| stat.zombie) {
        return false;
    }
    match std::fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps.windows(NAME.len()).any(|window| window == NAME),
        // Hidden from us: taken for one that does.
        Err(_) => exists(pid),
    }
}

const NAME: &[u8] = b"memfd:ullage-arena";

/// A lease that ended after a fork it had lived through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) offset: u64,
    pub(crate) generation: u32,
    pub(crate) producer: bool,
    /// Forks when the lease began.
    pub(crate) after: u64,
    /// Forks when it ended.
    pub(crate) until: u64,
}

impl Waiting {
    /// True once nobody can see the block through that lease.
    pub(crate) fn is_over(&self, header: &Header, slot: u16) -> bool {
        !any_heir(header, slot, self.after, self.until)
    }
}
