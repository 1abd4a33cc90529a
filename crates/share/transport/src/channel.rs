//! A queue of tickets between any number of processes: a pipe, whose lock is the kernel's and whose buffer outlives
//! every writer.
//!
//! Sending never waits: what does not fit into the pipe is written by a thread of the sender, started at that
//! moment and not before. The surprise: the pipe is opened for reading and writing at once (fifo(7)), one
//! descriptor a queue; a reader's death is then no SIGPIPE, and what it left unread can be taken back.
//!
//! Receiving takes no lock, and the lock of what is to be written is each process's own: a fork may come at any moment.

use crate::record::{Record, RECORD};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use ullage_arena::PerProcess;

/// Room for 8,192 messages, where the user's share of pipe memory allows it (pipe(7), pipe-user-pages-soft).
const PIPE_BYTES: usize = 256 << 10;

/// What a channel could not do.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// A call to the kernel failed.
    #[error("the queue could not {what}: {source}")]
    Kernel {
        /// What was being done.
        what: &'static str,
        /// What the kernel said.
        source: Errno,
    },
}

fn kernel(what: &'static str) -> impl FnOnce(Errno) -> ChannelError {
    move |source| ChannelError::Kernel { what, source }
}

/// What a wait came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Record),
    /// The time is over.
    Nothing,
    /// These of the other descriptors became ready (by index), and no message was there before.
    Others(Vec<usize>),
    /// A signal arrived: let its handler run, then wait again.
    Interrupted,
}

/// A queue of tickets.
#[derive(Debug)]
pub struct Channel {
    fd: Arc<OwnedFd>,
    /// In a forked child the thread that writes it is the parent's, and so are its messages.
    spill: PerProcess<Arc<Spill>>,
}

#[derive(Debug, Default)]
struct Spill {
    state: Mutex<Spilled>,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Spilled {
    records: VecDeque<[u8; RECORD]>,
    running: bool,
}

impl Spill {
    fn lock(&self) -> MutexGuard<'_, Spilled> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// A new channel.
    pub fn create() -> Result<Channel, ChannelError> {
        let (receive, send) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(kernel("make its pipe (too many open files: ulimit -n?)"))?;
        // Less room only means that the spilling thread starts earlier.
        let _ = fcntl_setpipe_size(&send, PIPE_BYTES);
        let both = rustix::fs::open(
            format!("/proc/self/fd/{}", receive.as_raw_fd()),
            OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        )
        .map_err(kernel("open its pipe through /proc/self/fd (is /proc mounted?)"))?;
        Ok(Channel::over(both))
    }

    /// The channel behind a descriptor from another process.
    pub fn over(fd: OwnedFd) -> Channel {
        Channel { fd: Arc::new(fd), spill: PerProcess::new() }
    }

    /// Its descriptor: pass it to other processes.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sends without waiting. In order with all that this process sent before.
    pub fn send(&self, record: Record) -> Result<(), ChannelError> {
        let fd = &self.fd;
        let bytes = record.to_bytes();
        let spill = self.spill.get_or_make(Arc::default);
        let mut spilled = spill.lock();
        if spilled.records.is_empty() && !spilled.running {
            loop {
                match rustix::io::write(fd, &bytes) {
                    Ok(_) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(source) => return Err(kernel("send")(source)),
                }
            }
        }
        spilled.records.push_back(bytes);
        if !spilled.running {
            spilled.running = true;
            let (fd, spill) = (Arc::clone(fd), Arc::clone(spill));
            let thread = std::thread::Builder::new().name("ullage-queue".into());
            if let Err(error) = thread.spawn(move || write_all(&fd, &spill)) {
                spilled.running = false;
                spilled.records.pop_back();
                let source = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                return Err(kernel("start a thread for a full pipe")(source));
            }
        }
        Ok(())
    }

