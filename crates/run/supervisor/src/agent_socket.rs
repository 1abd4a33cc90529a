//! The agent's socket: JSON datagrams from the job's Pythons, each with the sender's credentials.
//!
//! SOCK_SEQPACKET, because a datagram socket holds only `net.unix.max_dgram_qlen` (10) messages of all senders
//! together. The surprise: a forked child shares its parent's connection, so who speaks is told by the
//! credentials of each message (SO_PASSCRED, unix(7)), not by the connection.

use nix::cmsg_space;
use nix::sys::socket::{
    self, sockopt, AddressFamily, Backlog, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials,
};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use ullage_model::AgentMessage;

use crate::message::read_message;

/// Longer messages are dropped: the agent sends at most this.
pub(crate) const MOST_MESSAGE_BYTES: usize = 1 << 16;

/// Which connection a message came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connection(u64);

/// The listening socket and everyone connected.
#[derive(Debug)]
pub(crate) struct AgentSocket {
    listener: Option<OwnedFd>,
    /// Descriptors ran out.
    pub(crate) given_up: bool,
    connections: Vec<(Connection, OwnedFd)>,
    next: u64,
    buffer: Vec<u8>,
    /// Messages that were not understood or came from another user.
    pub(crate) dropped: u64,
    /// Fields that were not understood, of messages that were.
    pub(crate) unread: u64,
    noted: bool,
}

impl AgentSocket {
    /// Listens at `path`, which must not exist.
    pub(crate) fn listen(path: &Path) -> io::Result<AgentSocket> {
        let listener = socket::socket(
            AddressFamily::Unix,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )?;
        socket::setsockopt(&listener, sockopt::PassCred, &true)?;
        socket::bind(listener.as_raw_fd(), &UnixAddr::new(path)?)?;
        socket::listen(&listener, Backlog::MAXCONN)?;
        Ok(AgentSocket {
            given_up: false,
            listener: Some(listener),
            connections: Vec::new(),
            next: 0,
            buffer: vec![0; MOST_MESSAGE_BYTES],
            dropped: 0,
            unread: 0,
            noted: false,
        })
    }

    /// Everything to poll.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listener.iter().map(AsFd::as_fd).chain(self.connections.iter().map(|(_, fd)| fd.as_fd()))
    }

    /// Accepts whoever waits and reads every message that is there on the descriptors that are `wanted`, by their position in
    /// [`Self::descriptors`], and on new ones.
    pub(crate) fn read(&mut self, wanted: impl Fn(usize) -> bool) -> Vec<(Connection, i32, AgentMessage)> {
        let mut messages = Vec::new();
        let (listens, known) = (usize::from(self.listener.is_some()), self.connections.len());
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        while let Some(fd) = self.accept(flags) {
            let _ = socket::setsockopt(&fd, sockopt::PassCred, &true);
            self.connections.push((Connection(self.next), fd));
            self.next += 1;
        }
        let (buffer, dropped, unread) = (&mut self.buffer, &mut self.dropped, &mut self.unread);
        let mut index = 0;
        self.connections.retain(|(connection, fd)| {
            index += 1;
            if index <= known && !wanted(listens + index - 1) {
                return true;
            }
            loop {
                match receive(fd.as_fd(), buffer) {
                    Received::Nothing => return true,
                    Received::Closed => return false,
                    Received::Message(length, sender) => {
                        match sender.filter(is_trusted).zip(read_message(&buffer[..length])) {
                            Some((sender, (message, fields))) => {
                                *unread += fields;
                                messages.push((*connection, sender.pid(), message));
                            }
                            None => *dropped += 1,
                        }
                    }
                    Received::TooLong => *dropped += 1,
                }
            }
        });
        messages
    }

    /// The next who waits. Out of descriptors, the listener is given up: it would be ready for ever, and a loop
    /// that never sleeps would take the job's processor. Pythons that start later go without the agent.
    fn accept(&mut self, flags: rustix::net::SocketFlags) -> Option<OwnedFd> {
        match rustix::net::accept_with(self.listener.as_ref()?, flags) {
            Ok(fd) => Some(fd),
            Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                self.listener = None;
                self.given_up = true;
                None
            }
            Err(_) => None,
        }
    }

    /// What was lost of messages, in a sentence for the report; once.
    pub(crate) fn losses(&mut self) -> Option<String> {
        let text = "Some fields of the agent's messages could not be read; the report uses the rest.";
        (self.unread > 0 && !std::mem::replace(&mut self.noted, self.unread > 0)).then(|| text.to_owned())
    }

    /// Lets a process go on that waits after its exception report.
    pub(crate) fn acknowledge(&self, connection: Connection) {
        if let Some((_, fd)) = self.connections.iter().find(|(id, _)| *id == connection) {
            let _ = socket::send(fd.as_raw_fd(), b"k", MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL);
        }
    }
}

