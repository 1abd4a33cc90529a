//! What tells two machines apart: differences with what each would change, ranked.

use crate::{Fact, Outcome};
use serde::{Deserialize, Serialize};

/// How strongly a difference is tied to what went wrong, or to what behaves differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// It could change something; nothing that was seen points to it.
    Possible,
    /// What was seen fits it.
    Likely,
    /// It is what the failing run met, or what the runs differ in.
    Explains,
}

/// A fact that is not the same on both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its name, as in a snapshot.
    pub fact: String,
    /// On the good machine.
    pub good: Fact,
    /// On the other.
    pub bad: Fact,
}

/// What ties a difference to what was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tie", rename_all = "kebab-case")]
pub enum Tie {
    /// It brings about a cause that was found in the bad run.
    Found {
        /// Id of the cause.
        cause: String,
    },
    /// The bad run came to its limit.
    Met {
        /// What was used.
        figure: String,
        /// The most of it.
        used: u64,
        /// The limit there.
        limit: u64,
    },
    /// The good run used more than the bad machine allows.
    Wanted {
        /// What was used.
        figure: String,
        /// The most of it in the good run.
        used: u64,
        /// The limit on the bad machine.
        limit: u64,
    },
    /// Neither run came near it.
    Far {
        /// What was used.
        figure: String,
        /// The most of it in both.
        used: u64,
        /// The tighter limit.
        limit: u64,
    },
    /// It moves a figure in which the runs differ.
    Moved {
        /// The figure.
        figure: String,
        /// In the good run.
        good: u64,
        /// In the bad run.
        bad: u64,
    },
    /// It moves what the found cause is about.
    AtStake {
        /// Id of the cause.
        cause: String,
    },
    /// This version is known to go wrong.
    KnownBad {
        /// What it does.
        what: String,
    },
    /// The bad machine is the one with more room.
    Looser,
}

/// What went wrong in a run, or behaves differently from the good one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "symptom", rename_all = "kebab-case")]
pub enum Symptom {
    /// A finding of its verdict.
    Finding {
        /// Id of the cause.
        cause: String,
        /// Its title.
        title: String,
    },
    /// It failed, and no cause was found.
    Failed {
        /// How it ended.
        outcome: Outcome,
    },
    /// A figure differs.
    Figure {
        /// Which.
        figure: String,
        /// In the good run.
        good: u64,
        /// In the bad run.
        bad: u64,
    },
}

/// A change that can matter, with what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Place, from 1.
    pub rank: u32,
    /// The fact and both values.
    #[serde(flatten)]
    pub change: Change,
    /// What it is, in words: `soft limit of open files`.
    pub title: String,
    /// `bytes`, where the values are.
    pub unit: String,
    /// 0 to 1: only the order and [`Difference::strength`] mean anything.
    pub score: f64,
    /// How strongly it is tied to what was seen.
    pub strength: Strength,
    /// What ties it to what was seen, strongest first; empty where nothing does.
    pub ties: Vec<Tie>,
    /// How it works: a sentence.
    pub mechanism: String,
    /// Commands that settle whether it is the cause, one a line.
    pub test: String,
    /// Causes of the catalogue that it can bring about.
    pub causes: Vec<String>,
    /// Changes that come with it and need no test of their own.
    pub with: Vec<Change>,
}

/// One machine or run against the good one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The file or run.
    pub name: String,
    /// What went wrong there, or behaves differently; empty where only facts are known.
    pub symptoms: Vec<Symptom>,
    /// The most telling first.
    pub differences: Vec<Difference>,
    /// Differences that change nothing that is known.
    pub unimportant: Vec<Change>,
    /// Facts known on both and the same.
    pub same: u64,
    /// Facts that only one of both knows.
    pub not_compared: Vec<Change>,
}

/// The good one, and each other against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this shape; within one, keys are only added.
    pub schema: u32,
    /// The file or run.
    pub good: String,
    /// Each of the others.
    pub others: Vec<Against>,
}

impl Comparison {
    /// The schema that this version writes.
    pub const SCHEMA: u32 = 1;
}
