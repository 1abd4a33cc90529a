//! Who a process is: pid and start time. A pid alone is reused within minutes on a busy machine.

use crate::units::ClockTicks;
use serde::{Deserialize, Serialize};

/// One process, for as long as the machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// In ullage's own pid namespace.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks from boot to the start of the process.
    pub start: ClockTicks,
}
