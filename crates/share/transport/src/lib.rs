//! Ways that tickets go between processes, and flags they share: no named semaphore, no lock that the dead could hold.

mod channel;
mod record;

pub use channel::{Channel, ChannelError, Received};
pub use record::{Record, RECORD};
