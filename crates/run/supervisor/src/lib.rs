//! Starts COMMAND, watches over its processes, ends it at a budget, and says how everything ended.
//!
//! COMMAND keeps its streams, its terminal, its process group and its signals: ullage never stands between the
//! job and them. Nothing here kills the job when ullage ends. Unsafe stands in `spawn` (what a child does
//! between fork and exec, and one ioctl), in `leftovers/kernel_calls.rs` and in `clock.rs`, and nowhere else.
#![deny(unsafe_code)]

mod agent_socket;
pub mod budget;
mod children;
pub mod clock;
pub mod imitate;
pub mod leftovers;
mod message;
pub mod outcome;
pub mod own_group;
mod pidfd;
pub mod policy;
mod signals;
mod spawn;
mod supervisor;
pub mod terminal_signals;

pub use agent_socket::Connection;
pub use children::is_running;
pub use message::parse_message;
pub use outcome::exit_status;
pub use spawn::beside::{start_beside, Beside};
pub use spawn::{SpawnSettings, StartError};
pub use supervisor::{Happening, Supervisor};
