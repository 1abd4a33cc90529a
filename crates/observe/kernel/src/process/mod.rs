//! Files of one process, `/proc/PID/…`.

pub mod areas;
pub mod cgroup;
pub mod command_line;
pub mod descriptors;
pub mod limits;
pub mod links;
pub mod maps;
pub mod pagemap;
pub mod schedstat;
pub mod segment_names;
pub mod segment_stat;
pub mod shared_descriptors;
pub mod shared_files;
pub mod shared_maps;
pub mod shared_pages;
pub mod stat;
pub mod status;
