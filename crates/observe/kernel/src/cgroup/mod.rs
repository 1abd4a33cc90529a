//! Cgroups: where their hierarchies are mounted, and what one reading of a group holds.

pub mod cpu;
mod limit;
pub mod mounts;
mod namespace;
pub mod procs;
pub mod v1;
pub mod v2;

pub use limit::{parse_limit, parse_limit_v1};
pub use mounts::{CgroupKey, CgroupMounts};
