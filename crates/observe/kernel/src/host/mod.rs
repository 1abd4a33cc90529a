//! Files of the machine as a whole.

pub mod filesystem;
pub mod kmsg;
pub mod machine;
pub mod meminfo;
pub mod mountinfo;
pub mod pressure;
pub mod reading;
pub mod stat;
pub mod sysctl;
pub mod sysvipc;
pub mod vmstat;
