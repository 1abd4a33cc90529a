//! What watching may cost: a bucket of CPU time that fills with a share of one core.
//!
//! It starts with, and saves up to, 0.3 s, so that a fresh job's first ticks and a few counts of 60,000 mappings fit at
//! once. Near a limit it may be overdrawn by 0.3 s; that is paid back by slower ticks. So over any stretch of time T the
//! cost stays below `share * T + 0.6 s`, while cheap ticks, at the slowest pace, fit into the share.

use std::time::Duration;
use ullage_model::Cost;

/// Saved up at most, and there at the start.
const SAVED_NS: f64 = Cost::AT_THE_START_NS as f64;
/// With less, dear ticks are made more seldom.
const LITTLE_NS: f64 = 0.15e9;
/// Overdrawn at most, and only near a limit.
const OVERDRAFT_NS: f64 = 0.3e9;
/// Part of the share that cheap ticks may take for good: the rest is for what is worth more.
const TICKS: f64 = 0.75;
/// And while little is saved.
const TICKS_WITH_LITTLE: f64 = 0.5;

/// The bucket. Times are nanoseconds that the caller measured.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    balance_ns: f64,
    last: Option<(u64, u64)>,
}

impl Budget {
    /// The bucket as it is at the start.
    pub fn new(share: f64) -> Budget {
        Budget { share: share.max(1e-6), balance_ns: SAVED_NS, last: None }
    }

    /// Brings it up to date: `now_ns` of the wall, `cpu_ns` spent by this process since its start.
    pub fn update(&mut self, now_ns: u64, cpu_ns: u64) {
        // What was spent before the first update belongs to the watching too.
        let (wall, cpu) = self.last.unwrap_or((now_ns, 0));
        let earned = now_ns.saturating_sub(wall) as f64 * self.share;
        let spent = cpu_ns.saturating_sub(cpu) as f64;
        self.balance_ns = (self.balance_ns + earned).min(SAVED_NS) - spent;
        self.last = Some((now_ns, cpu_ns));
    }

    /// What may be spent now, with what this tick spent already.
    pub fn room(&self, spent_ns: f64, near_a_limit: bool) -> f64 {
        let floor = if near_a_limit { -OVERDRAFT_NS } else { 0.0 };
        (self.balance_ns - spent_ns - floor).max(0.0)
    }

    /// Whether a read of this expected cost, with what this tick spent already, is allowed.
    pub fn allows(&self, expected_ns: f64, near_a_limit: bool) -> bool {
        let floor = if near_a_limit { -OVERDRAFT_NS } else { 0.0 };
        self.balance_ns - expected_ns >= floor
    }

    /// Whether something of this cost, made every `apart_s` seconds by each of `members` processes, leaves the half of the
    /// share to others.
    pub fn sustains(&self, cost_ns: f64, apart_s: f64, members: usize) -> bool {
        cost_ns * members.max(1) as f64 <= apart_s * 1e9 * self.share / 2.0
    }

    /// How long the next tick has to wait so that cheap ticks, at this cost each, take no more than their part.
    pub fn pace(&self, tick_ns: f64) -> Duration {
        let part = if self.balance_ns >= LITTLE_NS { TICKS } else { TICKS_WITH_LITTLE };
        Duration::from_secs_f64((tick_ns / 1e9 / (self.share * part)).clamp(0.0, 3600.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_bucket_allows_a_burst_and_not_more() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        assert!(budget.allows(0.29e9, false));
        assert!(!budget.allows(0.31e9, false));
        assert!(budget.allows(0.59e9, true), "near a limit it may be overdrawn");
        assert!(!budget.allows(0.61e9, true));
        assert_eq!(budget.room(0.1e9, false).round(), 0.2e9);
        assert_eq!(budget.room(0.4e9, false), 0.0);
        assert_eq!(budget.room(0.4e9, true).round(), 0.2e9);
    }

    #[test]
    fn what_was_spent_before_the_first_tick_counts() {
        let mut budget = Budget::new(0.005);
        budget.update(20_000_000, 100_000_000);
        assert!(!budget.allows(0.21e9, false));
    }

    #[test]
    fn what_was_spent_is_paid_back_by_slower_ticks() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        assert_eq!(budget.pace(0.75e6).as_millis(), 200, "a small job keeps its pace");
        assert_eq!(budget.pace(15e6).as_secs(), 4, "a job of a thousand processes does not");
        budget.update(0, 200_000_000);
        assert_eq!(budget.pace(15e6).as_secs(), 6);
        budget.update(10_000_000_000, 200_000_000);
        assert_eq!(budget.pace(15e6).as_secs(), 4);
    }

    #[test]
    fn nothing_is_saved_beyond_the_cap_however_long_it_idles() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        budget.update(3_600_000_000_000, 0);
        assert!(budget.allows(0.29e9, false));
        assert!(!budget.allows(0.31e9, false));
    }

    #[test]
    fn what_all_members_want_has_to_fit_into_half_of_the_share() {
        let budget = Budget::new(0.005);
        assert!(budget.sustains(70e6, 30.0, 1), "60,000 mappings, every half a minute");
        assert!(!budget.sustains(70e6, 30.0, 4));
        assert!(budget.sustains(1e6, 30.0, 64));
    }

    #[test]
    fn ticks_and_bursts_of_every_kind_stay_inside_it() {
        // A tick that costs 17 ms, and every affordable burst of 70 ms, for an hour.
        let mut budget = Budget::new(0.005);
        let (mut now, mut cpu) = (0.0, 0.0);
        while now < 3600e9 {
            budget.update(now as u64, cpu as u64);
            cpu += 17e6;
            if budget.allows(17e6 + 70e6, false) {
                cpu += 70e6;
            }
            budget.update(now as u64, cpu as u64);
            now += budget.pace(17e6).as_nanos() as f64;
            assert!(cpu <= 0.005 * now + 0.32e9, "{cpu} of CPU after {now}");
        }
        assert!(cpu > 0.7 * 0.005 * now, "and what is there is used: {cpu}");
    }
}
