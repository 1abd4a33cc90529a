//! When may something expensive be done again? So that it takes no more than a given share of the time.

use rustix::time::{clock_gettime, ClockId};
use std::time::{Duration, Instant};

/// Work that takes at most a share of the time.
#[derive(Clone, Copy, Debug)]
pub struct Paced {
    times: u32,
    next: Option<Instant>,
}

impl Paced {
    /// One part of so many.
    pub fn one_of(times: u32) -> Paced {
        Paced { times, next: None }
    }

    /// From now on one part of so many.
    pub fn at_most_one_of(&mut self, times: u32) {
        self.times = times;
    }

    /// Does it where it is time, and notes what it took of a core: one that waited for a core cost nobody anything.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return None;
        }
        let before = thread_cpu();
        let done = work();
        let used = thread_cpu().saturating_sub(before);
        self.next = Some(begun + used.max(Duration::from_micros(1)) * self.times);
        Some(done)
    }
}

fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_not_done_again_at_once() {
        let mut paced = Paced::one_of(1_000_000);
        assert_eq!(paced.run(|| 1), Some(1));
        assert_eq!(paced.run(|| 2), None);
    }

    #[test]
    fn what_waited_is_done_again_soon() {
        let mut paced = Paced::one_of(1000);
        paced.run(|| std::thread::sleep(Duration::from_millis(50)));
        let next = paced.next.expect("it ran");
        assert!(next < Instant::now() + Duration::from_secs(25));
    }
}
