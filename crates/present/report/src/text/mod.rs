//! Reports for a screen: the verdict, a cause's page, what a log says, and the tables of runs and checks.

mod causes;
mod comparison;
mod fleet;
mod grew;
mod layout;
mod leftovers;
mod log;
mod memory;
mod outcome;
mod page;
mod segments;
mod style;
mod summary;
mod tables;
mod verdict;

pub use causes::{causes, CauseFamily};
pub use comparison::comparison;
pub use fleet::fleet;
pub use leftovers::{leftovers, LeftoverList, LeftoverRow};
pub use log::{log, LogView};
pub use outcome::outcome;
pub use page::page;
pub use style::Style;
pub use summary::{headline, summary};
pub use tables::{check, runs, CheckRow, CheckState, RunRow};
pub use verdict::{cost_words, evidence_words, growth, limit_row, nearest, standing, verdict};
