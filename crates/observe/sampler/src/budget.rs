//! What watching may cost: a bucket of CPU time that fills with a share of one core.
//!
//! It starts with, and saves up to, 0.3 s, so that a fresh job's first ticks and a few counts of 60,000
//! mappings fit at once. Near a limit it may be overdrawn by 0.5 s; that is paid back by slower ticks. So over
//! any stretch of time T the cost stays below `share * T + 0.8 s`.

use std::time::Duration;

/// Saved up at most.
const SAVED_NS: f64 = 0.3e9;
/// Overdrawn at most, and only near a limit.
const OVERDRAFT_NS: f64 = 0.5e9;

/// The bucket. Times are nanoseconds that the caller measured.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    balance_ns: f64,
    last: Option<(u64, u64)>,
}

impl Budget {
    /// A full bucket.
    pub fn new(share: f64) -> Budget {
        Budget { share: share.max(1e-6), balance_ns: SAVED_NS, last: None }
    }

    /// Brings it up to date: `now_ns` of the wall, `cpu_ns` spent by this process since its start.
    pub fn update(&mut self, now_ns: u64, cpu_ns: u64) {
        if let Some((wall, cpu)) = self.last {
            let earned = now_ns.saturating_sub(wall) as f64 * self.share;
            let spent = cpu_ns.saturating_sub(cpu) as f64;
            self.balance_ns = (self.balance_ns + earned).min(SAVED_NS) - spent;
        }
        self.last = Some((now_ns, cpu_ns));
    }

    /// Whether a read of this expected cost, with what this tick spent already, is allowed.
    pub fn allows(&self, expected_ns: f64, near_a_limit: bool) -> bool {
        let floor = if near_a_limit { -OVERDRAFT_NS } else { 0.0 };
        self.balance_ns - expected_ns >= floor
    }

    /// How long the next tick has to wait: while in debt, so long that cheap ticks, at this cost each, take at
    /// most half of the share, and the other half pays the debt back.
    pub fn recovery(&self, tick_ns: f64) -> Duration {
        if self.balance_ns >= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((tick_ns / 1e9 / (self.share / 2.0)).clamp(0.0, 3600.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_allows_a_burst_and_not_more() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        assert!(budget.allows(0.29e9, false));
        assert!(!budget.allows(0.31e9, false));
        assert!(budget.allows(0.79e9, true), "near a limit it may be overdrawn");
        assert!(!budget.allows(0.81e9, true));
    }

    #[test]
    fn debt_is_paid_back_with_half_of_the_share() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        budget.update(0, 350_000_000);
        assert_eq!(budget.recovery(0.7e6).as_millis(), 280, "a small job keeps its pace");
        assert_eq!(budget.recovery(15e6).as_secs(), 6, "a job of a thousand processes does not");
        budget.update(10_000_000_000, 350_000_000);
        assert_eq!(budget.recovery(15e6), Duration::ZERO);
    }

    #[test]
    fn nothing_is_saved_beyond_the_cap_however_long_it_idles() {
        let mut budget = Budget::new(0.005);
        budget.update(0, 0);
        budget.update(3_600_000_000_000, 0);
        assert!(!budget.allows(0.31e9, false));
    }
}