    /// Waits until all that was sent is in the pipe, at most `timeout`; true where it is.
    pub fn flush(&self, timeout: Duration) -> bool {
        let Some(spill) = self.spill.get() else { return true };
        let deadline = Instant::now() + timeout;
        let mut spilled = spill.lock();
        while spilled.running {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            spilled = spill.emptied.wait_timeout(spilled, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// True where a message is there.
    pub fn has_message(&self) -> bool {
        let fd = &*self.fd;
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0) && fds[0].revents().contains(PollFlags::IN)
    }

    /// Waits for a message, at most `timeout`. A message that is there comes before anything that `others` say.
    pub fn receive(
        &self,
        timeout: Option<Duration>,
        others: &[BorrowedFd<'_>],
    ) -> Result<Received, ChannelError> {
        let fd = &*self.fd;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if let Some(record) = read(fd)? {
                return Ok(Received::Message(record));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Received::Nothing);
            }
            let left = left.map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            let mut fds = Vec::with_capacity(1 + others.len());
            fds.push(PollFd::new(fd, PollFlags::IN));
            fds.extend(others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)));
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(Received::Nothing),
                Ok(_) if !fds[0].revents().is_empty() => {}
                Ok(_) => {
                    // What the dead sent before their end comes first.
                    if let Some(record) = read(fd)? {
                        return Ok(Received::Message(record));
                    }
                    let ready = fds[1..].iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty());
                    return Ok(Received::Others(ready.map(|(index, _)| index).collect()));
                }
                Err(Errno::INTR) => return Ok(Received::Interrupted),
                Err(source) => return Err(kernel("wait")(source)),
            }
        }
    }
}

fn read(fd: &OwnedFd) -> Result<Option<Record>, ChannelError> {
    let mut bytes = [0; RECORD];
    loop {
        return match rustix::io::read(fd, &mut bytes) {
            Ok(RECORD) => Ok(Some(Record::from_bytes(&bytes))),
            Ok(_) => Err(kernel("receive a whole record (a foreign descriptor?)")(Errno::BADMSG)),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::INTR) => continue,
            Err(source) => Err(kernel("receive")(source)),
        };
    }
}

/// Writes what did not fit, and ends when all is written or nobody reads any more.
fn write_all(fd: &OwnedFd, spill: &Spill) {
    loop {
        let next = spill.lock().records.front().copied();
        let Some(bytes) = next else {
            let mut spilled = spill.lock();
            if spilled.records.is_empty() {
                spilled.running = false;
                spill.emptied.notify_all();
                return;
            }
            continue;
        };
        let mut fds = [PollFd::new(fd, PollFlags::OUT)];
        let _ = poll(&mut fds, None);
        match rustix::io::write(fd, &bytes) {
            Ok(_) => {
                spill.lock().records.pop_front();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => spill.lock().records.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_arena::Ticket;

    fn record(number: u64) -> Record {
        Record { ticket: Ticket { offset: number, generation: 0, length: 0 }, kind: 0, extra: number }
    }

    const SOON: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn messages_come_in_order_and_sending_never_waits() {
        let channel = Channel::create().unwrap();
        // Far more than a pipe holds.
        for number in 0..50_000 {
            channel.send(record(number)).unwrap();
        }
        for number in 0..50_000 {
            assert_eq!(channel.receive(SOON, &[]).unwrap(), Received::Message(record(number)));
        }
        assert!(channel.flush(Duration::from_secs(20)));
        assert_eq!(channel.receive(Some(Duration::ZERO), &[]).unwrap(), Received::Nothing);
    }

    #[test]
    fn several_receivers_share_the_messages_and_none_is_torn() {
        let channel = Channel::create().unwrap();
        let seen: Vec<u64> = std::thread::scope(|scope| {
            let receivers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = Vec::new();
                        while let Received::Message(found) = channel.receive(SOON, &[]).unwrap() {
                            if found.extra == u64::MAX {
                                break;
                            }
                            assert_eq!(found.ticket.offset, found.extra);
                            seen.push(found.extra);
                        }
                        seen
                    })
                })
                .collect();
            std::thread::scope(|senders| {
                for sender in 0..4u64 {
                    let channel = &channel;
                    senders.spawn(move || {
                        for number in 0..5000 {
                            channel.send(record(sender * 5000 + number)).unwrap();
                        }
                    });
                }
            });
            for _ in 0..4 {
                channel.send(record(u64::MAX)).unwrap();
            }
            receivers.into_iter().flat_map(|receiver| receiver.join().unwrap()).collect()
        });
        let mut sorted = seen;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_sent_comes_before_the_news_of_a_death() {
        let channel = Channel::create().unwrap();
        let (theirs, ours) = rustix::pipe::pipe().unwrap();
        drop(ours);
        channel.send(record(1)).unwrap();
        let others = [theirs.as_fd()];
        assert_eq!(channel.receive(SOON, &others).unwrap(), Received::Message(record(1)));
        assert_eq!(channel.receive(SOON, &others).unwrap(), Received::Others(vec![0]));
    }
}
