//! An arena between processes: forks, and deaths.
//!
//! The children are forked by hand and do nothing but what the arena does: no test harness runs in them.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use ullage_arena::{Arena, Settings, Ticket};

/// Forks of several tests at once would be heirs of each other's leases.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn arena() -> Arena {
    Arena::create(Settings { reserve: 16 << 30, guard: Box::new(|_, _| Ok(())) }).unwrap()
}

struct Child(i32);

impl Child {
    /// Runs `body` in a fork of this process, which ends after it.
    fn fork(body: impl FnOnce()) -> Child {
        // SAFETY: the child runs `body` and leaves by _exit; the harness's threads are not in it.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            body();
            // SAFETY: no destructors, no atexit handlers of the harness.
            unsafe { libc::_exit(0) };
        }
        assert!(pid > 0);
        Child(pid)
    }

    fn wait(self) -> i32 {
        let mut status = 0;
        // SAFETY: waits for a child of ours.
        unsafe { libc::waitpid(self.0, &mut status, 0) };
        status
    }

    fn kill(self) {
        // SAFETY: a child of ours that was not waited for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        self.wait();
    }
}

fn send(stream: &mut UnixStream, ticket: Ticket) {
    let mut bytes = ticket.offset.to_le_bytes().to_vec();
    bytes.extend(u64::from(ticket.generation).to_le_bytes());
    bytes.extend(ticket.length.to_le_bytes());
    stream.write_all(&bytes).unwrap();
}

fn receive(stream: &mut UnixStream) -> Ticket {
    let mut bytes = [0; 24];
    stream.read_exact(&mut bytes).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    Ticket { offset: word(0), generation: word(8) as u32, length: word(16) }
}

/// A worker that sends blocks of `bytes`, each filled with its number, until it is killed.
fn worker(arena: &Arena, bytes: u64, count: u8, stream: &mut UnixStream) {
    for number in 0..count {
        let mut block = arena.alloc(bytes).unwrap();
        // SAFETY: just allocated.
        unsafe { block.bytes_mut() }.fill(number);
        send(stream, block.send(1).unwrap());
    }
    let mut byte = [0];
    let _ = stream.read(&mut byte);
}

#[test]
fn blocks_outlive_their_producer_and_its_heap_is_used_again() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let arena = arena();
    let mut leases = Vec::new();
    let mut committed = Vec::new();
    for _ in 0..8 {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let child = Child::fork(|| worker(&arena, 1 << 20, 4, &mut theirs));
        let tickets: Vec<Ticket> = (0..4).map(|_| receive(&mut ours)).collect();
        child.kill();
        for (number, ticket) in tickets.iter().enumerate() {
            let lease = arena.take(*ticket).unwrap();
            // SAFETY: its writer is dead.
            assert!(unsafe { lease.bytes() }.iter().all(|byte| usize::from(*byte) == number));
            if number == 2 {
                leases.push(lease);
            }
        }
        committed.push(arena.report().committed);
    }
    // One megabyte a round is kept; everything else comes back to the next worker.
    let grown = committed[7] - committed[3];
    assert!(grown <= 4 * ((1 << 20) + (256 << 10)), "{committed:?}");
    for lease in &leases {
        // SAFETY: its writer is dead.
        assert!(unsafe { lease.bytes() }.iter().all(|byte| *byte == 2));
    }
}

#[test]
fn what_a_killed_consumer_held_comes_home() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let arena = arena();
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let tickets: Vec<Ticket> = (0..3).map(|_| arena.alloc(1 << 20).unwrap().send(1).unwrap()).collect();
    let child = Child::fork(|| {
        let held: Vec<_> = tickets.iter().map(|ticket| arena.take(*ticket).unwrap()).collect();
        theirs.write_all(&[1]).unwrap();
        let mut byte = [0];
        let _ = theirs.read(&mut byte);
        drop(held);
    });
    ours.read_exact(&mut [0]).unwrap();
    arena.sweep();
    let report = arena.report();
    assert!(report.in_use >= 3 << 20);
    assert_eq!((report.holdings[0].pid, report.holdings[0].blocks), (child.0 as u32, 3));
    child.kill();
    arena.sweep();
    assert_eq!(arena.report().in_use, 0);
}

#[test]
fn a_block_that_a_forked_child_still_reads_is_not_used_again() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let arena = arena();
    let mut block = arena.alloc(1 << 20).unwrap();
    // SAFETY: just allocated.
    unsafe { block.bytes_mut() }.fill(7);
    let mut lease = Some(arena.take(block.send(1).unwrap()).unwrap());
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let child = Child::fork(|| {
        theirs.read_exact(&mut [0]).unwrap();
        // SAFETY: the parent writes elsewhere, which is what this test is about.
        let intact = unsafe { lease.as_ref().unwrap().bytes() }.iter().all(|byte| *byte == 7);
        theirs.write_all(&[u8::from(intact)]).unwrap();
        drop(lease.take());
    });
    let place = lease.as_ref().unwrap().ticket().offset;
    drop(lease);
    for _ in 0..50 {
        let mut other = arena.alloc(1 << 20).unwrap();
        // SAFETY: just allocated.
        unsafe { other.bytes_mut() }.fill(9);
        assert_ne!(other.ticket().offset, place);
    }
    ours.write_all(&[1]).unwrap();
    let mut intact = [0];
    ours.read_exact(&mut intact).unwrap();
    assert_eq!((intact[0], child.wait()), (1, 0));
    // The arena looks after the dead from time to time, not at each block.
    while arena.alloc(1 << 20).unwrap().ticket().offset != place {
        std::thread::yield_now();
    }
}

#[test]
fn a_thousand_forks_while_a_block_is_held_leave_the_arena_flat() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let arena = arena();
    let held = arena.take(arena.alloc(1 << 20).unwrap().send(1).unwrap()).unwrap();
    for _ in 0..1000 {
        assert_eq!(Child::fork(|| {}).wait(), 0);
        drop(arena.take(arena.alloc(1 << 20).unwrap().send(1).unwrap()).unwrap());
    }
    assert!(arena.report().committed < 8 << 20, "{:?}", arena.report());
    drop(held);
}

#[test]
fn processes_that_grow_the_arena_at_once_lose_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let arena = arena();
    let mut streams = Vec::new();
    let mut children = Vec::new();
    for _ in 0..4 {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        children.push(Child::fork(|| worker(&arena, 24 << 20, 20, &mut theirs)));
        streams.push(ours);
    }
    for stream in &mut streams {
        for number in 0..20u8 {
            let lease = arena.take(receive(stream)).unwrap();
            // SAFETY: it was sent, and its worker writes no more into it.
            assert!(unsafe { lease.bytes() }.iter().all(|byte| *byte == number));
        }
    }
    for stream in &mut streams {
        // Not by closing: the later children hold the earlier ones' ends too.
        stream.write_all(&[1]).unwrap();
    }
    for child in children {
        assert_eq!(child.wait(), 0);
    }
}
