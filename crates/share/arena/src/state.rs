//! Who may touch a block: one word in its header, changed by compare-and-swap only.
//!
//! Generation (32 bits), retainer (16), flags (16). The producer's part and the consumer's part are two flags of
//! one word and not a count: what a dead process held can be told apart and ended, a count could not.

use crate::sync::{AtomicU64, Ordering};

/// The producer's own lease: its storage over the block is alive.
pub(crate) const PRODUCER: u64 = 1;
/// A ticket is on its way; the retainer is the channel.
pub(crate) const SENT: u64 = 2;
/// A consumer's lease; the retainer is its slot.
pub(crate) const HELD: u64 = 4;
/// The last lease ended; it is on the return stack, or its retainer died just before that.
pub(crate) const RETURNING: u64 = 8;
/// Its bytes were moved away under live views: never used again.
pub(crate) const RETIRED: u64 = 16;

/// A state word, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) generation: u32,
    pub(crate) retainer: u16,
    pub(crate) flags: u64,
}

impl State {
    pub(crate) fn of(word: u64) -> State {
        State { generation: (word >> 32) as u32, retainer: (word >> 16) as u16, flags: word & 0xffff }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.retainer) << 16 | self.flags
    }

    pub(crate) fn has(self, flags: u64) -> bool {
        self.flags & flags != 0
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Done; others still have a part in the block.
    Done,
    /// Done, and it was the last part: whoever made this step returns the block.
    Last,
    /// The word does not allow it: another generation, or somebody else's part.
    Refused,
}

fn step(word: &AtomicU64, generation: u32, change: impl Fn(State) -> Option<State>) -> Step {
    let mut now = word.load(Ordering::Acquire);
    loop {
        let state = State::of(now);
        if state.generation != generation {
            return Step::Refused;
        }
        let Some(next) = change(state) else { return Step::Refused };
        // Release: all that was done with the bytes is seen by the next one who gets them.
        match word.compare_exchange_weak(now, next.word(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) if next.has(RETURNING) => return Step::Last,
            Ok(_) => return Step::Done,
            Err(found) => now = found,
        }
    }
}

/// A ticket leaves through `channel`. `keep`: the producer's own lease goes on. Refused where one is out already.
pub(crate) fn send(word: &AtomicU64, generation: u32, channel: u16, keep: bool) -> Step {
    step(word, generation, |state| {
        let ready = state.flags == PRODUCER;
        ready.then_some(State {
            retainer: channel,
            flags: if keep { PRODUCER | SENT } else { SENT },
            ..state
        })
    })
}

/// A consumer takes the ticket.
pub(crate) fn take(word: &AtomicU64, generation: u32, slot: u16) -> Step {
    step(word, generation, |state| {
        state.has(SENT).then_some(State { retainer: slot, flags: (state.flags & !SENT) | HELD, ..state })
    })
}

/// The consumer's part ends: its lease, or a ticket that nobody will take.
pub(crate) fn end_consumer(word: &AtomicU64, generation: u32, slot: u16) -> Step {
    step(word, generation, |state| {
        state.has(SENT | HELD).then(|| left(state, state.flags & !(SENT | HELD), slot))
    })
}

/// The producer's lease ends.
pub(crate) fn end_producer(word: &AtomicU64, generation: u32, slot: u16) -> Step {
    step(word, generation, |state| state.has(PRODUCER).then(|| left(state, state.flags & !PRODUCER, slot)))
}

/// Its bytes moved elsewhere while views of them may live.
pub(crate) fn retire(word: &AtomicU64, generation: u32) -> Step {
    step(word, generation, |state| Some(State { flags: state.flags | RETIRED, ..state }))
}

