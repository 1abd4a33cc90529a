//! One file per command.

pub mod check;
pub mod clean;
pub mod compare;
pub mod completions;
pub mod explain;
pub mod export;
pub mod fleet;
pub mod mark;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod snapshot;
pub mod watch;
