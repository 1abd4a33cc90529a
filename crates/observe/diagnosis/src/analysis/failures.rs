//! What went wrong in the job, in order of time: exceptions that left a program and processes that ended badly.
//!
//! The surprise: one exception shows up several times. A worker's exception is raised again in the trainer,
//! and the trainer's end is noticed by main. The first in time is where the cause is.

use super::run::Run;
use crate::evidence::Source;
use crate::history::{ExceptionSeen, ProcessHistory, Timeline};
use crate::policy::given::{SIGABRT, SIGSEGV};
use crate::policy::limits::FOLLOWS_WITHIN_S;
use std::collections::BTreeMap;
use ullage_model::{At, CountsAtFailure, Ending, OutcomeKind, Role, Severity};

/// One thing that went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Failure<'a> {
    /// When.
    pub(crate) at: At,
    /// In which process; none where it ended before it was ever read.
    pub(crate) process: Option<&'a ProcessHistory>,
    /// What the agent reported.
    pub(crate) exception: Option<&'a ExceptionSeen>,
    /// Functions that it left through, or in which a process was that was killed; the outermost first.
    pub(crate) stack: &'a [String],
    /// How the process ended, where that is how the failure is known.
    pub(crate) ending: Option<Ending>,
    /// An ancestor or a descendant failed just before: who waits for a process ends because of it, and who was
    /// started by it ends with it.
    pub(crate) follows: bool,
}

/// All failures, earliest first.
pub(crate) fn failures<'a>(timeline: &'a Timeline) -> Vec<Failure<'a>> {
    let mut failures: Vec<Failure> = timeline
        .exceptions()
        .iter()
        .filter(|seen| !matches!(seen.report.type_name.as_str(), "SystemExit" | "KeyboardInterrupt"))
        .map(|seen| Failure {
            at: seen.at,
            process: seen.id.and_then(|id| timeline.process(id)).or_else(|| timeline.by_pid(seen.pid)),
            exception: Some(seen),
            stack: &seen.report.stack,
            ending: None,
            follows: false,
        })
        .collect();
    for (at, process, ending) in timeline.endings() {
        let badly = match ending {
            Ending::Exited(code) => code != 0 && process.role != Role::Helper,
            Ending::Signaled(_) => true,
            Ending::NotSeen(_) => false,
        };
        if badly && (process.exceptions == 0 || matches!(ending, Ending::Signaled(_))) {
            failures.push(Failure {
                at,
                process: Some(process),
                exception: None,
                stack: &[],
                ending: Some(ending),
                follows: false,
            });
        }
    }
    failures.sort_by_key(|failure| (failure.at, failure.process.map(|process| process.id)));
    // Latest failure of each process, and of whatever was started below it.
    let (mut own, mut below) = (BTreeMap::new(), BTreeMap::new());
    for failure in &mut failures {
        let Some(process) = failure.process else { continue };
        let lineage = lineage(timeline, process);
        let lately = |seen: Option<&At>| seen.is_some_and(|at| failure.at.since(*at) <= FOLLOWS_WITHIN_S);
        failure.follows =
            lately(below.get(&process.id.pid)) || lineage.iter().any(|pid| lately(own.get(pid)));
        // Who fails ends its helper commands: that they were killed explains nothing.
        if process.role != Role::Helper {
            own.insert(process.id.pid, failure.at);
            below.extend(lineage.into_iter().map(|pid| (pid, failure.at)));
        }
    }
    failures
}

/// Who started a process, and who started that one, and so on. Parents as first seen: an orphan's parent is not who
/// started it.
fn lineage(timeline: &Timeline, process: &ProcessHistory) -> Vec<i32> {
    let parent = |child: &&ProcessHistory| timeline.by_pid(child.born_to());
    std::iter::successors(Some(process), parent)
        .take(8)
        .map(ProcessHistory::born_to)
        .filter(|pid| *pid != process.id.pid)
        .collect()
}

/// What the message of an exception speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symptom {
    /// ENOMEM.
    NoMemory,
    /// EMFILE, or descriptors lost on the way.
    NoDescriptors,
    /// ENFILE.
    NoDescriptorsOnMachine,
    /// ENOSPC.
    NoSpace,
    /// torch's writer of checkpoints, which does not say why.
    Unwritten,
    /// EAGAIN of fork and clone.
    NoTask,
    /// CPython's forkserver refused the number of descriptors.
    ForkserverFds,
    /// None that memory has to do with.
    Other,
}

impl<'a> Failure<'a> {
    /// Type, text and the chain of causes as one text.
    pub(crate) fn text(&self) -> String {
        self.exception.map_or(String::new(), |seen| {
            let mut text = format!("{}: {}", seen.report.type_name, seen.report.text);
            for link in &seen.report.chain {
                text.push('\n');
                text.push_str(link);
            }
            text
        })
    }

    /// The exception's first line, as a person sees it.
    pub(crate) fn message(&self) -> String {
        let Some(seen) = self.exception else { return String::new() };
        // A worker's exception comes wrapped: the line that counts is the last of its traceback.
        let text = seen.report.text.trim();
        if text.starts_with("Caught ") {
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
            return last.trim().to_owned();
        }
        format!("{}: {}", seen.report.type_name, text.lines().next().unwrap_or_default())
    }

