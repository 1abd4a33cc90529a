//! Which of a thousand recordings failed first, of what, and what is different about its node? Pure: rows and facts of
//! machines in, one answer out.
//!
//! A [`Fleet`] takes a row for each recording, in any order, and of each node the facts of one recording. The surprise: clocks
//! of nodes differ, so "first" is an interval; where intervals overlap, only a proven cause decides, and else nothing does.
#![forbid(unsafe_code)]

mod answer;
mod first;
mod machines;
mod missing;
mod odd;
mod outliers;
mod place;
mod policy;
mod row;
mod verdict;

pub use answer::Fleet;
pub use place::{of_path, FolderNames};
pub use row::{facts, row, unreadable};
pub use verdict::{VerdictFile, VerdictView};

#[cfg(test)]
mod tests;
