//! Reports for a screen: the verdict, a cause's page, what a log says, and the tables of runs and checks.

mod causes;
mod comparison;
mod grew;
mod layout;
mod leftovers;
mod log;
mod memory;
mod page;
mod segments;
mod style;
mod tables;
mod verdict;

pub use causes::{causes, CauseFamily};
pub use comparison::comparison;
pub use grew::going_on;
pub use leftovers::{leftovers, LeftoverList, LeftoverRow};
pub use log::{log, LogView};
pub use page::page;
pub use segments::left_behind;
pub use style::Style;
pub use tables::{check, runs, CheckRow, CheckState, RunRow};
pub use verdict::{growth, nearest, note, outcome, verdict};
