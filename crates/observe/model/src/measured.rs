//! A value, or the reason why there is none. "Could not know" is neither "no" nor zero.

use serde::{Deserialize, Serialize};

/// What was read, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured<T> {
    /// The value as read.
    Known(T),
    /// No value, because of this.
    Missing(Missing),
}

/// Why a value is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// EACCES or EPERM: another user's process, hidepid, a restricted kernel log.
    NoPermission,
    /// The file or field does not exist on this kernel, or its controller is not mounted.
    KernelTooOld,
    /// ESRCH or ENOENT: the process or cgroup ended before or during the read.
    Vanished,
    /// Not read this time, to stay inside the budget.
    NotAsked,
    /// Read, but not understood, or another I/O error.
    Unreadable,
}

impl Missing {
    /// The reason in a few words, as it stands in JSON (`{"missing": "…"}`).
    pub const fn reason(self) -> &'static str {
        match self {
            Missing::NoPermission => "no permission",
            Missing::KernelTooOld => "not offered by this kernel",
            Missing::Vanished => "ended before it could be read",
            Missing::NotAsked => "not read at this moment",
            Missing::Unreadable => "unreadable",
        }
    }
}

impl<T> Measured<T> {
    /// The value, where there is one.
    pub fn known(self) -> Option<T> {
        match self {
            Measured::Known(value) => Some(value),
            Measured::Missing(_) => None,
        }
    }

    /// A reference to the value, where there is one.
    pub fn as_known(&self) -> Option<&T> {
        match self {
            Measured::Known(value) => Some(value),
            Measured::Missing(_) => None,
        }
    }

    /// The reason, where there is no value.
    pub fn missing(&self) -> Option<Missing> {
        match self {
            Measured::Known(_) => None,
            Measured::Missing(reason) => Some(*reason),
        }
    }

    /// The same of a reference to the value.
    pub fn as_ref(&self) -> Measured<&T> {
        match self {
            Measured::Known(value) => Measured::Known(value),
            Measured::Missing(reason) => Measured::Missing(*reason),
        }
    }

    /// The same, with the value changed by `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Measured<U> {
        match self {
            Measured::Known(value) => Measured::Known(f(value)),
            Measured::Missing(reason) => Measured::Missing(reason),
        }
    }
}

impl<T> Default for Measured<T> {
    fn default() -> Self {
        Measured::Missing(Missing::NotAsked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_not_zero() {
        let missing: Measured<u64> = Measured::Missing(Missing::Vanished);
        assert_eq!(missing.known(), None);
        assert_eq!(missing.missing(), Some(Missing::Vanished));
        assert_eq!(Measured::Known(2).map(|n| n + 1), Measured::Known(3));
    }
}
