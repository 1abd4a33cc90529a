//! When is a limit met, and which readings count as those of a failure?

/// Whether so much of a limit is in use.
pub(crate) fn reaches(share: f64, used: u64, limit: u64) -> bool {
    used as f64 >= share * limit as f64
}

/// As read from outside, it is met.
pub(crate) fn at_limit(used: u64, limit: u64) -> bool {
    reaches(AT_LIMIT, used, limit)
}

/// As counted by the failing process, it is met.
pub(crate) fn counted_at_limit(used: u64, limit: u64) -> bool {
    reaches(COUNTED_AT_LIMIT, used, limit)
}

/// Read from outside at most a tick before: the next request of a usual size is refused.
pub(crate) const AT_LIMIT: f64 = 0.98;
/// Counted by the failing process itself: nothing was given back since, so that less may be left.
pub(crate) const COUNTED_AT_LIMIT: f64 = 0.99;
/// Address space and promised memory: requests are large, so that they are refused earlier.
pub(crate) const SPACE_AT_LIMIT: f64 = 0.95;
/// A disk without an error is full later than /dev/shm: of its size, what 2 % of it leave is room.
pub(crate) const DISK_AT_LIMIT: f64 = 0.995;
/// Less than this left of a disk: the next block is refused.
pub(crate) const DISK_LEFT_BYTES: u64 = 1 << 20;
/// The interpreter needs a few descriptors to report anything at all, so that the count is lower when it does.
pub(crate) const DESCRIPTORS_LEFT: u64 = 24;
/// Tasks that a refused start of several leaves free.
pub(crate) const TASKS_LEFT: u64 = 2;
/// Near a limit: a request that is large enough meets it.
pub(crate) const NEAR_LIMIT: f64 = 0.9;
/// Not near it: what is refused here is refused for another reason.
pub(crate) const FAR_FROM_LIMIT: f64 = 0.8;
/// Of a limit, in use when a part of the job's tasks was seen at most: others of the same cgroup may hold the rest.
pub(crate) const TASKS_SEEN: f64 = 0.5;
/// A limit of fewer tasks refuses threads in any job with torch.
pub(crate) const FEW_TASKS: u64 = 64;

/// Read at the limit of a cgroup just before a kill,
pub(crate) const KILLED_AT: f64 = 0.95;
/// or below, where the recording was cut short with the job: its last tick is missing.
pub(crate) const ALL_KILLED_AT: f64 = 0.85;
/// A cgroup that counts hits of its limit and was this full is the one that limits.
pub(crate) const LIMITING_FROM: f64 = 0.8;
/// Memory available on the machine at a kill by itself: it had run out. Of all of it.
pub(crate) const HOST_LEFT: f64 = 0.03;
/// Memory left when it is nearly gone: fork is refused, and daemons (earlyoom, systemd-oomd, Ray) act by default.
pub(crate) const NEARLY_GONE: f64 = 0.1;

/// Growth is carried on to its limit from this share of it on,
pub(crate) const PROJECTED_FROM: f64 = 0.4;
/// this much faster than it was seen to be: bursts end jobs.
pub(crate) const PROJECTED_RATE: f64 = 1.3;
/// Fewer descriptors of a limit, one n-th, and their links were read too early to say whose they are.
pub(crate) const KINDS_READ_PART: u64 = 10;
/// Links read while less than one n-th of the most was open were read too early, too.
pub(crate) const KINDS_EARLY_PART: u64 = 4;
/// Fewer descriptors than this are not compared with mappings.
pub(crate) const FEW_DESCRIPTORS: u64 = 64;
/// Between the counts of tensors' mappings and of descriptors that mean the same, one n-th.
pub(crate) const ALIKE_PART: u64 = 4;

/// Readings that stand for a failure were made so long before it. In any run: five ticks, and where those are further apart
/// the last one stands for it (history/series.rs).
pub(crate) const JUST_BEFORE_S: f64 = 5.0;
/// Of a process's own figures, its last seconds. In any run: it dies within a few ticks, however long it has lived.
pub(crate) const LAST_SECONDS_S: f64 = 3.0;
/// A full filesystem is looked for so long before. In any run: who hangs on the process that met it ends within it.
pub(crate) const FILESYSTEM_BEFORE_S: f64 = 15.0;
/// And a reading this long after a failure still shows what it met. In any run: a few ticks.
pub(crate) const JUST_AFTER_S: f64 = 3.0;
/// What a failing process held it may give back before it ends. In any run: one tick, its last.
pub(crate) const UNSETTLED_S: f64 = 1.0;
/// Between a kill and what is noticed of it. In any run: two ticks.
pub(crate) const KILL_SLACK_S: f64 = 2.0;
/// Whoever waits for a process has noticed its end by then. In any run: a DataLoader looks every 5 s.
pub(crate) const NOTICED_WITHIN_S: f64 = 10.0;
/// It may be read a moment before the kill is. In any run: half a tick.
pub(crate) const NOTICED_EARLY_S: f64 = 0.5;
/// Whoever waits for a process, or hangs on it, ends within this time. In any run: three looks of a DataLoader.
pub(crate) const FOLLOWS_WITHIN_S: f64 = 15.0;
/// A process that ended this long before the run may be what ended it. In any run: one look of a DataLoader.
pub(crate) const ENDED_THE_RUN_S: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_from_a_whole_number_on() {
        for limit in (0..100_000).step_by(50).chain([65_530, 1 << 30, 1 << 45]) {
            let (read, counted) = (limit - limit / 50, limit - limit / 100);
            assert!(at_limit(read, limit) && counted_at_limit(counted, limit), "{limit}");
            assert!(read == 0 || !at_limit(read - 1, limit), "{limit}");
            assert!(counted == 0 || !counted_at_limit(counted - 1, limit), "{limit}");
        }
    }
}
