//! One figure over time in bounded memory.
//!
//! The newest readings are kept as they are; older ones are thinned to every second one whenever they
//! become too many, so that a week of readings costs what ten minutes do.

use crate::policy::limits::{JUST_AFTER_S, JUST_BEFORE_S};
use crate::policy::trends::{END_RATE_READINGS, END_RATE_S};
use std::collections::VecDeque;
use ullage_model::At;

/// Newest readings, kept unthinned.
const MOST_RECENT: usize = 120;
/// Older readings before they are thinned by half.
const MOST_OLD: usize = 240;

/// Readings of one figure, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    recent: VecDeque<(At, f64)>,
    old: Vec<(At, f64)>,
    thinned: u32,
    passed: u32,
    first: Option<(At, f64)>,
    peak: Option<(At, f64)>,
}

impl Series {
    /// Adds a reading.
    pub fn push(&mut self, at: At, value: f64) {
        self.first.get_or_insert((at, value));
        if self.peak.is_none_or(|(_, peak)| value >= peak) {
            self.peak = Some((at, value));
        }
        self.recent.push_back((at, value));
        if self.recent.len() > MOST_RECENT {
            if let Some(point) = self.recent.pop_front() {
                self.keep_old(point);
            }
        }
    }

    fn keep_old(&mut self, point: (At, f64)) {
        self.passed += 1;
        if self.passed < 1 << self.thinned {
            return;
        }
        self.passed = 0;
        self.old.push(point);
        if self.old.len() > MOST_OLD {
            let mut index = 0;
            self.old.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.thinned = (self.thinned + 1).min(30);
        }
    }

    /// The newest reading.
    pub fn last(&self) -> Option<(At, f64)> {
        self.recent.back().copied()
    }

    /// The oldest reading, never thinned away.
    pub fn first(&self) -> Option<(At, f64)> {
        self.first
    }

    /// The largest reading, the latest of equals.
    pub fn peak(&self) -> Option<(At, f64)> {
        self.peak
    }

    /// The newest reading at or before `at`.
    pub fn at_or_before(&self, at: At) -> Option<(At, f64)> {
        self.recent.iter().rev().chain(self.old.iter().rev()).find(|(when, _)| *when <= at).copied()
    }

    /// Largest value read between `from` and `to`, both included.
    pub fn peak_between(&self, from: At, to: At) -> Option<(At, f64)> {
        self.points().filter(|(at, _)| (from..=to).contains(at)).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The largest reading of the last seconds before `at`, which stands for what happened then; the last one before, where
    /// ticks are further apart.
    pub(crate) fn highest_before(&self, at: At) -> Option<(At, f64)> {
        self.peak_between(At::from_seconds(at.seconds() - JUST_BEFORE_S), at)
            .or_else(|| self.at_or_before(at))
    }

    /// The same of what began at `from`, or the largest until the seconds after `to`: what stays shows then how far it had come.
    pub(crate) fn highest_around(&self, from: At, to: At) -> Option<(At, f64)> {
        let after = self.peak_between(from, At::from_seconds(to.seconds() + JUST_AFTER_S));
        [self.highest_before(from), after].into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The smallest one before it.
    pub(crate) fn lowest_before(&self, at: At) -> Option<(At, f64)> {
        let from = At::from_seconds(at.seconds() - JUST_BEFORE_S);
        let late = self.points().filter(|(when, _)| (from..=at).contains(when));
        late.min_by(|a, b| a.1.total_cmp(&b.1)).or_else(|| self.at_or_before(at))
    }

    /// What is kept, oldest first.
    pub fn points(&self) -> impl Iterator<Item = (At, f64)> + '_ {
        self.old.iter().chain(self.recent.iter()).copied()
    }

    /// Number of readings kept.
    pub fn stored(&self) -> usize {
        self.old.len() + self.recent.len()
    }

    /// Growth a second over the last readings (at most five, at most 10 s): what the figure did just
    /// before the end. None with fewer than two readings.
    pub fn rate_at_end(&self) -> Option<f64> {
        let (end, last) = self.last()?;
        let (start, first) = self
            .recent
            .iter()
            .rev()
            .take(END_RATE_READINGS)
            .take_while(|(at, _)| end.since(*at) <= END_RATE_S)
            .last()
            .copied()?;
        let seconds = end.since(start);
        (seconds > 0.0).then(|| (last - first) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = f64>) -> Series {
        let mut series = Series::default();
        for (second, value) in values.into_iter().enumerate() {
            series.push(At::from_seconds(second as f64), value);
        }
        series
    }

    #[test]
    fn a_week_of_readings_stays_small_and_has_first_last_and_peak() {
        let long = series((0..600_000).map(|n| if n == 77 { 1e9 } else { n as f64 }));
        assert!(long.stored() <= MOST_RECENT + MOST_OLD + 1, "{}", long.stored());
        assert_eq!(long.first().map(|p| p.1), Some(0.0));
        assert_eq!(long.last().map(|p| p.1), Some(599_999.0));
        assert_eq!(long.peak().map(|p| p.1), Some(1e9));
        let mut points = long.points();
        let mut before = points.next().map(|p| p.0);
        for (at, _) in points {
            assert!(Some(at) > before);
            before = Some(at);
        }
    }

    #[test]
    fn what_was_read_before_a_time_is_found() {
        let readings = series([1.0, 9.0, 3.0]);
        assert_eq!(readings.at_or_before(At::from_seconds(1.5)).map(|p| p.1), Some(9.0));
        assert_eq!(
            readings.peak_between(At::from_seconds(2.0), At::from_seconds(9.0)).map(|p| p.1),
            Some(3.0)
        );
    }

    #[test]
    fn where_ticks_are_far_apart_the_last_one_stands_for_what_was_just_before() {
        let readings = series([1.0, 9.0, 3.0]);
        let around = |seconds: f64| {
            let at = At::from_seconds(seconds);
            (readings.lowest_before(at).map(|p| p.1), readings.highest_before(at).map(|p| p.1))
        };
        assert_eq!(around(2.5), (Some(1.0), Some(9.0)));
        assert_eq!(around(30.0), (Some(3.0), Some(3.0)));
    }
}
