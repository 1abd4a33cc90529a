//! Ways that tickets go between processes, and flags they share: no named semaphore, no lock that the dead could hold.

#![forbid(unsafe_code)]

mod channel;
mod record;

pub use channel::{Channel, ChannelError, Received};
pub use record::{Record, RECORD};
