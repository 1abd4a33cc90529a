//! Where a test lets a process die: at the n-th time that it comes to a step of the protocol, by SIGKILL.
//!
//! For tests/arena_kills.py. Not armed it is one load of a word that nobody writes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A place between two writes that others can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum FailPoint {
    /// A region has its place, and its heap is not named yet.
    Region = 1,
    /// Memory was taken, and no block lies in it yet.
    Committed,
    /// A free block was divided: the rest has its header, the first part still has its old size.
    Divided,
    /// A block was found, and is not marked as in use yet.
    Found,
    /// It is marked as in use.
    Allocated,
    /// A message was written into its block.
    Filled,
    /// The block is marked as on its way, and its ticket is not in the pipe yet.
    Sent,
    /// The ticket is in the pipe.
    Written,
    /// The ticket was read from the pipe.
    Received,
    /// The block is marked as held by its receiver.
    Taken,
    /// The last part in a block has ended, and it is on no stack yet.
    Ended,
    /// It is on the stack of its heap.
    Returned,
    /// Blocks were taken from the stack, and are not free yet.
    Drained,
}

impl FailPoint {
    /// All of them.
    pub const ALL: [FailPoint; 13] = [
        FailPoint::Region,
        FailPoint::Committed,
        FailPoint::Divided,
        FailPoint::Found,
        FailPoint::Allocated,
        FailPoint::Filled,
        FailPoint::Sent,
        FailPoint::Written,
        FailPoint::Received,
        FailPoint::Taken,
        FailPoint::Ended,
        FailPoint::Returned,
        FailPoint::Drained,
    ];
}

/// Which point, and how often it is still passed: 32 bits each; zero where none is armed.
static ARMED: AtomicU64 = AtomicU64::new(0);

/// This process dies when it comes to `point` for the `times`-th time; never, with zero.
pub fn arm(point: FailPoint, times: u32) {
    let armed = if times == 0 { 0 } else { (point as u64) << 32 | u64::from(times) };
    ARMED.store(armed, Ordering::Relaxed);
}

/// This process comes to a point.
#[inline]
pub fn at(point: FailPoint) {
    if ARMED.load(Ordering::Relaxed) != 0 {
        passed(point);
    }
}

#[cold]
fn passed(point: FailPoint) {
    let armed = ARMED.load(Ordering::Relaxed);
    if armed >> 32 == point as u64 && ARMED.fetch_sub(1, Ordering::Relaxed) as u32 == 1 {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
