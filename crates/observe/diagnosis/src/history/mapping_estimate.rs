//! How many mappings has a process between two counts? A count is dear, so that it is seldom; its address space is
//! read at every tick, and grows by as much for each new mapping as it did between the last two counts.
//!
//! The surprise: one large allocation looks like thousands of mappings. So the estimate goes on at most twice as fast as
//! the counts did, and where mappings are large or did not become more there is none.

use crate::policy::trends::{MAPPINGS_COUNTED, MAPPING_BYTES};
use ullage_model::At;

/// What the last count said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappingEstimate {
    last: Option<(At, f64, f64)>,
    /// Address space of a new mapping, and new mappings a second, between the last two counts.
    grown: Option<(f64, f64)>,
}

impl MappingEstimate {
    /// Mappings at `at`: counted, or estimated from the address space; none where neither is there.
    pub(crate) fn mappings(&mut self, at: At, counted: Option<u64>, address_space: u64) -> Option<f64> {
        let bytes = address_space as f64;
        let Some(count) = counted.map(|count| count as f64) else {
            let ((then, count, before), (each, rate)) = self.last.zip(self.grown)?;
            let most = 2.0 * rate * at.since(then);
            return Some(count + ((bytes - before).max(0.0) / each).min(most));
        };
        if let Some((then, old, before)) = self.last.filter(|(then, ..)| at > *then) {
            let (more, each) = (count - old, (bytes - before) / (count - old));
            self.grown = (more >= MAPPINGS_COUNTED && each > 0.0 && each <= MAPPING_BYTES)
                .then(|| (each, more / at.since(then)));
        }
        self.last = Some((at, count, bytes));
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: f64) -> At {
        At::from_seconds(seconds)
    }

    #[test]
    fn between_two_counts_the_address_space_decides() {
        let mut between = MappingEstimate::default();
        assert_eq!(between.mappings(s(0.0), None, 1 << 20), None);
        assert_eq!(between.mappings(s(1.0), Some(1000), 1 << 20), Some(1000.0));
        assert_eq!(between.mappings(s(2.0), None, 2 << 20), None, "how large a mapping is, is not known yet");
        assert_eq!(between.mappings(s(3.0), Some(1256), 2 << 20), Some(1256.0));
        assert_eq!(between.mappings(s(4.0), None, (2 << 20) + 100 * 4096), Some(1356.0));
        assert_eq!(between.mappings(s(5.0), None, 2 << 20), Some(1256.0), "at rest");
    }

    #[test]
    fn a_large_allocation_is_bounded_and_large_mappings_say_nothing() {
        let mut between = MappingEstimate::default();
        between.mappings(s(0.0), Some(1000), 0);
        between.mappings(s(1.0), Some(1100), 100 * 4096);
        assert_eq!(between.mappings(s(2.0), None, 1 << 40), Some(1300.0));
        between.mappings(s(3.0), Some(1200), 1 << 40);
        assert_eq!(between.mappings(s(4.0), None, 1 << 41), None);
    }
}
