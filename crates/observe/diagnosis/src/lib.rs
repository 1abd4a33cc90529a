//! Diagnosis: a run's samples and events become a verdict. Pure: opens nothing, asks no clock, prints nothing.
//!
//! [`Timeline`] holds what a rule may look at, [`diagnose`] asks every rule and ranks what they find, and
//! [`explain_log`] does what can be done with nothing but a log. One rule a file in `rules/`; the head of the
//! file is the manual page that [`cause_page`] returns.
#![forbid(unsafe_code)]

mod between;
mod catalogue;
mod copies;
mod descriptors;
mod explain;
mod failure;
mod first;
mod forecast;
mod found;
mod groups;
mod growing;
mod growth;
mod herd;
mod history;
mod holders;
mod keeps;
mod kept;
mod limits;
mod met;
mod oom;
mod ranking;
mod requested;
mod rule;
mod rules;
mod say;
mod segments;
mod series;
mod sharing;
mod space;
mod timeline;
mod together;

pub use catalogue::{cause_page, cause_title, causes, similar_cause, Cause};
pub use explain::{explain_log, LogError, LogMatch, LogVerdict};
pub use history::{Begun, CgroupHistory, FilesystemHistory, HostHistory, Probe, ProcessHistory};
pub use limits::limits;
pub use met::{met, Met};
pub use ranking::{diagnose, rank};
pub use rule::{rule, rules, Case, Judgement, Rule};
pub use series::Series;
pub use timeline::{BudgetStep, ExceptionSeen, ShortFile, Timeline};
pub use together::Together;

#[cfg(test)]
mod tests;