enum Received {
    Nothing,
    Closed,
    TooLong,
    Message(usize, Option<UnixCredentials>),
}

fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Received {
    let mut control = cmsg_space!(UnixCredentials);
    let mut slices = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    match socket::recvmsg::<()>(fd.as_raw_fd(), &mut slices, Some(&mut control), flags) {
        Ok(message) if message.flags.contains(MsgFlags::MSG_TRUNC) => Received::TooLong,
        Ok(message) if message.bytes == 0 => Received::Closed,
        Ok(message) => {
            let sender = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmCredentials(credentials) => Some(credentials),
                    _ => None,
                })
            });
            Received::Message(message.bytes, sender)
        }
        Err(nix::errno::Errno::EAGAIN) => Received::Nothing,
        Err(nix::errno::Errno::EINTR) => Received::Nothing,
        Err(_) => Received::Closed,
    }
}

/// Our own user, or root; anyone else has no business in this job.
fn is_trusted(sender: &UnixCredentials) -> bool {
    trusted(sender.uid(), nix::unistd::geteuid().as_raw())
}

fn trusted(sender: u32, own: u32) -> bool {
    // As root, ullage also watches jobs that give their rights away (su, setpriv).
    sender == own || sender == 0 || own == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::connect;

    fn client(path: &Path) -> OwnedFd {
        let fd =
            socket::socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        connect(fd.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
        fd
    }

    fn send(fd: &OwnedFd, bytes: &[u8]) {
        socket::send(fd.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL).unwrap();
    }

    #[test]
    fn messages_carry_the_pid_of_their_sender() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        let mut agent = AgentSocket::listen(&path).unwrap();
        let speaker = client(&path);
        send(&speaker, br#"{"kind":"hello","python":"3.11.7"}"#);
        let messages = agent.read(|_| true);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].1, i32::try_from(std::process::id()).unwrap());
        agent.acknowledge(messages[0].0);
        let mut byte = [0u8; 4];
        assert_eq!(nix::unistd::read(&speaker, &mut byte).unwrap(), 1);
    }

    #[test]
    fn an_unwanted_process_is_not_heard_and_a_new_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        let mut agent = AgentSocket::listen(&path).unwrap();
        let speakers = [client(&path), client(&path)];
        let speak = |index: usize| send(&speakers[index], br#"{"kind":"bye"}"#);
        speak(0);
        assert_eq!(agent.read(|_| false).len(), 1, "both are new, and one speaks");
        speak(0);
        speak(1);
        assert_eq!(agent.read(|_| false).len(), 0);
        assert_eq!(agent.read(|position| position == 2).len(), 1, "the listener is the first");
        assert_eq!(agent.read(|position| position == 1).len(), 1);
        assert_eq!(agent.read(|_| true).len(), 0);
    }

    #[test]
    fn nonsense_is_counted_and_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        let mut agent = AgentSocket::listen(&path).unwrap();
        let speaker = client(&path);
        send(&speaker, b"\xff\x00 not json");
        send(&speaker, br#"{"kind":"unheard of"}"#);
        send(&speaker, &vec![b' '; MOST_MESSAGE_BYTES + 1]);
        send(&speaker, br#"{"kind":"bye"}"#);
        assert_eq!(agent.read(|_| true).len(), 1);
        assert_eq!(agent.dropped, 3);
        drop(speaker);
        assert!(agent.read(|_| true).is_empty());
        assert!(agent.connections.is_empty());
    }

    #[test]
    fn a_field_that_is_nonsense_is_noted_once_and_loses_no_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        let mut agent = AgentSocket::listen(&path).unwrap();
        let speaker = client(&path);
        assert_eq!(agent.losses(), None);
        for _ in 0..2 {
            send(&speaker, br#"{"kind":"exception","type_name":"OSError","errno":"twelve"}"#);
            let messages = agent.read(|_| true);
            assert_eq!(messages[0].2.exception().unwrap().type_name, "OSError");
        }
        assert_eq!((agent.dropped, agent.unread), (0, 2));
        assert!(agent.losses().is_some() && agent.losses().is_none());
    }

    #[test]
    fn other_users_are_not_believed() {
        assert!(trusted(1000, 1000) && trusted(0, 1000) && trusted(1000, 0));
        assert!(!trusted(1001, 1000));
    }
}
