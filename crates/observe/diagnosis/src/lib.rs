//! Diagnosis: a run's samples and events become a verdict. Pure: opens nothing, asks no clock, prints nothing.
//!
//! [`Timeline`] holds the facts, [`Analysis`] what several rules need of them, [`diagnose`] asks every rule and ranks what
//! they find, and [`explain_log`] does what can be done with nothing but a log. One rule a file in `causes/`; the head of the
//! file is the manual page that [`cause_page`] returns. In which order the modules may name each other: ARCHITECTURE.md.
#![forbid(unsafe_code)]

mod analysis;
mod catalogue;
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
pub use catalogue::{cause_page, cause_title, causes, similar_cause, Cause};
pub use causes::{explains_growth, rule, rules};
pub use explain::{explain_log, LogError, LogMatch, LogVerdict};
pub use history::{
    Begun, BudgetStep, CgroupHistory, ExceptionSeen, FilesystemHistory, HostHistory, JobTotals, Probe,
    ProcessHistory, Series, ShortFile, Timeline,
};
pub use ranking::diagnose;
pub use rule::{Judgement, Rule};

#[cfg(test)]
mod tests;
