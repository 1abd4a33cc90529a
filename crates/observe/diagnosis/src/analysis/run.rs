//! A run as it was recorded, before any analysis: its facts and its timeline.

use crate::history::Timeline;
use ullage_model::{Fact, KernelOomKill, MachineFacts, Outcome, OutcomeKind, ProcessId, RunFacts};

/// What every analysis begins with.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The run's facts.
    pub facts: &'a RunFacts,
    /// What was read.
    pub timeline: &'a Timeline,
}

impl<'a> Run<'a> {
    /// The machine: of the run's facts, or of the recording's first event where those are empty.
    pub fn machine(&self) -> &MachineFacts {
        match self.timeline.machine() {
            Some(machine) if self.facts.machine == MachineFacts::default() => machine,
            _ => &self.facts.machine,
        }
    }

    /// A variable as the program's Python had it, or else as ullage did.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let inside = self.timeline.inside().get(&format!("env.{name}")).and_then(Fact::text);
        inside.or_else(|| self.facts.environment.get(name).map(String::as_str))
    }

    /// How COMMAND's own process ended, before any finding is known.
    pub(crate) fn plain_outcome(&self) -> Outcome {
        if let Some(outcome) = &self.facts.outcome {
            return outcome.clone();
        }
        let Some(main) = self.facts.main else { return Outcome::of(OutcomeKind::NotStarted) };
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

    pub(crate) fn main_uid(&self) -> Option<u32> {
        self.timeline.process(self.main()?)?.uid()
    }

    pub(crate) fn main(&self) -> Option<ProcessId> {
        self.facts.main
    }

    /// Lines of the kernel log about OOM kills.
    pub(crate) fn kernel_log(&self) -> impl Iterator<Item = &'a KernelOomKill> {
        self.timeline.oom_kills().iter().map(|(_, kill)| kill)
    }
}
