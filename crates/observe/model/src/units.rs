//! Units that live in types: bytes, clock ticks, and time since the start of the run.

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// From the kernel's "kB", which are units of 1024 bytes (proc_pid_status(5)).
    pub const fn from_kib(kib: u64) -> Self {
        Bytes(kib.saturating_mul(1024))
    }

    /// `self - other`, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// `self + other`, held at the largest value instead of wrapping.
    pub const fn saturating_add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

/// CPU time or a process's start, in clock ticks (`sysconf(_SC_CLK_TCK)` a second; 100 on every Linux here).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockTicks(pub u64);

/// Nanoseconds of `CLOCK_MONOTONIC` since the run started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct At(pub u64);

impl At {
    /// From seconds; negative and absurd values become zero.
    pub fn from_seconds(seconds: f64) -> Self {
        At((seconds.max(0.0) * 1e9) as u64)
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Seconds from `earlier` to `self`, negative where `earlier` is later.
    pub fn since(self, earlier: At) -> f64 {
        self.seconds() - earlier.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kib_are_1024_bytes_and_saturate() {
        assert_eq!(Bytes::from_kib(3), Bytes(3072));
        assert_eq!(Bytes::from_kib(u64::MAX), Bytes(u64::MAX));
    }

    #[test]
    fn seconds_survive_the_round_trip() {
        assert_eq!(At::from_seconds(12.3).seconds(), 12.3);
        assert_eq!(At::from_seconds(-1.0), At(0));
        assert_eq!(At::from_seconds(1.0).since(At::from_seconds(3.0)), -2.0);
    }
}
