//! The way back of a block: a stack in shared memory that any process pushes onto and only the heap's owner empties.
//!
//! Only ever emptied as a whole: a pop of one would need a tag against ABA, a swap with zero needs none.

use crate::sync::{AtomicU64, Ordering};

/// Pushes a block; `next` is the link in its own header. A process that dies before the exchange has pushed nothing.
pub(crate) fn push(head: &AtomicU64, next: &AtomicU64, offset: u64) {
    let mut top = head.load(Ordering::Relaxed);
    loop {
        next.store(top, Ordering::Relaxed);
        match head.compare_exchange_weak(top, offset, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(found) => top = found,
        }
    }
}

/// Takes all: the offset of the last one pushed, which links to those before it; zero where there is none.
pub(crate) fn take_all(head: &AtomicU64) -> u64 {
    // Looked at first: the exchange would take the cache line away from the others each time.
    if head.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    head.swap(0, Ordering::Acquire)
}

#[cfg(all(test, feature = "loom"))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    #[derive(Default)]
    struct Shared {
        head: AtomicU64,
        next: [AtomicU64; 2],
        /// What the retainer did with the bytes last: loom fails where the owner could read it too early.
        bytes: [UnsafeCell<u64>; 2],
    }

    #[test]
    fn two_pushers_and_one_that_empties_lose_nothing_and_see_nothing_twice() {
        loom::model(|| {
            let shared = Arc::new(Shared::default());
            let pushers: Vec<_> = (1..=2u64)
                .map(|block| {
                    let shared = Arc::clone(&shared);
                    loom::thread::spawn(move || {
                        let index = block as usize - 1;
                        // SAFETY: loom checks that nobody else has access meanwhile.
                        shared.bytes[index].with_mut(|bytes| unsafe { *bytes = block });
                        push(&shared.head, &shared.next[index], block);
                    })
                })
                .collect();
            let mut seen = Vec::new();
            // Before the pushers are joined: a join would order what the stack itself must order.
            while seen.len() < 2 {
                let mut offset = take_all(&shared.head);
                while offset != 0 {
                    let index = offset as usize - 1;
                    // SAFETY: as above.
                    seen.push(shared.bytes[index].with(|bytes| unsafe { *bytes }));
                    offset = shared.next[index].load(Ordering::Relaxed);
                }
                loom::thread::yield_now();
            }
            for pusher in pushers {
                pusher.join().unwrap();
            }
            assert_eq!(take_all(&shared.head), 0);
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
        });
    }
}
