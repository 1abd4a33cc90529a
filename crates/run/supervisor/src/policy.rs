//! What is to be done about a memory budget? Pure: from figures and time to an action.

use std::time::Duration;

/// Share of the budget at which a line is printed.
pub const WARN_SHARE: f64 = 0.9;
/// Between SIGTERM and SIGKILL: time to write a checkpoint.
pub const GRACE: Duration = Duration::from_secs(10);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Say that 90 % is reached; once.
    Warn,
    /// SIGTERM to every process of the job; once.
    Terminate,
    /// SIGKILL to every process that is left.
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Below,
    Warned,
    Terminating { since: Duration },
}

/// Decides over one budget.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    budget: u64,
    grace: Duration,
    state: State,
}

impl Policy {
    /// A budget in bytes.
    pub fn new(budget: u64, grace: Duration) -> Policy {
        Policy { budget, grace, state: State::Below }
    }

    /// Takes a reading: bytes in use, and the time since any fixed moment.
    pub fn decide(&mut self, used: u64, now: Duration) -> Action {
        match self.state {
            State::Terminating { since } if now.saturating_sub(since) >= self.grace => Action::Kill,
            State::Terminating { .. } => Action::Nothing,
            _ if used >= self.budget => {
                self.state = State::Terminating { since: now };
                Action::Terminate
            }
            State::Below if used as f64 >= self.budget as f64 * WARN_SHARE => {
                self.state = State::Warned;
                Action::Warn
            }
            _ => Action::Nothing,
        }
    }

    /// True once it asked for the job's end.
    pub fn ended_the_job(&self) -> bool {
        matches!(self.state, State::Terminating { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: &[(u64, u64)]) -> Vec<Action> {
        let mut policy = Policy::new(1000, GRACE);
        steps.iter().map(|(used, at)| policy.decide(*used, Duration::from_secs(*at))).collect()
    }

    #[test]
    fn below_ninety_percent_nothing_happens() {
        assert_eq!(run(&[(0, 0), (899, 1), (500, 2)]), [Action::Nothing; 3]);
    }

    #[test]
    fn the_warning_comes_once() {
        assert_eq!(
            run(&[(900, 0), (950, 1), (100, 2), (999, 3)]),
            [Action::Warn, Action::Nothing, Action::Nothing, Action::Nothing]
        );
    }

    #[test]
    fn the_job_is_asked_to_end_then_made_to() {
        use Action::{Kill, Nothing, Terminate};
        // Memory that falls after SIGTERM does not call it off: the job is ending.
        assert_eq!(
            run(&[(1000, 0), (1200, 5), (10, 9), (10, 10), (10, 11)]),
            [Terminate, Nothing, Nothing, Kill, Kill]
        );
    }

    #[test]
    fn a_burst_over_the_budget_needs_no_warning_first() {
        assert_eq!(run(&[(1, 0), (5000, 1)]), [Action::Nothing, Action::Terminate]);
    }
}