    /// What the message speaks of.
    pub(crate) fn symptom(&self) -> Symptom {
        let Some(seen) = self.exception else { return Symptom::Other };
        let text = self.text();
        let has = |needle: &str| text.contains(needle);
        if has("too many fds") {
            Symptom::ForkserverFds
        } else if has("Too many open files in system") {
            Symptom::NoDescriptorsOnMachine
        } else if seen.report.errno == Some(24) || has("Too many open files") || has("items of ancdata") {
            Symptom::NoDescriptors
        } else if (seen.report.errno == Some(28) || has("No space left on device"))
            && !["inotify", "shmget", "semget", "msgget", "mq_open"].into_iter().any(has)
        {
            Symptom::NoSpace
        } else if self.passes("torch/serialization.py")
            // Into a buffer in memory it fails with the same words, after an error that does say why.
            && !has("MemoryError")
            && ["unexpected pos ", "iostream error", "failed writing file"].into_iter().any(has)
        {
            Symptom::Unwritten
        } else if has("can't start new thread") || (has("Resource temporarily unavailable") && self.in_fork())
        {
            Symptom::NoTask
        } else if seen.report.errno == Some(12)
            || has("MemoryError")
            || has("Cannot allocate memory")
            || has("can't allocate memory")
            || has("failed to map segment")
            || has("bad_alloc")
            || has("Unable to allocate")
        {
            Symptom::NoMemory
        } else {
            Symptom::Other
        }
    }

    /// It left through what starts a process or a thread, or nobody knows through what.
    pub(crate) fn in_fork(&self) -> bool {
        let Some(seen) = self.exception else { return false };
        let near: Vec<_> = seen.report.stack.iter().rev().take(8).collect();
        near.is_empty()
            || near.iter().any(|frame| {
                ["fork", "subprocess", "popen", "_start_new_thread", "os.py"]
                    .iter()
                    .any(|word| frame.contains(word))
            })
    }

    /// The stack runs through a file or function of this name.
    pub(crate) fn passes(&self, part: &str) -> bool {
        self.stack.iter().any(|frame| frame.contains(part)) || self.text().contains(part)
    }

    /// A frame of the stack is one of these functions in a file of this name.
    pub(crate) fn calls(&self, file: &str, functions: &[&str]) -> bool {
        self.stack.iter().any(|frame| {
            let (place, function) = frame.rsplit_once(' ').unwrap_or((frame, ""));
            place.contains(file) && functions.contains(&function)
        })
    }

    /// The innermost frame is that of a function of C, which only the agent's work has.
    pub(crate) fn is_native(&self) -> bool {
        self.stack.last().is_some_and(|frame| frame.ends_with("()"))
    }

    /// What the innermost frame calls that is of C is one of these: `tolist`, or `orjson.loads` of a module of that name.
    pub(crate) fn calls_native(&self, functions: &[&str]) -> bool {
        let innermost = self.stack.last().and_then(|frame| frame.rsplit_once(' ')?.1.strip_suffix("()"));
        innermost.is_some_and(|called| {
            let name = called.rsplit('.').next();
            functions.iter().any(|function| called == *function || name == Some(*function))
        })
    }

    /// Counts at the moment of the exception.
    pub(crate) fn counts(&self) -> Option<&'a CountsAtFailure> {
        self.exception.map(|seen| &seen.report.counts)
    }

    /// It says what happened somewhere else: the exception of a worker, raised again by who waited for it.
    pub(crate) fn is_echo(&self) -> bool {
        self.text().contains("Caught ") && self.text().contains("in DataLoader worker process")
    }

    /// Where what the agent counted comes from.
    pub(crate) fn agent_source(&self) -> Source {
        let pid = self.exception.map_or(0, |seen| seen.pid);
        Source::Agent(pid)
    }

    /// Fatal where the failure ended the run or a process of it in a run that failed; what the run survived
    /// to a good end is a warning, and what it caught is a note.
    pub(crate) fn severity(&self, run: &Run) -> Severity {
        let ended_process = matches!(
            self.process.and_then(|process| process.ended),
            Some((_, Ending::Exited(1..) | Ending::Exited(i32::MIN..=-1) | Ending::Signaled(_), _))
        );
        let left = self.exception.map(|exception| exception.report.left.as_str());
        let handed_on = matches!(left, Some("thread" | "loader-worker" | "executor-worker"));
        match (run.ended_well(), handed_on && !ended_process) {
            (true, true) => Severity::Note,
            (true, false) => Severity::Warning,
            (false, true) if run.plain_outcome().kind == OutcomeKind::StillRunning => Severity::Warning,
            (false, _) => Severity::Fatal,
        }
    }

    /// It ended by its own failing, as far as seen from outside: neither told to end nor killed.
    pub(crate) fn unexplained_end(&self) -> bool {
        !self.follows
            && self.exception.is_none()
            && matches!(
                self.ending,
                Some(Ending::Exited(_) | Ending::Signaled(SIGABRT) | Ending::Signaled(SIGSEGV))
            )
    }
}
