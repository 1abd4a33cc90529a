//! Who made a segment: its name's pid, the kernel's, else whoever was seen with it first.
//!
//! The surprise: a pid in a name proves little by itself. It is of the maker's own pid namespace, and may be
//! another process's by now: a process that started after the segment was made did not make it.

use std::collections::HashMap;
use ullage_model::{Creator, CreatorSource, Maker, Measured, Missing, ProcessId};

/// File times come from a clock that runs up to 10 ms behind the one that start times are made of, and those are
/// rounded down to 10 ms, seconds.
const SLACK_S: f64 = 0.05;

/// When processes started, in the time of files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Boot, seconds since 1970.
    pub(crate) boot: f64,
    /// Clock ticks a second.
    pub(crate) ticks: f64,
}

impl Clock {
    fn started(&self, id: ProcessId) -> f64 {
        self.boot + id.start.0 as f64 / self.ticks
    }

    /// False where the process is younger than the segment.
    pub(crate) fn may_have_made(&self, id: ProcessId, made: Option<f64>) -> bool {
        made.is_none_or(|made| self.started(id) <= made + SLACK_S)
    }
}

/// Processes by pid.
#[derive(Debug, Default)]
pub(crate) struct Pids {
    /// Of the job, whether they still live or not.
    pub(crate) job: HashMap<i32, ProcessId>,
    /// The same by the pid in their own pid namespace, where that is not ullage's.
    pub(crate) inside: HashMap<i32, ProcessId>,
}

impl Pids {
    /// The process that this pid, found in a name or kept by the kernel, stands for. `alive` looks for one outside of
    /// the job.
    pub(crate) fn maker(
        &self,
        pid: i32,
        made: Option<f64>,
        clock: Clock,
        alive: &mut dyn FnMut(i32) -> Option<ProcessId>,
    ) -> Maker {
        let fits = |id: &ProcessId| clock.may_have_made(*id, made);
        let own = self.job.get(&pid).copied().filter(fits);
        own.or_else(|| self.inside.get(&pid).copied().filter(fits))
            .or_else(|| alive(pid).filter(fits))
            .map_or(Maker::Gone(pid), Maker::Process)
    }
}

/// The likeliest maker among those that use a segment when it is first seen.
pub(crate) fn by_users(
    users: impl Iterator<Item = ProcessId> + Clone,
    made: Option<f64>,
    clock: Clock,
) -> Measured<Creator> {
    let old_enough = users.clone().filter(|id| clock.may_have_made(*id, made));
    let count = old_enough.clone().count();
    // All are younger: it came to them from somebody who is gone, or the clock was set.
    let eldest = old_enough.min_by_key(|id| (id.start, id.pid)).filter(|_| count > 0);
    match (eldest, count) {
        (Some(id), 1) => Measured::Known(Creator { maker: Maker::Process(id), by: CreatorSource::OnlyUser }),
        (Some(id), _) => {
            Measured::Known(Creator { maker: Maker::Process(id), by: CreatorSource::EldestUser })
        }
        (None, _) => Measured::Missing(Missing::Vanished),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::ClockTicks;

    const CLOCK: Clock = Clock { boot: 1000.0, ticks: 100.0 };

    fn id(pid: i32, start: u64) -> ProcessId {
        ProcessId { pid, start: ClockTicks(start) }
    }

    #[test]
    fn a_pid_that_was_reused_made_nothing() {
        let pids = Pids { job: HashMap::from([(7, id(7, 5000))]), ..Pids::default() };
        let maker = |made| pids.maker(7, made, CLOCK, &mut |_| None);
        assert_eq!(maker(Some(1060.0)), Maker::Process(id(7, 5000)));
        assert_eq!(maker(Some(1049.98)), Maker::Process(id(7, 5000)), "within the clocks' slack");
        assert_eq!(maker(Some(1040.0)), Maker::Gone(7), "the process started ten seconds later");
        assert_eq!(maker(None), Maker::Process(id(7, 5000)));
    }

    #[test]
    fn a_pid_of_the_jobs_own_namespace_comes_before_a_stranger() {
        let pids = Pids { inside: HashMap::from([(1, id(4711, 10))]), ..Pids::default() };
        let stranger = &mut |pid| Some(id(pid, 0));
        assert_eq!(pids.maker(1, None, CLOCK, stranger), Maker::Process(id(4711, 10)));
        assert_eq!(pids.maker(2, None, CLOCK, stranger), Maker::Process(id(2, 0)));
    }

    #[test]
    fn the_eldest_user_that_is_older_than_the_segment_made_it() {
        let users = [id(1, 100), id(2, 200), id(3, 300)];
        let creator = |made| by_users(users.into_iter(), made, CLOCK);
        let known = |pid, start, by| Measured::Known(Creator { maker: Maker::Process(id(pid, start)), by });
        assert_eq!(creator(Some(1010.0)), known(1, 100, CreatorSource::EldestUser));
        assert_eq!(creator(Some(1001.5)), known(1, 100, CreatorSource::OnlyUser), "the others inherited it");
        assert_eq!(creator(Some(900.0)), Measured::Missing(Missing::Vanished));
        assert_eq!(by_users([].into_iter(), None, CLOCK), Measured::Missing(Missing::Vanished));
    }
}
