//! One loop over everything that can happen: signals, children, watched descendants, the agent's messages.

use crate::agent_socket::{AgentSocket, Connection};
use crate::children::{is_running, is_stopped, reap, stopped_or_continued};
use crate::imitate::Step;
use crate::pidfd::Watched;
use crate::signals::{Arrived, Signals};
use crate::spawn::{spawn, take_child_signal, SpawnSettings, StartError};
use nix::sys::signal::{kill, raise, SigSet, Signal};
use nix::unistd::{getpgid, getpgrp, getppid, getsid, Pid};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use ullage_kernel::KernelRoot;
use ullage_model::{AgentMessage, ClockTicks, Ending, EndingSource, Missing, ProcessId};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Happening {
    /// COMMAND's own process ended.
    MainEnded {
        /// How.
        ending: Ending,
    },
    /// A descendant ended.
    DescendantEnded {
        /// Which.
        id: ProcessId,
        /// How.
        ending: Ending,
        /// How that is known.
        source: EndingSource,
    },
    /// The agent in a Python of the job spoke.
    Agent {
        /// Over this connection.
        connection: Connection,
        /// Its pid, by its credentials.
        pid: i32,
        /// What it said.
        message: AgentMessage,
    },
    /// Something that could not be seen, as a sentence.
    NotSeen(String),
    /// Somebody wants the watching of a job to end that ullage did not start.
    Interrupted,
}

/// What a poll found.
struct Ready {
    /// By position: the watched descendants.
    watched: Vec<bool>,
    /// By position: the agent's descriptors.
    agents: Vec<bool>,
    /// Something may have ended.
    others: bool,
}

/// COMMAND, started and watched over. Dropping it ends nothing but the watching.
#[derive(Debug)]
pub struct Supervisor {
    root: KernelRoot,
    main: ProcessId,
    main_ended: bool,
    /// The job is no child of ours: its signals, its stops and its children are not our business.
    attached: bool,
    signals: Option<Signals>,
    agent: Option<AgentSocket>,
    watched: Vec<Watched>,
    /// Descendants by pid: an orphan that we reap has no other identity any more.
    known: HashMap<i32, ProcessId>,
    /// Endings already told, so that a child that is also watched is told once.
    reported: HashSet<ProcessId>,
    news: Vec<Happening>,
    refused: Vec<(Step, std::io::Error)>,
}

/// Where signals cannot be had as a descriptor, children are looked after this often.
const WITHOUT_SIGNALS: Duration = Duration::from_millis(100);

