//! What does a finding rest on, and how much is that worth? The only place that says how sure anything is.

use serde::{Deserialize, Serialize};

/// How a finding is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Consistent, not proven.
    Hypothesis,
    /// Readings around it.
    Supported,
    /// The fact itself was seen, or the kernel said so.
    Established,
}

/// What kind of proof a finding rests on, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It fits what was seen, and nothing speaks against it.
    Consistent,
    /// A message in a log, of a job that nobody watched.
    MessageOnly,
    /// A part of it: an error without the count that would settle it, or a count of less than half of what is explained.
    InPart,
    /// Worked out from readings: from samples, from sizes, or carried on to a moment that was not read.
    Estimated,
    /// A reading shortly before or after the failure stands at the limit.
    ReadNearLimit,
    /// The fact itself, read in /proc, in a cgroup or in a file system.
    SeenOutside,
    /// Counted inside the process at the failure or by the census, or an error caught in it that means nothing else.
    SeenInside,
    /// The kernel's own words, or its counter of just that.
    KernelSaid,
}

/// One row for each kind: what it makes a finding, and the share of findings of that kind that are right.
///
/// Measured over the first findings of all scenarios by `scenarios/calibrate.py`, which prints this table (docs/concepts.md has
/// the counts). What is known from a message only was never measured on a job that somebody watched.
const TABLE: [(Proof, Status, f64); 8] = [
    (Proof::Consistent, Status::Hypothesis, 0.667),
    (Proof::MessageOnly, Status::Hypothesis, 0.6),
    (Proof::InPart, Status::Supported, 0.889),
    (Proof::Estimated, Status::Supported, 0.909),
    (Proof::ReadNearLimit, Status::Supported, 0.857),
    (Proof::SeenOutside, Status::Established, 0.929),
    (Proof::SeenInside, Status::Established, 0.98),
    (Proof::KernelSaid, Status::Established, 0.947),
];

impl Proof {
    /// What it makes a finding.
    pub fn status(self) -> Status {
        TABLE[self as usize].1
    }

    /// The share of findings of this kind that are right.
    pub fn confidence(self) -> f64 {
        TABLE[self as usize].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_kind_and_a_better_known_one_is_worth_more() {
        for (row, (proof, _, confidence)) in TABLE.iter().enumerate() {
            assert_eq!(*proof as usize, row);
            assert!((0.0..=1.0).contains(confidence));
        }
        assert!(TABLE.windows(2).all(|rows| rows[0].0 < rows[1].0 && rows[0].1 <= rows[1].1));
    }
}
