//! The kernel's files: opened, read and parsed. The only reader of /proc and /sys; it writes nothing.
//!
//! Each module answers one question and carries the format of its kernel file above the parser. A parser is a
//! pure function over bytes (`parse_*`), so that it can be fed fixtures and fuzzed; a reader opens below a
//! [`KernelRoot`], which is the live machine or a folder that looks like it.
//!
//! The surprise: even the files off the hot path are parsed here. `procfs-core` was tried for them: its
//! parsers of `limits`, `pressure` and `meminfo` index into lines without looking at their length (a torn
//! line panics), demand fields that old kernels lack, and leave `\040` in mount points.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod error;
pub mod facts;
pub mod host;
pub mod process;
pub mod root;
mod scan;
mod turns;

pub use error::{KernelError, ParseError};
pub use root::{KernelRoot, ProcessDir};
