//! What several causes need to know of a run, computed once, in a fixed order: failures, out-of-memory kills, limits, the class
//! of its growth, what allocators retain.
//!
//! [`Analysis::of`] is that order. What one part needs of another is an argument, so that none can ask for what comes later.

pub(crate) mod came;
pub(crate) mod cohort;
pub(crate) mod copies;
pub(crate) mod failures;
pub(crate) mod first_failure;
pub(crate) mod goes_on;
pub(crate) mod growth_class;
pub(crate) mod killed_at_work;
pub(crate) mod limits;
pub(crate) mod observed_peaks;
pub(crate) mod oom;
mod remedy_context;
pub(crate) mod requested;
pub(crate) mod retained;
pub(crate) mod retainers;
pub(crate) mod retention;
mod run;
pub(crate) mod segments;
pub(crate) mod space;
pub(crate) mod unheld;

use crate::history::{Allocator, Timeline};
use crate::policy::limits::{NOTICED_EARLY_S, NOTICED_WITHIN_S};
use failures::{Failure, Symptom};
use oom::Victim;
pub(crate) use remedy_context::{readable, Collection, HeldByC, RemedyContext, RetainerInCode, Waiting};
use retention::Retention;
pub use run::Run;
use ullage_model::{Growth, LimitState, OutcomeKind, RunFacts};

/// Everything a rule may look at.
pub struct Analysis<'a> {
    run: Run<'a>,
    /// What went wrong, earliest first.
    pub(crate) failures: Vec<Failure<'a>>,
    /// Processes killed by the kernel's OOM killer.
    pub(crate) oom_victims: Vec<Victim<'a>>,
    /// The job, or a process of it, ended for lack of memory.
    pub(crate) ran_out: bool,
    /// The limits of the run and how near they are.
    pub(crate) limits: Vec<LimitState>,
    /// The kind of growth that the run shows, and whether it goes on at its end.
    pub(crate) growth: Option<(Growth, bool)>,
    /// What each allocator retains, where that is worth a word.
    pub(crate) retention: Vec<Retention<'a>>,
}

impl<'a> Analysis<'a> {
    /// All of it, in order.
    pub fn of(facts: &'a RunFacts, timeline: &'a Timeline) -> Self {
        let run = Run { facts, timeline };
        let failures = failures::failures(timeline);
        let oom_victims = oom::victims(&run);
        let ran_out = !oom_victims.is_empty()
            || run.plain_outcome().kind == OutcomeKind::Budget
            || failures.iter().any(|failure| failure.symptom() == Symptom::NoMemory);
        let limits = limits::limits(facts, timeline);
        let growth = growth_class::growth(&run, &limits);
        let retention = Allocator::ALL.into_iter().filter_map(|one| retention::of(&run, one)).collect();
        Analysis { run, failures, oom_victims, ran_out, limits, growth, retention }
    }

    /// What one allocator retains; none where it is not worth a word.
    pub(crate) fn retention_of(&self, allocator: Allocator) -> Option<&Retention<'a>> {
        self.retention.iter().find(|one| one.allocator == allocator)
    }

    /// COMMAND lived on although one of its children was killed: it neither failed with it nor soon after it.
    pub(crate) fn unnoticed(&self, victim: &Victim) -> bool {
        let (Some(process), Some(main)) = (victim.process, self.main()) else { return false };
        if process.id == main || !victim.of_cgroup() {
            return false;
        }
        let is_victim = |id| {
            self.oom_victims.iter().any(|other| other.process.is_some_and(|process| Some(process.id) == id))
        };
        let noticed = self.failures.iter().any(|failure| {
            let after = failure.at.since(victim.at);
            (-NOTICED_EARLY_S..=NOTICED_WITHIN_S).contains(&after)
                && !is_victim(failure.process.map(|process| process.id))
        });
        if noticed || is_victim(Some(main)) {
            return false;
        }
        let end = self
            .timeline
            .process(main)
            .and_then(|main| main.ended)
            .map_or(self.timeline.end(), |(at, _, _)| at);
        self.ended_well() || end.since(victim.at) > NOTICED_WITHIN_S
    }
}

/// An analysis is the run with what follows from it.
impl<'a> std::ops::Deref for Analysis<'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        &self.run
    }
}
