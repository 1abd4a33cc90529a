//! What a kind of reading costs here: a first guess, then what it took, half by half.

/// Cost of one unit (a mapping, a link, a probe) of one kind of reading, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Learned {
    each_ns: f64,
    /// Never believed to be less or more than this.
    between: (f64, f64),
}

impl Learned {
    /// A guess, wrong by a factor of 20 at most.
    pub const fn guess(each_ns: f64) -> Learned {
        Learned { each_ns, between: (each_ns / 20.0, each_ns * 20.0) }
    }

    /// What so many are expected to cost.
    pub fn expect(&self, units: u64) -> f64 {
        units as f64 * self.each_ns
    }

    /// So many took so long. Too few of them tell more of what opening a file costs.
    pub fn took(&mut self, units: u64, least: u64, ns: f64) {
        if units >= least.max(1) {
            let now = (self.each_ns + ns / units as f64) / 2.0;
            self.each_ns = now.clamp(self.between.0, self.between.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_took_moves_the_expectation_by_half() {
        let mut mapping = Learned::guess(1000.0);
        assert_eq!(mapping.expect(5), 5000.0);
        mapping.took(10, 1000, 1e9);
        assert_eq!(mapping.expect(5), 5000.0, "too few to tell");
        mapping.took(1000, 1000, 3e6);
        assert_eq!(mapping.expect(1), 2000.0);
        for _ in 0..99 {
            mapping.took(1, 1, 0.0);
        }
        assert_eq!(mapping.expect(1), 50.0, "a clock that stood still makes nothing free");
    }
}
