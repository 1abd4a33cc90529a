//! When is a recording to be copied again? Each minute, and less often where that would be more than a shared disk is to carry.

use std::time::{Duration, Instant};

/// What one recording may write there, bytes an hour.
const BYTES_AN_HOUR: f64 = 2e6;
/// What it may write at once beyond that: the parts of a table that were merged; bytes.
const AT_ONCE: f64 = 1e6;
/// However much there is to write, it is not older than this.
const LONGEST: Duration = Duration::from_secs(300);

/// What a copy may write, and when.
#[derive(Clone, Copy, Debug)]
pub struct CopyPace {
    interval: Duration,
    /// What may be written at `at`; below zero, more was.
    room: f64,
    at: Instant,
}

impl CopyPace {
    /// From now on, at most once an interval.
    pub fn new(interval: Duration) -> CopyPace {
        CopyPace { interval, room: AT_ONCE, at: Instant::now() }
    }

    /// So many bytes were written, just now; how long to wait.
    pub fn wait_after(&mut self, bytes: u64, now: Instant) -> Duration {
        let hours = now.saturating_duration_since(self.at).as_secs_f64() / 3600.0;
        // What was too much is not paid for longer than that.
        let least = -LONGEST.as_secs_f64() / 3600.0 * BYTES_AN_HOUR;
        self.room = ((self.room + hours * BYTES_AN_HOUR).min(AT_ONCE) - bytes as f64).max(least);
        self.at = now;
        let until_there_is_room = Duration::from_secs_f64((-self.room).max(0.0) / BYTES_AN_HOUR * 3600.0);
        until_there_is_room.max(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes between two copies, each of so many bytes a minute, after an hour of them; and bytes an hour.
    fn settled(bytes_a_minute: f64) -> (f64, f64) {
        let mut pace = CopyPace::new(Duration::from_secs(60));
        let begun = pace.at;
        let (mut now, mut wait, mut written) = (begun, Duration::from_secs(60), 0.0);
        while now < begun + Duration::from_secs(10 * 3600) {
            now += wait;
            let bytes = bytes_a_minute * wait.as_secs_f64() / 60.0;
            written += bytes;
            wait = pace.wait_after(bytes as u64, now);
        }
        (wait.as_secs_f64() / 60.0, written / 10.0)
    }

    #[test]
    fn what_is_little_is_copied_each_minute_and_what_is_much_less_often() {
        assert_eq!(settled(20e3).0, 1.0);
        assert_eq!(settled(1e6).0, 5.0);
        let mut pace = CopyPace::new(Duration::from_secs(60));
        let now = pace.at;
        assert_eq!(pace.wait_after(1_000_000, now), Duration::from_secs(60), "at once");
        let wait = pace.wait_after(66_667, now + Duration::from_secs(60));
        assert!((59.0..62.0).contains(&wait.as_secs_f64()), "{wait:?}");
        let wait = pace.wait_after(133_333, now + Duration::from_secs(120));
        assert!((238.0..242.0).contains(&wait.as_secs_f64()), "{wait:?}");
    }

    #[test]
    fn an_interval_longer_than_that_stands() {
        let mut pace = CopyPace::new(Duration::from_secs(900));
        let now = pace.at;
        assert_eq!(pace.wait_after(9_000_000, now), Duration::from_secs(900));
    }
}
