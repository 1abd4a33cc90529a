//! What a rule is, what it may look at, and the registry of all of them.

use crate::failure::{failures, Failure};
use crate::history::ProcessHistory;

use crate::timeline::Timeline;
use std::sync::OnceLock;
use ullage_model::{
    Ending, Fact, Finding, Fix, Growth, KernelOomKill, LimitState, MachineFacts, Outcome, OutcomeKind,
    ProcessId, RunFacts, Severity,
};

/// What a rule says of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The cause is there; more than one finding where it struck in unrelated places.
    Found(Vec<Finding>),
    /// It is not there.
    Nothing,
    /// It can be neither found nor ruled out.
    CannotTell {
        /// What could not be read.
        because: String,
    },
}

impl Judgement {
    pub(crate) fn one(finding: Finding) -> Judgement {
        Judgement::Found(vec![finding])
    }

    pub(crate) fn cannot_tell(because: impl Into<String>) -> Judgement {
        Judgement::CannotTell { because: because.into() }
    }
}

/// A cause that can be told from a recording. The head of its file is its manual page.
pub struct Rule {
    /// Id in the catalogue.
    pub id: &'static str,
    /// The catalogue's title.
    pub title: &'static str,
    /// Text of the rule's own file.
    pub(crate) source: &'static str,
    /// Judges a run.
    pub judge: fn(&Case) -> Judgement,
    /// What removes the cause, best first.
    pub(crate) fixes: fn(&Setting) -> Vec<Fix>,
}

impl Rule {
    /// The manual page: the `//!` lines at the head of the rule's file, in Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        let mut page = String::new();
        for line in lines {
            let line = line.trim_start_matches("//!");
            page.push_str(line.strip_prefix(' ').unwrap_or(line));
            page.push('\n');
        }
        page
    }
}

/// What decides which fixes a user may apply, and their exact words. `None`: not known, nothing is assumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// The job runs as root.
    pub(crate) root: Option<bool>,
    /// The parent of the workers holds a CUDA context.
    pub(crate) cuda: Option<bool>,
    /// Threads of the parent of the workers.
    pub(crate) threads: Option<u64>,
    /// Hard limit of descriptors.
    pub(crate) nofile_hard: Option<u64>,
    /// A number that the fix needs: bytes for a limit, pids' owner.
    pub(crate) bytes: Option<u64>,
    /// Path the fix is about.
    pub(crate) path: Option<String>,
    /// The job's command, where a shell needs no quotes for it.
    pub(crate) command: Option<String>,
    /// Pids the fix is about.
    pub(crate) pids: Vec<i32>,
    /// Python of the process that the fix goes into: major and minor.
    pub(crate) python: Option<(u32, u32)>,
}

impl Setting {
    /// Forking is safe where the parent has no CUDA context and no threads of its own; unknown counts as
    /// safe, with the condition said in the title.
    pub(crate) fn may_fork(&self) -> bool {
        self.cuda != Some(true)
    }

    /// Objects can be made immortal: from Python 3.12 on; unknown counts as yes, with the condition said in the title.
    pub(crate) fn freezes(&self) -> bool {
        self.python.is_none_or(|version| version >= (3, 12))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.root == Some(true)
    }
}

/// Everything a rule may look at.
pub struct Case<'a> {
    /// What was read.
    pub timeline: &'a Timeline,
    /// The run's facts.
    pub run: &'a RunFacts,
    pub(crate) failures: Vec<Failure<'a>>,
    oom: OnceLock<Vec<crate::oom::Victim<'a>>>,
    limits: OnceLock<Vec<LimitState>>,
    growth: OnceLock<Option<(Growth, bool)>>,
}

impl<'a> Case<'a> {
    /// Prepares a run for the rules.
    pub fn new(run: &'a RunFacts, timeline: &'a Timeline) -> Self {
        let (oom, limits, growth) = Default::default();
        Case { timeline, run, failures: failures(timeline, run), oom, limits, growth }
    }

    /// The machine: of the run's facts, or of the recording's first event where those are empty.
    pub fn machine(&self) -> &MachineFacts {
        match self.timeline.machine() {
            Some(machine) if self.run.machine == MachineFacts::default() => machine,
            _ => &self.run.machine,
        }
    }

    /// Processes killed by the kernel's OOM killer.
    pub(crate) fn oom_victims(&self) -> &[crate::oom::Victim<'a>] {
        self.oom.get_or_init(|| crate::oom::victims(self))
    }

    /// The limits of the run and how near they are.
    pub(crate) fn limits(&self) -> &[LimitState] {
        self.limits.get_or_init(|| crate::limits::limits(self.run, self.timeline))
    }

