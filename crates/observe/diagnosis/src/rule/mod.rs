//! What a rule is, and what several rules have in common. The rules themselves are in `causes`.

pub(crate) mod allocators;
pub(crate) mod descriptors;
pub(crate) mod finding;
pub(crate) mod retainers;
pub(crate) mod sharing;

use crate::analysis::{Analysis, RemedyContext};
use ullage_model::{Finding, Fix};

/// What a rule says of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The cause is there; more than one finding where it struck in unrelated places.
    Found(Vec<Finding>),
    /// It is not there.
    Nothing,
    /// It can be neither found nor ruled out.
    CannotTell {
        /// What could not be read.
        because: String,
    },
}

impl Judgement {
    pub(crate) fn one(finding: Finding) -> Judgement {
        Judgement::Found(vec![finding])
    }

    pub(crate) fn cannot_tell(because: impl Into<String>) -> Judgement {
        Judgement::CannotTell { because: because.into() }
    }
}

/// A cause that can be told from a recording. The head of its file is its manual page.
pub struct Rule {
    /// Id in the catalogue.
    pub id: &'static str,
    /// The catalogue's title.
    pub title: &'static str,
    /// Text of the rule's own file.
    pub(crate) source: &'static str,
    /// Judges a run.
    pub judge: fn(&Analysis) -> Judgement,
    /// What removes the cause, best first.
    pub(crate) fixes: fn(&RemedyContext) -> Vec<Fix>,
}

impl Rule {
    /// The manual page: the `//!` lines at the head of the rule's file, in Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        let mut page = String::new();
        for line in lines {
            let line = line.trim_start_matches("//!");
            page.push_str(line.strip_prefix(' ').unwrap_or(line));
            page.push('\n');
        }
        page
    }
}
