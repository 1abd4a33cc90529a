//! How does a job stand at one moment? One derivation for `now.json` and the live view, whether the run is live, attached
//! to or finished.
//!
//! Pure: no file, no clock. What is expensive to judge (limits, growth) is handed in by callers, who know what it may cost.
#![forbid(unsafe_code)]

mod derivation;
mod happened;
mod json;
mod state;
mod thinned;

pub use derivation::Derivation;
pub use happened::{Happened, Weight};
pub use json::{now_json, MOST_BYTES};
pub use state::{Exit, Identity, JobState, Judged, Level, Memory, Process, SharedSegment, Used};
pub use thinned::{Point, Thinned};