    /// The kind of growth that the run shows, and whether it goes on at its end.
    pub(crate) fn growth(&self) -> Option<&(Growth, bool)> {
        self.growth.get_or_init(|| crate::growing::growth(self, self.limits())).as_ref()
    }

    /// A variable as the program's Python had it, or else as ullage did.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let inside = self.timeline.inside().get(&format!("env.{name}")).and_then(Fact::text);
        inside.or_else(|| self.run.environment.get(name).map(String::as_str))
    }

    /// How COMMAND's own process ended, before any finding is known.
    pub(crate) fn plain_outcome(&self) -> Outcome {
        if let Some(outcome) = &self.run.outcome {
            return outcome.clone();
        }
        let Some(main) = self.run.main else { return Outcome::of(OutcomeKind::NotStarted) };
        match self.timeline.process(main).and_then(|process| process.ended) {
            Some((_, ending, _)) => Outcome::from_ending(ending),
            None => Outcome::of(OutcomeKind::StillRunning),
        }
    }

    /// COMMAND ended with exit code 0.
    pub(crate) fn ended_well(&self) -> bool {
        let outcome = self.plain_outcome();
        outcome.kind == OutcomeKind::Exit && outcome.code == Some(0)
    }

    /// Fatal where the failure ended the run or a process of it in a run that failed; what the run survived
    /// to a good end is a warning, and what it caught is a note.
    pub(crate) fn severity(&self, failure: &Failure) -> Severity {
        let ended_process = matches!(
            failure.process.and_then(|process| process.ended),
            Some((_, Ending::Exited(1..) | Ending::Exited(i32::MIN..=-1) | Ending::Signaled(_), _))
        );
        let left = failure.exception.map(|exception| exception.report.left.as_str());
        let handed_on = matches!(left, Some("thread" | "loader-worker" | "executor-worker"));
        match (self.ended_well(), handed_on && !ended_process) {
            (true, true) => Severity::Note,
            (true, false) => Severity::Warning,
            (false, true) if self.plain_outcome().kind == OutcomeKind::StillRunning => Severity::Warning,
            (false, _) => Severity::Fatal,
        }
    }

    /// Rights and circumstances of a process, for the fixes.
    pub(crate) fn setting(&self, failure: Option<&Failure>) -> Setting {
        let process = failure.and_then(|failure| failure.process);
        let report = failure.and_then(|failure| failure.exception).map(|exception| &exception.report);
        let uid = process.and_then(|process| process.uid()).or_else(|| self.main_uid());
        Setting {
            command: typeable(&self.run.command),
            root: uid.map(|uid| uid == 0),
            cuda: report.and_then(|report| report.cuda_initialized),
            threads: report.and_then(|report| report.counts.threads),
            nofile_hard: report
                .and_then(|report| report.counts.nofile_hard)
                .or_else(|| process.and_then(|p| p.limits).and_then(|limits| limits.open_files_hard.at())),
            ..Setting::default()
        }
    }

    /// The same for the process that a remedy goes into, where nothing failed.
    pub(crate) fn setting_of(&self, process: Option<&ProcessHistory>) -> Setting {
        let version = process.and_then(|process| process.python.as_deref());
        let python = version.and_then(|version| {
            let mut parts = version.split('.').map(|part| part.parse().ok());
            Some((parts.next()??, parts.next()??))
        });
        let threads = process.and_then(|process| process.threads.last()).map(|(_, threads)| threads as u64);
        Setting { python, threads, ..self.setting(None) }
    }

    fn main_uid(&self) -> Option<u32> {
        self.timeline.process(self.main()?)?.uid()
    }

    pub(crate) fn main(&self) -> Option<ProcessId> {
        self.run.main
    }

    /// Lines of the kernel log about OOM kills.
    pub(crate) fn kernel_log(&self) -> impl Iterator<Item = &'a KernelOomKill> {
        self.timeline.oom_kills().iter().map(|(_, kill)| kill)
    }
}

/// A command as it can be typed; none where a shell would take it apart, or where it is long.
fn typeable(command: &[String]) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let fine = !command.is_empty() && command.iter().all(|word| !word.is_empty() && word.chars().all(plain));
    let typed = command.join(" ");
    (fine && typed.len() <= 120).then_some(typed)
}

/// Every rule, in the order of the catalogue's groups.
pub fn rules() -> &'static [Rule] {
    crate::rules::ALL
}

/// The rule of a cause.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().iter().find(|rule| rule.id == id)
}
