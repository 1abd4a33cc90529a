//! Facts of a run over time, without analysis: what is known of processes, cgroups, filesystems and the machine.

mod cgroup;
mod filesystem;
pub(crate) mod groups;
mod host;
mod job_totals;
mod mapping_estimate;
mod memory_readings;
mod process;
pub(crate) mod segments;
mod series;
mod timeline;
mod torch_counters;

pub use cgroup::CgroupHistory;
pub use filesystem::FilesystemHistory;
pub use host::HostHistory;
pub use job_totals::JobTotals;
pub(crate) use memory_readings::{Allocator, MemoryReading, MemoryReadings, Walk};
pub(crate) use process::{function_of, process_ref};
pub use process::{Begun, Probe, ProcessHistory};
pub use series::Series;
pub use timeline::{BudgetStep, ExceptionSeen, ShortFile, Timeline};
