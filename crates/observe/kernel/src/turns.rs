//! How is nobody kept waiting while this program waits for a processor?
//!
//! A read of `maps` or `pagemap` holds the target's address space for some 10 microseconds; but a reader that the scheduler
//! takes off its processor in the middle of one holds it for as long as others run, 8 ms and more on a busy machine. Who has
//! just slept is left to run for some milliseconds. So such reads are made in short turns, each after a nap. The surprise:
//! the nap has to be long enough for others to use their part meanwhile, or else the turn is none. It is no guarantee:
//! where tasks are scheduled in groups (containers, sessions), the slice of the group may end in the middle of a turn. On
//! two processors with four busy tasks, 3 of 10,000 reads took more than 1 ms so, on an idle machine hardly one.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Well below the shortest slice of the schedulers of Linux 5.10 to 6.18 (0.75 ms).
const TURN: Duration = Duration::from_micros(500);
const NAP: Duration = Duration::from_millis(2);

thread_local! {
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// To be called before each read that holds another's address space: naps where the turn is over.
pub(crate) fn short() {
    if is_over(BEGUN.get(), Instant::now()) {
        std::thread::sleep(NAP);
        BEGUN.set(Some(Instant::now()));
    }
}

/// No turn has begun yet, or the last one was long enough.
fn is_over(begun: Option<Instant>, now: Instant) -> bool {
    begun.is_none_or(|begun| now.saturating_duration_since(begun) >= TURN)
}

/// How much to ask for at once, between `least` and `most`, after so much took so long: a read that took a fifth of a turn
/// is made in smaller pieces from now on, where the machine is slow or what is asked for dear.
pub(crate) fn piece(before: usize, took: Duration, least: usize, most: usize) -> usize {
    let next = if took > TURN / 5 {
        before / 2
    } else if took < TURN / 20 {
        before * 2
    } else {
        before
    };
    next.clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_read_makes_the_next_smaller_and_a_quick_one_larger() {
        let next = |before, micros| piece(before, Duration::from_micros(micros), 16, 512);
        assert_eq!(next(256, 101), 128);
        assert_eq!(next(256, 50), 256);
        assert_eq!(next(256, 24), 512);
        assert_eq!((next(512, 1), next(16, 10_000)), (512, 16));
    }

    #[test]
    fn a_turn_begins_with_a_nap_and_has_one_only() {
        let begun = Instant::now();
        assert!(is_over(None, begun), "the first");
        assert!(!is_over(Some(begun), begun));
        assert!(!is_over(Some(begun), begun + TURN - Duration::from_nanos(1)));
        assert!(is_over(Some(begun), begun + TURN));
        short();
        let napped = BEGUN.get();
        assert!(napped.is_some_and(|napped| napped >= begun + NAP), "a nap is never shorter than asked for");
    }
}