impl Supervisor {
    /// Starts COMMAND. Only COMMAND's own failure to start is an error.
    pub fn start(settings: &SpawnSettings) -> Result<Supervisor, StartError> {
        let root = KernelRoot::live();
        let mut news = Vec::new();
        if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
            news.push(Happening::NotSeen(format!("Orphans of the job could not be adopted: {error}.")));
        }
        let child_signal = take_child_signal();
        let (signals, mask) = match Signals::open() {
            Ok((signals, mask)) => (Some(signals), mask),
            Err(error) => {
                news.push(Happening::NotSeen(format!("Signals could not be watched: {error}.")));
                (None, SigSet::empty())
            }
        };
        let agent = settings.agent_socket.as_ref().and_then(|path| {
            AgentSocket::listen(path)
                .map_err(|error| {
                    news.push(Happening::NotSeen(format!("The agent's socket could not be made: {error}.")));
                })
                .ok()
        });
        let (child, refused) = spawn(settings, mask, child_signal)?;
        let pid = i32::try_from(child.id()).unwrap_or(0);
        // `Child` is forgotten, not waited for: `reap` waits for all children alike.
        drop(child);
        let mut buffer = Vec::new();
        let start = root
            .process(pid)
            .ok()
            .and_then(|process| process.stat(&mut buffer).ok().map(|stat| stat.id.start))
            .unwrap_or(ClockTicks(0));
        let main = ProcessId { pid, start };
        Ok(Supervisor {
            root,
            main,
            main_ended: false,
            attached: false,
            signals,
            agent,
            watched: Vec::new(),
            known: HashMap::new(),
            reported: HashSet::new(),
            news,
            refused,
        })
    }

    /// Watches over a process that runs already, and whatever descends from it. None where it is gone.
    pub fn attach(main: ProcessId) -> Option<Supervisor> {
        let root = KernelRoot::live();
        let mut news = Vec::new();
        let watched = vec![Watched::open(&root, main)?];
        let signals = Signals::open().map(|(signals, _)| signals);
        if let Err(error) = &signals {
            news.push(Happening::NotSeen(format!("Signals could not be watched: {error}.")));
        }
        Some(Supervisor {
            root,
            main,
            main_ended: false,
            attached: true,
            signals: signals.ok(),
            agent: None,
            refused: Vec::new(),
            watched,
            known: HashMap::new(),
            reported: HashSet::new(),
            news,
        })
    }

    /// Which steps towards another machine's bounds the kernel refused.
    pub fn refused(&self) -> &[(Step, std::io::Error)] {
        &self.refused
    }

    /// COMMAND's own process.
    pub fn main(&self) -> ProcessId {
        self.main
    }

    /// Watches a descendant that is not our child, so that its ending is seen. Too many descriptors: not watched.
    /// True where it was not known before.
    pub fn watch(&mut self, id: ProcessId) -> bool {
        if id == self.main || self.known.insert(id.pid, id) == Some(id) {
            return false;
        }
        self.watched.extend(Watched::open(&self.root, id));
        true
    }

    /// Where COMMAND died of a Ctrl-C that ullage got too: dies of it as well. A shell goes on with its script
    /// after a program that merely exits with 130, and gives it up after one that died.
    pub fn end_as_interrupted(&self, ending: Ending) {
        let interrupted = self.signals.as_ref().is_some_and(Signals::interrupted);
        if interrupted && ending == Ending::Signaled(Signal::SIGINT as i32) {
            let mut only = SigSet::empty();
            only.add(Signal::SIGINT);
            let _ = only.thread_unblock();
            let _ = raise(Signal::SIGINT);
        }
    }

    /// True where the ending of this process will be told, or was: nobody else need say that it is gone.
    pub fn knows(&self, id: ProcessId) -> bool {
        id == self.main || self.reported.contains(&id) || self.watched.iter().any(|watched| watched.id == id)
    }

    /// Lets a process go on that waits after its exception report.
    pub fn acknowledge(&self, connection: Connection) {
        if let Some(agent) = &self.agent {
            agent.acknowledge(connection);
        }
    }

    /// Waits until something happens or `timeout` is over, and returns all of it. COMMAND's end comes last.
    pub fn wait(&mut self, timeout: Duration) -> Vec<Happening> {
        let mut happenings = std::mem::take(&mut self.news);
        let timeout = if happenings.is_empty() { timeout } else { Duration::ZERO };
        let Ready { watched: ready, agents, others } = self.poll(timeout);
        // Messages first: a process speaks before it ends. So where something may have ended all are heard, and else those
        // who speak.
        if let Some(agent) = self.agent.as_mut().filter(|_| others || agents.contains(&true)) {
            let heard = agent.read(|index| others || agents.get(index).copied().unwrap_or(true)).into_iter();
            if std::mem::take(&mut agent.given_up) {
                let text = "Pythons that started late have no agent: ullage has no descriptors left.";
                happenings.push(Happening::NotSeen(text.into()));
            }
            happenings.extend(agent.losses().map(Happening::NotSeen));
            happenings.extend(heard.map(|(connection, pid, message)| Happening::Agent {
                connection,
                pid,
                message,
            }));
        }
        self.signals(&mut happenings);
        if !self.attached {
            self.children(&mut happenings);
        }
        self.descendants(&ready, &mut happenings);
        happenings.sort_by_key(|happening| matches!(happening, Happening::MainEnded { .. }));
        happenings
    }

    /// Polls; tells who is ready.
    fn poll(&self, timeout: Duration) -> Ready {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(self.watched.len() + 8);
        for watched in &self.watched {
            fds.push(PollFd::from_borrowed_fd(watched.as_fd(), watched.interest()));
        }
        if let Some(signals) = &self.signals {
            fds.push(PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN));
        }
        let before_agents = fds.len();
        if let Some(agent) = &self.agent {
            fds.extend(agent.descriptors().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let timeout = if self.signals.is_some() { timeout } else { timeout.min(WITHOUT_SIGNALS) };
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        // EINTR is one of the things that can happen.
        let failed = poll(&mut fds, Some(&timeout)).is_err();
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (others, agents) = fds.split_at(before_agents);
        Ready {
            watched: others[..self.watched.len()].iter().map(ready).collect(),
            agents: agents.iter().map(ready).collect(),
            others: failed || others.iter().any(ready),
        }
    }

    fn signals(&mut self, happenings: &mut Vec<Happening>) {
        let mut child = self.signals.is_none();
        let mut pass_on = Vec::new();
        let (main, known) = (self.main.pid, &self.known);
        let of_job = |pid: i32| pid == main || known.contains_key(&pid);
        while let Some(arrived) = self.signals.as_mut().and_then(|signals| signals.next(of_job)) {
            match arrived {
                Arrived::Child => child = true,
                Arrived::PassOn(signal) => pass_on.push(signal),
                Arrived::Nothing => {}
            }
        }
        if self.attached {
            let ends = |signal: &Signal| matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP);
            if pass_on.iter().any(ends) || self.signals.as_ref().is_some_and(Signals::interrupted) {
                happenings.push(Happening::Interrupted);
            }
            return;
        }
        if !self.main_ended {
            for signal in pass_on {
                let _ = kill(Pid::from_raw(self.main.pid), signal);
            }
        }
        if child && stopped_or_continued(self.main.pid) {
            self.follow_into_stop();
        }
    }

    /// COMMAND stopped itself (an editor's suspend): stop as well, so that the shell gets its terminal back.
    /// Ctrl-Z stops both at once, and both are continued at once: then COMMAND runs again when we look.
    fn follow_into_stop(&self) {
        let main = Pid::from_raw(self.main.pid);
        let same_group = getpgid(Some(main)).is_ok_and(|group| group == getpgrp());
        // A shell with job control gives each job a group of its own in its session; a script does not, and
        // would wait for us for ever.
        let parent = getppid();
        let job_control = getsid(Some(parent)).ok() == getsid(None).ok()
            && getpgid(Some(parent)).is_ok_and(|group| group != getpgrp());
        if !same_group || !job_control || !is_stopped(&self.root, self.main) {
            return;
        }
        // `fg` continues the processes of the group one by one: COMMAND may be next.
        std::thread::sleep(Duration::from_millis(30));
        if is_stopped(&self.root, self.main) {
            let _ = raise(Signal::SIGSTOP);
            let _ = kill(main, Signal::SIGCONT);
        }
    }

    fn children(&mut self, happenings: &mut Vec<Happening>) {
        let (reaped, childless) = reap();
        for (pid, ending) in reaped {
            if pid == self.main.pid && !self.main_ended {
                self.main_ended = true;
                happenings.push(Happening::MainEnded { ending });
            } else if let Some(id) = self.known.get(&pid).copied() {
                self.watched.retain(|watched| watched.id != id);
                self.report_end(id, ending, EndingSource::Wait, happenings);
            }
        }
        if childless && !self.main_ended {
            // Somebody else took its status; waiting on would never end.
            self.main_ended = true;
            happenings.push(Happening::MainEnded { ending: Ending::NotSeen(Missing::Vanished) });
        }
    }

    fn descendants(&mut self, ready: &[bool], happenings: &mut Vec<Happening>) {
        // `reap` may have removed some since the poll: then look at all, which is rare and harmless.
        let all = ready.len() != self.watched.len();
        let mut ended = Vec::new();
        let root = &self.root;
        let mut index = 0;
        self.watched.retain_mut(|watched| {
            let check = all || ready.get(index).copied().unwrap_or(true) || watched.is_zombie();
            index += 1;
            if !check || (all && is_running(root, watched.id)) {
                return true;
            }
            match watched.ending(root) {
                Some((ending, source)) => {
                    ended.push((watched.id, ending, source));
                    false
                }
                None => true,
            }
        });
        for (id, ending, source) in ended {
            self.report_end(id, ending, source, happenings);
        }
    }

    fn report_end(
        &mut self,
        id: ProcessId,
        ending: Ending,
        source: EndingSource,
        happenings: &mut Vec<Happening>,
    ) {
        if id == self.main {
            self.main_ended = true;
            happenings.push(Happening::MainEnded { ending });
        } else if self.reported.insert(id) {
            happenings.push(Happening::DescendantEnded { id, ending, source });
        }
    }
}
