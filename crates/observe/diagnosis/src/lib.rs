//! Diagnosis: a run's samples and events become a verdict. Pure: opens nothing, asks no clock, prints nothing.
//!
//! [`Timeline`] holds the facts, [`Analysis`] what several rules need of them, [`diagnose`] asks every rule and ranks what
//! they find, and [`explain_log`] does what can be done with nothing but a log. All that is known of a cause is in its folder of
//! `causes/`. In which order the modules may name each other: ARCHITECTURE.md.
#![forbid(unsafe_code)]

mod analysis;
mod causes;
mod evidence;
mod explain;
mod history;
mod policy;
mod ranking;
mod rule;
mod trend;

pub use analysis::limits::limits;
pub use analysis::observed_peaks::{observed_peaks, ObservedPeaks};
pub use analysis::{Analysis, Run};
pub use causes::similar::similar_cause;
pub use causes::{cause, causes, explains_growth, families};
pub use explain::{explain_log, repeats_another, LogError, LogMatch, LogVerdict};
pub use history::{
    Begun, BudgetStep, CgroupHistory, ExceptionSeen, FilesystemHistory, HostHistory, JobTotals, Probe,
    ProcessHistory, Series, ShortFile, Timeline,
};
pub use ranking::diagnose;
pub use rule::Cause;

#[cfg(test)]
mod tests;
