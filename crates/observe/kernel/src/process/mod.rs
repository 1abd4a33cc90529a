//! Files of one process, `/proc/PID/…`.

pub mod areas;
pub mod cgroup;
pub mod command_line;
pub mod descriptors;
pub mod limits;
pub mod links;
pub mod maps;
pub mod pagemap;
pub mod stat;
pub mod status;
