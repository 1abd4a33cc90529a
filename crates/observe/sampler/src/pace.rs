//! When to look again: often at the start and near a limit, seldom when the budget is spent, never in step.

use std::time::Duration;

/// The fastest pace.
pub const FASTEST: Duration = Duration::from_millis(100);
/// Ticks are fast for this long after the start, seconds.
const START_S: f64 = 1.0;
/// Ticks that fit into the time that is left to a limit: each takes a tenth of it.
const TICKS_TO_A_LIMIT: f64 = 10.0;
/// However dear a tick is, a job is looked at this often, in intervals.
const SLOWEST: u32 = 30;

/// What decides the next tick.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// As set.
    pub interval: Duration,
    /// Seconds since the start.
    pub since_start: f64,
    /// Seconds to the limit that is met first.
    pub time_left: Option<f64>,
    /// How far apart ticks have to be to stay within the budget.
    pub affordable: Duration,
    /// The overdraft is used up too.
    pub exhausted: bool,
}

impl Pace {
    /// How long to wait, before jitter.
    pub fn next_after(&self) -> Duration {
        let floor = FASTEST.min(self.interval);
        if !self.exhausted {
            if let Some(left) = self.time_left {
                let wanted = Duration::from_secs_f64((left / TICKS_TO_A_LIMIT).clamp(0.0, 3600.0)).max(floor);
                if wanted < self.interval {
                    return wanted;
                }
            }
            if self.since_start < START_S {
                return self.affordable.clamp(floor, self.interval);
            }
        }
        self.affordable.clamp(self.interval, self.interval * SLOWEST)
    }
}

/// Up to a tenth earlier or later, so as not to fall into step with the job.
pub fn jitter(wait: Duration, state: &mut u64) -> Duration {
    let unit = (random(state) >> 11) as f64 / (1u64 << 53) as f64;
    wait.mul_f64(0.9 + 0.2 * unit)
}

/// The next bits (xorshift, any seed but zero).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Pace = Pace {
        interval: Duration::from_secs(1),
        since_start: 60.0,
        time_left: None,
        affordable: Duration::ZERO,
        exhausted: false,
    };

    #[test]
    fn a_near_limit_is_approached_in_tenths_down_to_100_ms() {
        let at = |left| Pace { time_left: Some(left), ..CALM }.next_after();
        assert_eq!(at(100.0), Duration::from_secs(1));
        assert_eq!(at(7.0), Duration::from_millis(700));
        assert_eq!(at(0.2), FASTEST);
    }

    #[test]
    fn the_first_second_is_fast() {
        assert_eq!(Pace { since_start: 0.3, ..CALM }.next_after(), FASTEST);
        assert_eq!(CALM.next_after(), CALM.interval);
    }

    #[test]
    fn dear_ticks_slow_down_but_not_without_end() {
        let affordable = Duration::from_secs(4);
        assert_eq!(Pace { affordable, ..CALM }.next_after(), affordable);
        assert_eq!(Pace { affordable: affordable * 100, ..CALM }.next_after(), CALM.interval * 30);
        assert_eq!(Pace { affordable, since_start: 0.3, ..CALM }.next_after(), CALM.interval);
        assert_eq!(Pace { affordable, time_left: Some(2.0), ..CALM }.next_after(), CALM.interval / 5);
        let exhausted = Pace { time_left: Some(0.1), exhausted: true, affordable, ..CALM };
        assert_eq!(exhausted.next_after(), affordable);
    }

    #[test]
    fn jitter_stays_within_a_tenth_and_moves() {
        let mut state = 42;
        let waits: Vec<_> = (0..100).map(|_| jitter(Duration::from_secs(1), &mut state)).collect();
        assert!(waits.iter().all(|wait| (0.9..=1.1).contains(&wait.as_secs_f64())));
        assert!(waits.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
