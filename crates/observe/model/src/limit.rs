//! A limit: a number, or none. Never -1, never "a huge number".

use serde::{Deserialize, Serialize};

/// The largest value the kernel allows, in the unit of what it limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// No limit is set (`max`, `unlimited`, cgroup v1's page-rounded 2^63).
    Unlimited,
    /// Limited to this.
    At(u64),
}

impl Limit {
    /// The number, where there is one.
    pub const fn at(self) -> Option<u64> {
        match self {
            Limit::Unlimited => None,
            Limit::At(n) => Some(n),
        }
    }

    /// What is left above `used`; none where unlimited.
    pub const fn headroom(self, used: u64) -> Option<u64> {
        match self {
            Limit::Unlimited => None,
            Limit::At(n) => Some(n.saturating_sub(used)),
        }
    }

    /// The tighter of two.
    pub fn tighter(self, other: Limit) -> Limit {
        match (self, other) {
            (Limit::Unlimited, x) | (x, Limit::Unlimited) => x,
            (Limit::At(a), Limit::At(b)) => Limit::At(a.min(b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_is_looser_than_any_number() {
        assert_eq!(Limit::Unlimited.tighter(Limit::At(3)), Limit::At(3));
        assert_eq!(Limit::At(9).tighter(Limit::At(3)), Limit::At(3));
        assert_eq!(Limit::Unlimited.headroom(7), None);
        assert_eq!(Limit::At(5).headroom(7), Some(0));
    }
}
