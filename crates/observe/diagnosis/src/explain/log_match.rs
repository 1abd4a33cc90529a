//! One known message in a log, and what it says besides.

use super::messages::Kind;
use regex::Regex;

/// A known message in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMatch {
    /// Line number, from 1.
    pub line: u64,
    /// Id of the message.
    pub pattern: &'static str,
    /// Who prints it.
    pub emitter: &'static str,
    /// The line, at most 300 characters.
    pub text: String,
    /// What to look at next, where that is known.
    pub hint: Option<&'static str>,
    /// It reports an earlier failure of something else, or comes after the first one.
    pub follows: bool,
    pub(crate) kind: Kind,
    /// Causes that it is consistent with, likeliest first.
    pub(crate) causes: &'static [String],
    pub(crate) figures: Figures,
    pub(crate) doing: Doing,
    /// A failure of another kind stands shortly before it.
    pub(crate) explained: bool,
}

/// Numbers in a message that make a cause more or less likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Bytes asked for.
    pub(crate) bytes: Option<u64>,
    /// Number of torch's segment: how many this process has made.
    pub(crate) segment: Option<u64>,
}

impl Figures {
    pub(crate) fn of(regex: &Regex, text: &str) -> Figures {
        let Some(found) = regex.captures(text) else { return Figures::default() };
        let group = |name: &str| found.name(name).map(|part| part.as_str());
        Figures {
            bytes: group("bytes").and_then(|bytes| bytes.parse().ok()),
            segment: group("file")
                .filter(|file| file.contains("torch_"))
                .and_then(|file| file.rsplit('_').next()?.parse().ok()),
        }
    }
}

/// Where something was done that was refused, as far as the lines above the message show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Nothing shows it.
    #[default]
    Unknown,
    /// A process or thread was being made.
    Forking,
    /// Memory was being mapped.
    Mapping,
    /// Something was put into shared memory.
    Sharing,
    /// A file was written.
    Writing,
}
