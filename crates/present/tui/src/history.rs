//! Which moments of a run can be gone back to? The latest ones as they were read; of each older stretch of time, the one
//! in which the job held least and the one in which it held most.

use std::collections::VecDeque;
use std::sync::Arc;
use ullage_job_state::{JobState, Thinned};
use ullage_model::At;

/// The latest moments, kept as they are: four minutes at one reading a second.
const LATEST: usize = 240;
/// Stretches of the time before: a day has one every 86 s, and a moment of 64 processes takes 10 KB.
const STRETCHES: usize = 1000;

/// Moments of a run, in bounded room.
#[derive(Clone, Debug)]
pub struct History {
    latest: VecDeque<Arc<JobState>>,
    older: Thinned<Arc<JobState>>,
}

impl Default for History {
    fn default() -> Self {
        History { latest: VecDeque::new(), older: Thinned::new(STRETCHES) }
    }
}

impl History {
    /// Adds the next moment.
    pub fn push(&mut self, state: Arc<JobState>) {
        self.latest.push_back(state);
        if self.latest.len() > LATEST {
            if let Some(old) = self.latest.pop_front() {
                self.older.push(old.at, old.memory.bytes, old);
            }
        }
    }

    /// All that are left, in order of time.
    fn all(&self) -> Vec<&Arc<JobState>> {
        let older = self.older.points().into_iter().map(|point| &point.of);
        older.chain(&self.latest).collect()
    }

    /// The newest.
    pub fn last(&self) -> Option<&Arc<JobState>> {
        self.latest.back()
    }

    /// The one that stands at this time: the newest that is not later, else the oldest.
    pub fn at(&self, at: At) -> Option<&Arc<JobState>> {
        let all = self.all();
        let after = all.partition_point(|state| state.at <= at);
        all.get(after.saturating_sub(1)).copied()
    }

    /// The time of the moment so many steps from the one at `at`; the first or the last where there are none so far.
    pub fn step(&self, at: At, steps: isize) -> Option<At> {
        let all = self.all();
        let place = all.partition_point(|state| state.at <= at).saturating_sub(1);
        let last = all.len().checked_sub(1)?;
        let to = place.saturating_add_signed(steps).min(last);
        Some(all[to].at)
    }

    /// Times and bytes up to `until`, in order.
    pub fn totals(&self, until: At) -> Vec<(At, u64)> {
        let all = self.all();
        all.iter().take_while(|state| state.at <= until).map(|state| (state.at, state.memory.bytes)).collect()
    }

    /// The first time that can be gone back to.
    pub fn first(&self) -> Option<At> {
        self.all().first().map(|state| state.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_job_state::Memory;

    fn state(second: u64, bytes: u64) -> Arc<JobState> {
        let memory = Memory { bytes, ..Memory::default() };
        Arc::new(JobState { at: At(second * 1_000_000_000), memory, ..JobState::default() })
    }

    #[test]
    fn a_day_is_stepped_through_and_its_peak_is_there() {
        let mut history = History::default();
        for second in 0..86_400 {
            history.push(state(second, if second == 4321 { 900 } else { 5 }));
        }
        let totals = history.totals(At(u64::MAX));
        assert!(totals.len() <= 2 * STRETCHES + LATEST && totals.contains(&(At(4_321_000_000_000), 900)));
        let last = history.last().unwrap().at;
        assert_eq!(history.step(last, -1), Some(At(86_398_000_000_000)));
        assert_eq!(history.step(last, 5), Some(last));
        assert_eq!(history.step(last, isize::MIN), history.first());
        assert_eq!(history.at(At(0)).unwrap().at, At(0));
        let mut at = At(0);
        let mut steps = 0;
        while history.step(at, 1) != Some(at) {
            at = history.step(at, 1).unwrap();
            steps += 1;
        }
        assert_eq!((at, steps + 1), (last, totals.len()));
    }

    #[test]
    fn nothing_was_read() {
        let history = History::default();
        assert!(
            history.step(At(5), -1).is_none() && history.at(At(5)).is_none() && history.first().is_none()
        );
    }
}