fn left(state: State, flags: u64, slot: u16) -> State {
    if flags == 0 {
        State { retainer: slot, flags: RETURNING, ..state }
    } else {
        // The retainer stays as long as a consumer's part does.
        let retainer = if flags & (SENT | HELD) == 0 { 0 } else { state.retainer };
        State { retainer, flags, ..state }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    fn fresh() -> AtomicU64 {
        AtomicU64::new(State { generation: 7, retainer: 0, flags: PRODUCER }.word())
    }

    #[test]
    fn a_word_survives_being_taken_apart() {
        for word in [0, u64::MAX, 0x1234_5678_9abc_def0] {
            assert_eq!(State::of(word).word(), word);
        }
    }

    #[test]
    fn the_last_part_returns_the_block_whoever_ends_last() {
        for producer_first in [true, false] {
            let word = fresh();
            assert_eq!(send(&word, 7, 3, true), Step::Done);
            assert_eq!(take(&word, 7, 5), Step::Done);
            let (first, second) = if producer_first {
                (end_producer(&word, 7, 1), end_consumer(&word, 7, 5))
            } else {
                (end_consumer(&word, 7, 5), end_producer(&word, 7, 1))
            };
            assert_eq!((first, second), (Step::Done, Step::Last));
        }
    }

    #[test]
    fn a_block_with_a_live_lease_is_not_sent_again() {
        let word = fresh();
        assert_eq!(send(&word, 7, 3, true), Step::Done);
        assert_eq!(send(&word, 7, 3, true), Step::Refused);
        take(&word, 7, 5);
        assert_eq!(send(&word, 7, 3, true), Step::Refused);
        end_consumer(&word, 7, 5);
        assert_eq!(send(&word, 7, 3, true), Step::Done, "it came back to its producer");
    }

    #[test]
    fn an_old_ticket_is_refused() {
        let word = fresh();
        send(&word, 7, 3, false);
        assert_eq!(take(&word, 6, 5), Step::Refused);
        assert_eq!(take(&word, 7, 5), Step::Done);
        assert_eq!(take(&word, 7, 6), Step::Refused, "taken already");
        assert_eq!(end_producer(&word, 7, 1), Step::Refused, "it was given away");
        assert_eq!(end_consumer(&word, 7, 5), Step::Last);
        assert_eq!(end_consumer(&word, 7, 5), Step::Refused, "ended twice");
    }

    #[test]
    fn what_was_moved_away_never_returns() {
        let word = fresh();
        send(&word, 7, 3, false);
        take(&word, 7, 5);
        retire(&word, 7);
        assert_eq!(end_consumer(&word, 7, 5), Step::Done);
        assert_eq!(State::of(word.load(Ordering::Relaxed)).flags, RETIRED);
    }
}

#[cfg(all(test, feature = "loom"))]
mod models {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn exactly_one_of_producer_and_consumer_returns_a_block() {
        loom::model(|| {
            let word = Arc::new(AtomicU64::new(State { generation: 1, retainer: 0, flags: PRODUCER }.word()));
            send(&word, 1, 3, true);
            let other = Arc::clone(&word);
            let consumer = loom::thread::spawn(move || {
                assert_eq!(take(&other, 1, 2), Step::Done);
                end_consumer(&other, 1, 2)
            });
            let producer = end_producer(&word, 1, 1);
            let consumer = consumer.join().unwrap();
            let last = [producer, consumer].iter().filter(|step| **step == Step::Last).count();
            assert_eq!(last, 1, "{producer:?} {consumer:?}");
        });
    }

    #[test]
    fn one_ticket_has_one_taker() {
        loom::model(|| {
            let word = Arc::new(AtomicU64::new(State { generation: 1, retainer: 0, flags: PRODUCER }.word()));
            send(&word, 1, 3, false);
            let other = Arc::clone(&word);
            let second = loom::thread::spawn(move || take(&other, 1, 2));
            let first = take(&word, 1, 4);
            let second = second.join().unwrap();
            assert!((first == Step::Done) != (second == Step::Done), "{first:?} {second:?}");
        });
    }
}
